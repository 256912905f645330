"""Point clouds into the picture: z-buffer, and removal of points seen through the foreground."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from gbpn.camera.pinhole import nearest_wins, require_camera
from gbpn.errors import InputError
from gbpn.files.guard import require_size
from gbpn.measurements.validity import measured

__all__ = [
    "FARTHEST",
    "NEAREST",
    "nearest_values",
    "points_to_sparse",
    "project",
    "project_values",
    "projected_indices",
    "remove_see_through",
]

NEAREST = 0.1
"""Metres; points nearer to the camera plane are not in the picture."""

FARTHEST = 1e8
"""Metres; points farther away are marks for "nothing here"."""


def project(
    points: np.ndarray, intrinsics: Tensor, height: int, width: int, to_camera: Tensor | None = None
) -> Tensor:
    """[1, height, width] float32 depth of [N, 3] points; the nearest wins where several meet in a pixel."""
    return project_values(points, [], intrinsics, height, width, to_camera)


def project_values(
    points: np.ndarray,
    values: Sequence[np.ndarray | None],
    intrinsics: Tensor,
    height: int,
    width: int,
    to_camera: Tensor | None = None,
) -> Tensor:
    """As `project`, with maps of further `values` [N] each, None being skipped: [1 + k, height, width]."""
    x, y, depth, number = _seen(points, intrinsics, height, width, to_camera)
    nearest = torch.from_numpy(nearest_wins(x, y, depth, height, width))[None]
    more = [column[number] for column in values if column is not None]
    if not more:
        return nearest
    return torch.cat((nearest, torch.from_numpy(nearest_values(x, y, depth, np.stack(more), height, width))))


def projected_indices(
    points: np.ndarray, intrinsics: Tensor, height: int, width: int, to_camera: Tensor | None = None
) -> tuple[Tensor, np.ndarray]:
    """As `project`, and [height, width] which point is in each pixel, −1 where none is."""
    x, y, depth, number = _seen(points, intrinsics, height, width, to_camera)
    column, row = np.rint(x).astype(np.int64), np.rint(y).astype(np.int64)
    inside = (column >= 0) & (column < width) & (row >= 0) & (row < height)
    order = np.flatnonzero(inside)[np.argsort(-depth[inside], kind="stable")]  # the nearest is written last
    index = np.full((height, width), -1, np.int64)
    sparse = np.zeros((height, width), np.float32)
    index[row[order], column[order]] = number[order]
    sparse[row[order], column[order]] = depth[order]
    return torch.from_numpy(sparse)[None], index


def _seen(
    points: np.ndarray, intrinsics: Tensor, height: int, width: int, to_camera: Tensor | None
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Pixel x, y and depth of the points before the camera, and which points these are."""
    if points.ndim != 2 or points.shape[1] != 3:
        raise InputError(f"points must be [N, 3]; got {list(points.shape)}")
    require_size("a depth map", height, width)
    seen = points.astype(np.float64)
    camera = intrinsics.double().numpy()
    require_camera(camera)
    with np.errstate(all="ignore"):  # points at infinity fall out of the picture
        if to_camera is not None:
            matrix = to_camera.double().numpy()
            if not np.isfinite(matrix).all():
                raise InputError("the cloud-to-camera matrix must be finite; got NaN or infinity")
            seen = seen @ matrix[:3, :3].T + matrix[:3, 3]
        number = np.flatnonzero((seen[:, 2] > NEAREST) & (seen[:, 2] < FARTHEST))
        seen = seen[number]
        pixel = seen @ camera.T
        x, y = pixel[:, 0] / pixel[:, 2], pixel[:, 1] / pixel[:, 2]
        inside = (np.abs(x) < 1e6) & (np.abs(y) < 1e6)  # beyond, rounding to integers is not safe
    return x[inside], y[inside], seen[inside, 2], number[inside]


def remove_see_through(sparse: Tensor, *, rows: int = 5, columns: int = 4, step: float = 0.1) -> Tensor:
    """Drop points that lie behind a nearer surface around them.

    A scanner sits beside the camera and sees past edges. A point is dropped if a measurement within `rows`
    and `columns` pixels is nearer by more than the relative `step`. That is on the safe side: true background
    close to an edge goes too, and so does far flat ground that recedes by `step` within `rows`.
    """
    nearness = torch.where(measured(sparse), 1 / sparse.clamp_min(1e-6), 0.0)
    nearest = torch.nn.functional.max_pool2d(
        nearness[None], (2 * rows + 1, 2 * columns + 1), stride=1, padding=(rows, columns)
    )[0]
    return sparse * (nearest * sparse <= 1 + step)


def points_to_sparse(points: Tensor, height: int, width: int) -> Tensor:
    """[N, 3] of (x, y, depth) onto the pixel grid; where two fall on one pixel, the nearer one stays."""
    require_size("a depth map", height, width)
    points = points.to(torch.float64)
    if points.dim() != 2 or points.shape[1] != 3 or not bool(torch.isfinite(points[:, :2]).all()):
        raise InputError(f"points must be [N, 3] of x, y, depth; got {list(points.shape)} or NaN in x, y")
    column, row, depth = points[:, 0].round().long(), points[:, 1].round().long(), points[:, 2].float()
    outside = (column < 0) | (column >= width) | (row < 0) | (row >= height)
    if bool(outside.any()) or not bool((torch.isfinite(depth) & (depth > 0)).all()):
        bad = points[outside | ~(torch.isfinite(depth) & (depth > 0))][0].tolist()
        raise InputError(f"points must be x, y, depth inside {width}×{height} with depth above 0; got {bad}")
    return torch.from_numpy(nearest_wins(column.numpy(), row.numpy(), depth.numpy(), height, width))[None]


def nearest_values(
    x: np.ndarray, y: np.ndarray, depth: np.ndarray, values: np.ndarray, height: int, width: int
) -> np.ndarray:
    """[k, height, width] float32 of `values` [k, N]: in each pixel those of the nearest point, else 0."""
    with np.errstate(invalid="ignore"):  # points at infinity fall out of the picture
        inside = (x > -0.5) & (x < width - 0.5) & (y > -0.5) & (y < height - 0.5)
    column, row = np.rint(x[inside]).astype(np.int64), np.rint(y[inside]).astype(np.int64)
    order = np.argsort(-depth[inside], kind="stable")  # the nearest is written last
    maps = np.zeros((len(values), height, width), np.float32)
    with np.errstate(over="ignore"):  # beyond float32 is infinite, which is for the reader to refuse
        maps[:, row[order], column[order]] = values[:, inside][:, order]
    return maps
