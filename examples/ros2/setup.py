"""Installed by colcon; gbpn itself comes from pip."""

from setuptools import setup

NAME = "gbpn_ros"
setup(
    name=NAME,
    version="0.2.0",
    packages=[NAME],
    data_files=[
        ("share/ament_index/resource_index/packages", [f"resource/{NAME}"]),
        (f"share/{NAME}", ["package.xml"]),
        (f"share/{NAME}/launch", ["launch/gbpn.launch.py"]),
        (f"share/{NAME}/config", ["config/gbpn.yaml"]),
    ],
    install_requires=["setuptools", "gbpn"],
    entry_points={"console_scripts": [f"gbpn_node = {NAME}.node:main"]},
)
