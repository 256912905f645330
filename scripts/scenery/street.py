"""A street as a car's camera sees it. The road runs along +y; the sky has no depth."""

from __future__ import annotations

import bpy
import numpy as np

from scenery import materials
from scenery.capture import View, sky
from scenery.catalogue import Catalogue
from scenery.shapes import Solid

Material = bpy.types.Material
ROAD, PAVEMENT, KERB = 3.9, 3.3, 0.13
"""Half the width of the road, width of the pavement, height of the kerb (metres)."""
FACADES = (
    (0.62, 0.5, 0.33),
    (0.5, 0.22, 0.14),
    (0.66, 0.63, 0.56),
    (0.35, 0.42, 0.44),
    (0.6, 0.42, 0.3),
    (0.52, 0.5, 0.36),
)


def street(furniture: Catalogue) -> View:
    """Houses, parked and moving cars, trees and lamps on a bright day."""
    sky(1.2, 8.0, 47, 158, clouds=0.9)
    _ground()
    rng = np.random.default_rng(4)
    for side in (-1, 1):
        y, index = (-6.0 if side < 0 else -2.0), 0
        while y < 105:
            width, floors = rng.uniform(8, 14), int(rng.integers(2, 4))
            _house(
                side,
                y,
                width - (0.0 if rng.random() < 0.8 else 2.0),
                floors,
                (index * 2 + (side > 0)) % 6,
                rng,
            )
            y, index = y + width, index + 1
    _end_of_street()
    for x, y, paint in (
        (3.0, 9.5, (0.3, 0.02, 0.02)),
        (3.0, 21.5, (0.55, 0.55, 0.56)),
        (3.05, 27.5, (0.02, 0.05, 0.16)),
        (2.95, 46.0, (0.6, 0.58, 0.5)),
        (-3.05, 12.2, (0.05, 0.07, 0.09)),
        (-3.0, 35.0, (0.05, 0.14, 0.1)),
        (-3.0, 41.5, (0.6, 0.6, 0.6)),
    ):
        car(x, y, materials.gloss(paint, 0.12), 0.0 if x > 0 else 180.0)
    car(-1.2, 27.0, materials.gloss((0.55, 0.42, 0.06), 0.12), 180.0)
    car(1.25, 38.0, materials.gloss((0.05, 0.12, 0.3), 0.12), 0.0)
    for index, (x, y) in enumerate(
        ((4.7, 15.5), (-4.7, 9.5), (4.7, 33.5), (-4.7, 28.0), (4.7, 52.0), (-4.7, 50.0))
    ):
        tree(x, y, 5.0 + 0.5 * (index % 3), index)
    for x, y in ((-4.4, 20.0), (4.4, 25.5), (-4.4, 44.0), (4.4, 62.0)):
        _lamp(x, y)
    _sign(4.3, 14.9)
    furniture.place("bench", 6.3, 12.2, KERB, yaw=-90)
    furniture.place("mofx_mailbox", -4.5, 14.4, KERB, yaw=90, scale=1.5)
    return View(at=(0.85, 0.0, 1.65), target=(0.35, 30.0, 2.0), width=608, height=176, focal=352.0)


def _ground() -> None:
    """Road, markings (painted 3 mm thick), kerbs and pavements, from behind the camera to the horizon."""
    start, end = -12.0, 120.0
    Solid("road").box((-ROAD, start, -0.3), (ROAD, end, 0), materials.asphalt()).build()
    white = materials.paint((0.7, 0.7, 0.68), 0.7, 0.2)
    lines = Solid("markings")
    for y in np.arange(start, end, 6.0):
        lines.box((-0.06, y, 0), (0.06, y + 3.0, 0.003), white)
    for x in (-2.05, 1.98):
        for y in np.arange(start, end, 2.0):
            lines.box((x, y, 0), (x + 0.07, y + 1.0, 0.003), white)
    for x in np.arange(-ROAD + 0.35, ROAD - 0.5, 0.8):  # a zebra crossing
        lines.box((x, 15.2, 0), (x + 0.45, 18.2, 0.004), white)
    lines.build()
    slab = materials.tiles((0.33, 0.32, 0.3), (0.26, 0.25, 0.24), (0.12, 0.12, 0.11), 0.5)
    stone = materials.paint((0.42, 0.41, 0.39), 0.8)
    for side in (-1, 1):
        near, far = sorted((side * (ROAD + 0.15), side * (ROAD + PAVEMENT + 6)))
        Solid("pavement").box((near, start, -0.3), (far, end, KERB), slab).build()
        a, b = sorted((side * ROAD, side * (ROAD + 0.15)))
        Solid("kerb").box((a, start, -0.3), (b, end, KERB + 0.001), stone).build(bevel=0.02)


