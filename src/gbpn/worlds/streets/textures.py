"""Pictures on surfaces outdoors, made from random numbers: roads, walls, roofs, plants, windows, signs.

Each is [256, 256, 3] uint8 sRGB and repeats without a seam, except windows, doors, signs and the like,
which fill their shape once. `TILES` says how many metres one repetition covers.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache

import numpy as np
from scipy import ndimage

from gbpn.worlds.painting import SIZE, X, Y, hsv, noise, slabs, tinted

__all__ = ["COUNTS", "TILES", "pictures"]

COUNTS = {
    "asphalt": 4,
    "paving": 3,
    "cobbles": 2,
    "concrete": 2,
    "brick": 6,
    "plaster": 6,
    "stone": 2,
    "roof": 5,
    "grass": 4,
    "leaves": 5,
    "bark": 2,
    "planks": 3,
    "window": 18,
    "door": 8,
    "shop": 8,
    "sign": 10,
    "garage": 3,
    "poster": 6,
    "plate": 2,
    "rim": 4,
    "cloth": 8,
    "field": 3,
}
"""How many of each kind there are."""
TILES = {
    "asphalt": 5.0,
    "paving": 2.4,
    "cobbles": 1.6,
    "concrete": 4.0,
    "brick": 1.95,
    "plaster": 5.0,
    "stone": 2.4,
    "roof": 2.2,
    "grass": 3.5,
    "leaves": 1.3,
    "bark": 0.8,
    "planks": 1.2,
    "cloth": 0.6,
    "field": 14.0,
}
"""Metres that one repetition covers."""


def pictures(seed: int = 5) -> tuple[np.ndarray, dict[str, tuple[int, ...]]]:
    """([T, SIZE, SIZE, 3] uint8, kind → its places in it)."""
    return _pictures(seed)


@lru_cache(maxsize=2)
def _pictures(seed: int) -> tuple[np.ndarray, dict[str, tuple[int, ...]]]:
    rng = np.random.default_rng([seed, 77])
    out: list[np.ndarray] = []
    places: dict[str, tuple[int, ...]] = {}
    for kind, count in COUNTS.items():
        places[kind] = tuple(range(len(out), len(out) + count))
        for number in range(count):
            picture = _PAINTERS[kind](rng, number)
            out.append((np.clip(picture, 0, 1) * 255 + 0.5).astype(np.uint8))
    return np.stack(out), places


def _asphalt(rng: np.random.Generator, number: int) -> np.ndarray:
    base = hsv(0.6 if number % 2 else 0.1, 0.03, rng.uniform(0.36, 0.5))
    shade = 1 + 0.045 * noise(rng, low=1, fall=1.4) + 0.075 * noise(rng, low=40, fall=0.2)
    if number % 2:  # cracks: where two smooth noises meet
        crack = np.abs(noise(rng, low=2, fall=1.7)) < 0.012 * (1 + noise(rng, low=1, fall=1.5)).clip(0, 2)
        shade = shade * (1 - 0.25 * ndimage.gaussian_filter(crack.astype(float), 0.6, mode="wrap"))
    return tinted(base, shade)


def _brick(rng: np.random.Generator, number: int) -> np.ndarray:
    colours = ((0.03, 0.5, 0.52), (0.02, 0.42, 0.42), (0.06, 0.35, 0.6), (0.1, 0.3, 0.68), (0.0, 0.35, 0.34))
    hue, saturation, value = colours[number % len(colours)]
    shade, joint = slabs(rng, 26, 8, 0.5, 0.6, 0.11)
    wall = tinted(hsv(hue, saturation, value), shade * (1 + 0.05 * noise(rng, low=3, fall=0.8)))
    mortar = tinted(hsv(0.1, 0.08, rng.uniform(0.5, 0.68)), 1 + 0.04 * noise(rng))
    return np.asarray(wall + (mortar - wall) * joint[..., None] * 0.8)


def _paving(rng: np.random.Generator, number: int) -> np.ndarray:
    rows, columns = ((6, 6), (8, 4), (12, 12))[number % 3]
    shade, joint = slabs(rng, rows, columns, 0.5 * (number % 2), 0.7, 0.035)
    base = hsv((0.1, 0.6, 0.04)[number % 3], (0.06, 0.03, 0.14)[number % 3], rng.uniform(0.52, 0.64))
    dirt = 1 + 0.05 * noise(rng, low=1, fall=1.5) + 0.03 * noise(rng, low=20, fall=0.3)
    return tinted(base, shade * dirt * (1 - 0.3 * joint))


def _cobbles(rng: np.random.Generator, number: int) -> np.ndarray:
    shade, joint = slabs(rng, 14, 12, 0.5, 1.4, 0.09)
    return tinted(
        hsv(0.08, 0.06, 0.45), shade * (1 + 0.05 * noise(rng, low=10, fall=0.5)) * (1 - 0.5 * joint)
    )


def _concrete(rng: np.random.Generator, number: int) -> np.ndarray:
    shade = 1 + 0.05 * noise(rng, low=1, fall=1.3) + 0.02 * noise(rng, low=30, fall=0.2)
    return tinted(hsv(0.11, 0.06, rng.uniform(0.55, 0.68)), shade)


def _plaster(rng: np.random.Generator, number: int) -> np.ndarray:
    """Nearly white: the wall's own colour multiplies it. Streaks run down."""
    streaks = noise(rng, low=1, fall=1.5, stretch=4.0)
    shade = 1 + 0.022 * noise(rng, low=1, fall=1.6) + 0.018 * streaks + 0.02 * noise(rng, low=40, fall=0.1)
    return tinted(np.array([0.93, 0.93, 0.92]), shade)


