"""Edges of what was measured and of the picture, as a comparison of the two wants them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.ndimage import gaussian_filter, uniform_filter
from scipy.spatial import cKDTree
from torch import Tensor

from gbpn.measurements.validity import measured

__all__ = ["FEWEST_EDGES", "LARGEST", "FrameEdges", "depth_edges", "picture_edges"]

LARGEST = 3.0
"""Degrees; rotations up to this are looked for."""
FEWEST_EDGES = 30
"""Depth edges, of a frame that counts."""
_NEIGHBOURS = 24
"""Measured pixels around one, among which those beside, above and below it are found."""
_FARTHEST_NEIGHBOUR = 1.0
"""Degrees between two measured pixels that an edge may lie between."""
_SHORTEST_REACH = 12.0
"""Pixels that this is at least: background around edges was dropped, see `remove_see_through`."""
_STEP = 0.1
"""Relative step of nearness that is an edge."""
_FULL_STEP = 0.5
"""Relative step from which on an edge counts fully."""
_MOST = 3000
"""Depth edges of one frame."""
_MOST_PIXELS = 1280
"""Of the longer side, above which the picture is halved."""
_SIDES = {(0, 1): (1, 0), (0, -1): (-1, 0), (1, 1): (0, 1), (1, -1): (0, -1)}
"""(axis, sign) → the direction in x, y."""


@dataclass(frozen=True, kw_only=True)
class FrameEdges:
    """What one frame tells of the rotation between what was measured and the picture."""

    rays: np.ndarray
    """[N, 3] where depth steps, directions of unit depth."""
    axis: np.ndarray
    """[N] 0 where it steps along a row of pixels, 1 along a column."""
    weight: np.ndarray
    """[N] in (0, 1]: how large the step is."""
    levels: tuple[np.ndarray, ...]
    """[2, h, w] float32 each: how much the picture steps along rows and columns, compared with its
    surroundings, 0 in the mean; every level has half of the pixels."""
    intrinsics: np.ndarray
    """[3, 3] of the first level."""

    @classmethod
    def of(cls, image: Tensor, sparse: Tensor, intrinsics: Tensor) -> FrameEdges:
        """Of a picture [3, H, W], measurements [1, H, W] and a camera [3, 3]."""
        camera = intrinsics.double().numpy()
        pixels, axis, weight = depth_edges(sparse[0].numpy(), float(camera[0, 0]))
        rays = np.concatenate([pixels, np.ones((len(pixels), 1))], axis=1) @ np.linalg.inv(camera).T
        grey = image.mean(dim=0).numpy()
        while max(grey.shape) > _MOST_PIXELS:
            grey, camera = _halved(grey), _HALF @ camera
        edges = picture_edges(grey, float(camera[0, 0]))
        levels = [edges]
        while min(levels[-1].shape[1:]) >= 16 and len(levels) < 6:
            levels.append(_halved(levels[-1]))
        return cls(rays=rays, axis=axis, weight=weight, levels=tuple(levels), intrinsics=camera)

    def scores(self, matrices: np.ndarray, level: int) -> np.ndarray:
        """[M]: how much of the picture's edges is where the depth edges are, after rotations [M, 3, 3].

        0 in the mean over all places, about 1 where every depth edge is at a usual edge of the picture.
        """
        level = min(level, len(self.levels) - 1)
        planes, share = self.levels[level], 0.5**level
        turn = self.intrinsics @ matrices  # [M, 3, 3], rays to pixels
        x, y, z = np.moveaxis(turn.astype(np.float32) @ self.rays.T.astype(np.float32), 1, 0)  # [M, N] each
        column, row = (x / z + 0.5) * share - 0.5, (y / z + 0.5) * share - 0.5
        return np.asarray((_looked_up(planes, self.axis, row, column) @ self.weight) / self.weight.sum())


_HALF = np.array([[0.5, 0, -0.25], [0, 0.5, -0.25], [0, 0, 1.0]])
"""A camera's pixels in those of a picture of half the size."""


