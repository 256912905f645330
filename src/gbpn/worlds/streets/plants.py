"""Trees with leaves or bare, conifers, hedges and bushes. They stand on z = 0 about the origin."""

from __future__ import annotations

import math

import numpy as np

from gbpn.worlds.assembly import Assembly
from gbpn.worlds.streets.palette import Colour, Palette

__all__ = ["bush", "conifer", "hedge", "tree"]

_GREENS: tuple[Colour, ...] = (
    (1.9, 1.9, 1.9),
    (2.3, 2.1, 1.4),
    (1.5, 1.8, 1.6),
    (2.0, 2.2, 1.8),
    (1.5, 1.6, 1.2),
)
_AUTUMN: tuple[Colour, ...] = ((4.4, 2.0, 0.8), (4.0, 2.6, 0.8), (3.4, 1.3, 0.6))


def tree(
    palette: Palette, rng: np.random.Generator, *, season: str = "summer", leaves: int = 6500
) -> Assembly:
    """A broad-leaved tree 5 to 12 m high; in winter only its branches."""
    into = Assembly()
    bark = palette.cover("bark")
    tall, spread = float(rng.uniform(5, 12)), float(rng.uniform(1.7, 3.6))
    stem = tall * rng.uniform(0.25, 0.42)
    radius = 0.03 * tall * rng.uniform(0.35, 0.6)
    lean = rng.normal(0, 0.25, 2)
    heights = np.array([-0.3, 0.0, 0.5, 1.0]) * stem
    trunk = np.stack([lean[0] * (heights / stem) ** 2, lean[1] * (heights / stem) ** 2, heights], 1)
    into.tubes(trunk[None], np.array([[1.35, 1.15, 0.9, 0.8]]) * radius, bark, sides=9)
    tips = _branches(into, trunk[-1], tall - stem, spread, radius * 0.75, bark, rng, bare=season == "winter")
    if season == "winter":
        return into
    colours = _AUTUMN if season == "autumn" and rng.random() < 0.7 else _GREENS
    shade = palette.pick(colours, 0.15)
    light, dark = palette.cover("leaves", shade), palette.cover("leaves", _times(shade, 0.45))
    top = np.array([trunk[-1][0], trunk[-1][1], tall - 0.3 * spread])
    middle = np.array([trunk[-1][0], trunk[-1][1], stem + (tall - stem) * 0.5])
    # Between the middle and the boughs' ends it is full too, so the crown is one mass with a ragged outline.
    blobs = np.concatenate(
        [[middle, top], tips, middle + (tips - middle) * rng.uniform(0.4, 0.7, (len(tips), 1))]
    )
    sizes = np.concatenate([[0.7, 0.45], np.full(len(tips), 0.42), np.full(len(tips), 0.5)]) * spread
    sizes = sizes * rng.uniform(0.75, 1.2, len(sizes))
    crown = np.stack([sizes, sizes, sizes * 0.85], 1)
    into.ellipsoids(blobs, crown * 0.7, dark, detail=6)
    _leaves(into, blobs, crown, leaves, 0.145 * math.sqrt(6500 / leaves) * spread / 2.6, light, rng)
    return into


