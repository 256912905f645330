"""A depth camera beside the colour camera: its pixels as points, seen from the other one.

Depth cameras sit centimetres away, with fewer pixels. Every depth pixel is a small square facing the camera;
what lies behind another one's square, as the colour camera sees it, is occluded and dropped.
"""

from __future__ import annotations

import math

import numpy as np
import torch
from torch import Tensor

from gbpn.camera.pinhole import points
from gbpn.camera.wide import Fisheye, Panorama, WideCamera
from gbpn.errors import InputError
from gbpn.sensors.projection import NEAREST, nearest_values, remove_see_through

__all__ = ["ranges_in_picture", "reprojected"]

_STEP = 0.05
"""Relative depth by which a point must lie behind another's square to be occluded."""
_LARGEST_SQUARE = 64
"""Pixels of half a square: depth cameras with fewer pixels than this leaves are not dense."""


def reprojected(
    depth: Tensor,
    others: Tensor,
    depth_intrinsics: Tensor,
    to_image: Tensor,
    intrinsics: Tensor,
    size: tuple[int, int],
) -> tuple[Tensor, Tensor]:
    """(depth [1, H, W], others [k, H, W]) as the colour camera sees a depth camera's map [1, h, w].

    others      [k, h, w] that go with each measurement
    to_image    [4, 4]: depth camera coordinates → colour camera coordinates, metres
    intrinsics  of the colour picture, whose `size` is (H, W)
    """
    seen = points(depth[None].double(), depth_intrinsics[None].double())[0].reshape(3, -1).numpy()
    matrix = to_image.double().numpy()
    there = depth.reshape(-1).numpy() > 0
    moved = matrix[:3, :3] @ seen + matrix[:3, 3:]  # [3, h·w]
    ahead = there & (moved[2] > NEAREST)
    x, y, z = moved[:, ahead]
    camera = intrinsics.double().numpy()
    column, row = camera[0, 0] * x / z + camera[0, 2], camera[1, 1] * y / z + camera[1, 2]
    values = np.concatenate([z[None], others.reshape(len(others), depth.numel()).numpy()[:, ahead]])
    maps = torch.from_numpy(nearest_values(column, row, z, values, *size))
    half = _half_square(camera, depth_intrinsics, x=seen[2, ahead], z=z)
    kept = remove_see_through(maps[:1], rows=half[1], columns=half[0], step=_STEP)
    if not bool((kept > 0).any()):
        raise InputError(
            f"none of the {int(there.sum())} depth pixels falls into the {size[1]}×{size[0]} picture: check "
            "the depth camera's intrinsics and its pose (depth camera to colour camera, metres)"
        )
    return kept, torch.where(kept > 0, maps[1:], 0.0)


def ranges_in_picture(
    depth: Tensor,
    others: Tensor,
    own: Panorama | Tensor,
    to_image: Tensor,
    camera: WideCamera | Tensor,
    size: tuple[int, int],
) -> tuple[Tensor, Tensor]:
    """As `reprojected`, where either is a wide camera; its maps hold ranges, those of a pinhole z.

    own     of the map [1, h, w]
    camera  of the picture, whose `size` is (H, W)
    """
    height, width = depth.shape[1:]
    rows, columns = np.nonzero(depth[0].numpy() > 0)
    values = np.concatenate([depth.numpy(), others.numpy()])[:, rows, columns]
    if isinstance(own, Panorama):
        towards = own.directions(height, width)[rows, columns]
    else:
        pixels = np.stack([columns, rows, np.ones_like(rows)], axis=-1)
        towards = pixels @ np.linalg.inv(own.double().numpy()).T
    matrix = to_image.double().numpy()
    moved = (towards * values[0, :, None]) @ matrix[:3, :3].T + matrix[:3, 3]  # [N, 3]
    if isinstance(camera, Panorama | Fisheye):
        far = np.linalg.norm(moved, axis=-1)
        x, y = camera.pixels(moved, *size)
    else:
        far = moved[:, 2]
        with np.errstate(all="ignore"):
            pixel = moved @ camera.double().numpy().T / np.where(far > NEAREST, far, np.nan)[:, None]
        x, y = pixel[:, 0], pixel[:, 1]
    maps = torch.from_numpy(nearest_values(x, y, far, np.concatenate([far[None], values[1:]]), *size))
    still = np.array_equal(matrix[:3, 3], np.zeros(3))
    kept = maps[:1] if still else remove_see_through(maps[:1])
    if not bool((kept > 0).any()):
        raise InputError(
            f"none of the {len(rows)} depth pixels falls into the {size[1]}×{size[0]} picture: check the "
            "depth camera and its pose (depth camera to colour camera, metres)"
        )
    return kept, torch.where(kept > 0, maps[1:], 0.0)


def _half_square(
    camera: np.ndarray, depth_intrinsics: Tensor, x: np.ndarray, z: np.ndarray
) -> tuple[int, int]:
    """(columns, rows) of the picture in half a depth pixel, as most of them are seen; `x`, `z` are the depths
    before and after the change of camera."""
    nearer = float(np.median(x / z)) if len(z) else 1.0
    sides = [camera[k, k] / float(depth_intrinsics[k, k]) * nearer / 2 for k in (0, 1)]
    columns, rows = (min(math.ceil(side), _LARGEST_SQUARE) for side in sides)
    return columns, rows
