"""The node with its parameters; topics are arguments."""

from pathlib import Path

from ament_index_python.packages import get_package_share_directory
from launch import LaunchDescription
from launch.actions import DeclareLaunchArgument
from launch.substitutions import LaunchConfiguration
from launch_ros.actions import Node

TOPICS = {"image": "/cam/image_raw", "camera_info": "/cam/camera_info", "points": "/lidar/points"}


def generate_launch_description() -> LaunchDescription:
    """Called by ros2 launch."""
    settings = Path(get_package_share_directory("gbpn_ros")) / "config" / "gbpn.yaml"
    node = Node(
        package="gbpn_ros",
        executable="gbpn_node",
        name="gbpn",
        output="screen",
        respawn=True,
        parameters=[str(settings)],
        remappings=[(name, LaunchConfiguration(name)) for name in TOPICS],
    )
    arguments = [DeclareLaunchArgument(name, default_value=topic) for name, topic in TOPICS.items()]
    return LaunchDescription([*arguments, node])
