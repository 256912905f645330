"""A ROS 2 node: images and clouds in, dense depth, sigma and a cloud with covariance out.

    ros2 launch gbpn_ros gbpn.launch.py image:=/cam/image_raw points:=/lidar/points

Topics and parameters are those of the ROS 1 node beside it; `config/gbpn.yaml` lists the parameters.
Its work, `gbpn.jobs.robot`, is run under ROS 1 and tested with the message definitions of ROS 2 Humble
(tests/predict/test_robot.py). The node itself was not run under ROS 2: its calls of rclpy follow their
documentation.
"""

from __future__ import annotations

from array import array
from typing import Any

import rclpy
from rclpy.node import Node
from rclpy.qos import DurabilityPolicy, QoSProfile, ReliabilityPolicy, qos_profile_sensor_data
from sensor_msgs.msg import CameraInfo, CompressedImage, Image, PointCloud2, PointField
from tf2_msgs.msg import TFMessage

import gbpn
from gbpn.jobs.robot import Robot, cloud_fields, depth_fields

PARAMETERS = {
    "weights": "default",
    "device": "auto",
    "tolerance": 0.05,
    "encoding": "32FC1",
    "cloud_step": 2,
    "compressed": False,
    "depth_image": False,
}


def message(kind: Any, header: Any, fields: dict[str, Any]) -> Any:
    """A message of rclpy, which takes an array of bytes as it is and would look at each byte of others."""
    data = fields.pop("data")
    return kind(header=header, data=array("B", data.tobytes()), **fields)


class GbpnNode(Node):
    """Hands messages to a `Robot` and publishes its answers."""

    def __init__(self) -> None:
        super().__init__("gbpn")
        for name, value in PARAMETERS.items():
            self.declare_parameter(name, value)
        got = {name: self.get_parameter(name).value for name in PARAMETERS}
        self.encoding, self.step = str(got["encoding"]), int(got["cloud_step"])
        completer = gbpn.DepthCompleter.from_pretrained(str(got["weights"]), device=str(got["device"]))
        self.robot = Robot(completer, tolerance=float(got["tolerance"]))
        self.depths = self.create_publisher(Image, "depth", qos_profile_sensor_data)
        self.sigmas = self.create_publisher(Image, "sigma", qos_profile_sensor_data)
        self.clouds = self.create_publisher(PointCloud2, "cloud", qos_profile_sensor_data)
        kind, topic = (CompressedImage, "image/compressed") if got["compressed"] else (Image, "image")
        measured = Image if got["depth_image"] else PointCloud2
        latched = QoSProfile(
            depth=100,
            reliability=ReliabilityPolicy.RELIABLE,
            durability=DurabilityPolicy.TRANSIENT_LOCAL,
        )
        self.create_subscription(CameraInfo, "camera_info", self.robot.camera, qos_profile_sensor_data)
        self.create_subscription(TFMessage, "/tf_static", self.robot.transforms, latched)
        self.create_subscription(TFMessage, "/tf", self.robot.transforms, 100)
        self.create_subscription(kind, topic, self.robot.image, qos_profile_sensor_data)
        self.create_subscription(measured, "points", self.robot.points, qos_profile_sensor_data)
        self.create_timer(0.01, self.publish)
        self.told: str | None = None

    def publish(self) -> None:
        """The newest answer, if it was not published yet."""
        if self.robot.problem not in (None, self.told):
            self.told = self.robot.problem
            self.get_logger().warning(str(self.told))
        if (found := self.robot.next()) is None:
            return
        answer = found.answer
        self.depths.publish(message(Image, found.header, depth_fields(answer.depth, self.encoding)))
        if answer.sigma is not None:
            self.sigmas.publish(message(Image, found.header, depth_fields(answer.sigma, self.encoding)))
        if self.clouds.get_subscription_count():
            fields = cloud_fields(found, PointField, step=self.step)
            self.clouds.publish(message(PointCloud2, found.header, fields))
        self.get_logger().info(
            f"{answer.rate:.1f}/s, {answer.age:.2f} s old, {answer.dropped} of {self.robot.images} dropped",
            throttle_duration_sec=5.0,
        )


def main() -> None:
    """Spin until the end."""
    rclpy.init()
    node = GbpnNode()
    try:
        rclpy.spin(node)
    finally:
        node.robot.close()
        node.destroy_node()
        rclpy.try_shutdown()


if __name__ == "__main__":
    main()
