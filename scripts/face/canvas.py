"""Panels with words on them: what hero and film are put together from."""

from __future__ import annotations

from functools import cache

import numpy as np
from matplotlib import font_manager
from PIL import Image, ImageDraw, ImageFont

from gbpn.show import pictures
from gbpn.show.pictures import Array

INK, PAPER, SHADE = (24, 26, 31), (255, 255, 255), (16, 18, 22)
RADIUS = 14
"""Of a panel's corners, pixels."""


@cache
def font(size: int, *, bold: bool = False) -> ImageFont.FreeTypeFont:
    """DejaVu Sans, which matplotlib carries along: the same letters on every machine."""
    properties = font_manager.FontProperties(family="DejaVu Sans", weight="bold" if bold else "normal")
    return ImageFont.truetype(font_manager.findfont(properties), size)


def enlarged(picture: Array, factor: float) -> Image.Image:
    """A picture `factor` times as large, smoothly."""
    size = round(picture.shape[1] * factor), round(picture.shape[0] * factor)
    return Image.fromarray(picture).resize(size, Image.Resampling.BICUBIC)


def with_points(panel: Image.Image, places: Array, paint: Array, radius: float) -> Image.Image:
    """Discs of paint [N, 3] at places [N, 2] (x, y), in white rings; drawn large, then reduced."""
    fine = 4
    layer = panel.resize((panel.width * fine, panel.height * fine), Image.Resampling.BICUBIC)
    draw = ImageDraw.Draw(layer)
    for (x, y), colour in zip(places * fine, paint, strict=True):
        for size, fill in ((1.45, SHADE), (1.25, PAPER), (0.9, tuple(int(c) for c in colour))):
            reach = radius * fine * size
            draw.ellipse((x - reach, y - reach, x + reach, y + reach), fill=fill)
    return layer.resize(panel.size, Image.Resampling.LANCZOS)


def card(
    panel: Image.Image, words: str, size: int, scale: tuple[float, float, str] | None = None
) -> Image.Image:
    """The panel over a dark foot with its words and perhaps a colour scale (low, high, palette)."""
    foot = round(size * 1.9)
    out = Image.new("RGB", (panel.width, panel.height + foot), SHADE)
    out.paste(panel, (0, 0))
    draw = ImageDraw.Draw(out)
    middle, pad = panel.height + foot / 2, round(size * 0.7)
    draw.text((pad, middle), words, font=font(size, bold=True), fill=PAPER, anchor="lm")
    if scale is None:
        return out
    low, high, palette = scale
    letters = font(round(size * 0.85))
    width, height = round(size * 5), round(size * 0.7)
    ramp = pictures.colours(np.linspace(low, high, width)[None].repeat(height, 0), low, high, palette)
    right = out.width - pad
    draw.text((right, middle), f"{high:.1f} m", font=letters, fill=PAPER, anchor="rm")
    right -= round(draw.textlength("0.0 m", font=letters) + pad / 2 + width)
    out.paste(Image.fromarray(ramp), (right, round(middle - height / 2)))
    draw.text((right - pad / 2, middle), f"{low:.1f}", font=letters, fill=PAPER, anchor="rm")
    return out


def tiled(rows: list[list[Image.Image]], gap: int) -> Image.Image:
    """Cards of equal size in rows, with round corners on nothing: it stands on light pages and dark ones."""
    width, height = rows[0][0].size
    columns = max(map(len, rows))
    size = columns * width + (columns - 1) * gap, len(rows) * height + (len(rows) - 1) * gap
    page = Image.new("RGBA", size, (*PAPER, 0))
    fine = 4
    mask = Image.new("L", (width * fine, height * fine), 0)
    corners = (0, 0, mask.width - 1, mask.height - 1)
    ImageDraw.Draw(mask).rounded_rectangle(corners, radius=RADIUS * fine, fill=255)
    shape = mask.resize((width, height), Image.Resampling.LANCZOS)
    for r, row in enumerate(rows):
        for c, panel in enumerate(row):
            page.paste(panel, (c * (width + gap), r * (height + gap)), shape)
    return page