def _stone(rng: np.random.Generator, number: int) -> np.ndarray:
    shade, joint = slabs(rng, 7, 4, 0.5, 1.0, 0.08)
    base = hsv(0.1, rng.uniform(0.08, 0.22), rng.uniform(0.5, 0.7))
    return tinted(base, shade * (1 + 0.06 * noise(rng, low=3, fall=0.9)) * (1 - 0.25 * joint))


def _roof(rng: np.random.Generator, number: int) -> np.ndarray:
    hue, saturation, value = (
        (0.03, 0.5, 0.46),
        (0.02, 0.4, 0.36),
        (0.6, 0.06, 0.32),
        (0.05, 0.3, 0.4),
        (0.6, 0.1, 0.42),
    )[number % 5]
    rows, columns = 8, 10
    shade, _ = slabs(rng, rows, columns, 0.5, 1.0, 0.06)
    down = (Y * rows) % 1
    across = 0.9 + 0.12 * np.sin(2 * np.pi * X * columns)
    dirt = 1 + 0.07 * noise(rng, low=1, fall=1.4)
    return tinted(hsv(hue, saturation, value), shade * across * (0.78 + 0.25 * down**0.5) * dirt)


def _grass(rng: np.random.Generator, number: int) -> np.ndarray:
    green = hsv(rng.uniform(0.2, 0.28), rng.uniform(0.4, 0.55), rng.uniform(0.34, 0.46))
    straw = hsv(0.14, 0.4, 0.5)
    mix = np.clip(0.22 + 0.14 * noise(rng, low=1, fall=1.2), 0, 1)[..., None]
    return np.asarray(
        (green * (1 - mix) + straw * mix) * (1 + 0.16 * noise(rng, low=12, fall=0.35))[..., None]
    )


def _field(rng: np.random.Generator, number: int) -> np.ndarray:
    base = (hsv(0.23, 0.45, 0.4), hsv(0.13, 0.4, 0.6), hsv(0.08, 0.35, 0.36))[number % 3]
    rows = 1 + 0.08 * np.sin(2 * np.pi * X * 24)
    return tinted(base, rows * (1 + 0.06 * noise(rng, low=1, fall=1.2) + 0.07 * noise(rng, low=20, fall=0.3)))


