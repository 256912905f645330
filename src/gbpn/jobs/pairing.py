"""Which images go with which measurements: files, COLMAP projects, times in names, TUM's lists."""

from __future__ import annotations

import glob
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gbpn.errors import InputError
from gbpn.formats.colmap_layout import model_folders
from gbpn.formats.images import SUFFIXES
from gbpn.formats.point_tables import POINT_TABLES
from gbpn.recordings import timestamps

if TYPE_CHECKING:
    from gbpn.inputs.frame import FrameInputs
    from gbpn.jobs.sources import Sensor

__all__ = [
    "CLOUDS",
    "MEASUREMENTS",
    "Job",
    "files",
    "jobs_in_time",
    "jobs_of_associations",
    "jobs_of_project",
    "left_out_in_time",
    "plan",
    "require_distinct",
    "require_one_pair",
]

_DEPTH_FILES = (".png", ".tif", ".tiff", ".npy", ".npz", ".exr")
CLOUDS = (".bin", ".ply", ".pcd", ".las", ".laz")
"""Suffixes of point clouds."""
MEASUREMENTS = (*_DEPTH_FILES, *CLOUDS, *POINT_TABLES)
"""Suffixes of files that can hold the measurements of one frame."""


@dataclass(frozen=True, kw_only=True)
class Job:
    """One image to complete."""

    image: Path
    sparse: Path | None
    """None: from points, a reconstruction or a recording."""
    name: str
    """What its outputs are called; with slashes they lie in subfolders."""
    problem: str = ""
    """Why it cannot be done, if that is known beforehand."""
    left_out: str = ""
    """Why it is not even tried, which is no mistake: no measurement was made at that time."""
    read: Callable[[Sensor], FrameInputs] | None = None
    """How to read it with the run's sensor, if not as its files say."""
    recorded: bool = False
    """Whether it is part of a recording or video instead of a file of its own."""
    settings: dict[str, Any] = field(default_factory=dict)
    """What its answer depends on besides the files and the settings of the run."""


def plan(
    images: str,
    sparse: str | None,
    *,
    others: bool = False,
    by_order: bool = False,
    tolerance: float | None = None,
) -> list[Job]:
    """Pair images with measurements: a file with a file, folders and globs by name (or by order, or in time).

    others     measurements come from elsewhere as well, so an image may have no file of its own
    tolerance  seconds: the names are times, and the nearest measurement within this is taken

    A list of TUM's associations gives both; a COLMAP project gives measurements, its pictures may be in
    subfolders.
    """
    if sparse is None and Path(images).suffix == ".txt":
        return jobs_of_associations(Path(images))
    if sparse is not None and model_folders(sparse):
        return jobs_of_project(images)
    if tolerance is not None and sparse is not None:
        return jobs_in_time(images, sparse, tolerance)
    pictures = files(images, SUFFIXES, "image")
    single = Path(images).is_file()
    if sparse is None:
        if not others:
            raise InputError("measurements are needed: a SPARSE file or folder, or --points x,y,depth")
        pairs: list[tuple[Path, Path | None]] = [(picture, None) for picture in pictures]
    elif single and not Path(sparse).is_dir():
        pairs = [(pictures[0], files(sparse, MEASUREMENTS, "sparse depth")[0])]
    elif not single and Path(sparse).is_file():
        raise InputError(
            f"{len(pictures)} images and one file {sparse}: give a folder with one file per image"
        )
    else:
        pairs = _paired(pictures, files(sparse, MEASUREMENTS, "sparse depth"), by_order, single)
    frames = [
        Job(image=image, sparse=file, name=image.stem, problem="" if file or others else "no sparse depth")
        for image, file in pairs
    ]
    require_distinct(frames)
    return frames


def _paired(
    images: list[Path], files: list[Path], by_order: bool, single: bool
) -> list[tuple[Path, Path | None]]:
    if by_order:
        if len(images) != len(files):
            raise InputError(
                f"--by-order needs as many images as sparse depths; got {len(images)}, {len(files)}"
            )
        return list(zip(images, files, strict=True))
    named: dict[str, Path] = {}
    for file in files:
        if file.stem in named:
            raise InputError(f"two measurements for one image: {named[file.stem]} and {file}")
        named[file.stem] = file
    pairs = [(image, named.get(image.stem)) for image in images]
    if not any(file for _, file in pairs) or (single and pairs[0][1] is None):
        raise InputError(
            f"no sparse depth has the name of its image: {images[0].name} and {files[0].name}: "
            "name them alike, or pair them with --by-order, or times with --pair nearest"
        )
    return pairs


