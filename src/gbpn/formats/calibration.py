"""Camera and LiDAR calibration from files: plain matrices, and KITTI's three kinds of text.

raw        calib_cam_to_cam.txt (P_rect_02, R_rect_00, …) with calib_velo_to_cam.txt (R, T) beside it
odometry   calib.txt (P0 … P3, Tr)
object     000000.txt (P0 … P3, R0_rect, Tr_velo_to_cam)
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from gbpn.camera.pinhole import require_camera
from gbpn.errors import DatasetError, InputError
from gbpn.files.guard import reading, shown
from gbpn.formats.arrays import read_npy

if TYPE_CHECKING:
    from torch import Tensor

__all__ = [
    "SensorCalibration",
    "intrinsics_of",
    "kitti_calibration",
    "kitti_intrinsics",
    "read_extrinsics",
    "read_intrinsics",
    "rigid_transform",
]

_LARGEST_MATRIX = 1_000_000
"""Bytes of a file with one matrix."""
_FARTHEST_SENSOR = 1e8
"""Metres between the origin of a cloud and the camera; map coordinates count from the edge of a zone."""


@dataclass(frozen=True, kw_only=True)
class SensorCalibration:
    """How points of a scanner come into a picture."""

    intrinsics: Tensor
    """[3, 3] float64."""
    to_camera: Tensor
    """[4, 4] float64: homogeneous scanner coordinates → camera coordinates (x right, y down, z forward)."""


def read_intrinsics(path: str | Path) -> Tensor:
    """[3, 3] float32 from a text, .json (key K) or .npy file of 3×3, 3×4 or `fx fy cx cy`."""
    path = Path(path)
    numbers = _read_numbers(path, key="K")
    return _named(path, numbers)


def _named(path: Path, numbers: np.ndarray) -> Tensor:
    """`intrinsics_of` with the name of the file in its error."""
    with reading(path, "calibration file", "intrinsics"):
        try:
            return intrinsics_of(numbers)
        except InputError as error:
            raise DatasetError(f"{shown(path)}: {error}") from error


def intrinsics_of(numbers: np.ndarray) -> Tensor:
    """[3, 3] float32 from fx fy cx cy, 3×3, 3×4 (KITTI P; the last column is dropped) or 4×4 numbers."""
    import torch

    flat = np.asarray(numbers, dtype=np.float64).reshape(-1)
    if flat.size == 4:
        fx, fy, cx, cy = flat
        matrix = np.array([[fx, 0, cx], [0, fy, cy], [0, 0, 1]])
    elif flat.size in (9, 12, 16):
        matrix = flat.reshape({9: (3, 3), 12: (3, 4), 16: (4, 4)}[flat.size])[:3, :3]
    else:
        raise InputError(f"intrinsics are 'fx fy cx cy' or a 3×3, 3×4 or 4×4 matrix; got {flat.size} numbers")
    require_camera(matrix)
    return torch.tensor(matrix, dtype=torch.float32)


def read_extrinsics(path: str | Path) -> Tensor:
    """[4, 4] float64 from 12 (3×4) or 16 numbers: cloud coordinates → camera coordinates."""
    path = Path(path)
    flat = _read_numbers(path, key="T").reshape(-1)
    if flat.size not in (12, 16):
        raise DatasetError(f"{shown(path)}: extrinsics are a 3×4 or 4×4 matrix; got {flat.size} numbers")
    return rigid_transform(path, flat)


def rigid_transform(path: Path, numbers: np.ndarray) -> Tensor:
    """[4, 4] float64 of 12 (3×4) or 16 numbers that turn and move; `path` is named in the error."""
    import torch

    matrix = np.eye(4)
    matrix[: numbers.size // 4] = numbers.reshape(-1, 4)
    _require_rigid(path, matrix)
    return torch.from_numpy(matrix)


def _require_rigid(path: Path, matrix: np.ndarray) -> None:
    """Raise unless [4, 4] turns and moves, and nothing else."""
    turn = matrix[:3, :3]
    if not (np.isfinite(matrix).all() and np.abs(matrix).max() < _FARTHEST_SENSOR):
        raise DatasetError(
            f"{shown(path)}: a pose must be finite and within {_FARTHEST_SENSOR:g} m; got "
            f"{shown(matrix.tolist())}"
        )
    if not np.allclose(turn @ turn.T, np.eye(3), atol=1e-2) or np.linalg.det(turn) < 0:
        raise DatasetError(
            f"{shown(path)}: the left 3×3 block must be a rotation; got {shown(turn.round(3).tolist())}"
        )


def _read_kitti_table(path: str | Path) -> dict[str, np.ndarray]:
    """KITTI's `name: numbers` lines; lines without numbers (dates) are left out."""
    with reading(path, "calibration file", "KITTI's lines of a name and numbers") as file:
        lines = file.read_text(errors="replace").splitlines()
    table = {}
    for line in lines:
        name, separator, values = line.partition(":")
        try:
            numbers = np.array([float(word) for word in values.split()])
        except ValueError:
            continue
        if separator and numbers.size:
            table[name.strip()] = numbers
    if not table:
        raise DatasetError(f"{path}: no 'name: numbers' line; expected a KITTI calibration file")
    return table