def _leaves(rng: np.random.Generator, number: int) -> np.ndarray:
    base = hsv(0.19 + 0.025 * number, rng.uniform(0.4, 0.6), rng.uniform(0.3, 0.4))
    clumps = noise(rng, low=6, fall=0.9)
    shade = np.clip(0.75 + 0.3 * clumps + 0.16 * noise(rng, low=24, fall=0.2), 0.12, 1.7)
    yellow = np.array([1.15, 1.05, 0.7])
    tint = 1 + (yellow - 1) * np.clip(clumps, 0, 1)[..., None]
    return np.asarray(base * shade[..., None] * tint)


def _bark(rng: np.random.Generator, number: int) -> np.ndarray:
    shade = 1 + 0.25 * noise(rng, low=4, fall=0.8, stretch=0.25)
    return tinted(hsv(0.08, 0.25, (0.32, 0.45)[number % 2]), np.clip(shade, 0.3, 2))


def _planks(rng: np.random.Generator, number: int) -> np.ndarray:
    count = 8
    shade = (1 + 0.1 * rng.standard_normal(count))[(X * count).astype(int)]
    gap = np.abs(X * count - np.round(X * count)) < 0.06
    grain = 1 + 0.07 * noise(rng, low=4, fall=0.7, stretch=0.12)
    base = (hsv(0.08, 0.4, 0.42), hsv(0.09, 0.12, 0.5), hsv(0.07, 0.5, 0.3))[number % 3]
    return tinted(base, shade * grain * (1 - 0.65 * gap))


def _window(rng: np.random.Generator, number: int) -> np.ndarray:
    """What is behind a pane: a dark room, curtains, a blind, a plant on the sill."""
    dark = hsv(rng.uniform(0.05, 0.12), 0.25, rng.uniform(0.08, 0.2))
    picture = tinted(dark, np.clip(0.8 + 0.5 * (Y - 0.4) + 0.15 * noise(rng, low=1, fall=1.6), 0.2, 2))
    kind = number % 6
    cloth = hsv(rng.uniform(0.05, 0.15), rng.uniform(0, 0.12), rng.uniform(0.6, 0.85))
    folds = 0.85 + 0.15 * np.sin(2 * np.pi * X * rng.integers(9, 16) + 1.5 * np.sin(2 * np.pi * X * 3))
    if kind in (0, 1, 2):  # curtains at both sides, wider below
        width = rng.uniform(0.1, 0.3) + 0.06 * (Y**2)
        there = (width > X) | (1 - width < X)
        picture = np.where(there[..., None], tinted(cloth * (1 - 0.12 * kind), folds), picture)
    if kind == 3:  # net curtain
        picture = picture * 0.35 + tinted(cloth, folds) * 0.6
    if kind == 4:  # blind let down part of the way
        down = rng.uniform(0.2, 0.95) > Y
        slats = 0.85 + 0.15 * ((Y * 22) % 1)
        picture = np.where(down[..., None], tinted(cloth, slats), picture)
    if kind in (0, 5):  # plants on the sill
        for _ in range(3):
            x, r = rng.uniform(0.15, 0.85), rng.uniform(0.05, 0.12)
            leaf = ((X - x) / r) ** 2 + ((Y - 0.97) / (2.2 * r)) ** 2 < 1 + 0.4 * noise(rng, low=12, fall=0.6)
            picture = np.where(leaf[..., None], hsv(0.28, 0.5, 0.25), picture)
    return np.asarray(picture)


