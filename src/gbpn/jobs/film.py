"""Videos as jobs, and the answers as a film: the picture and its depth side by side."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path

import numpy as np

from gbpn.errors import InputError
from gbpn.files.guard import shown
from gbpn.formats.arrays import read_npy
from gbpn.formats.images import to_tensor
from gbpn.inputs.frame import FrameInputs
from gbpn.jobs.pairing import (
    MEASUREMENTS,
    Job,
    files,
    left_out_in_time,
    require_distinct,
    require_one_pair,
)
from gbpn.jobs.sources import Sensor
from gbpn.recordings import timestamps
from gbpn.recordings.video import Video, write_video
from gbpn.show import pictures

__all__ = ["film", "jobs_of_video"]


def jobs_of_video(video: Video, sparse: str, tolerance: float | None = None) -> list[Job]:
    """One job per frame that has a depth file; the others are left out.

    By the number in a file's name, the first frame being 0, or, if there are as many files as frames, by
    order; with a `tolerance` the names are seconds from the first frame.
    """
    found = files(sparse, MEASUREMENTS, "sparse depth")
    partners, reason = _partners(video, found, tolerance)
    if not any(partners):
        raise InputError(
            f"no depth file of {shown(sparse)} belongs to a frame of {shown(video.path.name)}: names must "
            f"hold "
            f"frame numbers 0 to {len(video) - 1}, such as 000012.png, or with --pair nearest seconds"
        )
    jobs = [
        Job(
            image=video.path,
            sparse=file,
            name=f"{video.path.stem}_{number:06}",
            left_out="" if file is not None else reason,
            read=None if file is None else partial(_read, video, number, file),
            recorded=True,
            settings={"frame": number},
        )
        for number, file in enumerate(partners)
    ]
    require_distinct(jobs)
    return jobs


def _partners(video: Video, found: list[Path], tolerance: float | None) -> tuple[list[Path | None], str]:
    """The depth file of every frame, and what is said of frames without one."""
    if tolerance is not None:
        index, apart = timestamps.nearest(video.times, [timestamps.time_of_name(file) for file in found])
        allowed = timestamps.tolerance_of(tolerance)
        require_one_pair(apart, allowed, video.path.name, str(found[0].parent))
        near = [found[i] if gap <= allowed else None for i, gap in zip(index, apart, strict=True)]
        return near, left_out_in_time(tolerance)
    if len(found) == len(video):
        return list(found), ""
    numbered: dict[int, Path] = {}
    for file in found:
        if digits := re.findall(r"\d+", file.stem):
            numbered.setdefault(int(digits[-1]), file)
    return [numbered.get(number) for number in range(len(video))], "no depth file has their number"


def _read(video: Video, number: int, sparse: Path, sensor: Sensor) -> FrameInputs:
    return sensor.of_picture(to_tensor(video.frame(number)), video.path, sparse)


def film(video: Video, jobs: Sequence[Job], folder: Path, path: Path) -> Path:
    """Picture and depth of all frames that are done, in one colour scale, as an MP4."""
    done = [job for job in jobs if (folder / f"{job.name}_depth.npy").is_file()]
    if not done:
        raise InputError(f"{shown(folder)}: no frame is completed, so there is nothing to film")
    ranges = [pictures.value_range(_depth(folder, job)) for job in done]
    low = float(np.median([pair[0] for pair in ranges]))
    high = float(np.median([pair[1] for pair in ranges]))

    def panels() -> Iterator[np.ndarray]:
        for job in done:
            depth = pictures.colours(_depth(folder, job), low, high, pictures.DEPTH)
            depth = pictures.with_bar(depth, low, high, pictures.DEPTH)
            yield pictures.grid([[video.frame(job.settings["frame"]), depth]])

    return write_video(path, panels(), video.rate)


def _depth(folder: Path, job: Job) -> np.ndarray:
    return read_npy(folder / f"{job.name}_depth.npy")
