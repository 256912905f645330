"""An image and its measurements as arrays, padded to the networks' grid as by `gbpn.network.padding`."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from gbpn.errors import InputError, NonFiniteError
from gbpn.runtime.manifest import Manifest

__all__ = ["SMALLEST_SIDE", "Array", "Frame", "as_image", "as_intrinsics", "as_sparse"]

Array = np.ndarray
_FIELD_OF_VIEW = math.radians(60.0)
"""Across the longer side, where nothing is known of the camera; as `gbpn.camera.pinhole`."""
SMALLEST_SIDE = 32
"""Pixels; as `gbpn.network.padding`."""


def as_image(image: Any) -> Array:
    """[H, W, 3] (or 4, or none) uint8, uint16 or float in [0, 1] → [3, H, W] float32 RGB in [0, 1]."""
    pixels = np.asarray(image)
    if pixels.ndim == 2:
        pixels = np.repeat(pixels[..., None], 3, axis=2)
    if pixels.ndim != 3 or pixels.shape[2] not in (3, 4):
        raise InputError(f"image must be [H, W, 3], [H, W, 4] or [H, W]; got {list(pixels.shape)}")
    largest = {"uint8": 255, "uint16": 65535}.get(pixels.dtype.name, 1)
    if largest == 1 and pixels.dtype.kind != "f":
        raise InputError(f"image must be uint8, uint16 or float in [0, 1]; got {pixels.dtype}")
    planes = pixels[..., :3].transpose(2, 0, 1).astype(np.float32) / np.float32(largest)
    if planes.size and not (planes.min() >= 0 and planes.max() <= 1):
        raise InputError(
            f"a float image must lie in [0, 1]; got {planes.min():g} to {planes.max():g}: divide by 255?"
        )
    return planes


def as_sparse(sparse: Any, height: int, width: int) -> Array:
    """[H, W] metres (0 or NaN: not measured) or points [N, 3] of x, y, depth → [H, W] float32, 0 for none."""
    values = np.asarray(sparse)
    if values.dtype.kind != "f":
        raise InputError(f"sparse must be float metres; got {values.dtype}: divide by the scale of the file")
    if values.ndim == 2 and values.shape[1] == 3 and (height, width) != values.shape:
        return _of_points(values, height, width)
    if values.shape != (height, width):
        raise InputError(f"sparse must be [{height}, {width}] like the image; got {list(values.shape)}")
    depth = np.where(np.isnan(values), 0, values).astype(np.float32)
    if (depth < 0).any():
        raise InputError("sparse must not be negative: 0 or NaN means not measured")
    return depth


def _of_points(points: Array, height: int, width: int) -> Array:
    """Each measurement to its pixel; where two fall into one, the nearer stays."""
    inside = (
        (points > -0.5).all(1)
        & (points[:, 0] < width - 0.5)
        & (points[:, 1] < height - 0.5)
        & (points[:, 2] > 0)
    )
    kept = points[inside]
    depth = np.full((height, width), np.inf, np.float32)
    place = np.rint(kept[:, 1]).astype(int), np.rint(kept[:, 0]).astype(int)
    np.minimum.at(depth, place, kept[:, 2].astype(np.float32))
    return np.where(np.isinf(depth), np.float32(0), depth)


def as_intrinsics(intrinsics: Any, height: int, width: int) -> tuple[Array, str | None]:
    """fx, fy, cx, cy, a 3×3 matrix or None → [3, 3] float32, and a notice if it had to be guessed."""
    if intrinsics is None:
        focal = max(height, width) / (2 * math.tan(_FIELD_OF_VIEW / 2))
        guess = (focal, focal, (width - 1) / 2, (height - 1) / 2)
        return _matrix(*guess), "camera not given: a field of view of 60° along the longer side is assumed"
    values = np.squeeze(np.asarray(intrinsics, dtype=np.float64))
    if values.shape not in ((4,), (3, 3)):
        raise InputError(f"intrinsics must be fx, fy, cx, cy or a 3×3 matrix; got {list(values.shape)}")
    if not np.isfinite(values).all():
        raise NonFiniteError("intrinsics must be finite")
    return (_matrix(*values) if values.shape == (4,) else values.astype(np.float32)), None


def _matrix(fx: float, fy: float, cx: float, cy: float) -> Array:
    return np.array([[fx, 0, cx], [0, fy, cy], [0, 0, 1]], np.float32)


@dataclass(frozen=True, kw_only=True)
class Frame:
    """A normalised image whose sides the networks can halve, with edge pixels repeated all around."""

    image: Array
    """[1, 3, H', W'] normalised and padded."""
    intrinsics: Array
    """[1, 3, 3] for the padded image."""
    size: tuple[int, int]
    """(H, W) before the padding."""
    corner: tuple[int, int]
    """(row, column) of the original image inside the padded one."""

    @classmethod
    def of(cls, image: Array, intrinsics: Array, manifest: Manifest) -> Frame:
        """`image` [3, H, W] float32 RGB in [0, 1]; `intrinsics` [3, 3]."""
        _, height, width = image.shape
        if height < SMALLEST_SIDE or width < SMALLEST_SIDE:
            raise InputError(f"image must be {SMALLEST_SIDE}×{SMALLEST_SIDE} or larger; got {height}×{width}")
        if manifest.size not in (None, (height, width)):
            raise InputError(
                f"image must be {manifest.size} (height, width), for which this folder was exported; "
                f"got {(height, width)}: resize it, or export with --size dynamic"
            )
        smallest, multiple = manifest.smallest, manifest.multiple
        if manifest.size is None and (height <= smallest - multiple or width <= smallest - multiple):
            raise InputError(
                f"this folder serves images above {smallest - multiple} pixels a side; got {height}×{width}: "
                f"export with --size {height}x{width}"
            )
        mean, std = (
            np.array(values, np.float32)[:, None, None]
            for values in (manifest.config.image_mean, manifest.config.image_std)
        )
        rows, columns = -height % multiple, -width % multiple
        top, left = rows // 2, columns // 2
        around = ((0, 0), (top, rows - top), (left, columns - left))
        moved = intrinsics.astype(np.float32) + np.array([[0, 0, left], [0, 0, top], [0, 0, 0]], np.float32)
        return cls(
            image=np.pad((image - mean) / std, around, mode="edge")[None],
            intrinsics=moved[None],
            size=(height, width),
            corner=(top, left),
        )

    def padded(self, sparse: Array) -> Array:
        """[H, W] → [1, 1, H', W'] with no measurement in the padding."""
        out = np.zeros((1, 1, *self.image.shape[2:]), np.float32)
        self.cropped(out)[0, 0] = sparse
        return out

    def cropped(self, maps: Array) -> Array:
        """The part of maps [..., H', W'] that belongs to the image."""
        (top, left), (height, width) = self.corner, self.size
        return maps[..., top : top + height, left : left + width]