def _door(rng: np.random.Generator, number: int) -> np.ndarray:
    hues = (
        (0.07, 0.55, 0.32),
        (0.0, 0.6, 0.35),
        (0.35, 0.4, 0.25),
        (0.6, 0.5, 0.3),
        (0.1, 0.05, 0.85),
        (0, 0, 0.2),
        (0.08, 0.3, 0.5),
        (0.6, 0.1, 0.5),
    )
    base = tinted(hsv(*hues[number % 8]), 1 + 0.05 * noise(rng, low=3, fall=1, stretch=0.2))
    shade = np.ones((SIZE, SIZE))
    for x0, x1 in ((0.12, 0.46), (0.54, 0.88)):
        for y0, y1 in ((0.08, 0.4), (0.48, 0.92)):
            inside = (x0 < X) & (x1 > X) & (y0 < Y) & (y1 > Y)
            core = (x0 + 0.03 < X) & (x1 - 0.03 > X) & (y0 + 0.015 < Y) & (y1 - 0.015 > Y)
            shade[inside & ~core] = 0.72
            shade[core] = 0.93
    picture = base * shade[..., None]
    if number % 3 == 0:  # a pane in the upper half
        pane = (np.abs(X - 0.5) < 0.3) & (Y > 0.1) & (Y < 0.42)
        picture = np.where(pane[..., None], np.array([0.16, 0.18, 0.2]) * (1.3 - Y[..., None]), picture)
    knob = np.hypot(X - 0.92, (Y - 0.52) * 2) < 0.03
    picture[knob] = (0.7, 0.68, 0.6)
    return np.asarray(picture)


def _shop(rng: np.random.Generator, number: int) -> np.ndarray:
    """A shop window: a dim room with shelves of goods, a poster or two on the pane."""
    picture = tinted(np.array([0.2, 0.18, 0.15]), 0.7 + 0.7 * Y + 0.1 * noise(rng, low=1, fall=1.5))
    for shelf in np.linspace(0.35, 0.9, rng.integers(2, 5)):
        x = 0.02
        while x < 0.97:
            w, h = rng.uniform(0.02, 0.09), rng.uniform(0.05, 0.2)
            there = (x <= X) & (x + w > X) & (shelf >= Y) & (shelf - h < Y)
            picture[there] = hsv(rng.random(), rng.uniform(0.1, 0.6), rng.uniform(0.15, 0.7)) * rng.uniform(
                0.6, 1
            )
            x += w + rng.uniform(0, 0.05)
        picture[np.abs(Y - shelf) < 0.008] = (0.35, 0.33, 0.3)
    for _ in range(int(rng.integers(0, 3))):
        x, y, w, h = rng.uniform(0, 0.8), rng.uniform(0.2, 0.6), rng.uniform(0.08, 0.2), rng.uniform(0.1, 0.3)
        there = (x <= X) & (x + w > X) & (y <= Y) & (y + h > Y)
        picture[there] = hsv(rng.random(), rng.uniform(0.2, 0.8), rng.uniform(0.6, 0.95))
    return np.asarray(picture)


def _sign(rng: np.random.Generator, number: int) -> np.ndarray:
    """Traffic signs, for discs and boards: speed limits, no stopping, give way, arrows, zones."""
    white, red, blue, black = np.ones(3) * 0.92, hsv(0, 0.9, 0.7), hsv(0.6, 0.85, 0.6), np.ones(3) * 0.08
    r = np.hypot(X - 0.5, Y - 0.5)
    picture = np.ones((SIZE, SIZE, 3)) * white
    kind = number % 5
    if kind == 0:
        picture[r > 0.37] = red
        for x in (0.36, 0.62):
            ring = np.abs(np.hypot((X - x) * 1.6, Y - 0.5) - 0.14) < 0.035
            picture[ring] = black
    elif kind == 1:
        picture[:] = blue
        picture[r > 0.41] = red
        picture[(np.abs(X - Y) < 0.06) | (np.abs(X + Y - 1) < (0.06 if number > 5 else 0))] = red
    elif kind == 2:
        picture[:] = blue
        picture[(np.abs(X - 0.5) < 0.06) & (np.abs(Y - 0.5) < 0.3)] = white
        picture[(np.abs(X - 0.5) + Y - 0.2 < 0.18) & (Y > 0.2)] = white
    elif kind == 3:
        picture[:] = red
        picture[(np.abs(X - 0.5) < 0.34) & (np.abs(Y - 0.5) < 0.09)] = white
    else:
        picture[(np.minimum(X, 1 - X) < 0.06) | (np.minimum(Y, 1 - Y) < 0.06)] = black
        for line in np.linspace(0.25, 0.75, 3):
            picture[(np.abs(Y - line) < 0.05) & (X > 0.2) & (rng.uniform(0.5, 0.8) > X)] = black
    return np.asarray(picture)


