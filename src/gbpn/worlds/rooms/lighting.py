"""Light of a room: lamps at its ceiling and on its tables, the sky at its windows, sun on its floor."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from gbpn.worlds.assembly import Assembly
from gbpn.worlds.rooms.interior import Interior
from gbpn.worlds.rooms.layout import Layout, Piece
from gbpn.worlds.rooms.models import Models
from gbpn.worlds.scene import Light
from gbpn.worlds.streets.daylight import Daylight, daylight

__all__ = ["Hours", "ceiling_lamps", "daylight_through_windows", "hours"]

_DAYS = 40
"""Different skies; rooms share them."""
_DAY_BY_LAMP = 3.2
"""How much brighter daylight is here than the unit in which lamps are given."""


@dataclass(frozen=True, kw_only=True)
class Hours:
    """When it is."""

    day: Daylight
    strength: float
    """By which the day's own light is multiplied."""
    lamps: bool
    """Whether lamps are lit."""


@lru_cache(maxsize=_DAYS)
def _day(number: int) -> Daylight:
    return daylight(
        np.random.default_rng([number, 9]), ("sun", "clouds", "overcast", "sun", "dusk")[number % 5]
    )


def hours(rng: np.random.Generator, *, windows: int) -> Hours:
    """A time of day; without windows lamps are lit."""
    day = _day(int(rng.integers(_DAYS)))
    return Hours(
        day=day,
        strength=_DAY_BY_LAMP * float(rng.uniform(0.6, 1.3)),
        lamps=day.weather == "dusk" or not windows or bool(rng.random() < 0.65),
    )


def daylight_through_windows(layout: Layout, when: Hours, rng: np.random.Generator) -> None:
    """A luminous rectangle outside each window, the sun, and the sky that is seen."""
    day, strength = when.day, when.strength
    picture = day.panorama.astype(np.float32) / 255
    middle = (picture[96:124] ** 2.2).mean(axis=(0, 1)) * np.asarray(day.sky)
    for wall in layout.walls:
        for hole in wall.openings:
            if hole.kind != "window":
                continue
            corner = wall.at(hole.start + 0.03, hole.low + 0.03, -0.06)
            along = wall.at(hole.start + 0.03, hole.high - 0.03, -0.06) - corner
            across = wall.at(hole.end - 0.03, hole.low + 0.03, -0.06) - corner
            if np.cross(along, across)[:2] @ wall.inward < 0:
                along, across = across, along
            share = float(rng.uniform(0.5, 1.0))
            layout.builder.lights.append(Light.area(corner, along, across, middle * strength * share))
    if day.sun is not None and rng.random() < 0.75:
        sun = day.sun
        layout.builder.lights.append(
            Light.sun(sun.direction, np.asarray(sun.radiance) * strength * 0.5, spread=0.0045)
        )
    sky = tuple(float(value) * strength for value in day.sky)
    ground = tuple(0.25 * value for value in sky)
    texture = layout.builder.texture(day.panorama)
    layout.builder.lights.append(Light.sky(sky, sky, ground, panorama=texture, lights=False))


def ceiling_lamps(
    layout: Layout, models: Models, palette: Interior, rng: np.random.Generator, when: Hours, *, public: bool
) -> None:
    """Where lamps hang, and their light where they are lit."""
    warm = np.array([1.0, rng.uniform(0.72, 0.95), rng.uniform(0.45, 0.85)])
    if public and rng.random() < 0.8:
        warm = np.array([0.95, 1.0, rng.uniform(0.9, 1.05)])
        _panels(layout, palette, rng, when, warm)
        return
    x, y = layout.half
    long = max(x, y) > 2.2
    places = [(0.0, 0.0)] if not long or rng.random() < 0.5 else [(-0.5 * x, 0.0), (0.5 * x, 0.0)]
    if y > x and len(places) == 2:
        places = [(0.0, -0.5 * y), (0.0, 0.5 * y)]
    kind = str(rng.choice(["model", "globe", "disc", "spots"]))
    piece = models.piece("ceiling lamp") if kind == "model" else None
    power = (
        float(np.exp(rng.normal(0, 0.3))) * 0.9 * float(np.prod(layout.half)) * (1.0 if when.lamps else 0.0)
    )
    for px, py in places:
        if kind == "spots":
            _spots(layout, palette, (px, py), power / len(places), warm, lit=when.lamps)
            continue
        drop = _hung(layout, palette, rng, piece, (px, py), warm, lit=when.lamps)
        _shine(layout, (px, py, layout.height - drop), 0.17, power / len(places), warm)
    if rng.random() < 0.3 and when.lamps:  # a lamp out of sight behind the camera, or in the next room
        px, py = rng.uniform(-0.8, 0.8, 2) * layout.half
        _shine(layout, (float(px), float(py), layout.height - 0.05), 0.15, 0.3 * power, warm)


