"""Where the camera was: poses from files, as [4, 4] camera → world (x right, y down, z ahead).

a folder of .txt    one 4×4 (or 3×4) matrix per frame, of its number: frame-000010.pose.txt (7-Scenes), 10.txt
a text of 8 columns TUM: time tx ty tz qx qy qz qw; names are times
a text of 12        KITTI: one 3×4 matrix per line, in the order of the frames
transforms.json     nerfstudio, instant-ngp: OpenGL's axes (y up, z back)
a COLMAP model      its images; lengths in the model's unit
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Sequence
from pathlib import Path, PurePosixPath

import numpy as np

from gbpn.errors import DatasetError, InputError
from gbpn.files.guard import reading, shown
from gbpn.formats.colmap import read_model

__all__ = ["OPENGL", "poses_of", "read_matrix"]

OPENGL = np.diag([1.0, -1.0, -1.0, 1.0])
"""Turns camera axes from y down, z ahead to OpenGL's and back."""
_TOLERANCE = 0.05
"""Seconds between a frame and its pose."""


def poses_of(place: str | Path, names: Sequence[str], units: float = 1.0) -> dict[str, np.ndarray]:
    """Name → [4, 4] camera to world, for those of the frames' `names` (without suffix) that have a pose.

    units  metres per unit of a COLMAP model
    """
    place = Path(place)
    found = _found(place, list(names), units)
    if not found:
        raise DatasetError(
            f"{shown(place)}: none of the {len(names)} frames has a pose in it; one is called "
            f"{shown(names[0])!r}"
        )
    for name, pose in found.items():
        turn = pose[:3, :3]
        if not np.isfinite(pose).all() or not np.allclose(turn @ turn.T, np.eye(3), atol=1e-2):
            raise DatasetError(f"{shown(place)}: the pose of {shown(name)} must turn and move, nothing else")
    return found


def _found(place: Path, names: list[str], units: float) -> dict[str, np.ndarray]:
    if place.is_dir() and any((place / f"cameras{suffix}").is_file() for suffix in (".bin", ".txt")):
        return _colmap(place, names, units)
    if place.is_dir() and (place / "transforms.json").is_file():
        place = place / "transforms.json"
    if place.is_dir():
        files = {_plain(file): file for file in sorted(place.glob("*.txt"))}
        return {name: read_matrix(files[key]) for name in names if (key := _key(name)) in files}
    if place.suffix == ".json":
        return _transforms(place, names)
    return _table(place, names)


def read_matrix(path: Path) -> np.ndarray:
    """[4, 4] from a text of 12 or 16 numbers."""
    with reading(path, "pose", "a 3×4 or 4×4 matrix"):
        flat = np.array([float(word) for word in path.read_text().replace(",", " ").split()])
        if flat.size not in (12, 16):
            raise ValueError(f"{flat.size} numbers")
        pose = np.eye(4)
        pose[:3] = flat[:12].reshape(3, 4)
        return pose


def _table(path: Path, names: list[str]) -> dict[str, np.ndarray]:
    with reading(path, "list of poses", "lines of 8 (TUM) or 12 (KITTI) numbers"):
        lines = [line for line in path.read_text().splitlines() if line.strip() and not line.startswith("#")]
        rows = np.array([[float(word) for word in line.replace(",", " ").split()] for line in lines])
    if rows.ndim == 2 and rows.shape[1] == 12:
        if len(rows) < len(names):
            raise InputError(f"{shown(path)}: {len(rows)} poses for {len(names)} frames: as many are wanted")
        return {
            name: np.vstack([row.reshape(3, 4), [0, 0, 0, 1]]) for name, row in zip(names, rows, strict=False)
        }
    if rows.ndim != 2 or rows.shape[1] != 8:
        raise DatasetError(f"{shown(path)}: poses are lines of 8 (TUM) or 12 (KITTI) numbers")
    found = {}
    for name in names:
        try:
            when = float(name)
        except ValueError:
            continue
        nearest = int(np.abs(rows[:, 0] - when).argmin())
        if abs(rows[nearest, 0] - when) <= _TOLERANCE:
            found[name] = _pose(rows[nearest, 1:4], rows[nearest, 4:])
    return found


def _pose(position: np.ndarray, quaternion: np.ndarray) -> np.ndarray:
    """[4, 4] of x, y, z and (x, y, z, w)."""
    x, y, z, w = quaternion / np.linalg.norm(quaternion)
    pose = np.eye(4)
    pose[:3, :3] = [
        [1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y)],
        [2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x)],
        [2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)],
    ]
    pose[:3, 3] = position
    return pose


def _transforms(path: Path, names: list[str]) -> dict[str, np.ndarray]:
    with reading(path, "transforms.json", "frames with file_path and transform_matrix"):
        frames = json.loads(path.read_text())["frames"]
        matrices = {frame["file_path"]: np.array(frame["transform_matrix"], float) for frame in frames}
        poses = {
            str(PurePosixPath(file).with_suffix("")): matrix.reshape(4, 4) @ OPENGL
            for file, matrix in matrices.items()
        }
    return _named(poses, names)


def _colmap(place: Path, names: list[str], units: float) -> dict[str, np.ndarray]:
    poses = {}
    for picture in read_model(place).pictures:
        poses[str(PurePosixPath(picture.name).with_suffix(""))] = picture.pose(units)
    return _named(poses, names)


def _named(poses: dict[str, np.ndarray], names: list[str]) -> dict[str, np.ndarray]:
    """Poses of the frames `names`, by their path or, where it is the only one of its kind, its last part."""
    last: dict[str, list[str]] = {}
    for path in poses:
        last.setdefault(PurePosixPath(path).name, []).append(path)
    wanted = Counter(PurePosixPath(name).name for name in names)
    found = {}
    for name in names:
        alike = last.get(PurePosixPath(name).name, [])
        if name in poses:
            found[name] = poses[name]
        elif len(alike) == 1 and wanted[PurePosixPath(name).name] == 1:
            found[name] = poses[alike[0]]
    return found


def _plain(file: Path) -> str:
    return _key(file.stem.removesuffix(".pose"))


def _key(name: str) -> str:
    """What frame and pose have in common: the last number in the name, else the name."""
    numbers = re.findall(r"\d+", name)
    return str(int(numbers[-1])) if numbers else name
