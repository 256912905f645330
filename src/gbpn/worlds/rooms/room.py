"""A whole room from its number: its shell and openings, what stands in it, its light."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from gbpn.worlds.assets import Stock
from gbpn.worlds.rooms.furnishing import KINDS, PUBLIC, Furnisher
from gbpn.worlds.rooms.interior import Interior
from gbpn.worlds.rooms.layout import Hole, Layout, Wall
from gbpn.worlds.rooms.lighting import Hours, ceiling_lamps, daylight_through_windows, hours
from gbpn.worlds.rooms.models import Models
from gbpn.worlds.rooms.outside import surroundings
from gbpn.worlds.rooms.shell import raise_shell
from gbpn.worlds.rooms.style import Style
from gbpn.worlds.scene import SceneBuilder, World

__all__ = ["Room", "build"]


@dataclass(frozen=True, kw_only=True)
class Room:
    """A room to take pictures of: x in [−X, X], y in [−Y, Y], z in [0, height]."""

    scene: World
    kind: str
    half: tuple[float, float]
    height: float
    taken: tuple[tuple[float, float, float, float, float], ...]
    """x, y, half sides and height of what stands on the floor."""
    when: Hours


def build(seed: int, number: int, stock: Stock | None = None) -> Room:
    """The room of this seed and number, the same in any process. Without a stock all furniture is ours."""
    rng = np.random.default_rng([seed, number, 47])
    names = list(KINDS)
    shares = np.array([KINDS[name].share for name in names])
    kind = str(rng.choice(names, p=shares / shares.sum()))
    facts = KINDS[kind]
    width, depth = float(rng.uniform(*facts.width)), float(rng.uniform(*facts.depth))
    builder = SceneBuilder()
    layout = Layout(builder, rng, width, depth, float(rng.uniform(*facts.height)))
    palette = Interior(builder, rng)
    public = kind in PUBLIC
    _openings(layout, rng, kind)
    windows = sum(hole.kind == "window" for wall in layout.walls for hole in wall.openings)
    when = hours(rng, windows=windows)
    raise_shell(layout, Style.drawn(palette, rng, kind), palette, rng, public=public)
    models = Models(stock, palette, rng)
    Furnisher(layout, models, palette, rng).furnish(kind)
    ceiling_lamps(layout, models, palette, rng, when, public=public)
    surroundings(layout, rng)
    daylight_through_windows(layout, when, rng)
    return Room(
        scene=builder.build(),
        kind=kind,
        half=(width / 2, depth / 2),
        height=layout.height,
        taken=tuple(layout.taken),
        when=when,
    )


def _openings(layout: Layout, rng: np.random.Generator, kind: str) -> None:
    """A door at least; windows at most walls that have no passage."""
    order = rng.permutation(4)
    doors = int(rng.integers(2, 5)) if kind == "corridor" else (1 if rng.random() < 0.7 else 2)
    for k in order[:doors] if kind != "corridor" else rng.integers(0, 4, doors):
        _door(layout, layout.walls[int(k)], rng)
    dark = 0.25 if kind in ("bathroom", "storage", "corridor") else 0.75
    for k in order[::-1][: 2 if rng.random() < 0.5 else 1]:
        wall = layout.walls[int(k)]
        if rng.random() < dark and all(hole.kind == "door" for hole in wall.openings):
            _windows(layout, wall, rng)


def _door(layout: Layout, wall: Wall, rng: np.random.Generator) -> None:
    kind = str(rng.choice(["door", "ajar", "passage"], p=[0.5, 0.25, 0.25]))
    width = float(rng.uniform(0.78, 0.98)) if kind != "passage" else float(rng.uniform(0.8, 1.8))
    if width + 0.4 > wall.length:
        return
    start = float(rng.uniform(0.15, wall.length - width - 0.15))
    if not wall.bare(start, start + width, 0, 2.1):
        return
    high = min(float(rng.uniform(1.97, 2.12)), layout.height - 0.1)
    wall.openings.append(Hole(kind=kind, start=start, end=start + width, low=0.0, high=high))
    x, y, _ = wall.at(start + width / 2, 0, 0.45)
    along = np.abs(wall.along) * width / 2 + np.abs(wall.inward) * 0.45
    layout.keep(float(x), float(y), float(along[0]), float(along[1]))


def _windows(layout: Layout, wall: Wall, rng: np.random.Generator) -> None:
    """One or more of a size on a wall."""
    width = float(rng.uniform(0.7, min(2.4, max(0.8, wall.length - 0.8))))
    low = float(rng.uniform(0.55, 1.0)) if rng.random() < 0.8 else 0.05
    high = min(float(rng.uniform(1.9, 2.3)), layout.height - 0.15)
    count = max(1, int((wall.length - 0.4) / (width + 0.5))) if rng.random() < 0.6 else 1
    step = wall.length / count
    for k in range(count):
        start = (k + 0.5) * step - width / 2
        if wall.bare(start, start + width, low, high):
            wall.openings.append(Hole(kind="window", start=start, end=start + width, low=low, high=high))
