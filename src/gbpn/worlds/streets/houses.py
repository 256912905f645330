"""Houses: façades of windows and doors, roofs, chimneys, balconies. The front lies at y = 0 and faces −y."""

from __future__ import annotations

import itertools
from dataclasses import dataclass

import numpy as np

from gbpn.worlds.assembly import Assembly
from gbpn.worlds.streets.openings import Opening, doors, garages, shops, windows
from gbpn.worlds.streets.palette import PLASTERS, Palette
from gbpn.worlds.streets.roofs import roof

__all__ = ["House", "build", "drawn"]


@dataclass(frozen=True, kw_only=True)
class House:
    """What a house looks like; metres."""

    width: float
    depth: float
    storeys: int
    storey: float
    """Height of a storey."""
    plinth: float
    """From the ground to the ground floor."""
    roof: str
    """along, across, hip or flat."""
    pitch: float
    """Rise of the roof per metre."""
    bay: float
    """Width between the middles of windows."""
    ground: str
    """What the ground floor is: home, shop or garage."""
    detached: bool
    """Whether its sides are seen."""
    balconies: bool = False

    @property
    def height(self) -> float:
        """To the eaves."""
        return self.plinth + self.storeys * self.storey


def drawn(rng: np.random.Generator, style: str, width: float) -> House:
    """A house of a style: terrace, suburb, village, avenue or works."""
    storeys = {"terrace": (2, 4), "suburb": (1, 2), "village": (1, 3), "avenue": (3, 6), "works": (1, 2)}[
        style
    ]
    roofs = {
        "terrace": ["along", "along", "along", "flat", "across"],
        "suburb": ["along", "across", "hip", "along"],
        "village": ["along", "across", "along", "hip"],
        "avenue": ["flat", "flat", "along"],
        "works": ["flat", "along"],
    }[style]
    shop = {"terrace": 0.25, "avenue": 0.45, "village": 0.1}.get(style, 0.0)
    garage = {"terrace": 0.06, "suburb": 0.35, "village": 0.15, "works": 0.8}.get(style, 0.0)
    choice = rng.random()
    return House(
        width=width,
        depth=float(rng.uniform(8, 13)),
        storeys=int(rng.integers(storeys[0], storeys[1] + 1)),
        storey=float(rng.uniform(2.7, 3.1) if style in ("suburb", "village") else rng.uniform(2.9, 3.6)),
        plinth=float(rng.choice([0.15, 0.3, 0.6, 0.9])),
        roof=str(rng.choice(roofs)),
        pitch=float(rng.uniform(0.55, 1.15) if style != "works" else rng.uniform(0.2, 0.4)),
        bay=float(rng.uniform(2.0, 3.4)),
        ground="shop" if choice < shop else "garage" if choice < shop + garage else "home",
        detached=style in ("suburb", "village", "works"),
        balconies=bool(rng.random() < (0.45 if style == "avenue" else 0.1)),
    )


def build(house: House, palette: Palette, rng: np.random.Generator) -> Assembly:
    """The house in its own coordinates: x along the street about 0, y away from it, z from the ground."""
    into = Assembly()
    wall, tile = _wall(palette, rng)
    openings = _openings(house, rng)
    low = -2.5  # walls reach into sloping ground
    _walls_with_holes(into, (-house.width / 2, house.width / 2), (low, house.height), openings, wall, tile)
    _sides(into, house, palette, rng, wall, tile, low)
    trim = palette.paint(
        palette.pick(((0.78, 0.78, 0.76), (0.7, 0.66, 0.58), (0.25, 0.22, 0.2), (0.1, 0.11, 0.12)))
    )
    windows(into, [o for o in openings if o.kind == "window"], palette, rng, trim)
    doors(into, [o for o in openings if o.kind == "door"], palette, rng, house.plinth)
    shops(into, [o for o in openings if o.kind == "shop"], palette, rng)
    garages(into, [o for o in openings if o.kind == "garage"], palette, rng)
    if house.balconies:
        _balconies(into, house, openings, palette, rng)
    _courses(into, house, palette, rng)
    roof(into, house.width, house.depth, house.height, house.roof, house.pitch, wall, tile, palette, rng)
    _pipes(into, house, palette, rng)
    return into


