"""Resize, crop, pad, flip, rotate: image, depths and intrinsics move together.

All functions are pure: `Sample` in, new `Sample` out. A measurement is a point, so `sparse` is never
interpolated: under a change of size each point goes to its new pixel, the nearer one where two meet.
`target` is taken from the nearest pixel unless said otherwise.
"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import torch
from PIL import Image
from torch import Tensor

from gbpn.camera import pinhole as camera
from gbpn.errors import InputError
from gbpn.formats.images import to_pixels, to_tensor
from gbpn.sample import Sample

__all__ = [
    "center_crop",
    "crop",
    "flip",
    "follow",
    "move_points",
    "pad",
    "resize",
    "resize_filtered",
    "rotate",
    "rotation",
    "scale_depth",
    "warp",
]


def crop(sample: Sample, top: int, left: int, height: int, width: int) -> Sample:
    """The `height`×`width` window whose first pixel is (top, left)."""
    full_height, full_width = sample.image.shape[-2:]
    if min(top, left) < 0 or top + height > full_height or left + width > full_width:
        raise InputError(
            f"{sample.name}: crop {height}×{width} at row {top}, column {left} leaves "
            f"the image of {full_height}×{full_width}"
        )
    rows, columns = slice(top, top + height), slice(left, left + width)
    return replace(
        sample,
        image=sample.image[:, rows, columns],
        sparse=sample.sparse[:, rows, columns],
        target=None if sample.target is None else sample.target[:, rows, columns],
        intrinsics=camera.shifted(sample.intrinsics, -left, -top),
    )


def center_crop(sample: Sample, height: int, width: int) -> Sample:
    """The middle `height`×`width` window; odd remainders go to the bottom and right."""
    full_height, full_width = sample.image.shape[-2:]
    return crop(sample, (full_height - height) // 2, (full_width - width) // 2, height, width)


def pad(sample: Sample, left: int, right: int, top: int, bottom: int) -> Sample:
    """Image padded with its edge values, depths with 0."""
    amounts = (left, right, top, bottom)
    image = torch.nn.functional.pad(sample.image[None], amounts, mode="replicate")[0]
    depths = [
        None if depth is None else torch.nn.functional.pad(depth, amounts)
        for depth in (sample.sparse, sample.target)
    ]
    assert depths[0] is not None
    return replace(
        sample,
        image=image,
        sparse=depths[0],
        target=depths[1],
        intrinsics=camera.shifted(sample.intrinsics, left, top),
    )


def flip(sample: Sample) -> Sample:
    """Left becomes right."""
    return replace(
        sample,
        image=sample.image.flip(-1),
        sparse=sample.sparse.flip(-1),
        target=None if sample.target is None else sample.target.flip(-1),
        intrinsics=camera.flipped(sample.intrinsics, sample.image.shape[-1]),
    )


def scale_depth(sample: Sample, factor: float) -> Sample:
    """A scene `factor` times as large: all depths are multiplied, the picture and intrinsics stay."""
    return replace(
        sample,
        sparse=sample.sparse * factor,
        target=None if sample.target is None else sample.target * factor,
    )


def resize(sample: Sample, height: int, width: int) -> Sample:
    """To `height`×`width`; colour by area-weighted bilinear filtering."""
    full_height, full_width = sample.image.shape[-2:]
    if (full_height, full_width) == (height, width):
        return sample
    factor_x, factor_y = width / full_width, height / full_height
    picture = Image.fromarray(to_pixels(sample.image)).resize((width, height), Image.Resampling.BILINEAR)
    forward = np.array([[factor_x, 0, (factor_x - 1) / 2], [0, factor_y, (factor_y - 1) / 2], [0, 0, 1]])
    return replace(
        sample,
        image=to_tensor(np.asarray(picture)),
        sparse=move_points(sample.sparse, forward, height, width),
        target=None if sample.target is None else _nearest(sample.target, forward, height, width),
        intrinsics=follow(sample.intrinsics, forward),
    )


def resize_filtered(sample: Sample, short_side: int, degrees: float = 0.0) -> Sample:
    """As the NYUv2 benchmark resizes: rows to `short_side`, dense depth filtered like colour.

    With `degrees`, a turn by nearest pixel with zero fill comes first. Intrinsics are only multiplied, as in
    the released code: no half-pixel shift, no roll. Measurements are sampled afterwards: `sparse` is empty.
    """
    height, width = sample.image.shape[-2:]
    size = (int(short_side * width / height), short_side)

    def moved(picture: Image.Image) -> np.ndarray:
        if degrees:
            picture = picture.rotate(degrees, Image.Resampling.NEAREST)
        return np.array(picture.resize(size, Image.Resampling.BILINEAR))

    target = sample.target
    return replace(
        sample,
        image=to_tensor(moved(Image.fromarray(to_pixels(sample.image)))),
        sparse=torch.zeros(1, size[1], size[0]),
        target=None if target is None else torch.from_numpy(moved(Image.fromarray(target[0].numpy())))[None],
        intrinsics=camera.scaled(sample.intrinsics, short_side / height, short_side / height),
    )


def rotate(sample: Sample, degrees: float) -> Sample:
    """Turn the picture counter-clockwise about its centre; what enters from outside is black and unmeasured.

    The camera rolls about its axis, so depths stay as they are.
    """
    height, width = sample.image.shape[-2:]
    return warp(sample, rotation(degrees, (width - 1) / 2, (height - 1) / 2), height, width)


def rotation(degrees: float, x: float, y: float) -> np.ndarray:
    """3×3 map of pixel coordinates: a counter-clockwise turn of the picture about (x, y)."""
    cosine, sine = math.cos(math.radians(degrees)), math.sin(math.radians(degrees))
    turn = np.array([[cosine, sine], [-sine, cosine]])  # y points down
    out = np.eye(3)
    out[:2, :2] = turn
    out[:2, 2] = np.array([x, y]) - turn @ np.array([x, y])
    return out


def warp(sample: Sample, forward: np.ndarray, height: int, width: int) -> Sample:
    """Move every pixel by the affine `forward` (3×3, old pixel coordinates → new), out to `height`×`width`.

    Colour is bilinear without a low-pass filter: shrink by `resize` first if the map shrinks a lot.
    """
    backward = np.linalg.inv(forward)
    picture = Image.fromarray(to_pixels(sample.image))
    # PIL takes corners as the origin; ours is the centre of the first pixel.
    a, b, c = backward[0]
    d, e, f = backward[1]
    matrix = (a, b, c + 0.5 - 0.5 * (a + b), d, e, f + 0.5 - 0.5 * (d + e))
    moved = picture.transform(
        (width, height), Image.Transform.AFFINE, matrix, resample=Image.Resampling.BILINEAR
    )
    return replace(
        sample,
        image=to_tensor(np.asarray(moved)),
        sparse=move_points(sample.sparse, forward, height, width),
        target=None if sample.target is None else _nearest(sample.target, forward, height, width),
        intrinsics=follow(sample.intrinsics, forward),
    )


def follow(intrinsics: Tensor, forward: np.ndarray) -> Tensor:
    """Intrinsics after the pixel map `forward`; a turn becomes a roll of the camera."""
    focal_x = float(intrinsics[0, 0]) * math.hypot(forward[0, 0], forward[1, 0])
    focal_y = float(intrinsics[1, 1]) * math.hypot(forward[0, 1], forward[1, 1])
    centre = forward @ np.array([float(intrinsics[0, 2]), float(intrinsics[1, 2]), 1.0])
    out = intrinsics.clone()
    out[0, 0], out[1, 1] = focal_x, focal_y
    out[0, 2], out[1, 2] = float(centre[0]), float(centre[1])
    return out


def move_points(depth: Tensor, forward: np.ndarray, height: int, width: int) -> Tensor:
    """Each measured pixel of [1, H, W] goes to its new place; the nearest depth wins where several meet."""
    source = depth[0].numpy()
    rows, columns = np.nonzero(source > 0)
    x = forward[0, 0] * columns + forward[0, 1] * rows + forward[0, 2]
    y = forward[1, 0] * columns + forward[1, 1] * rows + forward[1, 2]
    return torch.from_numpy(camera.nearest_wins(x, y, source[rows, columns], height, width))[None]


def _nearest(depth: Tensor, forward: np.ndarray, height: int, width: int) -> Tensor:
    """Nearest-pixel warp of a dense map; 0 from outside."""
    source = depth[0].numpy()
    backward = np.linalg.inv(forward)
    across = np.arange(width, dtype=np.float32)
    down = np.arange(height, dtype=np.float32)[:, None]
    x = np.float32(backward[0, 0]) * across + (np.float32(backward[0, 1]) * down + np.float32(backward[0, 2]))
    y = np.float32(backward[1, 0]) * across + (np.float32(backward[1, 1]) * down + np.float32(backward[1, 2]))
    column, row = np.floor(x + 0.5).astype(np.int32), np.floor(y + 0.5).astype(np.int32)
    inside = (column >= 0) & (column < source.shape[1]) & (row >= 0) & (row < source.shape[0])
    out = np.zeros((height, width), dtype=np.float32)
    out[inside] = source[row[inside], column[inside]]
    return torch.from_numpy(out)[None]