def _branches(
    into: Assembly,
    start: np.ndarray,
    high: float,
    spread: float,
    radius: float,
    bark: int,
    rng: np.random.Generator,
    *,
    bare: bool,
) -> np.ndarray:
    """Boughs from the top of the trunk, twigs from these where they are seen; ends of the boughs [N, 3]."""
    count = int(rng.integers(6, 10))
    angle = np.linspace(0, 2 * math.pi, count, endpoint=False) + rng.normal(0, 0.3, count)
    out, up = spread * rng.uniform(0.45, 0.8, count), high * rng.uniform(0.3, 0.85, count)
    ends = start + np.stack([out * np.cos(angle), out * np.sin(angle), up], 1)
    bend = (start + ends) / 2 + np.array([0, 0, 0.1]) * high
    paths = np.stack([np.broadcast_to(start, ends.shape), bend, ends], 1)
    into.tubes(paths, np.array([[1.0, 0.6, 0.3]]) * np.full((count, 1), radius * 0.6), bark, sides=5)
    leader = start + np.array([[[0, 0, 0], [0.1, 0, high * 0.55], [0, 0.1, high * 0.98]]])
    into.tubes(leader, np.array([[0.9, 0.5, 0.1]]) * radius, bark, sides=5)
    if bare:
        twigs = 14
        bough = rng.integers(0, count, count * twigs)
        share = rng.uniform(0.3, 1, (count * twigs, 1))
        begin = np.where(
            share < 0.5,
            start + (bend[bough] - start) * share * 2,
            bend[bough] + (ends[bough] - bend[bough]) * (share * 2 - 1),
        )
        away = rng.normal(0, 1, begin.shape) + [0, 0, 0.6] + (ends[bough] - start) / spread
        length = rng.uniform(0.5, 1.6, (len(begin), 1)) * spread / 2.5
        tip = begin + away / np.linalg.norm(away, axis=1, keepdims=True) * length
        into.tubes(
            np.stack([begin, (begin + tip) / 2 + rng.normal(0, 0.08, tip.shape), tip], 1),
            np.array([[0.018, 0.011, 0.004]]) * np.ones((len(tip), 1)),
            bark,
            sides=4,
        )
        side = tip + rng.normal(0, 0.3, tip.shape)
        into.tubes(np.stack([(begin + tip) / 2, side], 1), 0.006, bark, sides=3)
    return np.asarray(ends)


def _leaves(
    into: Assembly,
    centres: np.ndarray,
    halves: np.ndarray,
    count: int,
    size: float,
    material: int,
    rng: np.random.Generator,
) -> None:
    """Triangles about the surface of ellipsoids, lit as if they were the crown's skin."""
    blob = rng.choice(len(centres), count, p=halves[:, 0] ** 2 / (halves[:, 0] ** 2).sum())
    away = rng.standard_normal((count, 3))
    away /= np.linalg.norm(away, axis=1, keepdims=True)
    place = centres[blob] + away * halves[blob] * rng.uniform(0.7, 1.2, (count, 1))
    first, second = rng.standard_normal((2, count, 3))
    first /= np.linalg.norm(first, axis=1, keepdims=True)
    second = np.cross(first, second)
    second /= np.linalg.norm(second, axis=1, keepdims=True)
    side = size * rng.uniform(0.6, 1.3, (count, 1))
    corners = np.stack([place - first * side, place + first * side, place + second * side * 1.6], 1)
    normals = away + 0.45 * rng.standard_normal((count, 3))
    normals /= np.linalg.norm(normals, axis=1, keepdims=True)
    coordinates = rng.random((count, 1, 2)) + np.array([[0.0, 0], [0.2, 0], [0.1, 0.2]])
    into.triangles(corners, np.repeat(normals[:, None], 3, 1), coordinates, material)


def conifer(palette: Palette, rng: np.random.Generator) -> Assembly:
    """A spruce: a cone of drooping layers."""
    into = Assembly()
    tall, wide = float(rng.uniform(4, 12)), float(rng.uniform(1.0, 2.2))
    into.tubes(
        np.array([[[0, 0, -0.2], [0, 0, tall * 0.9]]]), np.array([[0.16, 0.03]]), palette.cover("bark")
    )
    shade = palette.pick(((1.0, 1.3, 1.0), (0.9, 1.2, 1.1), (1.2, 1.4, 0.8)), 0.1)
    dark, light = palette.cover("leaves", _times(shade, 0.45)), palette.cover("leaves", shade)
    z = np.linspace(tall * 0.08, tall, 9)
    angle = np.linspace(0, 2 * math.pi, 13)
    r = wide * (1 - (z - z[0]) / (tall - z[0])) * 0.72 + 0.02
    into.loft(
        np.stack(
            [r[:, None] * np.cos(angle), r[:, None] * np.sin(angle), np.broadcast_to(z[:, None], (9, 13))], -1
        ),
        dark,
        tile=1.3,
    )
    count = 2600
    high = 1 - np.sqrt(rng.random(count))
    a = rng.uniform(0, 2 * math.pi, count)
    radius = wide * (1 - high) * rng.uniform(0.62, 1.08, count) + 0.02
    zz = tall * (0.08 + 0.92 * high) - 0.12 * radius
    place = np.stack([radius * np.cos(a), radius * np.sin(a), zz], 1)
    out = np.stack([np.cos(a), np.sin(a), np.full(count, -0.45)], 1)
    across = np.stack([-np.sin(a), np.cos(a), rng.normal(0, 0.3, count)], 1)
    corners = np.stack([place - across * 0.09, place + across * 0.09, place + out * 0.32], 1)
    normals = out * [1, 1, 0] + [0, 0, 0.5] + 0.4 * rng.standard_normal((count, 3))
    normals /= np.linalg.norm(normals, axis=1, keepdims=True)
    coordinates = rng.random((count, 1, 2)) + np.array([[0.0, 0], [0.15, 0], [0.07, 0.2]])
    into.triangles(corners, np.repeat(normals[:, None], 3, 1), coordinates, light)
    return into


