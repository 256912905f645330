#!/usr/bin/env python3
"""A ROS 1 node: images and clouds in, dense depth, sigma and a cloud with covariance out.

Subscribes to `image` (sensor_msgs/Image; `image/compressed` with ~compressed), `camera_info`, `points`
(sensor_msgs/PointCloud2, or with ~depth_image a depth Image of the picture's pixels), /tf and /tf_static.
Publishes `depth` and `sigma` (32FC1 metres, or 16UC1 millimetres with ~encoding) with the time and frame of
the image, and `cloud` (fields x y z rgb sigma and the covariance xx xy xz yy yz zz).

It is run against a real roscore, `rosbag play` and a listener by tests/predict/test_ros1.py.
"""

from __future__ import annotations

from typing import Any

import rospy
from sensor_msgs.msg import CameraInfo, CompressedImage, Image, PointCloud2, PointField
from tf2_msgs.msg import TFMessage

import gbpn
from gbpn.jobs.robot import Robot, cloud_fields, depth_fields

_QUEUE_BYTES = 2**24
"""What a connection may hold back: less, and old images would wait in it."""


def message(kind: Any, header: Any, fields: dict[str, Any]) -> Any:
    """A message of rospy; bytes as it wants them."""
    data = fields.pop("data")
    return kind(header=header, data=data.tobytes(), **fields)


def main() -> None:
    """The node itself."""
    rospy.init_node("gbpn")
    get = rospy.get_param
    encoding, step = str(get("~encoding", "32FC1")), int(get("~cloud_step", 2))
    robot = Robot(
        gbpn.DepthCompleter.from_pretrained(
            str(get("~weights", "default")), device=str(get("~device", "auto"))
        ),
        tolerance=float(get("~tolerance", 0.05)),
    )
    outputs = {
        "depth": rospy.Publisher("depth", Image, queue_size=1),
        "sigma": rospy.Publisher("sigma", Image, queue_size=1),
        "cloud": rospy.Publisher("cloud", PointCloud2, queue_size=1),
    }
    kind, topic = (CompressedImage, "image/compressed") if get("~compressed", False) else (Image, "image")
    measured = Image if get("~depth_image", False) else PointCloud2
    options = {"queue_size": 1, "buff_size": _QUEUE_BYTES}
    rospy.Subscriber("camera_info", CameraInfo, robot.camera, queue_size=1)
    for name in ("/tf_static", "/tf"):
        rospy.Subscriber(name, TFMessage, robot.transforms, queue_size=100)
    rospy.Subscriber(topic, kind, robot.image, **options)
    rospy.Subscriber("points", measured, robot.points, **options)
    rate, told = rospy.Rate(100), None
    rospy.loginfo("gbpn waits for images, camera_info and points")
    while not rospy.is_shutdown():
        if robot.problem not in (None, told):
            told = robot.problem
            rospy.logwarn(told)
        if (found := robot.next()) is not None:
            answer = found.answer
            outputs["depth"].publish(message(Image, found.header, depth_fields(answer.depth, encoding)))
            if answer.sigma is not None:
                outputs["sigma"].publish(message(Image, found.header, depth_fields(answer.sigma, encoding)))
            if outputs["cloud"].get_num_connections():
                fields = cloud_fields(found, PointField, step=step)
                outputs["cloud"].publish(message(PointCloud2, found.header, fields))
            rospy.loginfo_throttle(
                5, f"{answer.rate:.1f}/s, {answer.age:.2f} s old, {answer.dropped} of {robot.images} dropped"
            )
        try:
            rate.sleep()
        except rospy.exceptions.ROSTimeMovedBackwardsException:
            continue
        except rospy.ROSInterruptException:
            break
    robot.close()


if __name__ == "__main__":
    main()