def depth_edges(depth: np.ndarray, focal: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(pixels [N, 2] x, y; axis [N]; weight [N]) of the steps in depth [H, W], 0 where not measured.

    A step is where nearness falls below what the pixel and its opposite neighbour foretell, since nearness
    is linear on planes: receding ground is no edge. It lies half a usual distance beyond the nearer pixel.
    """
    rows, columns = np.nonzero(measured(depth))
    nothing = np.zeros((0, 2)), np.zeros(0, np.int64), np.zeros(0)
    if len(rows) <= _NEIGHBOURS:
        return nothing
    places = np.stack([columns, rows], axis=1).astype(np.float64)
    near = 1 / depth[rows, columns].astype(np.float64)
    reach = max(_SHORTEST_REACH, focal * np.radians(_FARTHEST_NEIGHBOUR))
    found_at = cKDTree(places).query(places, _NEIGHBOURS + 1, distance_upper_bound=reach)
    apart, index = (np.asarray(part)[:, 1:] for part in found_at)
    there = np.isfinite(apart)
    offset = places[np.where(there, index, 0)] - places[:, None]  # [N, k, 2]
    beside = {side: _first(offset, there, index, direction) for side, direction in _SIDES.items()}
    found = []
    for axis, sign in _SIDES:
        (other, gap), (opposite, back) = beside[axis, sign], beside[axis, -sign]
        seen = other >= 0
        if not seen.any():
            continue
        usual = float(np.median(gap[seen]))
        slope = np.where(opposite >= 0, (near - near[opposite]) / np.maximum(back, 1), 0.0)
        foretold = np.where(opposite >= 0, near + slope * gap, near)
        step = np.minimum(foretold, near) - near[other]
        edge = np.flatnonzero(seen & (step > _STEP * near))
        direction = np.array(_SIDES[axis, sign])
        at = places[edge] + direction * (np.minimum(gap[edge], usual) / 2)[:, None]
        weight = np.minimum(step[edge] / near[edge] / _FULL_STEP, 1.0)
        found.append((at, np.full(len(edge), axis), weight))
    if not found:
        return nothing
    at, along, weight = (np.concatenate(part) for part in zip(*found, strict=True))
    chosen = np.unique(np.linspace(0, len(at) - 1, min(len(at), _MOST)).astype(int))
    return at[chosen], along[chosen], weight[chosen]


def _first(
    offset: np.ndarray, there: np.ndarray, index: np.ndarray, direction: tuple[int, int]
) -> tuple[np.ndarray, np.ndarray]:
    """(which [N], −1 for none; pixels [N]) of the nearest neighbour that lies in a direction."""
    ahead, aside = offset @ np.array(direction), np.abs(offset @ np.array(direction[::-1]))
    fits = there & (ahead > 0) & (aside <= 0.5 * ahead)
    first = fits.argmax(axis=1)  # neighbours come in order of distance
    every = np.arange(len(first))
    found = np.where(fits.any(axis=1), index[every, first], -1)
    return found, ahead[every, first]


def picture_edges(grey: np.ndarray, focal: float) -> np.ndarray:
    """[2, H, W] float32 of a picture [H, W]: steps along rows and columns, beside those of the surroundings.

    Without that comparison everything would be drawn to where a picture has much texture.
    """
    smooth = gaussian_filter(grey.astype(np.float32), 1.0)
    steps = np.stack([np.abs(np.gradient(smooth, axis=1)), np.abs(np.gradient(smooth, axis=0))])
    window = max(9, 2 * int(focal * np.radians(LARGEST)) + 1)
    size = (0, window, window)
    usual = uniform_filter(steps, size).mean(axis=0) + 2e-3
    compared = np.minimum(np.sqrt(steps / usual), 3.0)
    return np.asarray(compared - uniform_filter(compared, size), np.float32)


def _halved(planes: np.ndarray) -> np.ndarray:
    """Means of 2 × 2 pixels of [..., H, W]; an odd last row or column is left out."""
    height, width = (side // 2 * 2 for side in planes.shape[-2:])
    even = planes[..., :height, :width]
    return np.asarray(
        (even[..., ::2, ::2] + even[..., 1::2, ::2] + even[..., ::2, 1::2] + even[..., 1::2, 1::2]) / 4
    )


def _looked_up(planes: np.ndarray, axis: np.ndarray, row: np.ndarray, column: np.ndarray) -> np.ndarray:
    """[M, N] of planes [2, h, w], linear between pixels, 0 outside."""
    height, width = planes.shape[1:]
    inside = (column >= 0) & (column <= width - 1) & (row >= 0) & (row <= height - 1)
    column, row = np.where(inside, column, 0), np.where(inside, row, 0)
    left = np.minimum(column.astype(np.int32), max(width - 2, 0))
    top = np.minimum(row.astype(np.int32), max(height - 2, 0))
    right, low = column - left, row - top
    flat, place = planes.reshape(-1), (axis.astype(np.int32) * height + top) * width + left
    upper = flat[place] * (1 - right) + flat[place + 1] * right
    lower = flat[place + width] * (1 - right) + flat[place + width + 1] * right
    return np.asarray(np.where(inside, upper * (1 - low) + lower * low, 0))
