"""What is seen through windows: ground, houses of a street, trees; a railing before some."""

from __future__ import annotations

import numpy as np

from gbpn.worlds.assembly import Assembly
from gbpn.worlds.rooms.layout import Layout, Wall
from gbpn.worlds.streets import houses, plants
from gbpn.worlds.streets.palette import Palette

__all__ = ["surroundings"]


def surroundings(layout: Layout, rng: np.random.Generator) -> None:
    """Outside of each wall that has a window."""
    walls = [wall for wall in layout.walls if any(hole.kind == "window" for hole in wall.openings)]
    if not walls:
        return
    palette = Palette(layout.builder, rng)
    into = Assembly("outside")
    below = float(rng.choice([0.3, 0.5, 3.0, 6.0, 9.0]))
    ground = palette.cover(str(rng.choice(["grass", "paving", "asphalt"])))
    far = 90.0
    into.quads(
        np.array([[[-far, -far, -below], [far, -far, -below], [far, far, -below], [-far, far, -below]]]),
        ground,
        tile=3.0,
    )
    for wall in walls:
        _opposite(into, wall, palette, rng, below)
        if below > 1 and rng.random() < 0.3:
            _railing(into, wall, palette, rng)
    layout.builder.add(into.mesh())


def _opposite(into: Assembly, wall: Wall, palette: Palette, rng: np.random.Generator, below: float) -> None:
    """Houses in a row and trees before them."""
    away = float(rng.uniform(9, 30))
    style = str(rng.choice(["terrace", "suburb", "village", "avenue"]))
    s = -14.0 + wall.length / 2
    while s < 14 + wall.length / 2:
        width = float(rng.uniform(7, 13))
        if rng.random() < 0.75:
            part = houses.build(houses.drawn(rng, style, width), palette, rng)
            into.next_thing("house")
            into.add(part, wall.at(s + width / 2, -below, -away - float(rng.uniform(0, 2))), wall.yaw)
        s += width + float(rng.choice([0.0, 3.0]))
    for _ in range(int(rng.integers(0, 4))):
        tree = plants.tree(palette, rng, season="summer", leaves=1300)
        place = wall.at(float(rng.uniform(-8, 8)) + wall.length / 2, -below, -float(rng.uniform(4.5, away)))
        into.next_thing("tree")
        into.add(tree, place, float(rng.uniform(0, 6)))


def _railing(into: Assembly, wall: Wall, palette: Palette, rng: np.random.Generator) -> None:
    """Thin bars of a balcony or a French window."""
    metal = palette.paint((0.04, 0.04, 0.045), roughness=0.4, mirror=0.03)
    for hole in wall.openings:
        if hole.kind != "window":
            continue
        into.next_thing("railing")
        out = -0.4 if rng.random() < 0.5 else -1.1
        top = hole.low + float(rng.uniform(0.4, 0.8))
        s = np.arange(hole.start - 0.3, hole.end + 0.3, 0.11)
        into.tubes(
            np.array([[wall.at(a, hole.low - 0.2, out), wall.at(a, top, out)] for a in s]),
            0.007,
            metal,
            sides=5,
        )
        into.tubes(np.array([[wall.at(s[0], top, out), wall.at(s[-1], top, out)]]), 0.016, metal, sides=6)