def files(where: str, suffixes: Sequence[str], what: str, *, nested: bool = False) -> list[Path]:
    """The files of a folder (and, if `nested`, of those in it), of a glob, or the one file."""
    path = Path(where)
    if path.is_dir():
        listed = path.rglob("*") if nested else path.iterdir()
        found = sorted(p for p in listed if p.suffix.lower() in suffixes and not p.name.startswith("."))
        if not found:
            raise InputError(f"{where}: no {what} in this folder; known are {', '.join(suffixes)}")
        return found
    if path.exists():
        return [path]
    found = sorted(Path(p) for p in glob.glob(where, recursive=True))
    if not found:
        raise InputError(f"{where}: no such {what}")
    return found


def require_distinct(frames: Sequence[Job]) -> None:
    """Raise if the outputs of two frames would have the same names."""
    seen: dict[str, Path] = {}
    for frame in frames:
        if frame.name in seen:
            raise InputError(f"{seen[frame.name]} and {frame.image} would be written to the same files")
        seen[frame.name] = frame.image


def jobs_of_project(images: str) -> list[Job]:
    """Pictures that a COLMAP model measures; those of subfolders keep their folder in the output."""
    pictures = files(images, SUFFIXES, "image", nested=True)
    root = Path(images) if Path(images).is_dir() else None
    names = [
        picture.stem if root is None else picture.relative_to(root).with_suffix("").as_posix()
        for picture in pictures
    ]
    frames = [Job(image=path, sparse=None, name=name) for path, name in zip(pictures, names, strict=True)]
    require_distinct(frames)
    return frames


def jobs_of_associations(path: Path) -> list[Job]:
    """TUM's list of pairs."""
    pairs = timestamps.read_associations(path)
    frames = [Job(image=image, sparse=depth, name=image.stem) for image, depth in pairs]
    for frame in frames[:1]:
        missing = [p for p in (frame.image, frame.sparse) if p is not None and not p.is_file()]
        if missing:
            raise InputError(f"{path} names {missing[0]}, which is not there: paths are relative to the list")
    require_distinct(frames)
    return frames


def jobs_in_time(images: str, sparse: str, tolerance: float) -> list[Job]:
    """Each image with the measurement nearest in time; those without one within `tolerance` are left out."""
    pictures, measurements = _timed(images, SUFFIXES, "image"), _timed(sparse, MEASUREMENTS, "sparse depth")
    times, found = [time for time, _ in pictures], [time for time, _ in measurements]
    index, apart = timestamps.nearest(times, found)
    allowed = timestamps.tolerance_of(tolerance)
    require_one_pair(apart, allowed, images, sparse)
    frames = [
        Job(
            image=image,
            sparse=measurements[place][1],
            name=image.stem,
            left_out="" if gap <= allowed else left_out_in_time(tolerance),
            settings={"apart": gap / timestamps.NANOSECONDS},
        )
        for (_, image), place, gap in zip(pictures, index, apart, strict=True)
    ]
    require_distinct(frames)
    return frames


def require_one_pair(apart: Sequence[int], allowed: int, images: str, measurements: str) -> None:
    """Raise if no image has a measurement within the tolerance."""
    if min(apart) > allowed:
        closest = min(apart) / timestamps.NANOSECONDS
        raise InputError(
            f"no measurement of {measurements} is within {allowed / timestamps.NANOSECONDS:g} s of an "
            f"image of "
            f"{images}: the closest are {closest:g} s apart: raise --tolerance, or are these two recordings?"
        )


def left_out_in_time(tolerance: float) -> str:
    """What is said of an image without a measurement."""
    return f"no measurement within {tolerance:g} s"


def _timed(where: str, suffixes: Sequence[str], what: str) -> list[tuple[int, Path]]:
    """Files and their times: of a folder or a glob by their names, or of a list as TUM's rgb.txt."""
    if Path(where).is_file() and Path(where).suffix == ".txt":
        return timestamps.read_timed_list(Path(where))
    return [(timestamps.time_of_name(path), path) for path in files(where, suffixes, what)]
