"""Four furnished rooms, arranged by hand. The camera stands near y = 0 and looks along +y."""

from __future__ import annotations

import bpy

from scenery import materials
from scenery.capture import View, area_light, point_light, sky
from scenery.catalogue import Catalogue
from scenery.interior import (
    WHITE,
    Shell,
    curtain,
    flat_books,
    floor_lamp,
    framed,
    low_table,
    rug,
    shelf_wall,
)
from scenery.shapes import Solid

Material = bpy.types.Material

DAYLIGHT = (0.85, 0.92, 1.0)
WARM = (1.0, 0.88, 0.74)


def living_room(furniture: Catalogue) -> View:
    """Sofa and armchair round a low table on a rug, low sun from the left."""
    Shell(
        low=(-2.4, -1.2),
        high=(2.5, 4.3),
        floor=materials.planks((0.42, 0.22, 0.1), (0.16, 0.07, 0.03), along_x=True),
        wall=materials.paint((0.66, 0.6, 0.5)),
        accent=materials.paint((0.1, 0.2, 0.22)),
        left_windows=((0.2, 1.5), (2.1, 3.4)),
    ).build()
    sky(1.1, 16.0, 30, -78)
    area_light((-2.3, 0.85, 1.55), (2.0, 1.2, 0.8), (1.2, 1.3), 40, DAYLIGHT)
    area_light((-2.3, 2.75, 1.55), (2.0, 2.5, 0.8), (1.2, 1.3), 40, DAYLIGHT)
    area_light((0.3, 0.0, 2.5), (0.3, 1.8, 0.0), (2.0, 1.0), 16, WARM)
    furniture.place("couch", 0.15, 3.68)
    furniture.place("armchair2", 1.72, 2.45, yaw=-62, tint=(0.75, 0.3, 0.1))
    pattern = materials.ornament((0.35, 0.05, 0.04), (0.55, 0.4, 0.22), (0.04, 0.07, 0.13))
    rug(0.15, 2.35, 2.1, 1.5, pattern, materials.cloth((0.3, 0.05, 0.04)))
    low_table(0.1, 2.4, 1.05, 0.55, 0.4, materials.planks((0.3, 0.16, 0.08), (0.1, 0.05, 0.02), True, 0.3))
    furniture.place("caffe_final", 0.12, 2.3, 0.4, scale=1.2)
    furniture.place("littlePlant", -0.25, 2.48, 0.4)
    flat_books(0.42, 2.42, 0.4, 3, 5, yaw=65)
    shelf_wall(
        1.42, 4.28, 0.95, (0.09, 0.46, 0.83, 1.2, 1.57, 1.94), 3, materials.paint((0.72, 0.7, 0.66), 0.4)
    )
    furniture.place("decorativePlant", -1.85, 3.75, scale=1.25)
    floor_lamp(-1.15, 3.95, 30)
    sunrise = materials.painting((0.6, 0.32, 0.06), (0.75, 0.68, 0.5), (0.08, 0.2, 0.3), 3.0)
    garden = materials.painting((0.1, 0.25, 0.2), (0.7, 0.6, 0.4), (0.5, 0.1, 0.05), 8.0)
    framed(-0.25, 4.29, 1.68, 0.75, 0.6, sunrise)
    framed(0.62, 4.29, 1.68, 0.5, 0.6, garden)
    return View(at=(-0.85, -0.75, 1.5), target=(0.25, 3.0, 0.8), focal=272, roll=0.6)


