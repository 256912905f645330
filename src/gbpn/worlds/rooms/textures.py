"""Pictures on surfaces of rooms, made from random numbers: walls, floors, fabrics, wood, posters, screens.

Each is [256, 256, 3] uint8 sRGB, depends on its kind and number only, and is painted when it is first
wanted. Those of floors, walls and fabrics repeat without a seam; `TILES` says how many metres they cover.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from gbpn.worlds.painting import SIZE, X, Y, hsv, noise, slabs, tinted
from gbpn.worlds.rooms import prints

__all__ = ["COUNTS", "TILES", "picture"]

COUNTS = {
    "plaster": 6,
    "wallpaper": 24,
    "brick": 4,
    "panel": 6,
    "parquet": 16,
    "floor_tile": 14,
    "wall_tile": 12,
    "carpet": 10,
    "wood": 16,
    "fabric": 30,
    "rug": 24,
    "worktop": 8,
    "concrete": 3,
    "wicker": 3,
    "poster": 60,
    "photograph": 60,
    "page": 16,
    "screen": 12,
    "label": 40,
    "spine": 16,
    "board": 8,
    "leaf": 4,
    "clock": 4,
    "ceiling": 4,
}
"""How many of each kind there are."""
TILES = {
    "plaster": 3.0,
    "wallpaper": 0.9,
    "brick": 1.95,
    "panel": 1.6,
    "parquet": 1.6,
    "floor_tile": 1.6,
    "wall_tile": 1.2,
    "carpet": 1.2,
    "wood": 0.9,
    "fabric": 0.6,
    "worktop": 1.0,
    "concrete": 3.0,
    "wicker": 0.25,
    "leaf": 0.2,
    "ceiling": 1.2,
}
"""Metres that one repetition covers."""


@lru_cache(maxsize=512)
def picture(kind: str, number: int) -> npt.NDArray[np.uint8]:
    """[SIZE, SIZE, 3]: the same array whenever it is asked for again."""
    rng = np.random.default_rng([77, *kind.encode(), number])
    painted = _PAINTERS[kind](rng, number)
    return np.asarray(np.clip(painted, 0, 1) * 255 + 0.5, np.uint8)


def _plaster(rng: np.random.Generator, number: int) -> np.ndarray:
    """Nearly white: the wall's own colour multiplies it."""
    rough = (0.004, 0.008, 0.012, 0.02, 0.03, 0.012)[number % 6]
    shade = 1 + 0.007 * noise(rng, low=1, fall=1.6) + rough * noise(rng, low=30, fall=0.2)
    return tinted(np.array([0.95, 0.95, 0.94]), shade)


def _ceiling(rng: np.random.Generator, number: int) -> np.ndarray:
    """Tiles in a grid, perforated or plain."""
    _, joint = slabs(rng, 2, 2, 0.0, 1.2, 0.0)
    shade = 1 + 0.01 * noise(rng, low=30, fall=0.1)
    if number % 2:
        shade = shade - 0.2 * (noise(rng, low=40, fall=0.0) > 2.0)
    return tinted(np.array([0.92, 0.92, 0.91]), shade * (1 - (0.25, 0.1)[number % 2] * joint))