def _shine(
    layout: Layout, place: tuple[float, float, float], half: float, power: float, colour: np.ndarray
) -> None:
    """A square of light that shines down, and a fainter one that shines up."""
    if power <= 0:
        return
    x, y, z = place
    area = 4 * half * half
    radiance = colour * power / area
    layout.builder.lights.append(
        Light.area((x - half, y - half, z), (0, 2 * half, 0), (2 * half, 0, 0), radiance)
    )
    if layout.height - z > 0.15:
        layout.builder.lights.append(
            Light.area((x - half, y - half, z + 0.02), (2 * half, 0, 0), (0, 2 * half, 0), 0.35 * radiance)
        )


def _panels(
    layout: Layout, palette: Interior, rng: np.random.Generator, when: Hours, colour: np.ndarray
) -> None:
    """Luminous tiles or tubes in rows."""
    x, y = layout.half
    into = Assembly("lamp")
    glow = palette.paint((0.9, 0.9, 0.88), emission=5.0 if when.lamps else 0.0)
    half = (0.3, 0.3) if rng.random() < 0.5 else (0.07, 0.6)
    columns, rows = max(1, round(2 * x / 2.2)), max(1, round(2 * y / 2.2))
    for px in (np.arange(columns) + 0.5) / columns * 2 * x - x:
        for py in (np.arange(rows) + 0.5) / rows * 2 * y - y:
            z = layout.height - 0.012
            into.boxes([[px, py, z]], [[half[0], half[1], 0.01]], glow)
            if when.lamps:
                power = 0.64 * 4 * x * y / (columns * rows) * float(rng.uniform(0.85, 1.1))
                radiance = colour * power / (4 * half[0] * half[1]) * 0.35
                corner = (px - half[0], py - half[1], z - 0.02)
                layout.builder.lights.append(
                    Light.area(corner, (0, 2 * half[1], 0), (2 * half[0], 0, 0), radiance)
                )
    layout.builder.add(into.mesh())


def _spots(
    layout: Layout,
    palette: Interior,
    place: tuple[float, float],
    power: float,
    colour: np.ndarray,
    *,
    lit: bool,
) -> None:
    """Three small lamps on a rail."""
    into = Assembly("lamp")
    metal, glow = palette.metal(), palette.paint((0.95, 0.9, 0.8), emission=6.0 if lit else 0.0)
    z = layout.height
    into.boxes([[place[0], place[1], z - 0.02]], [[0.4, 0.02, 0.02]], metal)
    for dx in (-0.35, 0.0, 0.35):
        x = place[0] + dx
        into.tubes(np.array([[[x, place[1], z - 0.03], [x, place[1], z - 0.13]]]), 0.035, metal, sides=10)
        into.discs([[x, place[1], z - 0.13]], (0, 0, -1), 0.033, glow)
    layout.builder.add(into.mesh())
    if power > 0:  # of the three together: shadow rays are few
        corner = (place[0] - 0.38, place[1] - 0.035, z - 0.14)
        radiance = colour * power / (0.76 * 0.07)
        layout.builder.lights.append(Light.area(corner, (0, 0.07, 0), (0.76, 0, 0), radiance))


def _hung(
    layout: Layout,
    palette: Interior,
    rng: np.random.Generator,
    piece: Piece | None,
    place: tuple[float, float],
    colour: np.ndarray,
    *,
    lit: bool,
) -> float:
    """A lamp at the ceiling; how far its light hangs below."""
    x, y = place
    if piece is not None and piece.size[2] < layout.height - 2.0:
        layout.builder.add(
            piece.mesh.moved((x, y, layout.height - piece.size[2]), float(rng.uniform(0, 6.3)))
        )
        return piece.size[2] + 0.02
    into = Assembly("lamp")
    red, green, blue = (float(v) for v in 0.9 * colour / colour.max())
    glow = palette.paint((red, green, blue), emission=4.5 if lit else 0.05)
    if rng.random() < 0.5:
        into.ellipsoids([[x, y, layout.height - 0.03]], [[0.19, 0.19, 0.08]], glow, detail=8)
        layout.builder.add(into.mesh())
        return 0.13
    drop = float(rng.uniform(0.35, 0.75))
    z = layout.height - drop
    into.tubes(
        np.array([[[x, y, layout.height], [x, y, z + 0.1]]]),
        0.003,
        palette.paint((0.05, 0.05, 0.05)),
        sides=4,
    )
    if rng.random() < 0.5:
        into.ellipsoids([[x, y, z]], [[0.14, 0.14, 0.13]], glow, detail=9)
        layout.builder.add(into.mesh())
        return drop + 0.16
    angle = np.linspace(0, 2 * math.pi, 25)
    rings = [
        np.c_[x + np.cos(angle) * r, y + np.sin(angle) * r, np.full(25, z + h)]
        for r, h in ((0.2, -0.02), (0.13, 0.08), (0.03, 0.11))
    ]
    into.loft(
        np.stack(rings),
        palette.paint(
            palette.pick(((0.7, 0.68, 0.6), (0.05, 0.05, 0.05), (0.4, 0.1, 0.06), (0.5, 0.5, 0.5)))
        ),
    )
    into.ellipsoids([[x, y, z + 0.02]], [[0.05, 0.05, 0.05]], glow, detail=6)
    layout.builder.add(into.mesh())
    return drop + 0.04