def bedroom(furniture: Catalogue) -> View:
    """A double bed between lamps, striped wallpaper, a window with curtains on the right."""
    Shell(
        low=(-2.2, -1.3),
        high=(2.1, 3.6),
        floor=materials.cloth((0.36, 0.32, 0.27), 160.0),
        wall=materials.paint((0.64, 0.56, 0.45)),
        accent=materials.wallpaper((0.55, 0.5, 0.4), (0.28, 0.34, 0.3), 0.16),
        right_windows=((1.0, 2.5),),
        sill=0.75,
    ).build()
    sky(1.6, 14.0, 34, 62)
    area_light((2.0, 1.75, 1.5), (-1.5, 1.8, 0.5), (1.4, 1.4), 55, DAYLIGHT)
    area_light((-0.2, -0.4, 2.5), (0, 1.8, 0), (2.0, 1.0), 14, WARM)
    furniture.place("bed3", 0.0, 2.42)
    for x in (-1.35, 1.35):
        furniture.place("bedsideTable2", x, 3.32)
        furniture.place("desklamp", x, 3.34, 0.454, yaw=20)
        point_light((x, 3.2, 0.95), 5)
    furniture.place("teddyBear", 0.42, 2.75, 0.66, yaw=-12, scale=1.15)
    furniture.place("cupboard", -1.98, 1.95, yaw=90)
    furniture.place("chairWithCushion", -1.12, 0.95, yaw=140)
    furniture.place("basketball", 1.2, 1.35, 0.012)
    cream = materials.cloth((0.62, 0.5, 0.36), 300.0)
    curtain(1.99, 0.55, 1.02, 2.4, cream)
    curtain(1.99, 2.48, 2.95, 2.4, cream)
    rug(
        1.25,
        1.6,
        0.9,
        1.6,
        materials.ornament((0.5, 0.44, 0.34), (0.2, 0.28, 0.3), (0.6, 0.56, 0.48), 5.0),
        materials.cloth((0.2, 0.26, 0.27)),
    )
    framed(
        0.0,
        3.59,
        1.75,
        0.9,
        0.55,
        materials.painting((0.2, 0.33, 0.36), (0.7, 0.62, 0.48), (0.55, 0.25, 0.1), 14.0),
    )
    return View(at=(0.75, -1.05, 1.55), target=(-0.12, 2.5, 0.72), focal=258, roll=-0.5)


def kitchen(furniture: Catalogue) -> View:
    """A kitchen row against tiles, a round oak table with chairs in front."""
    Shell(
        low=(-2.3, -1.6),
        high=(2.3, 3.7),
        floor=materials.tiles((0.5, 0.42, 0.33), (0.4, 0.33, 0.26), (0.25, 0.22, 0.19), 0.33),
        wall=materials.paint((0.68, 0.62, 0.46)),
        left_windows=((0.6, 2.2),),
    ).build()
    sky(1.4, 15.0, 36, -70)
    area_light((-2.2, 1.4, 1.55), (1.5, 1.6, 0.6), (1.5, 1.3), 55, DAYLIGHT)
    area_light((0.2, 0.4, 2.5), (0.2, 1.8, 0.0), (2.4, 1.2), 30, WARM)
    _kitchen_row()
    furniture.place("refrigerator", 1.72, 3.2)
    furniture.place("mano_cooktop", -0.35, 3.37, 0.9)
    furniture.place("rangeHood", -0.35, 3.53, 1.6)
    Solid("chimney").box(
        (-0.5, 3.42, 1.95), (-0.2, 3.7, 2.6), materials.gloss((0.6, 0.6, 0.6), 0.35, 1.0)
    ).build()
    furniture.place("kitchenaid", 0.75, 3.42, 0.9, yaw=-35)
    furniture.place("coffeeBrewer", -1.25, 3.42, 0.9, yaw=15)
    furniture.place("tetrapak", 0.4, 3.4, 0.9, yaw=25)
    furniture.place("oakTable", -0.35, 1.75)
    for x, y, yaw in ((-1.05, 1.28, 128), (0.5, 1.95, -78), (-0.45, 2.55, 4)):
        furniture.place("oakChair", x, y, yaw=yaw)
    furniture.place("bread", -0.3, 1.72, 0.741, yaw=30)
    furniture.place("plasticCup", -0.02, 1.85, 0.741)
    furniture.place("orchids", -0.6, 1.95, 0.741, scale=0.7)
    furniture.place("dustbin", 1.02, 2.9)
    return View(at=(0.85, -1.2, 1.62), target=(-0.25, 2.7, 0.88), focal=262, roll=0.4)