def _garage(rng: np.random.Generator, number: int) -> np.ndarray:
    base = (hsv(0.1, 0.04, 0.8), hsv(0.08, 0.35, 0.4), hsv(0.6, 0.06, 0.45))[number % 3]
    lines = X if number % 2 else Y
    ribs = 0.85 + 0.15 * (((lines * 9) % 1) > 0.1)
    return tinted(base, ribs * (1 + 0.04 * noise(rng, low=1, fall=1.4)))


def _poster(rng: np.random.Generator, number: int) -> np.ndarray:
    picture = np.ones((SIZE, SIZE, 3)) * hsv(rng.random(), rng.uniform(0.1, 0.7), rng.uniform(0.5, 0.95))
    picture *= (1 + 0.12 * noise(rng, low=1, fall=1.6))[..., None]
    for _ in range(9):
        x, y, w, h = *rng.random(2), *rng.uniform(0.04, 0.3, 2)
        shape = (np.abs(X - x) < w) & (np.abs(Y - y) < h / 2)
        if rng.random() < 0.4:
            shape = ((X - x) / w) ** 2 + ((Y - y) / h) ** 2 < 1
        picture[shape] = hsv(rng.random(), rng.uniform(0.1, 0.8), rng.uniform(0.15, 0.95))
    return np.asarray(picture)


def _plate(rng: np.random.Generator, number: int) -> np.ndarray:
    picture = np.ones((SIZE, SIZE, 3)) * (
        np.array([0.92, 0.92, 0.9]) if number == 0 else np.array([0.9, 0.8, 0.3])
    )
    for x in np.linspace(0.15, 0.88, 7):
        bar = (
            (np.abs(X - x) < 0.035)
            & (np.abs(Y - 0.5) < 0.28)
            & (rng.random((8, 8)).repeat(32, 0).repeat(32, 1) < 0.75)
        )
        picture[bar] = 0.1
    picture[X < 0.06] = (0.1, 0.2, 0.6)
    return np.asarray(picture)


def _rim(rng: np.random.Generator, number: int) -> np.ndarray:
    """A wheel from the side: tyre, rim and spokes."""
    r, angle = np.hypot(X - 0.5, Y - 0.5) * 2, np.arctan2(Y - 0.5, X - 0.5)
    spokes = (5, 7, 10, 6)[number % 4]
    metal = (0.6, 0.45, 0.68, 0.3)[number % 4]
    bright = np.where(np.cos(spokes * angle) > np.clip(1.2 * r - 0.5, -0.6, 0.7), metal, 0.06)
    bright = np.where((r > 0.6) & (r < 0.68), metal * 0.9, bright)
    bright = np.where(r < 0.16, metal * 0.8, bright)
    return np.repeat(np.where(r > 0.68, 0.07, bright)[..., None], 3, axis=2)


def _cloth(rng: np.random.Generator, number: int) -> np.ndarray:
    folds = 1 + 0.12 * noise(rng, low=2, fall=1.3, stretch=0.5)
    weave = 1 + 0.05 * noise(rng, low=40, fall=0.1)
    return tinted(np.ones(3) * 0.8, folds * weave)


_PAINTERS: dict[str, Callable[[np.random.Generator, int], np.ndarray]] = {
    "asphalt": _asphalt,
    "paving": _paving,
    "cobbles": _cobbles,
    "concrete": _concrete,
    "brick": _brick,
    "plaster": _plaster,
    "stone": _stone,
    "roof": _roof,
    "grass": _grass,
    "leaves": _leaves,
    "bark": _bark,
    "planks": _planks,
    "window": _window,
    "door": _door,
    "shop": _shop,
    "sign": _sign,
    "garage": _garage,
    "poster": _poster,
    "plate": _plate,
    "rim": _rim,
    "cloth": _cloth,
    "field": _field,
}
