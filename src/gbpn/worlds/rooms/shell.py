"""A room's shell: floor, ceiling, walls with windows, doors and passages, skirting, curtains, beams."""

from __future__ import annotations

import numpy as np

from gbpn.worlds.assembly import Assembly
from gbpn.worlds.rooms.interior import Interior
from gbpn.worlds.rooms.layout import Layout, Wall
from gbpn.worlds.rooms.openings import bar, door, next_room, sheet, window
from gbpn.worlds.rooms.style import Style

__all__ = ["raise_shell"]


def raise_shell(
    layout: Layout, style: Style, palette: Interior, rng: np.random.Generator, *, public: bool
) -> None:
    """Everything that does not move, openings included."""
    into = Assembly("room")
    x, y = layout.half + 0.25
    high = layout.height
    flat = np.array([[-x, -y], [x, -y], [x, y], [-x, y]])
    for z, (material, tile), name in ((0.0, style.floor, "floor"), (high, style.ceiling, "ceiling")):
        into.next_thing(name)
        into.quads(np.c_[flat, np.full(4, z)][None], material, coordinates=flat / tile)
    for k, wall in enumerate(layout.walls):
        into.next_thing("wall")
        _wall(into, wall, style, style.walls[k], high)
        for opening in wall.openings:
            into.next_thing(opening.kind)
            if opening.kind == "window":
                window(into, wall, opening, style, palette, rng, high)
            else:
                door(into, wall, opening, style, palette, rng)
                if opening.kind != "door":
                    next_room(into, wall, opening, style, palette, rng, high)
        into.next_thing("skirting")
        _edges(into, wall, style, rng, high)
        _switches(into, wall, palette, rng)
    if rng.random() < 0.08:
        _beams(into, layout, palette, rng)
    if public and rng.random() < 0.15:
        _ducts(into, layout, palette, rng)
    layout.builder.add(into.mesh())


def _pieces(wall: Wall, high: float) -> list[tuple[float, float, float, float]]:
    """Rectangles (start, end, low, high) of a wall around its openings."""
    out, start = [], 0.0
    for hole in sorted(wall.openings, key=lambda o: o.start):
        out += [
            (start, hole.start, 0.0, high),
            (hole.start, hole.end, hole.high, high),
            (hole.start, hole.end, 0.0, hole.low),
        ]
        start = hole.end
    return [
        piece
        for piece in [*out, (start, wall.length, 0.0, high)]
        if piece[1] - piece[0] > 0.005 and piece[3] - piece[2] > 0.005
    ]


def _wall(into: Assembly, wall: Wall, style: Style, cover: tuple[int, float], high: float) -> None:
    for a, b, low, top in _pieces(wall, high):
        if style.dado is None:
            sheet(into, wall, (a, b, low, top), cover)
            continue
        material, tile, level = style.dado
        if low < level:
            sheet(into, wall, (a, b, low, min(top, level)), (material, tile))
        if top > level:
            sheet(into, wall, (a, b, max(low, level), top), cover)


def _edges(into: Assembly, wall: Wall, style: Style, rng: np.random.Generator, high: float) -> None:
    """Skirting between doors, perhaps a cornice."""
    if style.dado is None or style.dado[2] < 1.2:
        tall = 0.05 + 0.02 * (len(wall.openings) % 4)
        for a, b, low, _ in _pieces(wall, high):
            if low == 0.0:
                bar(into, wall, (a, b, 0.0, tall), (0.0, 0.014), style.trim)
    if rng.random() < 0.15:
        bar(into, wall, (0, wall.length, high - 0.06, high), (0.0, 0.05), style.ceiling[0])


def _switches(into: Assembly, wall: Wall, palette: Interior, rng: np.random.Generator) -> None:
    """Sockets near the floor, a switch beside a door."""
    white = palette.paint((0.75, 0.75, 0.73), roughness=0.4, mirror=0.02)
    places = [(float(s), 0.3) for s in rng.uniform(0.3, wall.length - 0.3, int(rng.integers(0, 3)))]
    places += [(o.end + 0.18, 1.1) for o in wall.openings if o.kind != "window"]
    for s, z in places:
        if all(not o.start - 0.15 < s < o.end + 0.15 for o in wall.openings) and s < wall.length - 0.1:
            bar(into, wall, (s - 0.04, s + 0.04, z - 0.04, z + 0.04), (0.0, 0.01), white)


def _beams(into: Assembly, layout: Layout, palette: Interior, rng: np.random.Generator) -> None:
    into.next_thing("beam")
    wood = palette.wood()
    x, y = layout.half
    half, drop = float(rng.uniform(0.05, 0.1)), float(rng.uniform(0.06, 0.12))
    for place in np.arange(-y + 0.3, y, rng.uniform(0.6, 1.3)):
        into.boxes([[0, place, layout.height - drop]], [[x, half, drop]], wood, tile=0.9)


def _ducts(into: Assembly, layout: Layout, palette: Interior, rng: np.random.Generator) -> None:
    into.next_thing("pipe")
    x, y = layout.half
    metal = palette.metal()
    for place in rng.uniform(-0.8, 0.8, int(rng.integers(1, 4))) * x:
        radius = float(rng.uniform(0.02, 0.12))
        z = layout.height - radius - 0.05
        into.tubes(np.array([[[place, -y, z], [place, y, z]]]), radius, metal, sides=14)
