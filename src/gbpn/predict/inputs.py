"""What people have, as the tensors a model takes: paths, PIL pictures, arrays, tensors, points."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from PIL import Image
from torch import Tensor

from gbpn.camera import default_intrinsics
from gbpn.data.calibration import intrinsics_of, read_intrinsics
from gbpn.data.depth_files import read_depth
from gbpn.data.images import read_image
from gbpn.errors import DatasetError, InputError

FULL_FRAME_WIDTH = 36.0
"""Millimetres; EXIF gives focal lengths as if the sensor were this wide."""
EXIF_FOCAL_35MM, EXIF_FOLDER = 0xA405, 0x8769
SMALLEST_SIDE = 32
POINT_TABLES = (".csv", ".txt")
"""Files of points x, y, depth."""


def as_image(image: Any) -> Tensor:
    """[3, H, W] float32 RGB in [0, 1].

    A path; a PIL picture of any mode; NumPy [H, W, 3 or 4] or [H, W], uint8, uint16 or float in [0, 1];
    torch [3, H, W] or [1, 3, H, W], uint8 or float in [0, 1].
    """
    if isinstance(image, str | os.PathLike):
        return _large_enough(read_image(Path(image)))
    if isinstance(image, Image.Image):
        image = np.asarray(image.convert("RGB"))
    if isinstance(image, Tensor):
        planes = image.detach().cpu()
        planes = planes[0] if planes.dim() == 4 and planes.shape[0] == 1 else planes
        if planes.dim() != 3 or planes.shape[0] != 3:
            raise InputError(f"a torch image must be [3, H, W] RGB; got {list(image.shape)}")
        return _large_enough(_unit_range(planes))
    pixels = np.asarray(image)
    if pixels.ndim == 2:
        pixels = np.repeat(pixels[..., None], 3, axis=2)
    if pixels.ndim != 3 or pixels.shape[2] not in (3, 4):
        raise InputError(f"a NumPy image must be [H, W, 3], [H, W, 4] or [H, W]; got {list(pixels.shape)}")
    if pixels.dtype == np.uint16:
        pixels = pixels.astype(np.float32) / np.float32(65535)
    return _large_enough(_unit_range(torch.from_numpy(pixels[..., :3].transpose(2, 0, 1).copy())))


def as_sparse(sparse: Any, height: int, width: int, scale: float | None = None) -> Tensor:
    """[1, H, W] float32 metres, 0 where not measured (NaN counts as not measured).

    A path of a depth file (`scale` divides integer files) or of a table x, y, depth (.csv, .txt);
    an array or tensor [H, W], [H, W, 1] or [1, H, W];
    or points, [N, 3] of (x, y, depth) with x to the right and y down in pixels.
    """
    if isinstance(sparse, str | os.PathLike):
        path = Path(sparse)
        if path.suffix.lower() in POINT_TABLES:
            return points_to_sparse(read_point_table(path)[:, :3], height, width)
        depth = read_depth(path, scale, drop_negative=False)
        if depth.shape[2] == 3:  # no image is so narrow: a table of points
            return points_to_sparse(depth[0], height, width)
    else:
        values = sparse.detach().cpu() if isinstance(sparse, Tensor) else torch.from_numpy(np.array(sparse))
        if values.dim() == 2 and values.shape[1] == 3 and (height, width) != tuple(values.shape):
            return points_to_sparse(values, height, width)
        squeezed = values.squeeze() if values.dim() > 2 else values
        if scale is None and not values.is_floating_point():
            raise InputError(
                f"integer depth ({values.dtype}) needs its scale: 1000 for millimetres, 256 for KITTI"
            )
        depth = squeezed.to(torch.float32).div(scale or 1.0)[None]
    if tuple(depth.shape) != (1, height, width):
        raise InputError(
            f"sparse depth must have the size of the image, {height}×{width}; got {_by(depth.shape[1:])}: "
            "resize the image or project the points again, do not interpolate measurements"
        )
    depth = torch.nan_to_num(depth, nan=0.0, posinf=torch.inf, neginf=-torch.inf)
    if bool(torch.isinf(depth).any()) or bool((depth < 0).any()):
        raise InputError(
            f"sparse depth must be finite and not negative; got {float(depth.min()):g} to "
            f"{float(depth.max()):g}: 0 or NaN means not measured"
        )
    return depth


def read_point_table(path: Path) -> Tensor:
    """[N, 3 or 4] of x, y, depth and perhaps std, from lines of numbers; one line of names may come first."""
    if not path.is_file():
        raise DatasetError(f"{path}: no such file")
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise DatasetError(f"{path}: not a readable table of points ({error})") from error
    rows: list[list[float]] = []
    for number, line in enumerate(lines, 1):
        words = line.partition("#")[0].replace(",", " ").replace(";", " ").split()
        if not words:
            continue
        try:
            rows.append([float(word) for word in words])
        except ValueError:
            if rows or number > 1:
                raise DatasetError(
                    f"{path}, line {number}: wanted numbers x, y, depth; got {line!r}"
                ) from None
    if len({len(row) for row in rows}) != 1 or len(rows[0]) not in (3, 4):
        raise DatasetError(f"{path}: wanted lines of x, y, depth (and perhaps std); got {lines[:1]}")
    return torch.tensor(rows, dtype=torch.float64)


def points_to_sparse(points: Tensor, height: int, width: int) -> Tensor:
    """[N, 3] of (x, y, depth) onto the pixel grid; where two fall on one pixel, the nearer one stays."""
    points = points.to(torch.float64)
    if points.dim() != 2 or points.shape[1] != 3 or not bool(torch.isfinite(points[:, :2]).all()):
        raise InputError(f"points must be [N, 3] of x, y, depth; got {list(points.shape)} or NaN in x, y")
    column, row, depth = points[:, 0].round().long(), points[:, 1].round().long(), points[:, 2].float()
    outside = (column < 0) | (column >= width) | (row < 0) | (row >= height)
    if bool(outside.any()) or not bool((torch.isfinite(depth) & (depth > 0)).all()):
        bad = points[outside | ~(torch.isfinite(depth) & (depth > 0))][0].tolist()
        raise InputError(f"points must be x, y, depth inside {width}×{height} with depth above 0; got {bad}")
    nearest = torch.full((height * width,), torch.inf)
    nearest.scatter_reduce_(0, row * width + column, depth, "amin")
    return torch.where(torch.isinf(nearest), 0.0, nearest).view(1, height, width)


def as_intrinsics(intrinsics: Any, image: Any, height: int, width: int) -> tuple[Tensor, str | None]:
    """[3, 3] float32, and a notice if the camera had to be guessed.

    Four numbers fx, fy, cx, cy; a 3×3 matrix; a file with either; or None: the focal length that the picture
    file's EXIF gives, else a field of view of 60° across the longer side.
    """
    if isinstance(intrinsics, str | os.PathLike):
        return read_intrinsics(Path(intrinsics)), None
    if intrinsics is not None:
        values = (
            intrinsics.detach().cpu().numpy() if isinstance(intrinsics, Tensor) else np.asarray(intrinsics)
        )
        return intrinsics_of(np.squeeze(values).astype(np.float64)), None
    guess = default_intrinsics(height, width)
    focal = _exif_focal(image, max(height, width))
    if focal is None:
        return guess, "camera not given: a field of view of 60° is assumed (give intrinsics to be exact)"
    guess[0, 0] = guess[1, 1] = focal
    return guess, f"camera from EXIF: focal length {focal:.0f} pixels"


def _exif_focal(image: Any, longer_side: int) -> float | None:
    """Focal length in pixels from a picture's 35 mm equivalent, if it has one."""
    try:
        if isinstance(image, str | os.PathLike):
            with Image.open(image) as picture:
                exif = picture.getexif()
        elif isinstance(image, Image.Image):
            exif = image.getexif()
        else:
            return None
        equivalent = float(exif.get_ifd(EXIF_FOLDER).get(EXIF_FOCAL_35MM) or 0)
    except (OSError, ValueError, TypeError):
        return None
    return equivalent / FULL_FRAME_WIDTH * longer_side if equivalent > 0 else None


def _unit_range(planes: Tensor) -> Tensor:
    if planes.dtype == torch.uint8:
        return planes.float().div_(255)
    if not planes.is_floating_point():
        raise InputError(f"an image must be uint8, uint16 or float in [0, 1]; got {planes.dtype}")
    planes = planes.float()
    low, high = float(planes.min()), float(planes.max())
    if not (low >= 0 and high <= 1):
        raise InputError(f"a float image must lie in [0, 1]; got {low:g} to {high:g}: divide by 255?")
    return planes


def _large_enough(image: Tensor) -> Tensor:
    if min(image.shape[1:]) < SMALLEST_SIDE:
        raise InputError(
            f"an image must be at least {SMALLEST_SIDE}×{SMALLEST_SIDE}; got {_by(image.shape[1:])}"
        )
    return image


def _by(shape: Sequence[int]) -> str:
    return "×".join(str(n) for n in shape)
