"""Pictures people would rather look at than read: depth, confidence and error maps with colour bars.

Everything is a uint8 RGB array [H, W, 3] until it is saved. Depth is near = warm, far = cold.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from PIL import Image, ImageDraw, ImageFont

from gbpn.files.atomic import replacing
from gbpn.measurements.validity import measured

if TYPE_CHECKING:
    from torch import Tensor

    from gbpn.sample import Sample

__all__ = [
    "BACKGROUND",
    "CONFIDENCE",
    "DEPTH",
    "ERROR",
    "UNKNOWN",
    "Array",
    "PictureRow",
    "colours",
    "dotted",
    "grid",
    "measurements",
    "photo",
    "row_panels",
    "save",
    "strip",
    "titled",
    "value_range",
    "with_bar",
]

Array = np.ndarray

DEPTH, CONFIDENCE, ERROR = "turbo_r", "viridis", "magma"
"""Palettes, by matplotlib's names."""
UNKNOWN = (60, 60, 60)
"""Colour where there is no value."""
_TEXT, BACKGROUND = (30, 30, 30), (255, 255, 255)
_CROSS = (255, 0, 255)
"""Colour of crosses over measurements that were not used: of no depth."""
_FEW = 10
"""Measurements up to which each gets a ring."""
_GAP, _TITLE, _BAR = 6, 18, 68
"""Pixels between panels, of a title line, and of a colour bar with its numbers, for small pictures."""
_SMALL = 300
"""Pixels of the shorter side up to which a picture is small; letters and dots of larger ones grow along."""


def colours(values: Array, low: float, high: float, palette: str) -> Array:
    """[H, W] numbers as colours between `low` and `high`; NaN and infinity get the unknown colour."""
    from matplotlib import colormaps

    known = np.isfinite(values)
    share = np.clip((np.where(known, values, low) - low) / max(high - low, 1e-12), 0, 1)
    picture = (colormaps[palette](share)[..., :3] * 255 + 0.5).astype(np.uint8)
    picture[~known] = UNKNOWN
    return picture


def value_range(*maps: Array, low: float = 2, high: float = 98) -> tuple[float, float]:
    """A colour range for several maps at once: percentiles of their finite, positive values."""
    values = np.concatenate([m[np.isfinite(m) & (m > 0)].ravel() for m in maps])
    if not values.size:
        return 0.0, 1.0
    bottom, top = np.percentile(values, [low, high])
    return float(bottom), float(max(top, bottom + 1e-6))


def photo(image: Tensor) -> Array:
    """[3, H, W] in [0, 1] as pixels."""
    return (image.detach().cpu().clamp(0, 1) * 255 + 0.5).byte().permute(1, 2, 0).numpy()