def kitti_intrinsics(path: str | Path, camera: int = 2) -> Tensor:
    """[3, 3] float32 of a rectified camera from calib_cam_to_cam.txt or calib.txt."""
    table = _read_kitti_table(path)
    for name in (f"P_rect_{camera:02}", f"P{camera}"):
        if name in table and table[name].size == 12:
            return _named(Path(path), table[name])
    raise DatasetError(f"{path}: neither P_rect_{camera:02} nor P{camera} with 12 numbers in it")


def kitti_calibration(path: str | Path, camera: int = 2) -> SensorCalibration:
    """LiDAR to rectified colour camera, from any of KITTI's layouts; `path` is a file or its folder."""
    path = Path(path)
    if path.is_dir():
        names = ("calib_cam_to_cam.txt", "calib.txt")
        found = [path / name for name in names if (path / name).is_file()]
        if not found:
            raise DatasetError(f"{path}: expected {' or '.join(names)} in this folder")
        path = found[0]
    with reading(path, "calibration file", "KITTI's P, R and Tr with all their numbers"):
        return _kitti_calibration(path, camera)


def _kitti_calibration(path: Path, camera: int) -> SensorCalibration:
    import torch

    table = _read_kitti_table(path)
    projection = table.get(f"P_rect_{camera:02}", table.get(f"P{camera}"))
    if projection is None or projection.size != 12:
        raise DatasetError(f"{path}: neither P_rect_{camera:02} nor P{camera} with 12 numbers in it")
    projection = projection.reshape(3, 4)
    intrinsics = projection[:, :3]
    require_camera(intrinsics)
    baseline = np.eye(4)  # P = K [I | t]: from the reference camera to this one
    baseline[:3, 3] = np.linalg.solve(intrinsics, projection[:, 3])
    rectify = np.eye(4)
    rectification = table.get("R_rect_00", table.get("R0_rect", table.get("R_rect")))
    if rectification is not None:
        rectify[:3, :3] = rectification.reshape(3, 3)
    to_camera = baseline @ rectify @ _scanner_to_reference(path, table)
    _require_rigid(path, to_camera)
    return SensorCalibration(
        intrinsics=torch.from_numpy(intrinsics.copy()), to_camera=torch.from_numpy(to_camera)
    )


def _scanner_to_reference(path: Path, table: dict[str, np.ndarray]) -> np.ndarray:
    """[4, 4]: scanner to the unrectified reference camera."""
    rigid = np.eye(4)
    for name in ("Tr", "Tr_velo_to_cam", "Tr_velo_cam"):
        if name in table and table[name].size == 12:
            rigid[:3] = table[name].reshape(3, 4)
            return rigid
    beside = path.parent / "calib_velo_to_cam.txt"
    if not beside.is_file():
        raise DatasetError(f"{path}: no Tr in it and no calib_velo_to_cam.txt beside it")
    scanner = _read_kitti_table(beside)
    if "R" not in scanner or "T" not in scanner:
        raise DatasetError(f"{beside}: expected lines R: (9 numbers) and T: (3 numbers)")
    rigid[:3, :3], rigid[:3, 3] = scanner["R"].reshape(3, 3), scanner["T"]
    return rigid


def _read_numbers(path: Path, key: str) -> np.ndarray:
    with reading(path, "file of numbers", f"a matrix ({key}) of 3×3, 3×4, 4×4 or four numbers"):
        if path.stat().st_size > _LARGEST_MATRIX:
            raise ValueError(f"a file of {path.stat().st_size} bytes")
        if path.suffix == ".npy":
            return read_npy(path).astype(np.float64)
        if path.suffix == ".json":
            content = json.loads(path.read_text())
            return np.asarray(content[key] if isinstance(content, dict) else content, dtype=np.float64)
        return np.array([float(word) for word in path.read_text().replace(",", " ").split()])
