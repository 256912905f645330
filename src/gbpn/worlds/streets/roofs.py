"""Roofs of four kinds on a house whose front lies in y = 0: tiles, gables, gutters, chimneys, dormers."""

from __future__ import annotations

import numpy as np

from gbpn.worlds.assembly import Assembly
from gbpn.worlds.streets.palette import Palette

__all__ = ["roof"]


def roof(
    into: Assembly,
    width: float,
    depth: float,
    height: float,
    kind: str,
    pitch: float,
    wall: int,
    tile: float,
    palette: Palette,
    rng: np.random.Generator,
) -> None:
    """On walls of `height`; `pitch` metres of rise a metre; gables are of the wall's material."""
    w, over = width / 2, float(rng.uniform(0.15, 0.5))
    if kind == "flat":
        _flat(into, w, depth, height, palette)
    else:
        tone = float(rng.uniform(0.75, 1.2))
        tiles = palette.cover("roof", (tone, tone, tone))
        if kind == "along":
            _along(into, w, depth, height, pitch, over, tiles, wall, tile)
            if rng.random() < 0.35:
                _dormers(into, w, depth, height, pitch, tiles, palette, rng)
        elif kind == "across":
            _across(into, w, depth, height, pitch, over, tiles, wall, tile)
        else:
            _hip(into, w, depth, height, pitch, over, tiles)
        metal = palette.paint((0.35, 0.35, 0.36), roughness=0.4)
        if kind != "across":
            into.tubes(
                np.array([[[-w, -over, height - over * pitch], [w, -over, height - over * pitch]]]),
                0.07,
                metal,
            )
    _chimneys(into, w, depth, height, kind, pitch, palette, rng)


def _flat(into: Assembly, w: float, depth: float, height: float, palette: Palette) -> None:
    cover = palette.cover("concrete", (0.5, 0.5, 0.5))
    into.quads(
        np.array([[[-w, 0, height], [w, 0, height], [w, depth, height], [-w, depth, height]]]), cover, tile=4
    )
    edge = palette.paint((0.55, 0.54, 0.52))
    into.boxes(
        [
            [0, 0.12, height + 0.2],
            [0, depth - 0.12, height + 0.2],
            [-w + 0.12, depth / 2, height + 0.2],
            [w - 0.12, depth / 2, height + 0.2],
        ],
        [[w, 0.12, 0.2], [w, 0.12, 0.2], [0.12, depth / 2, 0.2], [0.12, depth / 2, 0.2]],
        edge,
    )


def _slope(into: Assembly, corners: list[list[float]], tiles: int) -> None:
    """One plane of tiles, its lower edge first, as thick as tiles and battens are."""
    into.quads(np.array([corners]), tiles, tile=2.2)
    low = np.array(corners[:2])
    into.quads(np.array([[low[0] - [0, 0, 0.14], low[1] - [0, 0, 0.14], low[1], low[0]]]), tiles, tile=2.2)


def _along(
    into: Assembly,
    w: float,
    depth: float,
    height: float,
    pitch: float,
    over: float,
    tiles: int,
    wall: int,
    tile: float,
) -> None:
    top, low, d = height + pitch * depth / 2, height - pitch * over, depth / 2
    e = w + 0.05
    _slope(into, [[-e, -over, low], [e, -over, low], [e, d, top], [-e, d, top]], tiles)
    _slope(into, [[e, depth + over, low], [-e, depth + over, low], [-e, d, top], [e, d, top]], tiles)
    for x in (-w, w):
        _gable(into, np.array([[x, 0, height], [x, depth, height], [x, d, top]]), wall, tile, (1, 2))


def _across(
    into: Assembly,
    w: float,
    depth: float,
    height: float,
    pitch: float,
    over: float,
    tiles: int,
    wall: int,
    tile: float,
) -> None:
    top, low = height + pitch * w, height - pitch * over
    a, b = -over, depth + over
    _slope(into, [[-w - over, b, low], [-w - over, a, low], [0, a, top], [0, b, top]], tiles)
    _slope(into, [[w + over, a, low], [w + over, b, low], [0, b, top], [0, a, top]], tiles)
    for y in (0.0, depth):
        _gable(into, np.array([[-w, y, height], [w, y, height], [0, y, top]]), wall, tile, (0, 2))