def measurements(
    image: Tensor, sparse: Tensor, low: float, high: float, crossed: Array | None = None
) -> Array:
    """The darkened grey image with the measured points on it, enlarged where they are few.

    Those at rows and columns `crossed` [2, N] get a cross.
    """
    picture: Array = (photo(image).mean(2, keepdims=True) * 0.35).astype(np.uint8).repeat(3, 2)
    depth = sparse[0].detach().cpu().numpy()
    rows, columns = np.nonzero(depth > 0)
    height, width = depth.shape
    radius = 0 if rows.size > 0.04 * depth.size else max(1, round(min(height, width) / 120))
    if not rows.size:
        return picture
    paint = colours(depth[rows, columns][None], low, high, DEPTH)[0]
    if rows.size <= _FEW:  # a ring that shows where to look
        _dot(picture, rows, columns, radius + max(3, radius), np.full_like(paint, 255))
        radius += max(1, radius // 2)
    _dot(picture, rows, columns, radius, paint)
    if crossed is not None:
        _cross(picture, crossed[0], crossed[1], radius + max(2, radius))
    return picture


def dotted(picture: Array, rows: Array, columns: Array, paint: Array) -> Array:
    """The picture with a disc of its paint [N, 3] at each place, on a dark ring that shows on any ground."""
    out = picture.copy()
    height, width = picture.shape[:2]
    share = rows.size / (height * width)
    radius = 1 if share > 5e-3 else max(2, round(min(height, width) / (110 if rows.size > _FEW else 60)))
    if share < 2e-2:
        _dot(out, rows, columns, radius + 1, np.full_like(paint, 20))
    _dot(out, rows, columns, radius, paint)
    return out


def _dot(picture: Array, rows: Array, columns: Array, radius: int, paint: Array) -> None:
    """Discs [N, 3] of paint around pixels, cut off at the border."""
    height, width = picture.shape[:2]
    for dy in range(-radius, radius + 1):
        for dx in range(-radius, radius + 1):
            if dy * dy + dx * dx <= radius * radius + 1:
                y, x = np.clip(rows + dy, 0, height - 1), np.clip(columns + dx, 0, width - 1)
                picture[y, x] = paint


def _cross(picture: Array, rows: Array, columns: Array, arm: int) -> None:
    """Diagonal crosses around pixels, cut off at the border."""
    height, width = picture.shape[:2]
    for step in range(-arm, arm + 1):
        for dy, dx in ((step, step), (step, -step)):
            picture[np.clip(rows + dy, 0, height - 1), np.clip(columns + dx, 0, width - 1)] = _CROSS


def with_bar(picture: Array, low: float, high: float, palette: str, unit: str = "m") -> Array:
    """The picture with a colour bar and its numbers at the right."""
    height = picture.shape[0]
    grown = _grown(picture)
    bar = Image.new("RGB", (round(_BAR * grown), height), BACKGROUND)
    ramp = np.linspace(high, low, height)[:, None].repeat(round(10 * grown), 1)
    bar.paste(Image.fromarray(colours(ramp, low, high, palette)), (round(4 * grown), 0))
    draw, font = ImageDraw.Draw(bar), _font(round(11 * grown))
    for share in np.linspace(0, 1, 5 if height >= 100 else 2):
        place = round(17 * grown), round((1 - share) * (height - 12 * grown))
        draw.text(place, f"{low + share * (high - low):.3g}{unit and ' ' + unit}", _TEXT, font)
    return np.concatenate([picture, np.asarray(bar)], axis=1)


def _grown(picture: Array) -> float:
    """How much larger letters are than those of small pictures."""
    return float(max(1.0, min(picture.shape[:2]) / _SMALL))


def titled(picture: Array, title: str) -> Array:
    """The picture under a line of text."""
    grown = _grown(picture)
    line = Image.new("RGB", (picture.shape[1], round(_TITLE * grown)), BACKGROUND)
    ImageDraw.Draw(line).text((2, 2), title, _TEXT, _font(round(12 * grown)))
    return np.concatenate([np.asarray(line), picture], axis=0)


def grid(rows: Sequence[Sequence[Array]]) -> Array:
    """Panels row by row on white; columns as wide and rows as high as their largest panel."""
    heights = [max(panel.shape[0] for panel in row) for row in rows]
    widths = [
        max(row[c].shape[1] for row in rows if c < len(row)) for c in range(max(len(row) for row in rows))
    ]
    page = Image.new(
        "RGB", (sum(widths) + _GAP * (len(widths) + 1), sum(heights) + _GAP * (len(rows) + 1)), BACKGROUND
    )
    y = _GAP
    for row, height in zip(rows, heights, strict=True):
        x = _GAP
        for panel, width in zip(row, widths, strict=False):
            page.paste(Image.fromarray(np.ascontiguousarray(panel)), (x, y))
            x += width + _GAP
        y += height + _GAP
    return np.asarray(page)


def save(picture: Array, path: Path) -> None:
    """Write a PNG (or what the suffix says) in one piece."""
    with replacing(path) as temporary:
        Image.fromarray(picture).save(temporary, format=Image.registered_extensions()[path.suffix.lower()])


@dataclass(frozen=True, kw_only=True)
class PictureRow:
    """One frame of a strip."""

    sample: Sample
    mean: Tensor
    """[1, H, W] metres."""
    confidence: Tensor | None = None
    """[1, H, W] in (0, 1)."""


def row_panels(row: PictureRow) -> list[Array]:
    """Image, measurements, depth, and where known confidence, ground truth and error, each with a title."""
    sample = row.sample
    mean = row.mean[0].detach().cpu().numpy()
    target = None if sample.target is None else sample.target[0].detach().cpu().numpy()
    low, high = value_range(mean if target is None else target)
    count = int(measured(sample.sparse).sum())
    panels = [
        titled(photo(sample.image), sample.name or "image"),
        titled(
            measurements(sample.image, sample.sparse, low, high),
            f"{count} measurement{'' if count == 1 else 's'}",
        ),
        titled(with_bar(colours(mean, low, high, DEPTH), low, high, DEPTH), "depth"),
    ]
    if row.confidence is not None:
        confidence = row.confidence[0].detach().cpu().numpy()
        bottom, top = value_range(confidence)
        panels.append(
            titled(
                with_bar(colours(confidence, bottom, top, CONFIDENCE), bottom, top, CONFIDENCE, ""),
                "confidence",
            )
        )
    if target is not None:
        known = np.where(measured(target), target, np.nan)
        error = np.abs(mean - known)
        top = max(value_range(error)[1], 1e-3)
        squares = np.square(error, dtype=np.float64)  # an untrained network's depths may be huge
        rmse = float(np.sqrt(np.nanmean(squares))) if np.isfinite(error).any() else float("nan")
        panels += [
            titled(with_bar(colours(known, low, high, DEPTH), low, high, DEPTH), "ground truth"),
            titled(with_bar(colours(error, 0, top, ERROR), 0, top, ERROR), f"error, RMSE {rmse:.3f} m"),
        ]
    return panels


def strip(rows: Sequence[PictureRow], path: Path) -> None:
    """One row of panels per frame, saved to `path`."""
    save(grid([row_panels(row) for row in rows]), path)


def _font(size: int) -> ImageFont.ImageFont | ImageFont.FreeTypeFont:
    return ImageFont.load_default(size)
