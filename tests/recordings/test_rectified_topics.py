"""Topics of undistorted images: their camera is P, their lens gone, their axes turned by R."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from gbpn.recordings.bags import Recording
from gbpn.synthetic.raycast import turn
from making_recordings import START, Writer

pytest.importorskip("rosbags", reason="needs pip install gbpn[ros]")
NUMBERS = (60.0, 60.0, 28.0, 20.0)
TURN = turn(0.02, -0.01, 0.03)
PICTURE = np.zeros((40, 56, 3), np.uint8)


class Rectifying(Writer):  # type: ignore[misc]
    """A bag whose camera says how its images are rectified."""

    projection = np.array([50.0, 0, 27, 0, 0, 50, 19, 0, 0, 0, 1, 0])

    def make(self, kind_name: str, /, **fields):
        if kind_name == "sensor_msgs/CameraInfo":
            names = ("P", "R") if self.first else ("p", "r")
            fields |= dict(zip(names, (self.projection, TURN.ravel()), strict=True))
        return super().make(kind_name, **fields)


class Unrectified(Rectifying):
    projection = np.zeros(12)


def recorded(folder: Path, kind: str, topic: str, writer: type[Writer] = Rectifying) -> Recording:
    path = folder / ("drive.bag" if kind == "bag" else "drive")
    with writer(path, kind) as bag:
        bag.camera("/cam/camera_info", START, (40, 56), NUMBERS, (-0.2, 0, 0, 0, 0))
        bag.transform("/tf_static", START, "camera", "lidar", np.eye(4))
        bag.image(topic, START, PICTURE)
        bag.cloud("/lidar/points", START, np.array([[0.0, 0, 2]]))
    return Recording(path)


@pytest.mark.parametrize("kind", ["bag", "sqlite3"])
def test_a_rectified_topic_is_seen_by_the_projection(tmp_path: Path, kind: str) -> None:
    with recorded(tmp_path, kind, "/cam/image_rect") as recording:
        (pair,), _ = recording.pairs()
        frame = recording.frame(*pair)
    assert frame.camera is not None
    assert frame.camera.lens is None
    assert frame.camera.size == (56, 40)
    np.testing.assert_allclose(frame.camera.intrinsics.numpy(), [[50, 0, 27], [0, 50, 19], [0, 0, 1]])
    assert frame.to_camera is not None
    np.testing.assert_allclose(frame.to_camera[:3, :3], TURN, atol=1e-9)
    np.testing.assert_allclose(frame.to_camera[:3, 3], 0, atol=1e-9)


def test_a_raw_topic_is_seen_through_the_lens(tmp_path: Path) -> None:
    with recorded(tmp_path, "sqlite3", "/cam/image_raw") as recording:
        (pair,), _ = recording.pairs()
        frame = recording.frame(*pair)
    assert frame.camera is not None
    assert frame.camera.lens is not None
    assert frame.camera.intrinsics[0, 0] == 60
    assert frame.to_camera is not None
    np.testing.assert_allclose(frame.to_camera, np.eye(4), atol=1e-9)


def test_without_a_projection_the_matrix_stays_and_the_lens_goes(tmp_path: Path) -> None:
    with recorded(tmp_path, "sqlite3", "/cam/image_rect", Unrectified) as recording:
        (pair,), _ = recording.pairs()
        camera = recording.frame(*pair).camera
    assert camera is not None
    assert camera.lens is None
    assert camera.intrinsics[0, 0] == 60
    assert camera.size == (56, 40)