def _wall(palette: Palette, rng: np.random.Generator) -> tuple[int, float]:
    kind = str(
        rng.choice(
            ["plaster", "plaster", "plaster", "brick", "brick", "stone", "concrete"],
            p=[0.25, 0.2, 0.15, 0.16, 0.12, 0.06, 0.06],
        )
    )
    if kind == "plaster":
        return palette.cover(kind, palette.pick(PLASTERS)), palette.tile(kind)
    tone = float(rng.uniform(0.8, 1.15))
    return palette.cover(kind, (tone, tone, tone)), palette.tile(kind)


def _openings(house: House, rng: np.random.Generator) -> list[Opening]:
    """Storey by storey: windows in bays, and what the ground floor has."""
    bays = max(1, int(house.width * 0.92 / house.bay))
    middles = (np.arange(bays) + 0.5) * (house.width / bays) - house.width / 2
    room = house.width / bays
    wide = float(np.clip(rng.uniform(0.38, 0.62) * room, 0.7, 2.2))
    high = float(np.clip(rng.uniform(0.45, 0.62) * house.storey, 1.1, 2.2))
    out: list[Opening] = []
    for level in range(house.storeys):
        base = house.plinth + level * house.storey
        sill = base + max(0.25, (house.storey - high) * rng.uniform(0.55, 0.62))
        door = int(rng.integers(bays))
        for number, x in enumerate(middles):
            if level == 0 and house.ground == "shop":
                if number == door and bays > 1:
                    out.append(Opening("door", x - 0.55, x + 0.55, base, base + 2.4))
                else:
                    out.append(Opening("shop", x - room * 0.44, x + room * 0.44, base + 0.45, base + 2.6))
            elif (
                level == 0
                and house.ground == "garage"
                and number in (door, (door + 1) % bays if bays > 3 else door)
            ):
                half = min(room * 0.42, 1.35)
                out.append(Opening("garage", x - half, x + half, 0.05, 2.25))
            elif level == 0 and number == door:
                out.append(Opening("door", x - 0.52, x + 0.52, base, base + 2.25))
            elif rng.random() < 0.96:
                out.append(Opening("window", x - wide / 2, x + wide / 2, sill, sill + high))
    return out


def _walls_with_holes(
    into: Assembly,
    x: tuple[float, float],
    z: tuple[float, float],
    openings: list[Opening],
    material: int,
    tile: float,
) -> None:
    """A wall in the plane y = 0 with its openings left out."""
    quads: list[tuple[float, float, float, float]] = []
    edges = sorted({z[0], z[1], *(v for o in openings for v in (o.bottom, o.top))})
    for low, high in itertools.pairwise(edges):
        holes = sorted((o.left, o.right) for o in openings if o.bottom < high - 1e-6 and o.top > low + 1e-6)
        at = x[0]
        for left, right in holes:
            if left > at + 1e-6:
                quads.append((at, left, low, high))
            at = max(at, right)
        if at < x[1] - 1e-6:
            quads.append((at, x[1], low, high))
    q = np.array(quads)
    zero = np.zeros(len(q))
    corners = np.stack(
        [np.stack([q[:, i], zero, q[:, j]], axis=1) for i, j in ((0, 2), (1, 2), (1, 3), (0, 3))],
        axis=1,
    )
    into.quads(corners, material, coordinates=corners[..., [0, 2]] / tile)


def _sides(
    into: Assembly,
    house: House,
    palette: Palette,
    rng: np.random.Generator,
    wall: int,
    tile: float,
    low: float,
) -> None:
    """Both side walls and the back; detached houses have windows on the side too."""
    w, d, h = house.width / 2, house.depth, house.height
    side = wall if house.detached or rng.random() < 0.5 else palette.cover("plaster", palette.pick(PLASTERS))
    quads = np.array(
        [
            [[-w, d, low], [-w, 0, low], [-w, 0, h], [-w, d, h]],
            [[w, 0, low], [w, d, low], [w, d, h], [w, 0, h]],
            [[w, d, low], [-w, d, low], [-w, d, h], [w, d, h]],
        ]
    )
    into.quads(quads, side, tile=tile)
    if not house.detached:
        return
    trim = palette.paint((0.75, 0.75, 0.72))
    for sign in (-1.0, 1.0):
        flat = Assembly()
        spots = [
            Opening(
                "window",
                y - 0.55,
                y + 0.55,
                house.plinth + level * house.storey + 0.9,
                house.plinth + level * house.storey + 2.2,
            )
            for level in range(house.storeys)
            for y in (house.depth * 0.3, house.depth * 0.7)
            if rng.random() < 0.7
        ]
        windows(flat, spots, palette, rng, trim, sunk=False)
        into.add(flat, (sign * w, 0 if sign > 0 else house.depth, 0), sign * np.pi / 2)


