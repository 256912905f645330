"""Windows with curtains and blinds, doors, and what is behind those that are open."""

from __future__ import annotations

import math

import numpy as np

from gbpn.worlds.assembly import Assembly
from gbpn.worlds.rooms.interior import CLOTHS, WALLS, Interior
from gbpn.worlds.rooms.layout import Hole, Wall
from gbpn.worlds.rooms.style import Style

__all__ = ["bar", "door", "next_room", "sheet", "window"]


def sheet(
    into: Assembly,
    wall: Wall,
    place: tuple[float, float, float, float],
    cover: tuple[int, float],
    out: float = 0.0,
) -> None:
    """A rectangle on a wall whose pattern goes on from one to the next."""
    a, b, low, high = place
    corners = np.array(
        [wall.at(a, low, out), wall.at(b, low, out), wall.at(b, high, out), wall.at(a, high, out)]
    )
    into.quads(
        corners[None], cover[0], coordinates=np.array([[a, low], [b, low], [b, high], [a, high]]) / cover[1]
    )


def bar(
    into: Assembly,
    wall: Wall,
    place: tuple[float, float, float, float],
    deep: tuple[float, float],
    material: int,
) -> None:
    """A box on a wall: start, end, low, high, and from where to where it stands out."""
    a, b, low, high = place
    centre = wall.at((a + b) / 2, (low + high) / 2, sum(deep) / 2)
    turn = math.atan2(wall.along[1], wall.along[0])
    into.boxes(
        [centre], [[(b - a) / 2, (deep[1] - deep[0]) / 2, (high - low) / 2]], material, turn=turn, tile=0.9
    )


def _reveal(into: Assembly, wall: Wall, hole: Hole, material: int, deep: float) -> None:
    """The inner faces of a hole."""
    for (sa, za), (sb, zb) in (
        ((hole.start, hole.low), (hole.start, hole.high)),
        ((hole.end, hole.high), (hole.end, hole.low)),
        ((hole.start, hole.high), (hole.end, hole.high)),
        ((hole.end, hole.low), (hole.start, hole.low)),
    ):
        into.quads(
            np.array([[wall.at(sa, za), wall.at(sb, zb), wall.at(sb, zb, -deep), wall.at(sa, za, -deep)]]),
            material,
        )


def window(
    into: Assembly,
    wall: Wall,
    hole: Hole,
    style: Style,
    palette: Interior,
    rng: np.random.Generator,
    high: float,
) -> None:
    """Frame, bars, pane, sill; curtains, a blind or nothing."""
    deep = float(rng.uniform(0.08, 0.25))
    _reveal(into, wall, hole, style.walls[0][0] if rng.random() < 0.5 else style.trim, deep)
    frame, pane = (
        palette.paint(
            palette.pick(((0.78, 0.78, 0.76), (0.78, 0.78, 0.76), (0.2, 0.1, 0.05), (0.1, 0.1, 0.1)))
        ),
        palette.pane(),
    )
    a, b, low, top = hole.start, hole.end, hole.low, hole.high
    wide = 0.045
    back = -deep, -deep + 0.05
    for place in (
        (a, a + wide, low, top),
        (b - wide, b, low, top),
        (a, b, low, low + wide),
        (a, b, top - wide, top),
    ):
        bar(into, wall, place, back, frame)
    leaves = max(1, round((b - a) / rng.uniform(0.6, 1.0)))
    for s in np.linspace(a, b, leaves + 1)[1:-1]:
        bar(into, wall, (s - wide, s + wide, low, top), back, frame)
    if rng.random() < 0.35:  # glazing bars
        for s in np.linspace(a, b, 2 * leaves + 1)[1::2]:
            bar(into, wall, (s - 0.012, s + 0.012, low, top), back, frame)
        for z in np.linspace(low, top, int(rng.integers(3, 5)))[1:-1]:
            bar(into, wall, (a, b, z - 0.012, z + 0.012), back, frame)
    corners = [
        wall.at(a, low, -deep + 0.02),
        wall.at(b, low, -deep + 0.02),
        wall.at(b, top, -deep + 0.02),
        wall.at(a, top, -deep + 0.02),
    ]
    into.next_thing("pane")
    into.quads(np.array([corners]), pane)
    into.next_thing("window")
    if low > 0.2:
        bar(
            into,
            wall,
            (a - 0.05, b + 0.05, low - 0.03, low),
            (-deep, float(rng.uniform(0.02, 0.18))),
            style.trim,
        )
    if rng.random() < 0.5:
        for s, t in ((a - 0.07, a), (b, b + 0.07)):
            bar(into, wall, (s, t, low, top + 0.07), (0, 0.015), style.trim)
        bar(into, wall, (a, b, top, top + 0.07), (0, 0.015), style.trim)
    kind = str(rng.choice(["curtains", "venetian", "roller", "none"], p=[0.45, 0.15, 0.12, 0.28]))
    if kind == "curtains":
        _curtains(into, wall, hole, palette, rng, high)
    elif kind == "venetian":
        _venetian(into, wall, hole, palette, rng)
    elif kind == "roller":
        into.next_thing("blind")
        down = top - float(rng.uniform(0.1, 0.85)) * (top - low)
        sheet(
            into,
            wall,
            (a + 0.02, b - 0.02, down, top),
            (palette.cover("fabric", palette.pick(CLOTHS[:5])), 0.6),
            -0.03,
        )
        bar(into, wall, (a, b, down - 0.02, down), (-0.04, -0.02), style.trim)


