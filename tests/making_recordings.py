"""Recordings in the true formats, made with the real libraries: ROS 1 and ROS 2 bags, MCAP, video."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np

from gbpn.recordings.messages import image_fields
from gbpn.recordings.video import write_video

SECOND = 1_000_000_000
START = 1_700_000_000 * SECOND
TO_CAMERA = np.array([[0.0, -1, 0, 0.02], [0, 0, -1, -0.05], [1, 0, 0, -0.1], [0, 0, 0, 1]])
"""A scanner with x ahead and z up, mounted a little above and behind the camera."""
TF_DEFINITION = "geometry_msgs/TransformStamped[] transforms"


class Writer:
    """Messages of one distribution into a bag; topics are added when they are first written."""

    def __init__(self, path: Path, kind: str) -> None:
        """`kind`: "bag" (ROS 1), "sqlite3" or "mcap" (ROS 2)."""
        from rosbags.rosbag1 import Writer as Writer1
        from rosbags.rosbag2 import StoragePlugin
        from rosbags.rosbag2 import Writer as Writer2
        from rosbags.typesys import Stores, get_types_from_msg, get_typestore

        self.first = kind == "bag"
        self.transform_type = "tf2_msgs/TFMessage"
        self.store = get_typestore(Stores.ROS1_NOETIC if self.first else Stores.ROS2_HUMBLE)
        if self.first:
            self.store.register(get_types_from_msg(TF_DEFINITION, "tf2_msgs/msg/TFMessage"))
            self.writer: Any = Writer1(path)
        else:
            self.writer = Writer2(path, version=9, storage_plugin=StoragePlugin[kind.upper()])
        self.connections: dict[str, Any] = {}

    def __enter__(self) -> Writer:
        self.writer.open()
        return self

    def __exit__(self, *_: object) -> None:
        self.writer.close()

    def make(self, kind_name: str, /, **fields: Any) -> Any:
        """A message of a type such as sensor_msgs/Image; a header of ROS 1 gets its number."""
        kind = kind_name.replace("/", "/msg/")
        if kind == "std_msgs/msg/Header" and self.first:
            fields = {"seq": 0, **fields}
        return self.store.types[kind](**fields)

    def header(self, time: int, frame: str) -> Any:
        stamp = self.make("builtin_interfaces/Time", sec=time // SECOND, nanosec=time % SECOND)
        return self.make("std_msgs/Header", stamp=stamp, frame_id=frame)

    def write(self, topic: str, message: Any, time: int) -> None:
        kind = message.__msgtype__
        if topic not in self.connections:
            self.connections[topic] = self.writer.add_connection(topic, kind, typestore=self.store)
        pack = self.store.serialize_ros1 if self.first else self.store.serialize_cdr
        self.writer.write(self.connections[topic], time, pack(message, kind))

    def image(self, topic: str, time: int, pixels: np.ndarray, frame: str = "camera") -> None:
        fields = image_fields(pixels)
        self.write(topic, self.make("sensor_msgs/Image", header=self.header(time, frame), **fields), time)

    def cloud(self, topic: str, time: int, points: np.ndarray, frame: str = "lidar") -> None:
        """x y z intensity as float32, as most drivers send them."""
        table = np.zeros((len(points), 4), "<f4")
        table[:, :3] = points
        fields = [
            self.make("sensor_msgs/PointField", name=name, offset=4 * place, datatype=7, count=1)
            for place, name in enumerate(("x", "y", "z", "intensity"))
        ]
        message = self.make(
            "sensor_msgs/PointCloud2", header=self.header(time, frame), height=1, width=len(table),
            fields=fields, is_bigendian=False, point_step=16, row_step=16 * len(table),
            data=np.frombuffer(table.tobytes(), np.uint8), is_dense=True,
        )  # fmt: skip
        self.write(topic, message, time)

    def camera(
        self, topic: str, time: int, size: tuple[int, int], numbers: Sequence[float],
        lens: Sequence[float] = (), model: str = "plumb_bob", frame: str = "camera",
    ) -> None:  # fmt: skip
        fx, fy, cx, cy = numbers
        values = {
            "k": np.array([fx, 0, cx, 0, fy, cy, 0, 0, 1.0]),
            "p": np.array([fx, 0, cx, 0, 0, fy, cy, 0, 0, 0, 1.0, 0]),
            "r": np.eye(3).ravel(),
            "d": np.array(lens or [0.0] * 5),
        }
        values = {name.upper() if self.first else name: value for name, value in values.items()}
        roi = self.make(
            "sensor_msgs/RegionOfInterest", x_offset=0, y_offset=0, height=0, width=0, do_rectify=False
        )
        message = self.make(
            "sensor_msgs/CameraInfo", header=self.header(time, frame), height=size[0], width=size[1],
            distortion_model=model, binning_x=0, binning_y=0, roi=roi, **values,
        )  # fmt: skip
        self.write(topic, message, time)

    def transform(self, topic: str, time: int, parent: str, child: str, matrix: np.ndarray) -> None:
        """`matrix`: child's coordinates → parent's."""
        a, b, c = matrix[:3, 3]
        w = np.sqrt(max(1 + np.trace(matrix[:3, :3]), 1e-12)) / 2
        x, y, z = (
            (matrix[2, 1] - matrix[1, 2]) / (4 * w),
            (matrix[0, 2] - matrix[2, 0]) / (4 * w),
            (matrix[1, 0] - matrix[0, 1]) / (4 * w),
        )
        told = self.make(
            "geometry_msgs/TransformStamped",
            header=self.header(time, parent),
            child_frame_id=child,
            transform=self.make(
                "geometry_msgs/Transform",
                translation=self.make("geometry_msgs/Vector3", x=float(a), y=float(b), z=float(c)),
                rotation=self.make(
                    "geometry_msgs/Quaternion", x=float(x), y=float(y), z=float(z), w=float(w)
                ),
            ),
        )
        self.write(topic, self.make(self.transform_type, transforms=[told]), time)


def scanned(depth: np.ndarray, numbers: Sequence[float], to_camera: np.ndarray = TO_CAMERA) -> np.ndarray:
    """[N, 3] points in the scanner's frame, whose projection is the sparse map `depth` [H, W]."""
    fx, fy, cx, cy = numbers
    rows, columns = np.nonzero(depth)
    metres = depth[rows, columns].astype(np.float64)
    seen = np.stack([(columns - cx) / fx * metres, (rows - cy) / fy * metres, metres], axis=1)
    back = np.linalg.inv(to_camera)
    return seen @ back[:3, :3].T + back[:3, 3]


def write_drive(
    path: Path, kind: str, picture: np.ndarray, depth: np.ndarray, numbers: Sequence[float], *,
    frames: int = 3, late: float = 0.013, lens: Sequence[float] = (), model: str = "plumb_bob",
) -> Path:  # fmt: skip
    """A camera at 10 Hz, a scanner `late` seconds after it, their calibration; the file to give to gbpn."""
    with Writer(path, kind) as bag:
        bag.camera("/cam/camera_info", START, picture.shape[:2], numbers, lens, model)
        bag.transform("/tf_static", START, "base", "lidar", np.eye(4))
        bag.transform("/tf_static", START, "base", "camera", np.linalg.inv(TO_CAMERA))
        for frame in range(frames):
            time = START + SECOND + frame * SECOND // 10
            bag.image("/cam/image", time, np.roll(picture, frame, axis=1))
            bag.cloud("/lidar/points", time + round(late * SECOND), scanned(depth, numbers))
    return path if kind != "mcap" else next(path.glob("*.mcap"))


def write_clip(path: Path, picture: np.ndarray, frames: int = 3) -> Path:
    """A video of a picture that moves."""
    return write_video(path, (np.roll(picture, frame, axis=1) for frame in range(frames)), Fraction(10))
