"""The examples for robots, as far as they run without their hardware: conversions and loops."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

import gbpn
from making_recordings import START, TO_CAMERA, Writer, scanned

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
NUMBERS = (60.0, 60.0, 28.0, 20.0)


def example(name: str) -> ModuleType:
    specification = importlib.util.spec_from_file_location(name, EXAMPLES / f"{name}.py")
    assert specification is not None
    assert specification.loader is not None
    module = importlib.util.module_from_spec(specification)
    sys.modules[name] = module
    specification.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def completer() -> gbpn.DepthCompleter:
    return gbpn.DepthCompleter(gbpn.build("small-2", width=0.5))


@pytest.fixture(scope="module")
def scene() -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    depth = np.zeros((40, 56), np.float32)
    depth.reshape(-1)[rng.choice(depth.size, 30, replace=False)] = rng.uniform(1.9, 2.0, 30)
    return rng.integers(0, 256, (40, 56, 3), dtype=np.uint8), depth


def test_the_ros_node_with_messages_of_humble(tmp_path: Path, completer, scene) -> None:
    """Messages are written into a bag and read again, so that they are exactly those of the definitions."""
    pytest.importorskip("rosbags", reason="needs pip install gbpn[ros]")
    from rosbags.highlevel import AnyReader

    picture, depth = scene
    node = example("ros2_node")
    with Writer(tmp_path / "bag", "mcap") as bag:
        bag.camera("/info", START, picture.shape[:2], NUMBERS)
        bag.transform("/tf", START, "camera", "lidar", TO_CAMERA)
        bag.cloud("/points", START, scanned(depth, NUMBERS))
        bag.image("/image", START, picture)
    with AnyReader([tmp_path / "bag"]) as reader:
        sent: dict[str, Any] = {
            c.topic: reader.deserialize(data, c.msgtype) for c, _, data in reader.messages()
        }
    work: Any = node.Completion(completer)
    work.image(sent["/image"])
    begun = work.live is not None
    assert not begun, "nothing is known of the camera yet"
    work.begin(sent["/info"], sent["/tf"].transforms[0].transform)
    work.image(sent["/image"])
    work.points(sent["/points"])
    answer = work.live.wait(60, after=0)
    work.live.close()
    wanted = completer(picture, cloud=scanned(depth, NUMBERS), intrinsics=NUMBERS, transform=TO_CAMERA)
    np.testing.assert_allclose(answer.depth, wanted.depth, rtol=1e-4)
    image = type(sent["/image"])
    message = node.depth_message(image, work.headers[answer.stamp], answer.depth)
    assert (message.encoding, message.height, message.width, message.step) == ("32FC1", 40, 56, 224)
    back = np.frombuffer(message.data, "<f4").reshape(40, 56)
    np.testing.assert_array_equal(back, answer.depth)
    assert message.header.frame_id == "camera"


def test_the_realsense_loop(completer, scene, capsys: pytest.CaptureFixture[str]) -> None:
    picture, depth = scene
    result = example("realsense").run(completer, [(picture, depth, NUMBERS, 0.1 * k) for k in range(3)])
    assert result is not None
    assert result.depth.shape == depth.shape
