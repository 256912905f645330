"""People and bicycles of tubes and ellipsoids, and people of a furniture library. They face +x, on z = 0."""

from __future__ import annotations

import math

import numpy as np

from gbpn.worlds.assembly import Assembly
from gbpn.worlds.assets import Furniture, Stock
from gbpn.worlds.scene import Mesh, SceneBuilder
from gbpn.worlds.streets.palette import CLOTHES, Colour, Palette

__all__ = ["bicycle", "cyclist", "modelled", "person", "standing_people"]

_SKIN: tuple[Colour, ...] = ((0.5, 0.32, 0.24), (0.4, 0.24, 0.16), (0.2, 0.11, 0.07), (0.58, 0.4, 0.31))
_HAIR: tuple[Colour, ...] = ((0.02, 0.015, 0.01), (0.08, 0.045, 0.02), (0.25, 0.17, 0.08), (0.4, 0.39, 0.37))
_STANDING = ("Female", "Male", "Holding female", "Holding male", "Boy", "Girl")
"""Names in the libraries of people on their feet."""


def standing_people(stock: Stock | None) -> list[Furniture]:
    """Those of the libraries that may be used; none without a stock, or where no licence allows it."""
    if stock is None:
        return []
    models = (stock.model(asset) for asset in stock.named(*_STANDING, category="Characters"))
    return [model for model in models if model is not None]


def modelled(model: Furniture, builder: SceneBuilder) -> Mesh:
    """Somebody of a library, dressed as the file says."""
    numbers = []
    for material, picture in zip(model.materials, model.pictures, strict=True):
        shade = np.clip(np.asarray(material.colour), 0.05, 0.95) ** 2.2
        if picture is not None:  # exporters leave the colour under a picture black, or white
            shade = np.full(3, 0.9)
        red, green, blue = (float(value) for value in shade)
        numbers.append(builder.material(image=picture, colour=(red, green, blue)))
    return model.mesh.with_materials(numbers).moved((0, 0, 0), math.pi / 2)


def person(palette: Palette, rng: np.random.Generator, *, pose: str = "walk") -> Assembly:
    """Somebody 1.5 to 1.95 m tall; `pose` is walk, stand or ride."""
    into = Assembly()
    tall = float(np.clip(rng.normal(1.72, 0.1), 1.5, 1.95))
    stout = float(rng.uniform(0.9, 1.2))
    skin = palette.paint(palette.pick(_SKIN), roughness=0.7)
    coat = palette.cover("cloth", _bright(palette.pick(CLOTHES, 0.3)))
    legs = palette.cover("cloth", _bright(palette.pick(CLOTHES[:5], 0.2)))
    shoes = palette.paint(palette.pick(((0.02, 0.02, 0.02), (0.15, 0.09, 0.05), (0.6, 0.6, 0.6))))
    if pose == "ride":
        hip, shoulder, head = np.array([-0.16, 0, 0.95]), np.array([0.12, 0, 1.42]), np.array([0.2, 0, 1.67])
        knees = [np.array([0.2, 0.1, 0.85]), np.array([0.12, -0.1, 0.66])]
        feet = [np.array([0.02, 0.1, 0.45]), np.array([0.02, -0.1, 0.2])]
        hands = [np.array([0.48, 0.24, 1.02]), np.array([0.48, -0.24, 1.02])]
    else:
        swing = float(rng.uniform(0.15, 0.5)) if pose == "walk" else float(rng.uniform(0, 0.06))
        h = tall / 1.75
        hip, shoulder, head = (
            np.array([0, 0, 0.92]) * h,
            np.array([0.02, 0, 1.43]) * h,
            np.array([0.03, 0, 1.62]) * h,
        )
        knees = [np.array([s * swing * 0.45 + 0.04, y, 0.5]) * h for s, y in ((1, 0.09), (-1, -0.09))]
        feet = [
            np.array([s * swing * 0.75, y, 0.07 + 0.06 * (s < 0) * swing]) * h
            for s, y in ((1, 0.1), (-1, -0.1))
        ]
        hands = [np.array([-s * swing * 0.5 + 0.05, y, 0.85]) * h for s, y in ((1, 0.26), (-1, -0.26))]
    _torso(into, hip, shoulder, stout, coat, legs)
    for side, knee, foot, hand in zip((1, -1), knees, feet, hands, strict=True):
        thigh = hip + np.array([0, side * 0.09, 0])
        into.tubes(np.array([[thigh, knee, foot]]), np.array([[0.085, 0.062, 0.045]]) * stout, legs, sides=8)
        into.ellipsoids([foot + np.array([0.06, 0, -0.02])], [[0.13, 0.045, 0.045]], shoes, detail=5)
        top = shoulder + np.array([0, side * 0.19 * stout, -0.03])
        elbow = (top + hand) / 2 + np.array([-0.07, side * 0.05, -0.02])
        into.tubes(np.array([[top, elbow, hand]]), np.array([[0.055, 0.045, 0.035]]) * stout, coat, sides=7)
        into.ellipsoids([hand], [[0.045, 0.03, 0.05]], skin, detail=5)
        into.ellipsoids([top], [[0.07, 0.065, 0.065]], coat, detail=5)
    into.tubes(np.array([[shoulder, head]]), 0.05, skin)
    into.ellipsoids([head], [[0.095, 0.075, 0.12]], skin, detail=8)
    hair = palette.paint(palette.pick(_HAIR))
    into.ellipsoids([head + np.array([-0.025, 0, 0.035])], [[0.1, 0.085, 0.11]], hair, detail=7)
    if rng.random() < 0.35 and pose != "ride":
        bag = palette.paint(palette.pick(CLOTHES))
        into.boxes([hands[0] + np.array([0, 0.03, -0.22])], [[0.16, 0.05, 0.15]], bag)
    if rng.random() < 0.25:
        pack = palette.paint(palette.pick(CLOTHES))
        into.ellipsoids(
            [(hip + shoulder) / 2 + np.array([-0.2, 0, 0.08])], [[0.12, 0.15, 0.22]], pack, detail=6
        )
    return into


