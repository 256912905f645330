"""A real roscore, `rosbag play` of a real bag, our node and a listener; skips without ROS 1."""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gbpn
from making_recordings import TO_CAMERA, scanned, write_drive

pytest.importorskip("rosbags", reason="bags need gbpn[ros]")
DEBIAN = Path("/usr/lib/python3/dist-packages")
if shutil.which("roscore") is None or not (DEBIAN / "rospy").is_dir():
    pytest.skip("needs ROS 1: apt-get install ros-core python3-rospy", allow_module_level=True)
HERE = Path(__file__).parent
NODE = HERE.parents[1] / "examples" / "ros1" / "scripts" / "gbpn_node.py"
NUMBERS = (60.0, 60.0, 28.0, 20.0)


class Ros:
    """A roscore of its own, and programs that talk to it."""

    def __init__(self, folder: Path) -> None:
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        self.folder, self.running = folder, []
        master = {"ROS_MASTER_URI": f"http://127.0.0.1:{port}", "ROS_HOSTNAME": "127.0.0.1"}
        self.own = {**os.environ, **master, "ROS_LOG_DIR": str(folder), "HOME": str(folder)}
        self.start("roscore", "-p", str(port))
        for _ in range(200):
            with socket.socket() as there:
                if there.connect_ex(("127.0.0.1", port)) == 0:
                    return
            time.sleep(0.1)
        raise TimeoutError("roscore did not start")

    def start(self, *words: str) -> subprocess.Popen[str]:
        started = subprocess.Popen(
            words, cwd=self.folder, env=self.own, text=True, start_new_session=True,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        )  # fmt: skip
        self.running.append(started)
        return started

    def python(self, file: Path, *words: str) -> subprocess.Popen[str]:
        """Our interpreter, with Debian's packages after its own."""
        code = f"import sys, runpy; sys.path.append({str(DEBIAN)!r}); sys.argv = sys.argv[1:]; "
        return self.start(
            sys.executable, "-c", code + "runpy.run_path(sys.argv[0], run_name='__main__')", str(file), *words
        )

    def end(self, process: subprocess.Popen[str]) -> None:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGINT)
            try:
                process.communicate(timeout=15)
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)
                process.communicate()

    def node(self, *parameters: str) -> subprocess.Popen[str]:
        remaps = ("image:=/cam/image", "camera_info:=/cam/camera_info", "points:=/lidar/points")
        return self.python(NODE, *remaps, *parameters)

    def play(self, bag: Path) -> subprocess.Popen[str]:
        return self.start("rosbag", "play", "--quiet", "--loop", "--wait-for-subscribers", str(bag))

    def hear(self, wanted: int, seconds: float = 60) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        place = self.folder / "heard.npz"
        place.unlink(missing_ok=True)
        words = (str(wanted), str(seconds), str(place))
        printed, _ = self.python(HERE / "ros1_listener.py", *words).communicate(timeout=seconds + 60)
        told = json.loads(printed.splitlines()[-1])
        return told, dict(np.load(place)) if place.exists() else {}


@pytest.fixture(scope="module")
def ros(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Ros]:
    core = Ros(tmp_path_factory.mktemp("ros"))
    yield core
    for process in reversed(core.running):
        core.end(process)


@pytest.fixture(scope="module")
def scene() -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    depth = np.zeros((40, 56), np.float32)
    depth.reshape(-1)[rng.choice(depth.size, 60, replace=False)] = rng.uniform(1.9, 2.1, 60)
    return np.full((40, 56, 3), 128, np.uint8), depth


def test_a_real_node_answers_and_survives_its_player(ros: Ros, scene: tuple[np.ndarray, np.ndarray]) -> None:
    picture, depth = scene
    bag = write_drive(ros.folder / "drive.bag", "bag", picture, depth, NUMBERS, frames=400)
    node, player = ros.node(), ros.play(bag)
    told, maps = ros.hear(8)
    assert min(told["count"].values()) >= 8, told
    print(told)
    assert told["depth"] == {"encoding": "32FC1", "frame": "camera"}
    wanted = gbpn.DepthCompleter.from_pretrained()(
        picture, cloud=scanned(depth, NUMBERS), intrinsics=NUMBERS, transform=TO_CAMERA, sigmas=True
    )
    np.testing.assert_allclose(maps["depth"], wanted.depth, rtol=2e-2)
    assert float(np.nanmedian(maps["sigma"] / wanted.std)) == pytest.approx(1, rel=0.1)
    assert told["fields"] == ["x", "y", "z", "rgb", "sigma", "xx", "xy", "xz", "yy", "yz", "zz"]
    x, z, sigma, along = (maps["cloud"][:, column] for column in (0, 2, 4, 10))
    np.testing.assert_allclose(along, sigma**2, rtol=1e-3)
    assert float(np.abs(x).max()) < 1.5
    assert float(np.median(z)) == pytest.approx(2, abs=0.2)
    ros.end(player)  # the camera's driver dies and comes back; its clock starts again
    player = ros.play(bag)
    told, _ = ros.hear(5)
    assert min(told["count"].values()) >= 5, told
    ros.end(player)
    ros.end(node)


def test_millimetres_for_those_who_want_them(ros: Ros, scene: tuple[np.ndarray, np.ndarray]) -> None:
    picture, depth = scene
    bag = write_drive(ros.folder / "again.bag", "bag", picture, depth, NUMBERS, frames=30)
    node, player = ros.node("_encoding:=16UC1", "__name:=other"), ros.play(bag)
    told, maps = ros.hear(3)
    assert told["depth"]["encoding"] == told["sigma"]["encoding"] == "16UC1", told
    assert float(np.median(maps["depth"])) == pytest.approx(2000, abs=200)
    ros.end(player)
    ros.end(node)