def _house(side: int, y: float, width: float, floors: int, colour: int, rng: np.random.Generator) -> None:
    """A terraced house with plinth, windows in frames, a door, a cornice and a tiled roof."""
    storey, base = 3.0, KERB
    face = ROAD + PAVEMENT + rng.uniform(0.0, 0.35)
    height = base + floors * storey + 0.5
    wall = (
        materials.bricks((0.4, 0.16, 0.1), (0.3, 0.1, 0.07))
        if colour == 1
        else materials.paint(FACADES[colour], 0.9)
    )
    trim, pane = materials.paint((0.7, 0.69, 0.65), 0.6), materials.gloss((0.03, 0.035, 0.045), 0.05)
    door = materials.paint(
        ((0.2, 0.04, 0.03), (0.03, 0.1, 0.06), (0.03, 0.05, 0.12))[int(rng.integers(3))], 0.3
    )
    house = Solid("house")

    def block(
        out: float, y0: float, z0: float, y1: float, z1: float, material: Material, deep: float
    ) -> None:
        """A box whose front stands `out` metres before the wall."""
        x = sorted((side * (face - out), side * (face - out + deep)))
        house.box((x[0], y0, z0), (x[1], y1, z1), material)

    block(0.0, y, 0.0, y + width, height, wall, 9.0)
    block(0.06, y, 0.0, y + width, base + 0.6, materials.paint((0.3, 0.29, 0.27), 0.9), 0.1)
    block(0.25, y, height - 0.2, y + width, height + 0.1, trim, 0.5)
    count = max(2, int(width // 2.6))
    pitch = width / count
    door_at = int(rng.integers(count))
    for floor in range(floors):
        for column in range(count):
            middle, z = y + pitch * (column + 0.5), base + floor * storey + 1.0
            if floor == 0 and column == door_at:
                block(0.10, middle - 0.65, base, middle + 0.65, base + 2.45, trim, 0.15)
                block(0.12, middle - 0.5, base, middle + 0.5, base + 2.2, door, 0.05)
                continue
            block(0.05, middle - 0.62, z - 0.1, middle + 0.62, z + 1.62, trim, 0.1)
            block(0.12, middle - 0.7, z - 0.16, middle + 0.7, z - 0.08, trim, 0.2)
            for a, b, c, d in ((-0.52, -0.03, 0.0, 0.95), (0.03, 0.52, 0.0, 0.95), (-0.52, 0.52, 1.03, 1.52)):
                block(0.06, middle + a, z + c, middle + b, z + d, pane, 0.05)
    tiles = materials.tiles((0.28, 0.1, 0.06), (0.2, 0.07, 0.05), (0.08, 0.04, 0.03), 0.25)
    roof = [
        (side * (face - 0.35), height + 0.1),
        (side * (face + 4.5), height + 3.6),
        (side * (face + 9.2), height + 0.1),
    ]
    points = [(x, yy, z) for yy in (y, y + width) for x, z in roof]
    house.faces(points, [(0, 1, 2), (3, 4, 5), (0, 1, 4, 3), (1, 2, 5, 4), (2, 0, 3, 5)], tiles)
    house.build()


def _end_of_street() -> None:
    """Where the street meets a cross street: a park wall and a row of big trees."""
    Solid("park wall").box(
        (-30, 108, 0), (30, 108.5, 2.2), materials.bricks((0.35, 0.2, 0.14), (0.27, 0.14, 0.1))
    ).build()
    for index, x in enumerate((-13.0, -6.0, 0.5, 6.5, 13.5)):
        tree(x, 112.0 + index % 2, 9.0 + index % 3, 20 + index, leaf=0.35)


def tree(x: float, y: float, height: float, seed: int, leaf: float = 0.085) -> None:
    """A trunk, a few branches and clouds of leaves."""
    rng = np.random.default_rng(seed)
    bark = materials.paint((0.12, 0.08, 0.05), 0.95, 0.4)
    green = materials.foliage(((0.05, 0.12, 0.02), (0.08, 0.14, 0.03), (0.04, 0.1, 0.03))[seed % 3])
    fork = 0.42 * height
    whole = Solid("tree").tube((0, 0, 0), (0, 0, fork), 0.024 * height, bark, 0.016 * height, 12)
    for index in range(6):
        angle = index * 2.4 + rng.uniform(-0.3, 0.3)
        reach = rng.uniform(0.1, 0.2) * height
        tip = (reach * np.cos(angle), reach * np.sin(angle), fork + rng.uniform(0.15, 0.4) * height)
        whole.tube((0, 0, fork - 0.05), tip, 0.012 * height, bark, 0.004 * height, 8)
        radius = rng.uniform(0.15, 0.2) * height
        whole.leaves(tip, (radius, radius, 0.85 * radius), 1500, leaf, green, seed * 31 + index)
    whole.leaves((0, 0, fork + 0.33 * height), (0.17 * height,) * 3, 1500, leaf, green, seed * 31 + 9)
    whole.build((x, y, KERB))


def _lamp(x: float, y: float) -> None:
    """A street lamp whose arm reaches over the road."""
    metal, arm = materials.gloss((0.12, 0.13, 0.13), 0.45, 0.6), -1.1 if x > 0 else 1.1
    lamp = Solid("street lamp").tube((0, 0, 0), (0, 0, 0.8), 0.09, metal, 0.08, 12)
    lamp.tube((0, 0, 0.8), (0, 0, 5.6), 0.05, metal, 0.04, 12).tube(
        (0, 0, 5.55), (arm, 0, 5.8), 0.035, metal, sides=10
    )
    lamp.box((min(arm, arm * 1.5), -0.12, 5.74), (max(arm, arm * 1.5), 0.12, 5.86), metal).build((x, y, KERB))


def _sign(x: float, y: float) -> None:
    """A square blue crossing sign on a pole, facing the camera."""
    metal, blue = materials.gloss((0.4, 0.4, 0.4), 0.4, 1.0), materials.paint((0.01, 0.07, 0.35), 0.4, 0.02)
    white = materials.paint((0.8, 0.8, 0.8), 0.4, 0.02)
    sign = Solid("sign").tube((0, 0, 0), (0, 0, 2.75), 0.03, metal, sides=10)
    sign.box((-0.32, -0.05, 2.1), (0.32, -0.03, 2.74), white).box(
        (-0.29, -0.055, 2.13), (0.29, -0.05, 2.71), blue
    )
    sign.faces([(-0.2, -0.056, 2.2), (0.2, -0.056, 2.2), (0, -0.056, 2.62)], [(0, 1, 2)], white)
    sign.build((x, y, KERB))


def car(x: float, y: float, paint: Material, yaw: float) -> None:
    """A hatchback 4.2 m long, its front towards +y at yaw 0."""
    dark, rubber = materials.gloss((0.012, 0.014, 0.017), 0.04), materials.paint((0.015, 0.015, 0.015), 0.9)
    metal, half = materials.gloss((0.5, 0.5, 0.52), 0.3, 1.0), 0.87
    body = Solid("car")
    lower = [(-2.08, 0.3), (2.05, 0.25), (2.12, 0.5), (2.05, 0.72), (1.1, 0.93), (-2.0, 0.98), (-2.12, 0.7)]
    body.extrude(lower, -half, half, paint, [0.08, 0.08, 0.05, 0.03, 0.0, 0.0, 0.05])
    cabin = [(-1.95, 0.96), (1.05, 0.92), (0.2, 1.42), (-0.5, 1.48), (-1.45, 1.42)]
    body.extrude(cabin, -half + 0.03, half - 0.03, dark, [0.0, 0.0, 0.17, 0.18, 0.17])
    roof = [(-1.5, 1.4), (0.24, 1.4), (0.12, 1.45), (-0.5, 1.505), (-1.42, 1.45)]
    body.extrude(roof, -half + 0.17, half - 0.17, paint, [0.0, 0.0, 0.03, 0.05, 0.03])
    glass = -half + 0.14
    body.extrude(
        [(-2.02, 1.02), (-1.9, 1.02), (-1.5, 1.38), (-1.62, 1.38)], glass, -glass, dark, [0, 0, 0.1, 0.1]
    )
    body.extrude(
        [(0.9, 0.98), (1.04, 0.98), (0.4, 1.37), (0.26, 1.37)], glass, -glass, dark, [0, 0, 0.1, 0.1]
    )
    for y0, y1 in ((-2.0, -1.48), (-0.62, -0.5), (1.02, 0.2)):  # pillars, leaning with the cabin
        strip = [(y0 - 0.05, 0.95), (y0 + 0.05, 0.95), (y1 + 0.05, 1.43), (y1 - 0.05, 1.43)]
        body.extrude(strip, -half + 0.025, half - 0.025, paint, [0.0, 0.0, 0.165, 0.165])
    for wheel_y in (-1.28, 1.3):
        for s in (-1, 1):
            body.tube((s * 0.68, wheel_y, 0.31), (s * 0.885, wheel_y, 0.31), 0.31, rubber)
            body.tube((s * 0.8, wheel_y, 0.31), (s * 0.892, wheel_y, 0.31), 0.2, metal)
    red, clear = materials.gloss((0.4, 0.01, 0.01), 0.1), materials.gloss((0.75, 0.75, 0.72), 0.05)
    for s in (-1, 1):
        body.box((s * 0.66 - 0.14, -2.13, 0.68), (s * 0.66 + 0.14, -2.0, 0.92), red)
        body.box((s * 0.62 - 0.18, 1.9, 0.58), (s * 0.62 + 0.18, 2.12, 0.72), clear)
        body.box((s * 0.95 - 0.07, 0.72, 0.92), (s * 0.95 + 0.07, 0.86, 1.04), paint)
    body.box((-0.26, -2.14, 0.5), (0.26, -2.0, 0.61), materials.paint((0.75, 0.74, 0.6), 0.5))
    body.box((-0.45, 2.05, 0.32), (0.45, 2.13, 0.5), dark)
    body.build((x, y, 0), yaw, bevel=0.035)