def _torso(into: Assembly, hip: np.ndarray, shoulder: np.ndarray, stout: float, coat: int, legs: int) -> None:
    share = np.array([-0.15, 0.0, 0.2, 0.5, 0.8, 1.0, 1.06])[:, None]
    across = np.array([0.1, 0.165, 0.16, 0.165, 0.19, 0.15, 0.05])[:, None] * stout
    deep = np.array([0.08, 0.125, 0.12, 0.125, 0.125, 0.1, 0.04])[:, None] * stout
    angle = np.linspace(0, 2 * math.pi, 13)[None]
    middle = hip + (shoulder - hip) * share  # [7, 3]
    points = np.stack(
        [
            middle[:, :1] + deep * np.cos(angle),
            middle[:, 1:2] + across * np.sin(angle),
            np.broadcast_to(middle[:, 2:], (7, 13)),
        ],
        axis=-1,
    )
    cells = np.full((6, 12), coat)
    cells[0] = legs
    into.loft(points, cells, tile=0.6)


def bicycle(palette: Palette, rng: np.random.Generator) -> Assembly:
    """Wheels with spokes, a frame of tubes, saddle and bars."""
    into = Assembly()
    metal = palette.paint(
        palette.pick(((0.02, 0.02, 0.02), (0.3, 0.02, 0.02), (0.03, 0.08, 0.25), (0.5, 0.5, 0.5))),
        roughness=0.3,
    )
    rubber = palette.paint((0.02, 0.02, 0.02))
    steel = palette.paint((0.45, 0.45, 0.45), roughness=0.3)
    angle = np.linspace(0, 2 * math.pi, 25)
    r = 0.34
    hubs = np.array([[-0.52, 0, r], [0.54, 0, r]])
    circle = np.stack([np.cos(angle) * r, 0 * angle, np.sin(angle) * r], 1)
    into.tubes(hubs[:, None] + circle[None], 0.018, rubber, sides=5)
    spokes = circle[:-1:2]
    ends = np.stack([np.broadcast_to(hubs[:, None], (2, 12, 3)), hubs[:, None] + spokes[None]], 2)
    into.tubes(ends.reshape(-1, 2, 3), 0.003, steel, sides=3)
    crank, seat, head, bars = [0.0, 0, 0.28], [-0.16, 0, 0.85], [0.38, 0, 0.82], [0.42, 0, 1.02]
    frame = [
        (crank, seat),
        (crank, head),
        ([-0.14, 0, 0.78], head),
        (hubs[0], crank),
        (hubs[0], [-0.14, 0, 0.75]),
        (hubs[1], bars),
    ]
    into.tubes(np.array([[a, b] for a, b in frame]), 0.016, metal, sides=6)
    into.tubes(np.array([[[0.46, -0.27, 1.02], [0.42, 0, 1.02], [0.46, 0.27, 1.02]]]), 0.013, steel)
    into.ellipsoids([[-0.18, 0, 0.89]], [[0.14, 0.07, 0.04]], rubber, detail=5)
    return into


def cyclist(palette: Palette, rng: np.random.Generator) -> Assembly:
    """Somebody on a bicycle."""
    into = bicycle(palette, rng)
    into.add(person(palette, rng, pose="ride"))
    return into


def _bright(colour: Colour) -> Colour:
    """The colour that cloth's texture, which is darker than white, brings down to the wanted one."""
    red, green, blue = (min(1.0, value * 1.6) for value in colour)
    return red, green, blue
