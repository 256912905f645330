"""What a ROS node does, with messages of the true definitions of ROS 1 and ROS 2."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gbpn
from gbpn.jobs.robot import Answered, Robot, cloud_fields, depth_fields
from gbpn.recordings.messages import cloud_of, depth_of
from making_recordings import SECOND, START, TO_CAMERA, Writer, scanned

pytest.importorskip("rosbags", reason="messages need gbpn[ros]")
NUMBERS = (60.0, 60.0, 28.0, 20.0)
KINDS = ("bag", "mcap")


class Sent(Writer):  # type: ignore[misc]
    """Messages, packed and unpacked as their definitions say, kept by topic."""

    def __init__(self, path: Path, kind: str) -> None:
        super().__init__(path, kind)
        self.sent: dict[str, Any] = {}

    def write(self, topic: str, message: Any, time: int) -> None:
        kind = message.__msgtype__
        if self.first:
            self.sent[topic] = self.store.deserialize_ros1(self.store.serialize_ros1(message, kind), kind)
        else:
            self.sent[topic] = self.store.deserialize_cdr(self.store.serialize_cdr(message, kind), kind)


@pytest.fixture(scope="module")
def scene() -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    depth = np.zeros((40, 56), np.float32)
    depth.reshape(-1)[rng.choice(depth.size, 60, replace=False)] = rng.uniform(1.9, 2.1, 60)
    return np.full((40, 56, 3), 128, np.uint8), depth


@pytest.fixture(scope="module")
def completer() -> gbpn.DepthCompleter:
    return gbpn.DepthCompleter.from_pretrained()


def messages(folder: Path, kind: str, scene: tuple[np.ndarray, np.ndarray], time: int = START) -> Sent:
    picture, depth = scene
    made = Sent(folder / f"{kind}{time}", kind)
    made.camera("camera_info", START, picture.shape[:2], NUMBERS)
    made.transform("tf", START, "camera", "lidar", TO_CAMERA)
    made.image("image", time, picture)
    made.cloud("points", time, scanned(depth, NUMBERS))
    return made


def answered(robot: Robot, sent: dict[str, Any]) -> Answered:
    robot.points(sent["points"])
    robot.image(sent["image"])
    for _ in range(600):
        if (found := robot.next()) is not None:
            return found
        assert robot.problem is None, robot.problem
        assert robot._live is not None
        robot._live.wait(0.1)
    raise TimeoutError


@pytest.mark.parametrize("kind", KINDS)
def test_messages_become_answers_and_messages_again(tmp_path: Path, completer, scene, kind: str) -> None:
    made = messages(tmp_path, kind, scene)
    robot = Robot(completer)
    robot.image(made.sent["image"])
    assert robot.next() is None, "nothing is known of the camera yet"
    robot.transforms(made.sent["tf"])
    robot.camera(made.sent["camera_info"])
    found = answered(robot, made.sent)
    robot.close()
    picture, depth = scene
    wanted = completer(
        picture, cloud=scanned(depth, NUMBERS), intrinsics=NUMBERS, transform=TO_CAMERA, sigmas=True
    )
    np.testing.assert_allclose(found.answer.depth, wanted.depth, rtol=2e-3)
    assert found.header.frame_id == "camera"
    for encoding, error in (("32FC1", 0.0), ("16UC1", 0.51e-3)):
        fields = depth_fields(found.answer.depth, encoding)
        image = made.make("sensor_msgs/Image", header=found.header, **fields)
        made.write("depth", image, START)
        assert made.sent["depth"].encoding == encoding
        np.testing.assert_allclose(depth_of(made.sent["depth"]), found.answer.depth, atol=error)
    fields = cloud_fields(found, lambda **of: made.make("sensor_msgs/PointField", **of), max_sigma=10)
    made.write("cloud", made.make("sensor_msgs/PointCloud2", header=found.header, **fields), START)
    points = cloud_of(made.sent["cloud"])
    assert len(points) == depth.size
    np.testing.assert_allclose(points[:, 2], found.answer.depth.reshape(-1), rtol=1e-6)
    pixel = points @ np.array([[60, 0, 28], [0, 60, 20], [0, 0, 1]]).T / points[:, 2:]
    np.testing.assert_allclose(pixel[:, 0].reshape(40, 56)[7], np.arange(56), atol=1e-3)
    table = np.frombuffer(made.sent["cloud"].data, "<f4").reshape(len(points), -1)
    assert (table[:, 3].view("<u4") == 128 << 16 | 128 << 8 | 128).all()
    for row in table[:: len(table) // 7].astype(float):
        covariance = np.array([[row[5], row[6], row[7]], [row[6], row[8], row[9]], [row[7], row[9], row[10]]])
        assert np.linalg.eigvalsh(covariance).min() > 0
        assert covariance[2, 2] == pytest.approx(row[4] ** 2, rel=1e-4)


def test_a_clock_that_is_set_back_starts_anew(tmp_path: Path, completer, scene) -> None:
    robot = Robot(completer)
    for kind, time in (("mcap", START + 90 * SECOND), ("mcap", START)):
        made = messages(tmp_path, kind, scene, time)
        robot.camera(made.sent["camera_info"])
        robot.transforms(made.sent["tf"])
        robot.points(made.sent["points"])
        robot.image(made.sent["image"])
        assert answered(robot, made.sent).header.stamp.sec == time // SECOND
    assert robot.restarts == 1
    robot.close()


def test_what_cannot_be_used_is_told_and_the_next_is_awaited(tmp_path: Path, completer, scene) -> None:
    robot = Robot(completer)
    made = messages(tmp_path, "mcap", scene)
    robot.camera(made.sent["camera_info"])
    robot.points(made.sent["points"])
    assert "no transform leads from 'lidar' to 'camera'" in str(robot.problem)
    robot.problem = None
    robot.transforms(made.sent["tf"])
    assert answered(robot, made.sent).answer.number == 1
    robot.close()