def _hip(
    into: Assembly, w: float, depth: float, height: float, pitch: float, over: float, tiles: int
) -> None:
    half = min(w, depth / 2)
    top, low = height + pitch * half, height - pitch * over
    e, a, b = w + over, -over, depth + over
    left, right = [-w + half, depth / 2, top], [w - half, depth / 2, top]
    if depth / 2 > w:
        left = right = [0, depth / 2, top]
    _slope(into, [[-e, a, low], [e, a, low], right, left], tiles)
    _slope(into, [[e, b, low], [-e, b, low], left, right], tiles)
    _slope(into, [[e, a, low], [e, b, low], right, right], tiles)
    _slope(into, [[-e, b, low], [-e, a, low], left, left], tiles)


def _gable(into: Assembly, corners: np.ndarray, wall: int, tile: float, axes: tuple[int, int]) -> None:
    normal = np.cross(corners[1] - corners[0], corners[2] - corners[0])
    normals = np.broadcast_to(normal / np.linalg.norm(normal), (1, 3, 3))
    into.triangles(corners[None], normals, corners[None][..., list(axes)] / tile, wall)


def _dormers(
    into: Assembly,
    w: float,
    depth: float,
    height: float,
    pitch: float,
    tiles: int,
    palette: Palette,
    rng: np.random.Generator,
) -> None:
    """Small houses with a window on the front slope."""
    count = max(1, int(2 * w / rng.uniform(3, 5)))
    y = depth * 0.14
    base = height + pitch * y
    cheek = palette.cover("plaster", (0.5, 0.48, 0.45))
    pane = palette.cover("window", roughness=0.03, mirror=0.15)
    frame = palette.paint((0.75, 0.75, 0.73))
    once = np.array([[[0.0, 0], [1, 0], [1, 1], [0, 1]]])
    for x in (np.arange(count) + 0.5) * 2 * w / count - w:
        half, tall, back = 0.65, 1.25, 1.3 / pitch
        into.boxes([[x, y + back / 2, base + tall / 2]], [[half, back / 2, tall / 2]], cheek, tile=3)
        pane_shape = np.array([[[-0.5, 0, 0.2], [0.5, 0, 0.2], [0.5, 0, 1.1], [-0.5, 0, 1.1]]])
        face = pane_shape + np.array([x, y - 0.03, base])
        into.quads(face, pane, coordinates=once)
        into.boxes([[x, y - 0.04, base + 0.65]], [[0.03, 0.03, 0.45]], frame)
        for s in (-1, 1):
            into.boxes([[x + s * 0.55, y - 0.03, base + 0.65]], [[0.06, 0.03, 0.5]], frame)
            edge = [
                [x + s * (half + 0.15), y - 0.2, base + tall - 0.05],
                [x + s * (half + 0.15), y + back, base + tall - 0.05],
            ]
            ridge = [[x, y + back, base + tall + 0.45], [x, y - 0.2, base + tall + 0.45]]
            into.quads(np.array([[*edge, *ridge]]), tiles, tile=2.2)


def _chimneys(
    into: Assembly,
    w: float,
    depth: float,
    height: float,
    kind: str,
    pitch: float,
    palette: Palette,
    rng: np.random.Generator,
) -> None:
    """Stacks of brick with pots, an aerial now and then."""
    rise = pitch * (depth / 2 if kind == "along" else min(w, depth / 2))
    top = height + (0.0 if kind == "flat" else rise)
    brick = palette.cover("brick")
    pot = palette.paint((0.35, 0.14, 0.08))
    for _ in range(int(rng.integers(0, 3))):
        x, y = rng.uniform(-0.8, 0.8) * w, depth * rng.uniform(0.4, 0.6)
        into.boxes([[x, y, top]], [[0.35, 0.3, 1.1]], brick, tile=1.95)
        pots = np.array([[[x + dx, y, top + 1.1], [x + dx, y, top + 1.5]] for dx in (-0.17, 0.17)])
        into.tubes(pots, 0.09, pot)
    if rng.random() < 0.35:
        metal = palette.paint((0.4, 0.4, 0.4), roughness=0.3)
        x, y = rng.uniform(-0.7, 0.7) * w, depth / 2
        into.tubes(np.array([[[x, y, top - 1], [x, y, top + 2.2]]]), 0.02, metal, sides=4)
        arms = np.array([[[x - 0.4, y, z], [x + 0.4, y, z]] for z in (top + 1.5, top + 1.8, top + 2.1)])
        into.tubes(arms, 0.012, metal, sides=4)
