"""What folders, tables and single files hold, and which of them belong together."""

from __future__ import annotations

import csv
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from gbpn.errors import GbpnError, InputError
from gbpn.files.guard import shown
from gbpn.formats.depth_files import likely_scale, read_stored
from gbpn.formats.images import SUFFIXES, open_picture
from gbpn.formats.point_tables import POINT_TABLES
from gbpn.jobs.looking import Inventory, command
from gbpn.jobs.pairing import CLOUDS, Job, plan
from gbpn.recordings import timestamps

__all__ = ["Files", "file", "folder", "kind_of", "scale_of"]

_ARRAYS = (".npy", ".npz", ".exr")
_ONE = {
    "depth maps": "a depth map",
    "point clouds": "a point cloud",
    "tables of points": "a table of points",
}
_TOLERANCE = 0.05
"""Seconds, the default of --tolerance."""
_CAMERAS = ("camera", "intrinsics", "k", "camera_info", "camchain", "transforms", "calib", "calibration")
"""Stems of files that hold a camera."""
_CAMERA_FILES = (".txt", ".npy", ".json", ".yaml", ".yml", ".xml")
_ASIDE = ("confidence", "conf", "mask", "gt", "ground_truth", "target", "sigma", "std", "normals", "ring")
"""Folders whose maps are no measurements."""


@dataclass(frozen=True, kw_only=True)
class Files:
    """The files of one folder that are alike."""

    place: Path
    kind: str
    """"pictures", "depth maps", "point clouds" or "tables of points"."""
    paths: list[Path]


def kind_of(path: Path) -> str:
    """What one file is, of the words of `Files.kind`; empty for anything else."""
    suffix = path.suffix.lower()
    if suffix in _ARRAYS:
        return "depth maps"
    if suffix in CLOUDS:
        return "point clouds"
    if suffix in POINT_TABLES:
        other = path.stem.lower() in _CAMERAS or (suffix == ".txt" and _is_list(path))
        return "" if other else "tables of points"
    if suffix not in SUFFIXES:
        return ""
    try:
        with open_picture(path) as picture:
            return "depth maps" if picture.mode in ("I;16", "I;16B", "I", "F") else "pictures"
    except Exception:  # what cannot be opened is told by those who complete it
        return "pictures"


def folder(place: Path, sparse: Path | None) -> Inventory:
    """A folder: pictures and measurements in it, in folders of its own, or in `sparse`."""
    found = [*_groups(place, deep=sparse is None), *([] if sparse is None else _groups(sparse, deep=False))]
    pictures = [group for group in found if group.kind == "pictures"]
    measured = [g for g in found if g.kind != "pictures" and g.place.name.lower() not in _ASIDE]
    facts = [(group.place.name or ".", f"{group.kind}: {len(group.paths)}") for group in found]
    if not pictures:
        raise InputError(f"{shown(place)}: no pictures are in this folder, nor in a folder of it")
    images = max(
        pictures, key=lambda group: (group.place.name in ("rgb", "color", "images"), len(group.paths))
    )
    others = [group for group in measured if group.place != images.place]
    if not others:
        doubts = ["no measurements were found: depth maps of 16 bits or arrays, clouds, or tables x,y,depth"]
        if any(group.place == images.place for group in measured):
            doubts = ["pictures and depth maps are in one folder: move them into two, with equal names"]
        first = images.paths[0]
        return Inventory(
            what="a folder",
            facts=tuple(facts),
            command=command(first, points="X,Y,METRES"),
            doubts=tuple(doubts),
        )
    return _paired(images, max(others, key=lambda group: _partners(images, group)), facts)


def file(path: Path, sparse: Path | None) -> Inventory:
    """One file: a picture, measurements, a table of frames, or a list."""
    if path.suffix.lower() == ".parquet" or (path.suffix.lower() == ".csv" and _is_manifest(path)):
        return _manifest(path)
    kind = kind_of(path)
    if path.suffix.lower() == ".txt" and _is_list(path):
        jobs = plan(str(path), None)
        scale, told = _scale([job.sparse for job in jobs if job.sparse is not None])
        facts = (("list", f"{len(jobs)} pairs of image and depth"),)
        reading = {"scale": scale}
        typed = command(path, scale=_number(scale))
        return Inventory(
            what="a list of pairs",
            facts=facts,
            command=typed,
            doubts=told,
            jobs=tuple(jobs),
            reading=reading,
        )
    if kind == "pictures":
        return _picture(path, sparse)
    if not kind:
        raise InputError(
            f"{shown(path)}: {shown(path.suffix) or 'a name without a suffix'} is not known here: "
            "wanted are images, depth files, clouds, tables, bags, videos, COLMAP projects"
        )
    scale, told = _scale([path])
    doubts = (*told, "measurements alone: the picture that they belong to is wanted too")
    return Inventory(what=_ONE[kind], facts=tuple(_of_depth(path)), command=(), doubts=doubts)