def _wallpaper(rng: np.random.Generator, number: int) -> np.ndarray:
    base = hsv(rng.choice([0.1, 0.12, 0.15, 0.33, 0.55, 0.03]), rng.uniform(0, 0.16), rng.uniform(0.75, 0.95))
    other = base * (1 + rng.choice([-1, -1, 1]) * rng.uniform(0.05, 0.2)) * (1 + 0.05 * rng.normal(size=3))
    kind = number % 6
    if kind == 0:  # stripes
        mix = (np.sin(2 * np.pi * X * rng.integers(3, 14)) > rng.uniform(-0.6, 0.6)).astype(float)
    elif kind == 1:  # ornaments in a diamond grid
        n = int(rng.integers(3, 7))
        u, v = np.cos(2 * np.pi * n * (X + Y)), np.cos(2 * np.pi * n * (X - Y))
        mix = np.clip(3 * (u * v - 0.3 + 0.5 * np.cos(6 * np.pi * n * X) * np.cos(6 * np.pi * n * Y)), 0, 1)
    elif kind == 2:  # sprigs
        mix = prints.blossoms(rng, int(rng.integers(6, 30)), 0.03)
    elif kind == 3:  # woven
        mix = np.clip(0.5 + 0.3 * noise(rng, low=20, fall=0.2, stretch=6.0), 0, 1)
    elif kind == 4:  # woodchip
        mix = np.clip(noise(rng, low=25, fall=0.3) - 0.8, 0, 1)
    else:  # trellis
        n = int(rng.integers(2, 5))
        lines = np.minimum(np.abs(((X + Y) * n) % 1 - 0.5), np.abs(((X - Y) * n) % 1 - 0.5))
        mix = np.clip(1.5 - lines * 60, 0, 1)
    return np.asarray((base + (other - base) * mix[..., None]) * (1 + 0.01 * noise(rng))[..., None])


def _brick(rng: np.random.Generator, number: int) -> np.ndarray:
    hue, saturation, value = ((0.03, 0.42, 0.5), (0.1, 0.04, 0.85), (0.06, 0.3, 0.62), (0.1, 0.05, 0.6))[
        number % 4
    ]
    shade, joint = slabs(rng, 26, 8, 0.5, 0.7, 0.02 if number % 2 else 0.1)
    wall = tinted(hsv(hue, saturation, value), shade * (1 + 0.04 * noise(rng, low=3, fall=0.8)))
    mortar = hsv(0.1, 0.06, value * 0.9 if number % 2 else rng.uniform(0.55, 0.7))
    return np.asarray(wall + (mortar - wall) * joint[..., None] * 0.8)


def _panel(rng: np.random.Generator, number: int) -> np.ndarray:
    """Boards side by side: wainscot and cladding."""
    count = int(rng.integers(8, 17))
    groove = np.abs(X * count - np.round(X * count)) < 0.05
    grain = 1 + (0.0 if number % 2 else 0.06) * noise(rng, low=3, fall=0.7, stretch=10.0)
    base = (
        np.array([0.9, 0.89, 0.86])
        if number % 2
        else hsv(0.08, rng.uniform(0.3, 0.5), rng.uniform(0.4, 0.75))
    )
    return tinted(base, grain * (1 - 0.35 * groove))


def _timber(rng: np.random.Generator) -> np.ndarray:
    """A wood's colour, sRGB."""
    hue, saturation, value = (
        (0.085, 0.38, 0.72),
        (0.075, 0.45, 0.58),
        (0.065, 0.5, 0.42),
        (0.05, 0.5, 0.3),
        (0.1, 0.25, 0.78),
        (0.06, 0.45, 0.22),
        (0.09, 0.14, 0.6),
        (0.08, 0.4, 0.65),
    )[int(rng.integers(8))]
    return hsv(
        hue + 0.008 * rng.normal(), saturation * rng.uniform(0.7, 1.1), value * rng.uniform(0.85, 1.12)
    )


def _grain(rng: np.random.Generator) -> np.ndarray:
    """Fibres that run down."""
    fine = noise(rng, low=6, fall=0.6, stretch=12.0)
    rings = np.sin(2 * np.pi * (3 * X + 0.9 * noise(rng, low=1, fall=1.5, stretch=8.0)) * rng.integers(2, 5))
    return np.asarray(1 + 0.045 * fine + rng.uniform(0.0, 0.05) * rings)


def _wood(rng: np.random.Generator, number: int) -> np.ndarray:
    return tinted(_timber(rng), _grain(rng))


