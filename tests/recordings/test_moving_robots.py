"""Bags as people record them: cameras by namespace, robots that move, scans that take their time."""

from __future__ import annotations

import io
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from gbpn.errors import InputError
from gbpn.recordings.bags import Recording
from gbpn.recordings.messages import timed_cloud_of
from gbpn.recordings.transforms import TransformTree
from making_recordings import SECOND, START, TO_CAMERA, Writer, scanned

pytest.importorskip("rosbags", reason="bags need gbpn[ros]")
NUMBERS = (60.0, 60.0, 28.0, 20.0)
SIZE = (40, 56)


def turned(angle: float, move: tuple[float, float, float] = (0, 0, 0)) -> np.ndarray:
    """About z."""
    out = np.eye(4)
    out[:2, :2] = [[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]]
    out[:3, 3] = move
    return out


@pytest.mark.parametrize("share", [0.0, 0.25, 0.5, 1.0])
def test_transforms_are_interpolated(share: float) -> None:
    tree = TransformTree()
    tree.add("odom", "base", turned(0.2, (1, 0, 0)), 0)
    tree.add("odom", "base", turned(1.0, (3, 0, 0)), SECOND)
    np.testing.assert_allclose(
        tree.between("base", "odom", round(share * SECOND)),
        turned(0.2 + 0.8 * share, (1 + 2 * share, 0, 0)),
        atol=1e-9,
    )


def test_what_was_measured_before_is_seen_where_it_is_now() -> None:
    """A robot at 2 m/s, measured 0.1 s before the picture."""
    tree = TransformTree()
    tree.add("base", "lidar", np.eye(4), 0)
    tree.add("base", "camera", np.linalg.inv(TO_CAMERA), 0)
    still = tree.between("lidar", "camera", SECOND, SECOND - SECOND // 10)
    np.testing.assert_allclose(still, TO_CAMERA, atol=1e-12)
    for tenth in range(21):
        tree.add("odom", "base", turned(0, (0.2 * tenth, 0, 0)), tenth * SECOND // 10)
    assert tree.moving
    back = np.eye(4)
    back[0, 3] = -0.2
    moved = tree.between("lidar", "camera", SECOND, SECOND - SECOND // 10)
    np.testing.assert_allclose(moved, TO_CAMERA @ back, atol=1e-9)


def drive(path: Path, image: str, infos: tuple[str, ...]) -> Path:
    pixels = np.random.default_rng(0).integers(0, 256, (*SIZE, 3), dtype=np.uint8)
    depth = np.zeros(SIZE, np.float32)
    depth[::6, ::6] = 2
    coded = io.BytesIO()
    Image.fromarray(pixels).save(coded, "PNG")
    with Writer(path, "mcap") as bag:
        for number, info in enumerate(infos):
            bag.camera(info, START, SIZE, (60.0 + number, *NUMBERS[1:]))
        bag.transform("/tf_static", START, "base", "lidar", np.eye(4))
        bag.transform("/tf_static", START, "base", "camera", np.linalg.inv(TO_CAMERA))
        picture = bag.make(
            "sensor_msgs/CompressedImage", header=bag.header(START, "camera"), format="png",
            data=np.frombuffer(coded.getvalue(), np.uint8),
        )  # fmt: skip
        bag.write(image, picture, START)
        bag.cloud("/lidar/points", START, scanned(depth, NUMBERS))
    return path


@pytest.mark.parametrize(
    ("image", "infos", "wanted"),
    [
        ("/cam/image/compressed", ("/cam/camera_info",), 60.0),
        ("/cam/image/compressed", ("/cam/image/camera_info", "/cam/camera_info"), 60.0),
        ("/front/image_raw/compressed", ("/rear/camera_info", "/front/camera_info"), 61.0),
        ("/cam/rgb", ("/other/left/camera_info", "/cam/info/camera_info"), 61.0),
        ("/picture", ("/calibration/camera_info",), 60.0),
    ],
)
def test_the_camera_of_a_namespace(tmp_path: Path, image: str, infos: tuple[str, ...], wanted: float) -> None:
    with Recording(drive(tmp_path / "bag", image, infos)) as recording:
        recording.require_camera()
        recording.require_transform()
        (pair, *_), _ = recording.pairs()
        camera = recording.frame(*pair).camera
    assert camera is not None
    assert float(camera.intrinsics[0, 0]) == wanted


def test_two_cameras_that_may_be_meant_are_listed(tmp_path: Path) -> None:
    path = drive(tmp_path / "bag", "/picture", ("/a/camera_info", "/b/camera_info"))
    with (
        Recording(path) as recording,
        pytest.raises(InputError, match=r"which camera took /picture\? .* /a/camera_info .* /b/camera_info"),
    ):
        recording.require_camera()
    with Recording(path, camera_info="/b/camera_info") as recording:
        recording.require_camera()


@pytest.mark.parametrize(("name", "kind", "unit"), [("t", 6, 1), ("time", 7, 1e-9), ("timestamp", 8, 1e-9)])
def test_scans_are_deskewed_by_the_times_of_their_points(
    tmp_path: Path, name: str, kind: int, unit: float
) -> None:
    """A wall ahead, scanned in 0.1 s from a robot at 2 m/s: the last points are 20 cm too near."""
    count, speed, long = 640, 2.0, SECOND // 10
    since = np.linspace(0, long, count)
    true = np.stack([np.full(count, 8.0), np.linspace(-2, 2, count), np.zeros(count)], axis=1)
    seen = true.copy()
    seen[:, 0] -= speed * since / SECOND
    dtype = {6: "<u4", 7: "<f4", 8: "<f8"}[kind]
    stamp = START / SECOND if name == "timestamp" else 0.0
    table = np.zeros(count, np.dtype([("x", "<f4"), ("y", "<f4"), ("z", "<f4"), (name, dtype)]))
    for place, axis in enumerate("xyz"):
        table[axis] = seen[:, place]
    table[name] = stamp + since * unit
    with Writer(tmp_path / "bag", "mcap") as bag:
        bag.camera("/cam/camera_info", START, SIZE, NUMBERS)
        bag.transform("/tf_static", START, "base", "lidar", np.eye(4))
        for step in range(-2, 4):
            place = turned(0, (speed * step * 0.05, 0, 0))
            bag.transform("/tf", START + step * SECOND // 20, "odom", "base", place)
        fields = [
            bag.make("sensor_msgs/PointField", name=axis, offset=4 * k, datatype=7, count=1)
            for k, axis in enumerate("xyz")
        ] + [bag.make("sensor_msgs/PointField", name=name, offset=12, datatype=kind, count=1)]
        message = bag.make(
            "sensor_msgs/PointCloud2", header=bag.header(START, "lidar"), height=1, width=count,
            fields=fields, is_bigendian=False, point_step=table.itemsize, row_step=table.itemsize * count,
            data=np.frombuffer(table.tobytes(), np.uint8), is_dense=True,
        )  # fmt: skip
        bag.write("/lidar/points", message, START)
        bag.image("/cam/image", START, np.zeros((*SIZE, 3), np.uint8), frame="lidar")
        _, times = timed_cloud_of(message)
    assert times is not None
    np.testing.assert_allclose(times, since, atol=2e-3 * long)
    errors = {}
    for deskew in (False, True):
        with Recording(tmp_path / "bag", deskew=deskew) as recording:
            (pair, *_), _ = recording.pairs()
            points = recording.frame(*pair).points
        assert points is not None
        errors[deskew] = float(np.abs(points[:, 0] - 8).max())
    assert errors[False] == pytest.approx(0.2, abs=0.01)
    assert errors[True] < 0.01