def _balconies(
    into: Assembly, house: House, openings: list[Opening], palette: Palette, rng: np.random.Generator
) -> None:
    """Slabs before windows of the upper storeys, with railings of thin bars."""
    slab = palette.cover("concrete", (0.9, 0.9, 0.9))
    metal = palette.paint(palette.pick(((0.03, 0.03, 0.03), (0.5, 0.5, 0.5), (0.2, 0.2, 0.2))), roughness=0.4)
    deep = float(rng.uniform(0.8, 1.4))
    upper = [o for o in openings if o.kind == "window" and o.bottom > house.plinth + house.storey]
    for o in upper:
        if rng.random() < 0.35:
            continue
        middle, half = (o.left + o.right) / 2, (o.right - o.left) / 2 + 0.35
        floor = o.bottom - 0.25
        into.boxes([[middle, -deep / 2, floor - 0.08]], [[half, deep / 2, 0.08]], slab)
        xs = np.arange(-half + 0.03, half, 0.12) + middle
        bars = np.concatenate(
            [np.stack([xs, np.full_like(xs, -deep + 0.03), np.full_like(xs, floor + 0.5)], 1)]
        )
        ys = np.arange(-deep + 0.1, 0, 0.12)
        ends = [
            np.stack([np.full_like(ys, middle + e), ys, np.full_like(ys, floor + 0.5)], 1)
            for e in (-half, half)
        ]
        into.boxes(np.concatenate([bars, *ends]), [[0.008, 0.008, 0.5]], metal)
        into.boxes(
            [
                [middle, -deep + 0.03, floor + 1],
                [middle - half, -deep / 2, floor + 1],
                [middle + half, -deep / 2, floor + 1],
            ],
            [[half, 0.025, 0.02], [0.02, deep / 2, 0.02], [0.02, deep / 2, 0.02]],
            metal,
        )


def _courses(into: Assembly, house: House, palette: Palette, rng: np.random.Generator) -> None:
    """A plinth, bands between storeys, a cornice."""
    stone = palette.cover(
        "concrete", palette.pick(((0.8, 0.78, 0.74), (0.5, 0.48, 0.45), (0.35, 0.34, 0.33)))
    )
    half = house.width / 2
    if rng.random() < 0.6:
        # Below doors and garages it would stand in the way: it is as thick as the kerb of a path.
        into.boxes([[0, -0.015, house.plinth / 2 - 1]], [[half, 0.02, house.plinth / 2 + 1]], stone, tile=3)
    if rng.random() < 0.4 and house.storeys > 1:
        levels = house.plinth + house.storey * np.arange(1, house.storeys)
        into.boxes(np.stack([0 * levels, 0 * levels - 0.03, levels], 1), [[half, 0.05, 0.08]], stone, tile=3)
    if house.roof == "flat" or rng.random() < 0.4:
        into.boxes([[0, -0.12, house.height - 0.12]], [[half, 0.16, 0.1]], stone, tile=3)


def _pipes(into: Assembly, house: House, palette: Palette, rng: np.random.Generator) -> None:
    """Down from the gutter."""
    metal = palette.paint(palette.pick(((0.3, 0.3, 0.3), (0.6, 0.6, 0.6), (0.2, 0.1, 0.06))), roughness=0.5)
    side = rng.choice([-1, 1]) * (house.width / 2 - 0.12)
    into.tubes(np.array([[[side, -0.07, 0.0], [side, -0.07, house.height]]]), 0.045, metal)