def _picture(path: Path, sparse: Path | None) -> Inventory:
    with open_picture(path) as picture:
        facts = [("image", f"{picture.width}×{picture.height}")]
    if sparse is None:
        near = [p for p in sorted(path.parent.iterdir()) if p != path and p.is_file()]
        like = [p for p in near if kind_of(p) in ("depth maps", "tables of points", "point clouds")]
        same = [p for p in like if p.stem == path.stem]
        sparse = (same or (like if len(like) == 1 else [None]))[0]  # type: ignore[list-item]
    if sparse is None:
        doubts = ("no measurements were found beside it: give them by hand, or click them in gbpn studio",)
        return Inventory(
            what="a picture", facts=tuple(facts), command=command(path, points="X,Y,METRES"), doubts=doubts
        )
    facts += [("measured", str(sparse)), *_of_depth(sparse)]
    scale, told = _scale([sparse])
    camera = _camera([path.parent])
    cloud = kind_of(sparse) == "point clouds"
    doubts = (*told, *_without_camera(camera, cloud))
    job = Job(image=path, sparse=sparse, name=path.stem)
    typed = command(path, sparse, scale=_number(scale), intrinsics=camera)
    reading = {"scale": scale, "intrinsics": camera}
    return Inventory(
        what="a picture", facts=tuple(facts), command=typed, doubts=doubts, jobs=(job,), reading=reading
    )


def _paired(images: Files, measured: Files, facts: list[tuple[str, str]]) -> Inventory:
    """Two folders, paired as most frames find a partner."""
    how, jobs, counts = _best(images, measured)
    scale, told = _scale(measured.paths)
    camera = _camera([images.place, images.place.parent])
    confidence = next(
        (p for p in images.place.parent.iterdir() if p.is_dir() and p.name == "confidence"), None
    )
    facts += [("pairs", ", ".join(f"{count} {name}" for name, count in counts.items()))]
    facts += _of_depth(measured.paths[0])
    if camera is not None:
        facts.append(("camera", str(camera)))
    cloud = measured.kind == "point clouds"
    doubts = [*told, *_without_camera(camera, cloud)]
    if cloud:
        doubts.append("clouds that are not in camera coordinates want --extrinsics FILE, or KITTI's --calib")
    if not jobs:
        doubts.append("neither names nor times nor numbers of files agree: name the files alike")
    typed = command(
        images.place,
        measured.place,
        scale=_number(scale),
        intrinsics=camera,
        confidence=confidence,
        pair="nearest" if how == "in time" else None,
        by_order=how == "by order",
    )
    reading = {"scale": scale, "intrinsics": camera, "confidence": confidence}
    return Inventory(
        what="a folder",
        facts=tuple(facts),
        command=typed if jobs else (),
        doubts=tuple(doubts),
        jobs=tuple(jobs),
        reading=reading,
    )


def _best(images: Files, measured: Files) -> tuple[str, list[Job], dict[str, int]]:
    """How they pair best, the frames, and how many each way pairs."""
    ways: dict[str, list[Job]] = {}
    for name, options in (
        ("by name", {}),
        ("in time", {"tolerance": _TOLERANCE}),
        ("by order", {"by_order": True}),
    ):
        if name == "in time" and not _are_times(images.paths):
            continue
        try:
            ways[name] = plan(str(images.place), str(measured.place), **options)
        except GbpnError:
            continue
    counts = {name: sum(not (job.problem or job.left_out) for job in jobs) for name, jobs in ways.items()}
    if not counts:
        return "", [], {"none": 0}
    best = max(counts, key=lambda name: counts[name] * (0.9 if name == "by order" else 1))
    return best, ways[best], counts


def _partners(images: Files, measured: Files) -> tuple[int, int]:
    """By how much a group looks like the measurements of these images."""
    names = {path.stem for path in images.paths}
    return sum(path.stem in names for path in measured.paths), len(measured.paths)


def _are_times(paths: Sequence[Path]) -> bool:
    """Whether names are seconds since 1970, or nanoseconds of them."""
    return all(re.search(r"\d{9,}", path.stem) for path in paths[:5])