def bush(palette: Palette, rng: np.random.Generator) -> Assembly:
    """Some round heaps of leaves."""
    into = Assembly()
    shade = palette.pick(_GREENS, 0.15)
    dark, light = palette.cover("leaves", _times(shade, 0.5)), palette.cover("leaves", shade)
    count = int(rng.integers(1, 5))
    size = rng.uniform(0.35, 0.9, count)
    centres = np.stack([*rng.normal(0, 0.5, (2, count)), size * 0.6], 1)
    halves = np.stack([size, size, size * rng.uniform(0.7, 1.2)], 1)
    into.ellipsoids(centres, halves * 0.85, dark, detail=6)
    _leaves(into, centres, halves, 1500, 0.05, light, rng)
    return into


def hedge(length: float, height: float, palette: Palette, rng: np.random.Generator) -> Assembly:
    """A clipped hedge along x from 0 to `length`, its face about y = 0."""
    into = Assembly()
    deep = float(rng.uniform(0.5, 0.9))
    shade = palette.pick(_GREENS, 0.15)
    dark, light = palette.cover("leaves", _times(shade, 0.75)), palette.cover("leaves", shade)
    xs = np.linspace(0, length, max(3, int(length / 0.4)))
    outline = np.array(
        [
            [0, -0.3],
            [0, height * 0.5],
            [0.02, height * 0.93],
            [0.12, height],
            [deep - 0.12, height],
            [deep, height * 0.9],
            [deep, -0.3],
        ]
    )
    points = np.stack(
        [np.broadcast_to(xs[:, None], (len(xs), 7)), *np.broadcast_to(outline.T[:, None], (2, len(xs), 7))],
        -1,
    )
    points = points + rng.normal(0, 0.035, points.shape) * [0.3, 1, 1]
    into.loft(points, dark, tile=1.3)
    for end in (0, -1):
        rim = points[end]
        fan = np.stack([np.broadcast_to(rim.mean(axis=0), rim[:-1].shape), rim[:-1], rim[1:]], 1)
        into.triangles(
            fan, np.broadcast_to([1.0 if end else -1.0, 0, 0], fan.shape), fan[..., 1:] / 1.3, dark
        )
    count = int(length * (height + deep) * 90)
    x = rng.uniform(0, length, count)
    on_top = rng.random(count) < deep / (deep + height)
    y = np.where(on_top, rng.uniform(0, deep, count), rng.normal(0, 0.03, count))
    z = np.where(on_top, height + rng.normal(0, 0.03, count), rng.uniform(0, height, count))
    place = np.stack([x, y, z], 1)
    normals = np.where(on_top[:, None], [0, 0, 1.0], [0, -1.0, 0.2]) + 0.5 * rng.standard_normal((count, 3))
    normals /= np.linalg.norm(normals, axis=1, keepdims=True)
    first = rng.standard_normal((count, 3)) * 0.045
    second = rng.standard_normal((count, 3)) * 0.045
    coordinates = rng.random((count, 1, 2)) + np.array([[0.0, 0], [0.1, 0], [0.05, 0.1]])
    into.triangles(
        np.stack([place, place + first, place + second], 1),
        np.repeat(normals[:, None], 3, 1),
        coordinates,
        light,
    )
    return into


def _times(colour: Colour, factor: float) -> Colour:
    red, green, blue = colour
    return red * factor, green * factor, blue * factor