def _parquet(rng: np.random.Generator, number: int) -> np.ndarray:
    """Long planks, short ones, or a pattern of squares."""
    base = _timber(rng)
    spread = rng.uniform(0.03, 0.1)
    if number % 4 == 3:  # squares of slats, turned by turns
        n = 4
        turned = ((X * n).astype(int) + (Y * n).astype(int)) % 2
        slat = np.where(turned, (Y * n * 5).astype(int), (X * n * 5).astype(int))
        cell = (X * n).astype(int) * n + (Y * n).astype(int)
        shade = 1 + spread * rng.standard_normal(1000)[(slat * 17 + cell * 5) % 1000]
        place = np.where(turned, Y, X) * n * 5
        joint = np.abs(place - np.round(place)) < 0.05
    else:
        rows, columns = ((1, 8), (2, 8), (2, 16))[number % 4]
        column = (X * columns).astype(int)
        along = (Y * rows + rng.random(columns)[column]) % rows
        shade = 1 + spread * rng.standard_normal((rows, columns))[along.astype(int) % rows, column]
        across = np.abs(X * columns - np.round(X * columns)) * SIZE / columns
        joint = (across < 0.7) | (np.abs(along - np.round(along)) * SIZE / rows < 0.7)
    return tinted(base, shade * _grain(rng) * (1 - rng.uniform(0.15, 0.5) * joint))


def _floor_tile(rng: np.random.Generator, number: int) -> np.ndarray:
    n = int(rng.choice([3, 4, 4, 5, 8]))
    shade, joint = slabs(rng, n, n, 0.0, rng.uniform(0.5, 1.0), 0.02)
    hue = rng.choice([0.08, 0.1, 0.6, 0.05])
    base = hsv(hue, rng.uniform(0, 0.06 if hue == 0.6 else 0.22), rng.uniform(0.35, 0.88))
    surface = tinted(base, shade * (1 + 0.04 * noise(rng, low=2, fall=1.1)))
    if number % 3 == 0:  # chequered
        n = n + n % 2
        _, joint = slabs(rng, n, n, 0.0, 0.6, 0.0)
        dark = ((X * n).astype(int) + (Y * n).astype(int)) % 2
        surface = surface * (1 - rng.uniform(0.2, 0.75) * dark[..., None])
    mortar = hsv(0.1, 0.05, rng.uniform(0.4, 0.8))
    return np.asarray(surface + (mortar - surface) * joint[..., None] * 0.8)


def _wall_tile(rng: np.random.Generator, number: int) -> np.ndarray:
    rows, columns, shift = ((8, 8, 0.0), (6, 3, 0.0), (12, 6, 0.5), (4, 4, 0.0), (20, 20, 0.0))[number % 5]
    shade, joint = slabs(rng, rows, columns, shift, 0.7, 0.08 if rows == 20 else 0.01)
    pale = number % 3 != 0
    base = hsv(
        rng.choice([0.1, 0.55, 0.4, 0.6, 0.04]),
        rng.uniform(0, 0.12 if pale else 0.35),
        rng.uniform(0.82, 0.96) if pale else rng.uniform(0.35, 0.7),
    )
    surface = tinted(base, shade * (1 + 0.012 * noise(rng, low=2, fall=1.2)))
    mortar = hsv(0.1, 0.03, rng.uniform(0.6, 0.9))
    return np.asarray(surface + (mortar - surface) * joint[..., None] * 0.85)


def _carpet(rng: np.random.Generator, number: int) -> np.ndarray:
    base = hsv(rng.choice([0.1, 0.08, 0.6, 0.0, 0.1]), rng.uniform(0.02, 0.28), rng.uniform(0.25, 0.75))
    shade = 1 + 0.02 * noise(rng, low=1, fall=1.3) + rng.uniform(0.03, 0.09) * noise(rng, low=40, fall=0.1)
    if number % 4 == 1:  # of an office: squares by turns
        shade = shade * (1 + 0.05 * (((X * 2).astype(int) + (Y * 2).astype(int)) % 2))
    return tinted(base, shade)


