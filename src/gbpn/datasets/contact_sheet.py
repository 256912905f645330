"""Contact sheets: look at a dataset before trusting it.

One row per frame: image, measurements, target, edges. The last column draws the target's depth
edges over the image: if colour and depth are aligned, the red lines follow the outlines of things.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import torch
from PIL import Image, ImageDraw
from torch import Tensor

from gbpn.datasets.training_view import Dataset
from gbpn.files.atomic import replacing
from gbpn.formats.images import to_pixels
from gbpn.measurements.validity import measured
from gbpn.sample import Sample

__all__ = ["contact_sheet", "depth_edges", "depth_picture", "grown"]

_LABEL_HEIGHT = 14
_EDGE = 0.06
"""Relative depth step between neighbours that counts as an edge."""


def contact_sheet(
    dataset: Dataset, indices: Sequence[int], path: str | Path, *, tile_width: int = 320, whole: bool = False
) -> None:
    """Write a picture of the frames at `indices`, as evaluated or `whole` as stored."""
    samples = [dataset.frame(index) if whole else dataset.load(index) for index in indices]
    strips = [_strip(sample, tile_width) for sample in samples]
    sheet = Image.new("RGB", (strips[0].width, sum(strip.height for strip in strips)), "white")
    top = 0
    for strip in strips:
        sheet.paste(strip, (0, top))
        top += strip.height
    with replacing(path) as temporary:
        sheet.save(temporary)


def depth_picture(
    depth: Tensor, limits: tuple[float, float], background: Tensor | None = None
) -> Image.Image:
    """[1, H, W] metres in colour, near red, far blue, logarithmic; unknown pixels show `background`."""
    import matplotlib

    low, high = np.log(limits[0]), np.log(max(limits[1], limits[0] * 1.001))
    metres = depth[0].numpy()
    share = (high - np.log(np.maximum(metres, 1e-6))) / (high - low)
    pixels = (matplotlib.colormaps["turbo"](share.clip(0, 1))[..., :3] * 255).astype(np.uint8)
    behind = np.zeros_like(pixels) if background is None else to_pixels(background)
    return Image.fromarray(np.where(metres[..., None] > 0, pixels, behind))


def depth_edges(depth: Tensor) -> Tensor:
    """[1, H, W] bool: a relative step of more than EDGE to the right or below, both depths known."""
    known = depth > 0
    edges = torch.zeros_like(known)
    for axis in (-1, -2):
        length = depth.shape[axis] - 1
        first, second = depth.narrow(axis, 0, length), depth.narrow(axis, 1, length)
        both = known.narrow(axis, 0, length) & known.narrow(axis, 1, length)
        step = (first - second).abs() > _EDGE * torch.minimum(first, second)
        edges.narrow(axis, 0, length).logical_or_(both & step)
    return edges


def _strip(sample: Sample, tile_width: int) -> Image.Image:
    height, width = sample.image.shape[-2:]
    size = (tile_width, round(height * tile_width / width))
    target = sample.sparse if sample.target is None else sample.target
    share = float(measured(target).float().mean())
    known = target[measured(target)] if bool(measured(target).any()) else torch.ones(1)
    limits = (float(known.quantile(0.02)), float(known.quantile(0.98)))
    # A single measured pixel would vanish in the reduced picture.
    radius = max(1, round(width / tile_width / 2))
    dots = grown(sample.sparse, radius)
    dim = sample.image * 0.35
    outlined = sample.image.clone()
    outlined[:, depth_edges(target)[0]] = torch.tensor([1.0, 0.1, 0.1])[:, None]
    tiles = [
        Image.fromarray(to_pixels(sample.image)),
        depth_picture(dots, limits, dim),
        depth_picture(target if share > 0.5 else grown(target, radius), limits, dim),
        Image.fromarray(to_pixels(outlined)),
    ]
    strip = Image.new("RGB", (len(tiles) * size[0], size[1] + _LABEL_HEIGHT), "white")
    for position, tile in enumerate(tiles):
        strip.paste(tile.resize(size, Image.Resampling.BOX), (position * size[0], _LABEL_HEIGHT))
    count = int(measured(sample.sparse).sum())
    label = (
        f"{sample.name}   {width}x{height}   {count} measured   target {share:.0%}   "
        f"{limits[0]:.2f} to {limits[1]:.2f} m"
    )
    ImageDraw.Draw(strip).text((2, 1), label, fill="black")
    return strip


def grown(sparse: Tensor, radius: int) -> Tensor:
    """Each measurement as a square of side 2·radius + 1, the nearest on top."""
    nearness = torch.where(measured(sparse), 1 / sparse.clamp_min(1e-6), 0.0)
    grown = torch.nn.functional.max_pool2d(nearness[None], 2 * radius + 1, stride=1, padding=radius)[0]
    return torch.where(grown > 0, 1 / grown.clamp_min(1e-6), 0.0)