def _curtains(
    into: Assembly, wall: Wall, hole: Hole, palette: Interior, rng: np.random.Generator, high: float
) -> None:
    """Waving sheets that hang on a rod at both sides."""
    into.next_thing("curtain")
    cloth = palette.cloth()
    rod = min(high - 0.04, hole.high + float(rng.uniform(0.08, 0.25)))
    foot = 0.03 if rng.random() < 0.7 else max(0.03, hole.low - 0.15)
    ends = (
        wall.at(max(hole.start - 0.3, 0.03), rod, 0.09),
        wall.at(min(hole.end + 0.3, wall.length - 0.03), rod, 0.09),
    )
    into.tubes(np.array([ends]), 0.012, palette.metal(), sides=8)
    for side in (0, 1):
        wide = float(rng.uniform(0.18, 0.5)) * (1.0 if rng.random() < 0.8 else 1.8)
        edge = hole.start - 0.2 if side == 0 else hole.end + 0.2 - wide
        a, b = max(edge, 0.02), min(edge + wide, wall.length - 0.02)
        if b - a < 0.08:
            continue
        s = np.linspace(a, b, 61)
        folds = 2 * math.pi * (s - a) / rng.uniform(0.07, 0.13)
        z = np.linspace(foot, rod, 9)
        loose = np.linspace(1, 0.6, 9)[:, None]
        out = 0.09 + 0.028 * loose * np.sin(folds + 0.6 * np.sin(folds / 3)) + 0.01 * np.sin(z * 2)[:, None]
        points = wall.corner[None, None] + wall.along * s[None, :, None] + wall.inward * out[..., None]
        into.loft(
            np.concatenate([points, np.broadcast_to(z[:, None, None], (9, 61, 1))], -1), cloth, tile=0.7
        )
    wall.hung.append((hole.start - 0.3, hole.end + 0.3, foot, rod + 0.03))


def _venetian(into: Assembly, wall: Wall, hole: Hole, palette: Interior, rng: np.random.Generator) -> None:
    """Thin slats, as far down as somebody left them."""
    into.next_thing("blind")
    slat = palette.paint((0.72, 0.72, 0.7)) if rng.random() < 0.7 else palette.wood()
    down = hole.low + float(rng.choice([0.0, 0.3, 0.6])) * (hole.high - hole.low)
    tilt = float(rng.uniform(0.1, 1.2))
    half = 0.0125
    for z in np.arange(hole.high - 0.03, down, -0.027):
        a, b = hole.start + 0.015, hole.end - 0.015
        dy, dz = half * math.cos(tilt), half * math.sin(tilt)
        into.quads(
            np.array(
                [
                    [
                        wall.at(a, z - dz, -0.03 - dy),
                        wall.at(b, z - dz, -0.03 - dy),
                        wall.at(b, z + dz, -0.03 + dy),
                        wall.at(a, z + dz, -0.03 + dy),
                    ]
                ]
            ),
            slat,
        )
    for s in (hole.start + 0.12, hole.end - 0.12):
        into.tubes(np.array([[wall.at(s, down, -0.03), wall.at(s, hole.high, -0.03)]]), 0.0015, slat, sides=3)


def door(
    into: Assembly, wall: Wall, hole: Hole, style: Style, palette: Interior, rng: np.random.Generator
) -> None:
    """An architrave, and a leaf with panels, shut or ajar; passages have none."""
    deep = float(rng.uniform(0.06, 0.14))
    _reveal(into, wall, hole, style.trim, deep)
    a, b, top = hole.start, hole.end, hole.high
    edge = float(rng.uniform(0.05, 0.1))
    if hole.kind != "passage" or rng.random() < 0.5:
        for place in (
            (a - edge, a, 0.0, top + edge),
            (b, b + edge, 0.0, top + edge),
            (a, b, top, top + edge),
        ):
            bar(into, wall, place, (0, 0.018), style.trim)
    if hole.kind == "passage":
        return
    leaf = Assembly("leaf")
    width = b - a - 0.01
    wood = style.trim if rng.random() < 0.5 else palette.wooden_or_lacquered()
    leaf.boxes([[width / 2, 0, top / 2]], [[width / 2, 0.02, top / 2 - 0.004]], wood, tile=0.9)
    panels = ((0.12, 0.45), (0.52, 0.94)) if rng.random() < 0.5 else ()
    for low, high in panels:
        for x in (0.28, 0.72):
            middle = [x * width, 0, (low + high) / 2 * top]
            leaf.boxes([middle], [[0.17 * width, 0.028, (high - low) / 2 * top - 0.05]], wood, tile=0.9)
            leaf.boxes(
                [middle], [[0.17 * width - 0.03, 0.032, (high - low) / 2 * top - 0.08]], wood, tile=0.9
            )
    metal = palette.metal()
    for y in (-0.05, 0.05):
        leaf.tubes(
            np.array([[[width - 0.07, 0, 1.03], [width - 0.07, y, 1.03], [width - 0.19, y, 1.03]]]),
            0.009,
            metal,
            sides=6,
        )
    angle = math.atan2(wall.along[1], wall.along[0])
    swing = float(rng.uniform(0.3, 1.9)) if hole.kind == "ajar" else 0.0
    hinge = wall.at(a + 0.005, 0.004, 0.02 if hole.kind == "ajar" else -0.5 * deep)
    into.next_thing("door")
    into.add(leaf, hinge, angle + swing)


