"""A completed room seen from another place: its pixels as points in space, nearest on top."""

from __future__ import annotations

import numpy as np
from PIL import Image
from scipy import ndimage

from gbpn.answer import CompletedDepth
from gbpn.show import pictures
from gbpn.show.pictures import Array

_FINER = 4
"""Points per pixel and side: gaps between neighbours close."""
_STEP = 0.035
"""Relative step of depth between neighbours from which on nothing is drawn across."""
_GROUND = (38, 42, 50)


def seen_from(
    result: CompletedDepth, size: tuple[int, int], *, yaw: float, pitch: float, back: float
) -> Image.Image:
    """From a camera turned by `yaw` and `pitch` degrees about the middle, `back` metres behind."""
    points, paint = _points(result)
    middle = np.array([0.0, 0.0, float(np.median(result.depth))])
    a, b = np.deg2rad([yaw, pitch])
    turn_y = np.array([[np.cos(a), 0, np.sin(a)], [0, 1, 0], [-np.sin(a), 0, np.cos(a)]])
    turn_x = np.array([[1, 0, 0], [0, np.cos(b), -np.sin(b)], [0, np.sin(b), np.cos(b)]])
    seen = (points - middle) @ (turn_x @ turn_y).T + middle + np.array([0, 0, back])
    fine = 2
    width, height = size[0] * fine, size[1] * fine
    focal = float(result.intrinsics[0, 0]) * width / result.depth.shape[1]
    x = np.round(seen[:, 0] / seen[:, 2] * focal + width / 2).astype(int)
    y = np.round(seen[:, 1] / seen[:, 2] * focal + height / 2).astype(int)
    canvas = np.full((height, width, 3), _GROUND, np.uint8)
    x, y = np.concatenate([x, x + 1, x, x + 1]), np.concatenate([y, y, y + 1, y + 1])  # four pixels a point
    far_to_near = np.argsort(np.tile(-seen[:, 2], 4), kind="stable")  # the last one painted is the nearest
    inside = (x >= 0) & (x < width) & (y >= 0) & (y < height)
    order = far_to_near[inside[far_to_near]]
    canvas[y[order], x[order]] = paint[order % len(paint)]
    return Image.fromarray(canvas).resize(size, Image.Resampling.LANCZOS)


def _points(result: CompletedDepth) -> tuple[Array, Array]:
    """Points [N, 3] in metres and colours [N, 3], several per pixel; none between two surfaces."""
    depth = result.depth
    steps = np.maximum(np.abs(np.gradient(depth, axis=0)), np.abs(np.gradient(depth, axis=1))) / depth
    smooth = ndimage.binary_erosion(steps < _STEP, iterations=1)
    fine = ndimage.zoom(depth, _FINER, order=1, grid_mode=True, mode="nearest")
    keep = ndimage.zoom(smooth.astype(np.float32), _FINER, order=1, grid_mode=True, mode="nearest") > 0.5
    photo = pictures.photo(result.image)
    paint = np.asarray(Image.fromarray(photo).resize(fine.shape[::-1], Image.Resampling.BICUBIC))
    rows, columns = np.nonzero(keep)
    camera = result.intrinsics.numpy()
    x = (columns + 0.5) / _FINER - 0.5 - camera[0, 2]
    y = (rows + 0.5) / _FINER - 0.5 - camera[1, 2]
    z = fine[rows, columns]
    return np.stack([x / camera[0, 0] * z, y / camera[1, 1] * z, z], 1), paint[rows, columns]
