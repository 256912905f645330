"""Bags and videos from file to depth: every format gives the depth of its parts; every mistake is told."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from gbpn import cli
from gbpn.errors import DatasetError, GbpnError, InputError
from gbpn.recordings.bags import Recording
from gbpn.recordings.timestamps import nearest, time_of_name
from gbpn.recordings.transforms import TransformTree
from gbpn.recordings.video import Video
from making_recordings import SECOND, START, TO_CAMERA, Writer, scanned, write_clip, write_drive

Command = Callable[..., tuple[int, str]]
NUMBERS = (60.0, 60.0, 28.0, 20.0)
pytest.importorskip("rosbags", reason="needs pip install gbpn[ros]")


@pytest.fixture
def gbpn(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], weights: Path) -> Command:
    def run(*arguments: object) -> tuple[int, str]:
        words = ["gbpn", "complete", "--device", "cpu", "--weights", str(weights), *map(str, arguments)]
        monkeypatch.setattr("sys.argv", words)
        with pytest.raises(SystemExit) as stopped:
            cli.main()
        printed = capsys.readouterr()
        return int(stopped.value.code or 0), printed.out + printed.err

    return run


def recorded(folder: Path) -> list[np.ndarray]:
    return [np.load(path) for path in sorted(folder.glob("*_depth.npy"))]


@pytest.mark.parametrize("kind", ["bag", "sqlite3", "mcap"])
def test_every_format_gives_the_depth_of_its_parts(
    tmp_path: Path, gbpn: Command, completer, picture: np.ndarray, depth: np.ndarray, kind: str
) -> None:
    path = tmp_path / ("drive.bag" if kind == "bag" else "drive")
    drive = write_drive(path, kind, picture, depth, NUMBERS)
    topics = ["--image", "/cam/image", "--points", "/lidar/points"] if kind == "mcap" else []
    code, told = gbpn(drive, *topics, "-o", tmp_path / "out")
    assert code == 0, told
    assert "3 frames: 3 written" in told
    points = scanned(depth, NUMBERS)
    for place, found in enumerate(recorded(tmp_path / "out")):
        wanted = completer(
            np.roll(picture, place, axis=1), cloud=points, intrinsics=NUMBERS, transform=TO_CAMERA
        )
        np.testing.assert_allclose(found, wanted.depth, rtol=1e-4)
    record = json.loads((tmp_path / "out" / "1700000001.000000000.json").read_text())
    assert record["topics"] == {"image": "/cam/image", "points": "/lidar/points"}
    code, told = gbpn(drive, *topics, "-o", tmp_path / "out")
    assert "3 done before" in told


def test_a_lens_in_a_recording_is_removed(
    tmp_path: Path, gbpn: Command, picture: np.ndarray, depth: np.ndarray
) -> None:
    drive = write_drive(
        tmp_path / "drive", "mcap", picture, depth, NUMBERS, frames=1, lens=(-0.2, 0, 0, 0, 0)
    )
    code, told = gbpn(drive, "-o", tmp_path / "out")
    assert code == 0, told
    assert "the lens distortion is removed" in told
    straight = np.asarray(Image.open(next((tmp_path / "out").glob("*_undistorted.png"))))
    assert straight.shape == picture.shape
    assert np.abs(straight.astype(int) - picture).mean() > 5
    code, told = gbpn(drive, "-o", tmp_path / "plain", "--rectified")
    assert not list((tmp_path / "plain").glob("*_undistorted.png"))
    assert "distortion" not in told
    assert not np.array_equal(recorded(tmp_path / "out")[0], recorded(tmp_path / "plain")[0])


def test_depth_images_of_a_recording(tmp_path: Path, gbpn: Command, completer, picture, depth) -> None:
    """Aligned ones pixel by pixel; those of another camera through its camera_info and the transforms."""
    with Writer(tmp_path / "drive", "mcap") as bag:
        bag.camera("/cam/camera_info", START, picture.shape[:2], NUMBERS)
        bag.camera("/tof/camera_info", START, picture.shape[:2], NUMBERS, frame="tof")
        bag.transform("/tf_static", START, "camera", "tof", np.eye(4))
        bag.image("/cam/image_raw", START, picture)
        bag.image("/aligned/depth", START, depth)
        bag.image("/tof/depth", START, depth, frame="tof")
    points = scanned(depth, NUMBERS, np.eye(4))
    wanted = {
        "/aligned/depth": completer(picture, depth, NUMBERS),
        "/tof/depth": completer(picture, cloud=points, intrinsics=NUMBERS),
    }
    for topic, answer in wanted.items():
        out = tmp_path / topic.split("/")[1]
        topics = ["--image", "/cam/image_raw", "--points", topic, "--camera-info", "/cam/camera_info"]
        code, told = gbpn(tmp_path / "drive", *topics, "-o", out)
        assert code == 0, told
        np.testing.assert_allclose(recorded(out)[0], answer.depth, rtol=1e-4)


def test_mistakes_about_topics_are_told(tmp_path: Path, picture: np.ndarray, depth: np.ndarray) -> None:
    drive = write_drive(tmp_path / "drive", "mcap", picture, depth, NUMBERS, frames=1)
    with pytest.raises(InputError, match=r"--image /cam/picture: no such topic in .*; there are /cam/image"):
        Recording(drive, image="/cam/picture")
    with pytest.raises(InputError, match=r"--image /lidar/points is a topic of sensor_msgs/msg/PointCloud2"):
        Recording(drive, image="/lidar/points")
    with pytest.raises(InputError, match=r"--tf /tf_other: no such topic"):
        Recording(drive, transforms=("/tf_other",))
    with Recording(drive, camera_info="/lidar/points") as recording:
        (pair, *_), _ = recording.pairs()
        with pytest.raises(
            InputError, match=r"--camera-info /lidar/points: no such topic; there are /cam/camera"
        ):
            recording.frame(*pair)


def test_mistakes_about_files_are_told(tmp_path: Path, picture: np.ndarray, depth: np.ndarray) -> None:
    with Writer(tmp_path / "empty", "mcap"):
        pass
    with pytest.raises(DatasetError, match="the recording is empty"):
        Recording(next((tmp_path / "empty").glob("*.mcap")))
    with pytest.raises(DatasetError, match="no such recording"):
        Recording(tmp_path / "nothing.mcap")
    drive = write_drive(tmp_path / "drive", "mcap", picture, depth, NUMBERS, frames=1)
    drive.write_bytes(drive.read_bytes()[:-200])
    with pytest.raises(DatasetError, match="not a readable recording"):
        Recording(drive)


def test_wrong_pairings_and_cameras_are_told(
    tmp_path: Path, gbpn: Command, picture: np.ndarray, depth: np.ndarray
) -> None:
    drive = write_drive(tmp_path / "late", "mcap", picture, depth, NUMBERS, late=5.0)
    code, told = gbpn(drive, "-o", tmp_path / "out")
    assert code == 2
    assert (
        "no measurement of /lidar/points is within 0.05 s of an image of /cam/image: the closest are 4.8"
        in told
    )
    drive = write_drive(
        tmp_path / "lens", "mcap", picture, depth, NUMBERS, frames=1, lens=(1.0,), model="mei"
    )
    code, told = gbpn(drive, "-o", tmp_path / "out")
    assert code == 2
    assert "distortion model 'mei' is not known" in told
    with Writer(tmp_path / "bare", "mcap") as bag:
        bag.image("/cam/image", START, picture)
        bag.cloud("/lidar/points", START, scanned(depth, NUMBERS))
    code, told = gbpn(tmp_path / "bare", "-o", tmp_path / "out")
    assert "which camera took /cam/image? No camera_info is beside or above it; there is none" in told
    assert told.count("which camera took") == 1, "said once, before the work"
    code, told = gbpn(tmp_path / "bare", "-o", tmp_path / "out", "--intrinsics", "60,60,28,20")
    assert "no transform leads from lidar (/lidar/points) to camera" in told
    np.savetxt(tmp_path / "T.txt", TO_CAMERA)
    keep = ["--intrinsics", "60,60,28,20", "--extrinsics", tmp_path / "T.txt"]
    code, told = gbpn(tmp_path / "bare", "-o", tmp_path / "out", *keep)
    assert code == 0, told
    code, told = gbpn(tmp_path / "bare", "-o", tmp_path / "out", "--points", "1,2,3")
    assert "--points of a recording is one topic" in told


def test_transforms_lead_through_the_tree() -> None:
    tree = TransformTree()
    move = np.eye(4)
    move[:3, 3] = (1, 2, 3)
    tree.add("/base", "lidar", move, 0)
    tree.add("base", "camera", np.linalg.inv(TO_CAMERA), 0)
    np.testing.assert_allclose(tree.between("lidar", "camera", 0), TO_CAMERA @ move, atol=1e-12)
    turned = move.copy()
    turned[0, 3] = 9
    tree.add("base", "lidar", turned, SECOND)
    assert tree.between("lidar", "base", 2 * SECOND)[0, 3] == 9
    assert tree.between("lidar", "base", -SECOND)[0, 3] == 1
    assert tree.between("lidar", "base", SECOND // 4)[0, 3] == pytest.approx(3)
    with pytest.raises(
        DatasetError, match=r"no transform leads from 'lidar' to 'arm'; frames there are: base"
    ):
        tree.between("lidar", "arm", 0)


def test_times_in_names() -> None:
    assert time_of_name(Path("1305031102.175304.png")) == 1305031102175304000
    assert time_of_name(Path("1403636579763555584.png")) == 1403636579763555584
    assert time_of_name(Path("frame_12.5.png")) == 12 * SECOND + SECOND // 2
    with pytest.raises(InputError, match="is no time"):
        time_of_name(Path("first.png"))


@pytest.mark.parametrize("count", [1, 2, 5])
def test_the_nearest_is_the_nearest(count: int) -> None:
    rng = np.random.default_rng(count)
    times, others = rng.integers(0, 1000, 20).tolist(), rng.integers(0, 1000, count).tolist()
    index, apart = nearest(times, others)
    assert apart == [min(abs(time - other) for other in others) for time in times]
    assert apart == [abs(time - others[place]) for time, place in zip(times, index, strict=True)]


def test_folders_are_paired_in_time(tmp_path: Path, gbpn: Command, picture, depth) -> None:
    for folder in ("rgb", "depth"):
        (tmp_path / folder).mkdir()
    for time in ("1305031102.175304", "1305031102.275304", "1305031109.000000"):
        Image.fromarray(picture).save(tmp_path / "rgb" / f"{time}.png")
    for time in ("1305031102.188200", "1305031102.270000"):
        Image.fromarray((depth * 5000).astype(np.uint16)).save(tmp_path / "depth" / f"{time}.png")
    command = [tmp_path / "rgb", tmp_path / "depth", "--scale", 5000, "--pair", "nearest"]
    code, told = gbpn(*command, "-o", tmp_path / "out")
    assert code == 0, told
    assert "3 frames: 2 written, 1 left out" in told
    assert "1 frame is left out: no measurement within 0.05 s" in told
    code, told = gbpn(*command, "--tolerance", 0.001, "-o", tmp_path / "none")
    assert code == 2
    assert "the closest are 0.005304 s apart: raise --tolerance" in told
    lines = "".join(f"{p.stem} rgb/{p.name}\n" for p in sorted((tmp_path / "rgb").iterdir()))
    (tmp_path / "rgb.txt").write_text("# timestamp filename\n" + lines)
    lines = "".join(f"{p.stem} depth/{p.name}\n" for p in sorted((tmp_path / "depth").iterdir()))
    (tmp_path / "depth.txt").write_text(lines)
    lists = [tmp_path / "rgb.txt", tmp_path / "depth.txt", "--scale", 5000, "--pair", "nearest"]
    code, told = gbpn(*lists, "-o", tmp_path / "listed")
    assert "3 frames: 2 written, 1 left out" in told, told
    time, other = "1305031102.175304", "1305031102.188200"
    (tmp_path / "associations.txt").write_text(f"{time} rgb/{time}.png {other} depth/{other}.png\n")
    code, told = gbpn(tmp_path / "associations.txt", "--scale", 5000, "-o", tmp_path / "associated")
    assert code == 0, told
    (tmp_path / "associations.txt").write_text("1 rgb/a.png 1\n")
    code, told = gbpn(tmp_path / "associations.txt", "--scale", 5000, "-o", tmp_path / "associated")
    assert "expected lines of time, image, time, depth" in told


def test_a_video_with_its_depth(tmp_path: Path, gbpn: Command, picture, depth) -> None:
    pytest.importorskip("av", reason="needs pip install gbpn[video]")
    smooth = np.repeat(
        np.linspace(0, 255, picture.shape[1], dtype=np.uint8)[None, :, None], picture.shape[0], 0
    )
    clip = write_clip(tmp_path / "clip.mp4", np.repeat(smooth, 3, axis=2))
    (tmp_path / "depth").mkdir()
    for frame in (0, 2):
        np.save(tmp_path / "depth" / f"{frame:06}.npy", depth)
    code, told = gbpn(clip, "--depth", tmp_path / "depth", "-o", tmp_path / "out")
    assert code == 0, told
    assert "3 frames: 2 written, 1 left out" in told
    assert "no depth file has their number" in told
    film = Video(tmp_path / "out" / "clip_side_by_side.mp4")
    assert len(film) == 2
    assert film.frame(0).shape[1] > 2 * picture.shape[1]
    video = Video(clip)
    assert [time // 1_000_000 for time in video.times] == [0, 100, 200]
    assert np.abs(video.frame(1)[:, 5:-5].astype(int) - np.roll(smooth, 1, 1)[:, 5:-5]).mean() < 4
    np.testing.assert_array_equal(video.frame(0), Video(clip).frame(0))
    code, told = gbpn(clip, "-o", tmp_path / "out")
    assert "a video wants its depth files: --depth FOLDER" in told
    (tmp_path / "no.mp4").write_bytes(b"nothing")
    with pytest.raises(GbpnError, match="not a readable video"):
        Video(tmp_path / "no.mp4")
