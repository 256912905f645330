"""Recordings and videos of strangers: nothing in them is run, followed, or believed about its size."""

from __future__ import annotations

import resource
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gbpn.errors import DatasetError, GbpnError, InputError
from gbpn.recordings.bags import Recording
from gbpn.recordings.video import Video
from making_recordings import START, Writer, scanned, write_clip, write_drive

NUMBERS = (20.0, 20.0, 7.5, 5.5)
PICTURE = np.random.default_rng(0).integers(0, 256, (12, 16, 3), dtype=np.uint8)
DEPTH = np.where(np.random.default_rng(1).random((12, 16)) < 0.3, 2.0, 0.0).astype(np.float32)


@pytest.fixture
def bag(tmp_path: Path) -> Path:
    pytest.importorskip("rosbags", reason="needs pip install gbpn[ros]")
    return write_drive(tmp_path / "drive.bag", "bag", PICTURE, DEPTH, NUMBERS, frames=1)


def test_definitions_in_a_recording_are_never_run(bag: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`rosbags` makes Python of the message definitions of a file; here only ROS's own are used."""
    with Recording(bag) as known:  # ROS's own are made once
        assert len(known.pairs()[0]) == 1

    def refuse(*_: Any, **__: Any) -> None:
        raise AssertionError("a definition of the file was compiled")

    monkeypatch.setattr("rosbags.typesys.store.Typestore.register", refuse)
    monkeypatch.setattr("rosbags.typesys.store.generate_python_code", refuse)
    with Recording(bag) as recording:
        assert recording.frame(*recording.pairs()[0][0]).picture.shape == PICTURE.shape


def test_a_message_type_that_only_sounds_like_ros_is_told(bag: Path) -> None:
    content = bag.read_bytes()
    digest = content[content.index(b"md5sum=") + 7 :][:32]  # of the first topic, the camera's
    bag.write_bytes(content.replace(digest, b"0" * 32))
    with Recording(bag) as recording, pytest.raises(DatasetError, match="is another one than ROS's"):
        recording.frame(*recording.pairs()[0][0])


def test_a_declared_length_takes_no_memory(bag: Path) -> None:
    """Four gigabytes are declared in a file of some kilobytes."""
    content = bytearray(bag.read_bytes())
    place = content.index(b"index_pos=") + len(b"index_pos=")
    index = int.from_bytes(content[place : place + 8], "little")
    content[index : index + 4] = (0xFFFFFFFF).to_bytes(4, "little")
    bag.write_bytes(bytes(content))
    code = f"""
        import resource
        from pathlib import Path
        from gbpn.recordings.bags import Recording
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        try:
            Recording(Path({str(bag)!r}))
        except Exception as error:
            print(type(error).__name__, "memory" in str(error), end=" ")
        print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)
    """
    limit = 4 << 30  # the promise is broken where this is reached: the answer would be "not enough memory"
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)],
        capture_output=True,
        text=True,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (limit, limit)),
    )
    name, memory, grown = done.stdout.split()
    assert (name, memory) == ("DatasetError", "False"), done.stderr
    assert int(grown) < 200_000, "kilobytes"


def test_transforms_of_another_type_and_of_old_bags(tmp_path: Path, bag: Path) -> None:
    with pytest.raises(InputError, match=r"--tf /cam/image is a topic of sensor_msgs/msg/Image, not of tran"):
        Recording(bag, transforms=("/cam/image",))
    from rosbags.typesys import get_types_from_msg

    with Writer(tmp_path / "old.bag", "bag") as old:
        text = "geometry_msgs/TransformStamped[] transforms"
        old.store.register(get_types_from_msg(text, "tf/msg/tfMessage"))
        old.transform_type = "tf/tfMessage"
        old.transform("/tf", START, "camera", "lidar", np.eye(4))
        old.image("/cam/image", START, PICTURE)
        old.camera("/cam/camera_info", START, PICTURE.shape[:2], NUMBERS)
        old.cloud("/lidar/points", START, scanned(DEPTH, NUMBERS, np.eye(4)))
    with Recording(tmp_path / "old.bag") as recording:
        frame = recording.frame(*recording.pairs()[0][0])
    np.testing.assert_allclose(frame.to_camera, np.eye(4), atol=1e-9)


@pytest.mark.parametrize(
    "text",
    [
        "ffconcat version 1.0\nfile other.mp4\n",
        "#EXTM3U\n#EXT-X-TARGETDURATION:1\n#EXTINF:1,\nother.mp4\n#EXT-X-ENDLIST\n",
        "v=0\no=- 0 0 IN IP4 127.0.0.1\nm=video 9 RTP/AVP 96\n",
    ],
    ids=["concat", "playlist", "session"],
)
def test_a_video_opens_no_other_file(tmp_path: Path, text: str) -> None:
    """FFmpeg reads lists of other files and addresses whatever they are called; here they are refused."""
    pytest.importorskip("av", reason="needs pip install gbpn[video]")
    write_clip(tmp_path / "other.mp4", np.tile(PICTURE, (3, 3, 1)))
    (tmp_path / "list.mp4").write_text(text)
    with pytest.raises(GbpnError, match="not a readable video"):
        Video(tmp_path / "list.mp4")


def test_frames_of_a_video_are_measured_before_they_are_unpacked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("av", reason="needs pip install gbpn[video]")
    video = Video(write_clip(tmp_path / "clip.mp4", np.tile(PICTURE, (3, 3, 1))))
    monkeypatch.setenv("GBPN_MAX_MEGAPIXELS", "0.001")
    with pytest.raises(GbpnError, match="GBPN_MAX_MEGAPIXELS"):
        video.frame(0)
    with pytest.raises(GbpnError, match="GBPN_MAX_MEGAPIXELS"):
        Video(tmp_path / "clip.mp4")