def _fabric(rng: np.random.Generator, number: int) -> np.ndarray:
    """Nearly white where it is plain, so that a colour can multiply it; patterned otherwise."""
    weave = (
        1
        + 0.04 * noise(rng, low=40, fall=0.1)
        + 0.03 * np.sin(np.pi * SIZE / 3 * X) * np.sin(np.pi * SIZE / 3 * Y)
    )
    weave = weave * (1 + 0.012 * noise(rng, low=1, fall=1.4))
    base = np.array([0.9, 0.9, 0.89])
    other = hsv(rng.random(), rng.uniform(0.05, 0.35), rng.uniform(0.3, 0.8))
    kind = number % 10
    if kind < 5:
        return tinted(base, weave)
    if kind == 5:
        mix = (np.sin(2 * np.pi * X * rng.integers(3, 16)) > rng.uniform(-0.5, 0.8)).astype(float)
    elif kind == 6:
        n = int(rng.integers(3, 10))
        mix = 0.5 * (np.sin(2 * np.pi * n * X) > 0) + 0.5 * (np.sin(2 * np.pi * n * Y) > 0)
    elif kind == 7:
        n = int(rng.integers(4, 12))
        mix = (np.hypot((X * n) % 1 - 0.5, (Y * n) % 1 - 0.5) < rng.uniform(0.15, 0.35)).astype(float)
    elif kind == 8:
        mix = prints.blossoms(rng, int(rng.integers(8, 24)), 0.06)
    else:
        n = int(rng.integers(6, 14))  # herringbone
        slant = np.where((X * n).astype(int) % 2, X * n + Y * 40, Y * 40 - X * n)
        mix = 0.5 * (slant % 1 < 0.5)
    return np.asarray((base + (other - base) * mix[..., None]) * weave[..., None])


def _worktop(rng: np.random.Generator, number: int) -> np.ndarray:
    if number % 4 == 3:
        return _wood(rng, number)
    base = hsv(rng.choice([0.1, 0.6, 0.05]), rng.uniform(0, 0.12), rng.uniform(0.18, 0.9))
    speckle = 1 + rng.uniform(0.02, 0.14) * noise(rng, low=30, fall=0.2)
    vein = np.exp(-np.abs(noise(rng, low=1, fall=1.5)) * 25) if number % 4 == 1 else np.zeros((SIZE, SIZE))
    return np.asarray(tinted(base, speckle) * (1 - 0.3 * vein[..., None]))


def _concrete(rng: np.random.Generator, number: int) -> np.ndarray:
    shade = 1 + 0.04 * noise(rng, low=1, fall=1.3) + 0.02 * noise(rng, low=30, fall=0.2)
    return tinted(hsv(0.1, 0.04, (0.62, 0.72, 0.5)[number % 3]), shade)


def _wicker(rng: np.random.Generator, number: int) -> np.ndarray:
    wave = np.sin(2 * np.pi * 12 * X) * np.sign(np.sin(2 * np.pi * 12 * Y))
    return tinted(hsv(0.09, 0.4, (0.65, 0.5, 0.8)[number % 3]), 0.85 + 0.2 * wave + 0.05 * noise(rng))


def _leaf(rng: np.random.Generator, number: int) -> np.ndarray:
    vein = np.clip(1 - np.abs(X - 0.5) * 40, 0, 1) + 0.4 * np.clip(
        np.sin((Y - np.abs(X - 0.5)) * 60) - 0.7, 0, 1
    )
    base = hsv((0.26, 0.3, 0.23, 0.34)[number % 4], rng.uniform(0.35, 0.55), rng.uniform(0.3, 0.5))
    return tinted(base, (1 + 0.12 * noise(rng, low=2, fall=1.2)) * (1 + 0.35 * vein))


_PAINTERS: dict[str, Callable[[np.random.Generator, int], np.ndarray]] = {
    "plaster": _plaster,
    "ceiling": _ceiling,
    "wallpaper": _wallpaper,
    "brick": _brick,
    "panel": _panel,
    "parquet": _parquet,
    "floor_tile": _floor_tile,
    "wall_tile": _wall_tile,
    "carpet": _carpet,
    "wood": _wood,
    "fabric": _fabric,
    "worktop": _worktop,
    "concrete": _concrete,
    "wicker": _wicker,
    "leaf": _leaf,
    "rug": prints.rug,
    "poster": prints.poster,
    "photograph": prints.photograph,
    "page": prints.page,
    "screen": prints.screen,
    "label": prints.label,
    "spine": prints.spine,
    "board": prints.board,
    "clock": prints.clock,
}