def next_room(
    into: Assembly,
    wall: Wall,
    hole: Hole,
    style: Style,
    palette: Interior,
    rng: np.random.Generator,
    high: float,
) -> None:
    """What is behind a passage: floor, ceiling and walls of another room, a picture, a cupboard."""
    into.next_thing("next room")
    deep, left, right = (
        float(rng.uniform(1.2, 5.0)),
        float(rng.uniform(0.2, 1.5)),
        float(rng.uniform(0.2, 1.5)),
    )
    a, b = max(hole.start - left, 0.0), min(hole.end + right, wall.length)
    plaster = palette.cover("plaster", palette.pick(WALLS)), palette.tile("plaster")
    floor = style.floor if rng.random() < 0.7 else (palette.cover("parquet"), palette.tile("parquet"))

    def flat(z: float, cover: tuple[int, float]) -> None:
        s = np.array([a, b, b, a])
        out = np.array([-0.001, -0.001, -deep, -deep])
        corners = np.stack([wall.at(p, z, q) for p, q in zip(s, out, strict=True)])
        into.quads(corners[None], cover[0], coordinates=np.c_[s, out] / cover[1])

    flat(0.001, floor)
    flat(high, style.ceiling)
    sheet(into, wall, (a, b, 0, high), plaster, -deep)
    for s in (a, b):
        side = [wall.at(s, 0, -0.06), wall.at(s, 0, -deep), wall.at(s, high, -deep), wall.at(s, high, -0.06)]
        into.quads(np.array([side]), plaster[0], tile=plaster[1])
    for low, top, s0, s1 in (
        (0, high, a, hole.start),
        (0, high, hole.end, b),
        (hole.high, high, hole.start, hole.end),
    ):
        if s1 - s0 > 0.01 and top - low > 0.01:
            sheet(into, wall, (s0, s1, low, top), plaster, -0.14)
    bar(into, wall, (a, b, 0, 0.08), (-deep, -deep + 0.015), style.trim)
    if rng.random() < 0.6:
        s, wide = float(rng.uniform(a + 0.2, b - 0.2)), float(rng.uniform(0.2, 0.5))
        picture = palette.cover("poster")
        corners = np.array(
            [
                [
                    wall.at(s - wide / 2, 1.2, -deep + 0.02),
                    wall.at(s + wide / 2, 1.2, -deep + 0.02),
                    wall.at(s + wide / 2, 1.2 + 1.3 * wide, -deep + 0.02),
                    wall.at(s - wide / 2, 1.2 + 1.3 * wide, -deep + 0.02),
                ]
            ]
        )
        into.quads(corners, picture, coordinates=np.array([[0, 0], [1, 0], [1, 1], [0, 1.0]]))
    if rng.random() < 0.25 and deep > 2.2:
        _stairs(into, wall, hole, style, palette, (deep, high))
        return
    for _ in range(int(rng.integers(0, 3))):
        wide, tall = float(rng.uniform(0.3, 1.0)), float(rng.uniform(0.4, 1.9))
        s = float(rng.uniform(a, max(a + 0.01, b - wide)))
        bar(
            into,
            wall,
            (s, s + wide, 0, min(tall, high)),
            (-deep, -deep + float(rng.uniform(0.25, 0.5))),
            palette.wooden_or_lacquered(),
        )


def _stairs(
    into: Assembly, wall: Wall, hole: Hole, style: Style, palette: Interior, room: tuple[float, float]
) -> None:
    """A flight that rises away from a passage, with balusters at one side."""
    into.next_thing("stairs")
    (deep, high), metal = room, palette.metal()
    a, b = hole.start - 0.1, hole.end + 0.1
    count = min(int((deep - 0.7) / 0.27), int(high / 0.18))
    for k in range(count):
        out = 0.7 + 0.27 * k
        bar(
            into,
            wall,
            (a, b, 0.0, 0.18 * (k + 1)),
            (-out - 0.27, -out),
            style.trim if k % 2 else style.floor[0],
        )
        foot, top = (
            wall.at(a + 0.04, 0.18 * (k + 1), -out - 0.13),
            wall.at(a + 0.04, 0.18 * (k + 1) + 0.9, -out - 0.13),
        )
        into.tubes(np.array([[foot, top]]), 0.009, metal, sides=5)
    ends = wall.at(a + 0.04, 1.06, -0.7), wall.at(a + 0.04, 0.18 * count + 0.9, -0.7 - 0.27 * count)
    into.tubes(np.array([ends]), 0.02, metal, sides=6)