def _kitchen_row() -> None:
    """Lower and upper cupboards along the far wall, an oven, a worktop and a tiled splashback."""
    front, top = materials.paint((0.09, 0.17, 0.16), 0.35, 0.04), materials.paint((0.55, 0.52, 0.47), 0.25)
    steel, dark = materials.gloss((0.6, 0.6, 0.6), 0.3, 1.0), materials.gloss((0.015, 0.015, 0.018), 0.12)
    wood = materials.planks((0.45, 0.28, 0.14), (0.25, 0.13, 0.06), True, 0.2)
    Solid("splashback").box(
        (-2.3, 3.688, 0.9),
        (1.2, 3.7, 1.5),
        materials.tiles(
            (0.7, 0.7, 0.66), (0.58, 0.62, 0.6), (0.4, 0.4, 0.38), 0.2, upright=True, height=0.075
        ),
    ).build()
    Solid("worktop").box((-2.3, 3.06, 0.86), (1.2, 3.7, 0.9), top).build(bevel=0.006)
    Solid("plinth").box((-2.3, 3.16, 0), (1.2, 3.7, 0.1), dark).build()
    for index in range(5):
        x0 = -1.8 + 0.6 * index
        if index == 2:
            _oven(x0, steel, dark)
            continue
        door = Solid("cupboard").box((x0 + 0.003, 3.1, 0.1), (x0 + 0.597, 3.69, 0.858), front)
        door.box((x0 + 0.2, 3.075, 0.74), (x0 + 0.4, 3.085, 0.755), steel)
        door.box((x0 + 0.2, 3.08, 0.742), (x0 + 0.215, 3.1, 0.753), steel)
        door.box((x0 + 0.385, 3.08, 0.742), (x0 + 0.4, 3.1, 0.753), steel).build(bevel=0.003)
    Solid("cupboard").box((-2.3, 3.1, 0.1), (-1.803, 3.69, 0.858), front).build()
    for x0 in (-1.8, -1.25, 0.0, 0.55):
        Solid("cupboard").box((x0 + 0.003, 3.34, 1.5), (x0 + 0.547, 3.69, 2.2), wood).build(bevel=0.003)


def _oven(x: float, steel: Material, dark: Material) -> None:
    """A built-in oven below the hob."""
    oven = Solid("oven").box((x + 0.003, 3.1, 0.1), (x + 0.597, 3.69, 0.858), steel)
    oven.box((x + 0.05, 3.094, 0.2), (x + 0.55, 3.1, 0.62), dark)
    oven.box((x + 0.03, 3.094, 0.74), (x + 0.57, 3.1, 0.84), dark)
    oven.tube((x + 0.06, 3.06, 0.67), (x + 0.54, 3.06, 0.67), 0.01, steel, sides=12)
    for knob in (0.1, 0.2, 0.4, 0.5):
        oven.tube((x + knob, 3.1, 0.79), (x + knob, 3.07, 0.79), 0.02, steel, sides=16)
    oven.build()


def music_room(furniture: Catalogue) -> View:
    """A grand piano before a brick wall, with a guitar, plants and a reading chair."""
    Shell(
        low=(-2.6, -1.4),
        high=(2.6, 4.1),
        height=2.9,
        floor=materials.planks((0.5, 0.36, 0.22), (0.28, 0.18, 0.1), width=0.16),
        wall=materials.paint(WHITE),
        accent=materials.bricks((0.36, 0.13, 0.08), (0.25, 0.09, 0.06)),
        right_windows=((0.3, 1.7), (2.2, 3.6)),
        lintel=2.5,
    ).build()
    sky(1.3, 15.0, 33, 72)
    area_light((2.5, 1.0, 1.6), (-1.5, 1.5, 0.6), (1.4, 1.5), 50, DAYLIGHT)
    area_light((2.5, 2.9, 1.6), (-1.5, 2.5, 0.6), (1.4, 1.5), 50, DAYLIGHT)
    area_light((-0.3, 0.0, 2.8), (0.0, 2.0, 0), (2.0, 1.0), 35, WARM)
    rug(
        -0.1,
        2.3,
        2.6,
        2.0,
        materials.ornament((0.45, 0.36, 0.22), (0.08, 0.16, 0.2), (0.4, 0.1, 0.06), 3.2),
        materials.cloth((0.07, 0.13, 0.17)),
    )
    furniture.place("pianoAQueue", 0.25, 2.75, 0.012, yaw=25)
    furniture.place("pianoBench", -0.3, 1.55, 0.012, yaw=25)
    furniture.place("electricGuitar", -1.45, 3.75, yaw=12)
    furniture.place("modernArmchair", -1.9, 2.55, yaw=48)
    furniture.place("plant", 2.05, 3.6)
    furniture.place("speaker3", -2.25, 3.8, yaw=20, scale=1.6)
    furniture.place("briefcase", -1.1, 1.75, 0.012, yaw=65)
    framed(
        -1.2,
        4.09,
        1.85,
        0.8,
        0.8,
        materials.painting((0.05, 0.05, 0.06), (0.72, 0.66, 0.55), (0.6, 0.2, 0.05), 21.0),
    )
    return View(at=(-0.35, -1.15, 1.55), target=(0.02, 2.9, 0.86), focal=262, roll=-0.6)