def _groups(place: Path, *, deep: bool) -> list[Files]:
    """The files of a folder, and of the folders in it, by kind; each is judged by one of a suffix."""
    folders = [place, *(sorted(p for p in place.iterdir() if p.is_dir()) if deep and place.is_dir() else [])]
    out = []
    for one in folders:
        inside = one.iterdir() if one.is_dir() else [one]
        listed = sorted(p for p in inside if p.is_file() and not p.name.startswith("."))
        by_suffix: dict[str, list[Path]] = {}
        for path in listed:
            by_suffix.setdefault(path.suffix.lower(), []).append(path)
        kinds: dict[str, list[Path]] = {}
        for paths in by_suffix.values():
            alike = kind_of(paths[0]) == kind_of(paths[-1])
            for part in [paths] if alike else [[path] for path in paths]:
                kinds.setdefault(kind_of(part[0]), []).extend(part)
        out += [Files(place=one, kind=kind, paths=paths) for kind, paths in kinds.items() if kind]
    return out


def scale_of(place: Path) -> tuple[float | None, tuple[str, ...]]:
    """What integer depth files of a folder are most likely divided by, and why."""
    return _scale([path for path in sorted(place.iterdir()) if kind_of(path) == "depth maps"][:1])


def _scale(paths: Sequence[Path]) -> tuple[float | None, tuple[str, ...]]:
    """What integer depth is most likely divided by, and why; None for floats."""
    if not paths or paths[0].suffix.lower() not in (".png", ".tif", ".tiff", ".npy", ".npz"):
        return None, ()
    try:
        stored = read_stored(paths[0], 1.0)
    except GbpnError as error:
        return None, (str(error),)
    if not np.issubdtype(stored.dtype, np.integer):
        return None, ()
    why = likely_scale(stored)
    found = re.search(r"--scale (\d+)", why)
    told = f"the unit is guessed from {paths[0].name}: {why}"
    return (float(found[1]) if found else 1000.0), (told,)


def _number(scale: float | None) -> str | None:
    return None if scale is None else f"{scale:g}"


def _of_depth(path: Path) -> list[tuple[str, str]]:
    """Size and what is measured, of a map."""
    if kind_of(path) != "depth maps":
        return []
    try:
        stored = read_stored(path, 1.0)
    except GbpnError as error:
        return [("depth", str(error))]
    known = stored[np.isfinite(stored) & (stored > 0)]
    height, width = stored.shape
    share = known.size / max(stored.size, 1)
    ends = f", {known.min():g} to {known.max():g} as stored" if known.size else ""
    return [("depth", f"{width}×{height} {stored.dtype}, {known.size} measured ({share:.1%}){ends}")]


def _camera(places: Sequence[Path]) -> Path | None:
    """A file with a camera in one of these folders."""
    for place in dict.fromkeys(places):
        for path in sorted(place.iterdir()):
            if path.stem.lower() in _CAMERAS and path.suffix.lower() in _CAMERA_FILES:
                return path
    return None


def _without_camera(camera: Path | None, cloud: bool) -> tuple[str, ...]:
    if camera is not None:
        return ()
    return ("no camera was found: clouds want --intrinsics fx,fy,cx,cy",) if cloud else ()


def _is_list(path: Path) -> bool:
    """Whether this is TUM's list of pairs."""
    try:
        return bool(timestamps.read_associations(path))
    except GbpnError:
        return False


def _is_manifest(path: Path) -> bool:
    with open(path, newline="", encoding="utf-8", errors="replace") as lines:
        return "image" in next(csv.reader(lines), [])


def _manifest(path: Path) -> Inventory:
    """A table with one row per frame."""
    if path.suffix.lower() == ".csv":
        with open(path, newline="", encoding="utf-8", errors="replace") as lines:
            rows = csv.reader(lines)
            columns, count = next(rows, []), sum(1 for row in rows if row)
    else:
        try:
            import pyarrow.parquet as parquet  # type: ignore[import-untyped, unused-ignore]
        except ImportError as error:
            raise InputError("Parquet tables need a package: pip install 'gbpn[scale]'") from error
        table = parquet.ParquetFile(path)
        columns, count = list(table.schema_arrow.names), table.metadata.num_rows
    facts = (("rows", f"{count} frames"), ("columns", ", ".join(columns)))
    known = {"depth", "sparse", "points"} & set(columns)
    doubts = () if known else ("no column is called depth, sparse or points: measurements are wanted too",)
    return Inventory(what="a table of frames", facts=facts, command=command(path), doubts=doubts)
