"""Random furnished rooms for training: everything comes from one generator, so a seed names a room."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import bpy
import numpy as np

from scenery import materials
from scenery.capture import View, area_light, point_light, sky
from scenery.catalogue import Catalogue
from scenery.interior import Shell, curtain, flat_books, floor_lamp, framed, low_table, rug, shelf_wall

Rng = np.random.Generator
Colour = tuple[float, float, float]

AGAINST_WALL = [
    "couch",
    "sofa2",
    "couch2",
    "bed1",
    "bed2",
    "bed3",
    "bedWithTexture",
    "bedsideTable2",
    "cupboard",
    "desk",
    "televisionCabinet",
    "shelves",
    "verticalShelves",
    "doubleOven",
    "refrigerator",
    "radiator",
    "radiator3",
    "washbasin",
    "toiletsUnit",
    "armchair2",
    "L_shaped_sofa",
    "speaker3",
    "plant",
    "decorativePlant",
    "modernVanity",
    "lockedLocker",
    "bidet",
    "oven",
    "electricGuitar",
]
FREE = [
    "armchair",
    "modernArmchair",
    "antiqueChair",
    "relaxChair",
    "poolTable",
    "table_football",
    "babyRockingBed",
    "caballito",
    "crate",
    "barrel",
    "dustbin",
    "box",
    "basketball",
    "teddyBear",
    "technicalTable1",
    "technicalTable2",
    "pianoAQueue",
    "pianoBench",
    "bench",
    "pallet",
    "ammoBox",
    "briefcase",
    "deckChair",
    "stool",
    "whiteBoard",
    "rock2",
    "wheelbarrow",
]
CHAIRS = [
    "oakChair",
    "chair",
    "chair2",
    "chairWithCushion",
    "plasticChair",
    "sillaBlanca",
    "osakaChair",
    "antiqueChair",
    "armchair",
]
TABLES = ["oakTable", "table", "tableWithTablecloth", "technicalTable1"]
SMALL = [
    "caffe_final",
    "littlePlant",
    "orchids",
    "cactus",
    "kitchenaid",
    "coffeeBrewer",
    "bread",
    "desklamp",
    "plasticCup",
    "tableFan",
]


@dataclass
class _Plan:
    """The floor plan: which rectangles are taken."""

    width: float
    depth: float
    taken: list[tuple[float, float, float, float]] = field(default_factory=list)

    def claim(self, x: float, y: float, w: float, d: float, yaw: float, margin: float = 0.04) -> bool:
        """Reserve the footprint (w × d, turned) if it is inside the room and free."""
        c, s = abs(math.cos(math.radians(yaw))), abs(math.sin(math.radians(yaw)))
        hw, hd = (c * w + s * d) / 2 + margin, (s * w + c * d) / 2 + margin
        if not (hw - 0.05 < x < self.width - hw + 0.05 and hd - 0.05 < y < self.depth - hd + 0.05):
            return False
        if any(abs(x - a) < hw + p and abs(y - b) < hd + q for a, b, p, q in self.taken):
            return False
        self.taken.append((x, y, hw, hd))
        return True

    def is_free(self, x: float, y: float, margin: float) -> bool:
        return all(abs(x - a) > p + margin or abs(y - b) > q + margin for a, b, p, q in self.taken)


def _colour(rng: Rng, low: float = 0.08, high: float = 0.75, saturation: float = 0.6) -> Colour:
    grey = rng.uniform(low, high)
    tint = rng.uniform(1 - saturation, 1, 3)
    return tuple((grey * tint / tint.max()).tolist())


def _floor(rng: Rng) -> bpy.types.Material:
    kind = rng.integers(4)
    if kind <= 1:
        light = np.array([0.5, 0.3, 0.16]) * rng.uniform(0.3, 1.4) * rng.uniform(0.85, 1.15, 3)
        dark = light * rng.uniform(0.25, 0.6)
        return materials.planks(tuple(light), tuple(dark), bool(rng.integers(2)), rng.uniform(0.07, 0.22))
    if kind == 2:
        first = np.array(_colour(rng, 0.15, 0.7, 0.3))
        second = np.clip(first * rng.uniform(0.6, 1.1), 0, 1)
        return materials.tiles(
            tuple(first), tuple(second), tuple(first * rng.uniform(0.3, 1.2)), rng.uniform(0.15, 0.6)
        )
    return materials.cloth(_colour(rng, 0.08, 0.5), rng.uniform(60, 300))


def _wall(rng: Rng) -> bpy.types.Material:
    kind = rng.integers(8)
    if kind == 0:
        first = np.array([0.4, 0.17, 0.1]) * rng.uniform(0.5, 1.6)
        return materials.bricks(tuple(first), tuple(first * 0.7))
    if kind == 1:
        return materials.wallpaper(_colour(rng, 0.3), _colour(rng), rng.uniform(0.05, 0.3))
    if kind == 2:
        first = np.array(_colour(rng, 0.3, 0.8, 0.4))
        return materials.tiles(
            tuple(first), tuple(first * 0.9), tuple(first * 0.6), rng.uniform(0.1, 0.3), upright=True
        )
    return materials.paint(_colour(rng, 0.3, 0.82, 0.35), 0.6, rng.uniform(0.03, 0.2))


def _shell(rng: Rng, width: float, depth: float) -> Shell:
    def windows() -> tuple[tuple[float, float], ...]:
        spans, y = [], rng.uniform(0.2, 1.0)
        while y + 1.0 < depth - 0.2 and rng.random() < 0.7:
            end = min(y + rng.uniform(0.8, 1.8), depth - 0.2)
            spans.append((y, end))
            y = end + rng.uniform(0.3, 1.5)
        return tuple(spans)

    wall = _wall(rng)
    return Shell(
        low=(0, 0),
        high=(width, depth),
        height=rng.uniform(2.35, 3.0),
        floor=_floor(rng),
        wall=wall,
        accent=_wall(rng) if rng.random() < 0.5 else wall,
        left_windows=windows(),
        right_windows=windows() if rng.random() < 0.4 else (),
        sill=rng.uniform(0.3, 1.0),
        lintel=rng.uniform(1.9, 2.25),
    )


def _light(rng: Rng, shell: Shell, width: float, depth: float) -> None:
    day = rng.random() < 0.7
    sky(
        rng.uniform(0.6, 2.0) if day else 0.05,
        rng.uniform(3, 18) if day else 0.0,
        rng.uniform(20, 55),
        rng.uniform(-180, 180),
    )
    z, tall = (shell.sill + shell.lintel) / 2, shell.lintel - shell.sill
    for x, towards, windows in ((0.05, 3.0, shell.left_windows), (width - 0.05, -3.0, shell.right_windows)):
        for a, b in windows if day else ():
            area_light(
                (x, (a + b) / 2, z),
                (x + towards, (a + b) / 2, 0.4),
                (b - a, tall),
                rng.uniform(20, 60),
                (0.85, 0.92, 1),
            )
    warm = (1.0, rng.uniform(0.75, 1.0), rng.uniform(0.5, 1.0))
    power = rng.uniform(8, 30) if day else rng.uniform(40, 110)
    area_light(
        (width / 2, depth / 2, shell.height - 0.05), (width / 2, depth / 2, 0), (1.5, 1.5), power, warm
    )
    if rng.random() < 0.3:
        point_light(
            (rng.uniform(0.5, width - 0.5), rng.uniform(0.5, depth - 0.5), 1.9), rng.uniform(10, 40), warm
        )


def _along_walls(rng: Rng, plan: _Plan, furniture: Catalogue, count: int) -> None:
    for _ in range(count):
        name = str(rng.choice(AGAINST_WALL))
        w, d, _ = furniture.models[name].size
        side, gap = int(rng.integers(4)), rng.uniform(0.02, 0.08)
        # yaw 0 faces −y, so its back belongs to the wall y = depth; each step turns it by 90°.
        yaw = 90.0 * side
        for _ in range(12):
            x, y = rng.uniform(0, plan.width), rng.uniform(0, plan.depth)
            x = {1: d / 2 + gap, 3: plan.width - d / 2 - gap}.get(side, x)
            y = {0: plan.depth - d / 2 - gap, 2: d / 2 + gap}.get(side, y)
            if plan.claim(x, y, w, d, yaw):
                furniture.place(
                    name, x, y, yaw=yaw, tint=_colour(rng, 0.4, 1.2, 0.35) if rng.random() < 0.4 else None
                )
                break


def _table_group(rng: Rng, plan: _Plan, furniture: Catalogue) -> None:
    name = str(rng.choice(TABLES))
    w, d, h = furniture.models[name].size
    x, y = rng.uniform(1.2, plan.width - 1.2), rng.uniform(1.2, plan.depth - 1.2)
    turn = float(rng.choice([0.0, 90.0])) + rng.uniform(-12, 12)
    if not plan.claim(x, y, w, d, turn):
        return
    furniture.place(name, x, y, yaw=turn)
    chair = str(rng.choice(CHAIRS))
    _, cd, _ = furniture.models[chair].size
    for side in range(4):
        if rng.random() < 0.3:
            continue
        reach = (d if side % 2 == 0 else w) / 2 + cd / 2 + rng.uniform(0.0, 0.15)
        angle = turn + 90 * side
        cx, cy = x - reach * math.sin(math.radians(angle)), y + reach * math.cos(math.radians(angle))
        # A chair on the +y side of the table faces −y, that is yaw 0.
        if plan.claim(cx, cy, 0.4, 0.4, angle, 0.0):
            furniture.place(chair, cx, cy, yaw=angle + rng.uniform(-15, 15))
    if name != "technicalTable1":  # a drawing board tilts: nothing stays on it
        for angle in rng.uniform(0, 2) + np.arange(int(rng.integers(1, 4))) * 2.1:  # apart from each other
            px, py = x + 0.25 * math.cos(angle), y + 0.25 * math.sin(angle)
            furniture.place(str(rng.choice(SMALL)), px, py, h, yaw=rng.uniform(0, 360))


def _loose(rng: Rng, plan: _Plan, furniture: Catalogue, count: int) -> None:
    for _ in range(count):
        name, yaw = str(rng.choice(FREE)), rng.uniform(0, 360)
        w, d, _ = furniture.models[name].size
        for _ in range(8):
            x, y = rng.uniform(0.3, plan.width - 0.3), rng.uniform(0.3, plan.depth - 0.3)
            if plan.claim(x, y, w, d, yaw):
                furniture.place(
                    name, x, y, yaw=yaw, tint=_colour(rng, 0.4, 1.2, 0.35) if rng.random() < 0.4 else None
                )
                break


def _decorate(rng: Rng, plan: _Plan, shell: Shell) -> None:
    width, depth = plan.width, plan.depth
    for _ in range(int(rng.integers(0, 4))):
        art = materials.painting(_colour(rng), _colour(rng), _colour(rng), rng.uniform(0, 50))
        size = rng.uniform(0.35, 1.1), rng.uniform(0.35, 0.8)
        if rng.random() < 0.5:
            framed(rng.uniform(0.7, width - 0.7), depth - 0.005, rng.uniform(1.5, 1.8), *size, art)
        else:
            framed(rng.uniform(0.7, width - 0.7), 0.005, rng.uniform(1.5, 1.8), *size, art, yaw=180)
    if rng.random() < 0.6:
        pattern = materials.ornament(_colour(rng), _colour(rng), _colour(rng), rng.uniform(2, 6))
        w, d = rng.uniform(1.0, 2.6), rng.uniform(0.8, 2.0)
        rug(width / 2, depth / 2, w, d, pattern, materials.cloth(_colour(rng)), rng.uniform(-20, 20))
    if rng.random() < 0.6:
        long = rng.uniform(0.6, 1.6)
        x = rng.uniform(0.05, width - long - 0.05)
        if plan.claim(x + long / 2, depth - 0.16, long, 0.3, 0.0):
            top = rng.uniform(0.9, 2.1)
            levels = tuple(np.linspace(0.09, top, max(3, round(top / 0.36))).tolist())
            shelf_wall(
                x,
                depth - 0.01,
                long,
                levels,
                int(rng.integers(1000)),
                materials.paint(_colour(rng, 0.1, 0.8)),
            )
    if rng.random() < 0.4:
        x, y = rng.uniform(0.3, width - 0.3), rng.uniform(0.3, depth - 0.3)
        if plan.claim(x, y, 0.45, 0.45, 0):
            floor_lamp(x, y, rng.uniform(10, 40), rng.uniform(1.4, 1.8))
    if rng.random() < 0.5:
        x, y = rng.uniform(0.8, width - 0.8), rng.uniform(0.8, depth - 0.8)
        if plan.claim(x, y, 1.1, 0.6, 0):
            wood = np.array([0.4, 0.24, 0.12]) * rng.uniform(0.2, 1.4)
            low_table(x, y, 1.05, 0.55, 0.42, materials.planks(tuple(wood), tuple(wood * 0.5), True, 0.3))
            flat_books(x + rng.uniform(-0.3, 0.3), y, 0.42, int(rng.integers(1, 5)), int(rng.integers(1000)))
    for a, b in shell.left_windows:
        if rng.random() < 0.5:
            stuff = materials.cloth(_colour(rng, 0.2, 0.8), 300.0)
            curtain(0.09, a - 0.2, a + 0.2, shell.lintel + 0.1, stuff)
            curtain(0.09, b - 0.2, b + 0.2, shell.lintel + 0.1, stuff)


def random_room(furniture: Catalogue, rng: Rng, views: int) -> list[View]:
    """Build a room and propose cameras in it (more than `views`: some will look at nothing)."""
    width, depth = rng.uniform(3.0, 6.5), rng.uniform(3.2, 7.0)
    shell, plan = _shell(rng, width, depth), _Plan(width, depth)
    shell.build()
    _light(rng, shell, width, depth)
    area = width * depth
    _decorate(rng, plan, shell)
    if rng.random() < 0.6:
        _table_group(rng, plan, furniture)
    _along_walls(rng, plan, furniture, round(area / rng.uniform(1.5, 3.5)))
    _loose(rng, plan, furniture, round(area / rng.uniform(3, 8)))
    proposals = []
    for _ in range(400):
        x, y = rng.uniform(0.3, width - 0.3), rng.uniform(0.3, depth - 0.3)
        if len(proposals) < 4 * views and plan.is_free(x, y, 0.15):
            aim = rng.uniform(0.15, 0.85) * width, rng.uniform(0.15, 0.85) * depth, rng.uniform(0.1, 1.3)
            if plan.taken and rng.random() < 0.7:  # look at a thing rather than at a place
                aim = (*plan.taken[rng.integers(len(plan.taken))][:2], rng.uniform(0.2, 1.1))
            if math.hypot(aim[0] - x, aim[1] - y) > 1.0:
                at = (x, y, rng.uniform(0.8, 1.9))
                proposals.append(
                    View(at=at, target=aim, focal=rng.uniform(230, 300), roll=rng.uniform(-4, 4))
                )
    return proposals
