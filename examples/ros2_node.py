"""A ROS 2 node: images and clouds in, dense depth and sigma out.

    python examples/ros2_node.py --ros-args -r image:=/cam/image_raw -r camera_info:=/cam/camera_info \
        -r points:=/lidar/points

Subscribes to `image` (sensor_msgs/Image), `camera_info` and `points` (sensor_msgs/PointCloud2), takes the
transform from tf2, and publishes `depth` and `sigma` as 32FC1 images with the time and frame of the image.

Its conversions are tested with the message definitions of ROS 2 Humble (tests/documents/test_examples.py).
The node itself was not run under ROS: its calls of rclpy and tf2_ros follow their documentation.
"""

from __future__ import annotations

import tempfile
from array import array
from pathlib import Path
from typing import Any

import numpy as np

import gbpn
from gbpn.recordings.messages import cloud_of, image_fields, picture_of, seconds_of, transform_of


def camera_of(info: Any) -> Path:
    """The camera of a CameraInfo message, as a file that `gbpn.Live` takes: with its lens."""
    import yaml

    table = {
        "width": int(info.width),
        "height": int(info.height),
        "distortion_model": str(info.distortion_model),
        "k": [float(value) for value in info.k],
        "d": [float(value) for value in info.d],
    }
    path = Path(tempfile.mkdtemp()) / "camera_info.yaml"
    path.write_text(yaml.safe_dump(table))
    return path


def depth_message(kind: Any, header: Any, metres: np.ndarray) -> Any:
    """[H, W] metres as an Image of 32FC1, 0 where unknown; `kind` is the message's class."""
    fields = image_fields(np.nan_to_num(metres))
    data = fields.pop("data")
    # rclpy takes an array of bytes as it is, and would look at every single one of other sequences
    return kind(header=header, **fields, data=array("B", data.tobytes()))


class Completion:
    """What the node does, without rclpy: messages in, arrays out."""

    def __init__(self, completer: gbpn.DepthCompleter, tolerance: float = 0.05) -> None:
        self.completer, self.tolerance = completer, tolerance
        self.live: gbpn.Live | None = None
        self.headers: dict[float, Any] = {}

    def begin(self, info: Any, transform: Any) -> None:
        """Once the camera and the transform (geometry_msgs/Transform, points to camera) are known."""
        if self.live is None:
            matrix = transform_of(transform)
            self.live = gbpn.Live(self.completer, camera_of(info), matrix, tolerance=self.tolerance)

    def image(self, message: Any) -> None:
        if self.live is not None:
            self.headers[seconds_of(message)] = message.header
            self.headers = dict(list(self.headers.items())[-32:])
            self.live.push_image(picture_of(message), seconds_of(message))

    def points(self, message: Any) -> None:
        if self.live is not None:
            self.live.push_cloud(cloud_of(message), seconds_of(message))


def main() -> None:
    """The node itself."""
    import rclpy
    import tf2_ros
    from rclpy.node import Node
    from rclpy.qos import qos_profile_sensor_data
    from sensor_msgs.msg import CameraInfo, Image, PointCloud2

    rclpy.init()
    node = Node("gbpn")
    work = Completion(gbpn.DepthCompleter.from_pretrained())
    buffer = tf2_ros.Buffer()
    tf2_ros.TransformListener(buffer, node)
    depths, sigmas = node.create_publisher(Image, "depth", 1), node.create_publisher(Image, "sigma", 1)
    seen: dict[str, Any] = {}
    told = 0

    def points(message: Any) -> None:
        if work.live is None and "info" in seen:
            source, target = message.header.frame_id, seen["info"].header.frame_id
            if buffer.can_transform(target, source, rclpy.time.Time()):
                found = buffer.lookup_transform(target, source, rclpy.time.Time())
                work.begin(seen["info"], found.transform)
        work.points(message)

    def publish() -> None:
        nonlocal told
        answer = None if work.live is None else work.live.latest
        if answer is None or answer.number == told or answer.stamp not in work.headers:
            return
        told, header = answer.number, work.headers[answer.stamp]
        depths.publish(depth_message(Image, header, answer.depth))
        if answer.sigma is not None:
            sigmas.publish(depth_message(Image, header, answer.sigma))
        node.get_logger().info(f"{answer.rate:.1f}/s, {answer.age:.2f} s old, {answer.dropped} dropped")

    node.create_subscription(CameraInfo, "camera_info", lambda m: seen.setdefault("info", m), 1)
    node.create_subscription(Image, "image", work.image, qos_profile_sensor_data)
    node.create_subscription(PointCloud2, "points", points, qos_profile_sensor_data)
    node.create_timer(0.02, publish)
    try:
        rclpy.spin(node)
    finally:
        if work.live is not None:
            work.live.close()
        rclpy.shutdown()


if __name__ == "__main__":
    main()
