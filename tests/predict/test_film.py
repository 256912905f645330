"""Which depth file belongs to which frame of a video, and what the film shows."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from gbpn.errors import InputError
from gbpn.jobs.film import film, jobs_of_video
from gbpn.jobs.sources import Sensor
from gbpn.recordings.video import Video
from making_recordings import write_clip

pytest.importorskip("av", reason="needs pip install gbpn[video]")

FRAMES, HEIGHT, WIDTH = 4, 32, 48


@pytest.fixture(scope="module")
def video(tmp_path_factory: pytest.TempPathFactory) -> Video:
    """Ten frames a second."""
    picture = np.full((HEIGHT, WIDTH, 3), 90, np.uint8)
    return Video(write_clip(tmp_path_factory.mktemp("clip") / "clip.mp4", picture, FRAMES))


def partners(video: Video, folder: Path, names: list[str], **options: float) -> list[str | None]:
    """The name of the file that each frame is given; None for frames that are left out, with a reason."""
    folder.mkdir()
    for number, name in enumerate(names):
        np.save(folder / f"{name}.npy", np.full((HEIGHT, WIDTH), 1.0 + number, np.float32))
    jobs = jobs_of_video(video, str(folder), **options)
    assert [job.settings["frame"] for job in jobs] == list(range(FRAMES))
    assert [job.name for job in jobs] == [f"clip_{number:06}" for number in range(FRAMES)]
    for job in jobs:
        assert (job.sparse is None) == bool(job.left_out) == (job.read is None)
        if job.read is not None:
            assert job.sparse is not None
            assert float(job.read(Sensor()).sparse.max()) == 1.0 + names.index(job.sparse.stem)
    return [None if job.sparse is None else job.sparse.stem for job in jobs]


def test_as_many_files_as_frames_go_by_order(video: Video, tmp_path: Path) -> None:
    names = ["a7", "b3", "c9", "d1"]
    assert partners(video, tmp_path / "depth", names) == names


def test_fewer_files_go_by_the_last_number_of_their_names(video: Video, tmp_path: Path) -> None:
    names = ["cam2_000001", "cam2_000003", "readme"]
    assert partners(video, tmp_path / "depth", names) == [None, "cam2_000001", None, "cam2_000003"]


def test_with_a_tolerance_names_are_seconds(video: Video, tmp_path: Path) -> None:
    names = ["0.013", "0.196", "5.000"]
    found = partners(video, tmp_path / "depth", names, tolerance=0.02)
    assert found == ["0.013", None, "0.196", None]
    with pytest.raises(InputError, match=r"within 0.01 s of an image of clip.mp4"):
        partners(video, tmp_path / "far", ["0.05", "9.000"], tolerance=0.01)


def test_files_of_no_frame_are_told(video: Video, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="frame numbers 0 to 3"):
        partners(video, tmp_path / "depth", ["000017"])


def test_the_film_has_the_frames_that_are_done(video: Video, tmp_path: Path) -> None:
    names = [f"{number}" for number in range(FRAMES)]
    partners(video, tmp_path / "depth", names)
    jobs = jobs_of_video(video, str(tmp_path / "depth"))
    with pytest.raises(InputError, match="no frame is completed"):
        film(video, jobs, tmp_path, tmp_path / "film.mp4")
    ramp = np.tile(np.linspace(1, 3, WIDTH, dtype=np.float32), (HEIGHT, 1))
    for job in (jobs[1], jobs[2], jobs[3]):
        np.save(tmp_path / f"{job.name}_depth.npy", ramp)
    shown = Video(film(video, jobs, tmp_path, tmp_path / "film.mp4"))
    assert len(shown) == 3
    assert shown.rate == video.rate
    picture = shown.frame(0).astype(int)
    assert np.abs(picture[8:24, 8:40] - 90).max() < 12  # the frame is on the left
    near, far = picture[8:24, WIDTH + 6].mean(0), picture[8:24, 2 * WIDTH - 6].mean(0)
    assert np.abs(near - far).max() > 60  # and its depth on the right
