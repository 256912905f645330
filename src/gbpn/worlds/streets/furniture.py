"""What stands along a street: lamps, signs, poles with wires, bins, benches, bollards, fences and walls.

Each stands on z = 0; fences run along x from 0 to their length, their face about y = 0.
"""

from __future__ import annotations

import math

import numpy as np

from gbpn.worlds.assembly import Assembly
from gbpn.worlds.streets.palette import Palette
from gbpn.worlds.streets.plants import hedge

__all__ = ["FENCES", "bench", "bin_", "bollard", "fence", "lamp", "pole", "sign", "wires"]

FENCES = ("pickets", "railing", "wires", "wall", "hedge", "boards")


def lamp(palette: Palette, rng: np.random.Generator, *, lit: bool) -> Assembly:
    """A street lamp; its arm reaches towards +y."""
    into = Assembly()
    metal = palette.paint(
        palette.pick(((0.25, 0.26, 0.26), (0.04, 0.06, 0.05), (0.5, 0.5, 0.5))), roughness=0.5
    )
    glow = palette.paint((0.9, 0.8, 0.6), roughness=0.3, emission=9.0 if lit else 0.0)
    if rng.random() < 0.35:  # an old lantern
        tall = float(rng.uniform(3.4, 4.2))
        into.tubes(
            np.array([[[0, 0, -0.3], [0, 0, 0.8], [0, 0, tall]]]),
            np.array([[0.1, 0.07, 0.045]]),
            metal,
            sides=10,
        )
        into.tubes(np.array([[[0, 0, tall], [0, 0, tall + 0.45]]]), np.array([[0.12, 0.2]]), glow, sides=6)
        into.tubes(
            np.array([[[0, 0, tall + 0.45], [0, 0, tall + 0.7]]]), np.array([[0.24, 0.03]]), metal, sides=6
        )
        return into
    tall, arm = float(rng.uniform(5.5, 9)), float(rng.uniform(0.6, 2.2))
    path = np.array(
        [[0, 0, -0.3], [0, 0, tall * 0.5], [0, 0, tall - 0.5], [0, 0.25 * arm, tall - 0.1], [0, arm, tall]]
    )
    into.tubes(path[None], np.array([[0.09, 0.075, 0.055, 0.045, 0.04]]), metal, sides=8)
    into.boxes([[0, arm + 0.25, tall + 0.02]], [[0.13, 0.35, 0.06]], metal)
    into.boxes([[0, arm + 0.25, tall - 0.045]], [[0.1, 0.28, 0.012]], glow)
    return into


def sign(palette: Palette, rng: np.random.Generator) -> Assembly:
    """One or two traffic signs on a post; they face −x."""
    into = Assembly()
    steel = palette.paint((0.42, 0.42, 0.43), roughness=0.4)
    tall = float(rng.uniform(2.2, 3.0))
    into.tubes(np.array([[[0, 0, -0.2], [0, 0, tall]]]), 0.03, steel, sides=8)
    for level in range(int(rng.integers(1, 3))):
        number = int(rng.integers(10))
        face, z = palette.cover("sign", number=number, roughness=0.5), tall - 0.32 - 0.66 * level
        kind = number % 5
        for x, facing, material in ((-0.04, -1.0, face), (-0.032, 1.0, steel)):
            if kind in (0, 1, 3):
                _facing_disc(into, x, z, facing, 0.3, material)
            else:
                half = np.array([[-0.3, -0.3], [0.3, -0.3], [0.3, 0.3], [-0.3, 0.3]])
                corners = np.stack([np.full(4, x), -facing * half[:, 0] * -1, half[:, 1] + z], 1)
                once = np.array([[[0.0, 0], [1, 0], [1, 1], [0, 1]]])
                into.quads(corners[None], material, coordinates=once)
    return into


def _facing_disc(into: Assembly, x: float, z: float, facing: float, radius: float, material: int) -> None:
    """A disc across x, its picture upright as seen from where it faces."""
    angle = np.linspace(0, 2 * math.pi, 25)
    # Seen from −x with z up, the picture's right is +y's opposite.
    y, up = facing * radius * np.cos(angle), radius * np.sin(angle)
    rim = np.stack([np.full(25, x), y, up + z], 1)
    centre = np.array([x, 0, z])
    corners = np.stack([np.broadcast_to(centre, (24, 3)), rim[:-1], rim[1:]], 1)
    flat = np.stack([np.cos(angle), np.sin(angle)], 1) * 0.5 + 0.5
    coordinates = np.stack([np.full((24, 2), 0.5), flat[:-1], flat[1:]], 1)
    into.triangles(corners, np.broadcast_to([facing, 0, 0], corners.shape), coordinates, material)


def pole(palette: Palette, rng: np.random.Generator, tall: float) -> Assembly:
    """A wooden mast with a cross arm along y."""
    into = Assembly()
    wood = palette.cover("bark", (0.9, 0.8, 0.7))
    into.tubes(np.array([[[0, 0, -0.5], [0, 0, tall]]]), np.array([[0.13, 0.09]]), wood, sides=8)
    into.boxes([[0, 0, tall - 0.35]], [[0.05, 0.75, 0.05]], wood)
    white = palette.paint((0.5, 0.45, 0.4), roughness=0.3)
    insulators = np.array([[[0, y, tall - 0.3], [0, y, tall - 0.15]] for y in (-0.65, -0.3, 0.3, 0.65)])
    into.tubes(insulators, 0.035, white)
    return into


def wires(into: Assembly, places: np.ndarray, offsets: np.ndarray, material: int, sag: float) -> None:
    """From each place [P, 3] to the next, one wire for each of the offsets [P, K, 3] there."""
    share = np.linspace(0, 1, 13)[None, :, None]
    for k in range(offsets.shape[1]):
        ends = places + offsets[:, k]
        paths = ends[:-1, None] + (ends[1:] - ends[:-1])[:, None] * share
        paths = paths - np.array([0, 0, 1.0]) * (4 * sag * share * (1 - share))
        into.tubes(paths, 0.011, material, sides=4)


def bollard(palette: Palette, rng: np.random.Generator) -> Assembly:
    """A post that keeps cars off."""
    into = Assembly()
    metal = palette.paint(
        palette.pick(((0.03, 0.03, 0.03), (0.3, 0.3, 0.3), (0.4, 0.04, 0.03))), roughness=0.5
    )
    tall = float(rng.uniform(0.7, 1.0))
    into.tubes(
        np.array([[[0, 0, -0.2], [0, 0, tall * 0.9], [0, 0, tall]]]),
        np.array([[0.06, 0.055, 0.01]]),
        metal,
        sides=10,
    )
    return into


def bin_(palette: Palette, rng: np.random.Generator) -> Assembly:
    """A refuse bin on two wheels."""
    into = Assembly()
    body = palette.paint(
        palette.pick(((0.04, 0.04, 0.045), (0.03, 0.08, 0.03), (0.03, 0.07, 0.2), (0.35, 0.28, 0.02))),
        roughness=0.5,
    )
    z = np.array([0.08, 0.95])
    half_x, half_y = np.array([0.21, 0.28]), np.array([0.23, 0.33])
    ring = np.array([[-1, -1], [1, -1], [1, 1], [-1, 1], [-1, -1]])
    points = np.stack(
        [half_x[:, None] * ring[:, 0], half_y[:, None] * ring[:, 1], np.broadcast_to(z[:, None], (2, 5))], -1
    )
    into.loft(points, body, smooth=False)
    into.boxes([[0, 0, 1.0]], [[0.3, 0.36, 0.05]], body)
    black = palette.paint((0.02, 0.02, 0.02))
    into.tubes(np.array([[[-0.25, 0.24, 0.1], [0.25, 0.24, 0.1]]]), 0.1, black, sides=10)
    return into


def bench(palette: Palette, rng: np.random.Generator) -> Assembly:
    """Boards on two legs; one sits facing −y."""
    into = Assembly()
    wood, metal = palette.cover("planks"), palette.paint((0.05, 0.05, 0.05))
    seats = np.array([[0, -0.15 + 0.13 * k, 0.45] for k in range(3)] + [[0, 0.24, 0.62], [0, 0.28, 0.8]])
    into.boxes(seats, [[0.8, 0.055, 0.02]] * 3 + [[0.8, 0.015, 0.06]] * 2, wood)
    for x in (-0.6, 0.6):
        into.boxes([[x, 0.0, 0.2], [x, 0.24, 0.6]], [[0.03, 0.2, 0.24], [0.03, 0.02, 0.3]], metal)
    return into


def fence(kind: str, length: float, palette: Palette, rng: np.random.Generator) -> Assembly:
    """A fence of a kind along x."""
    into = Assembly()
    if kind == "hedge":
        return hedge(length, float(rng.uniform(0.8, 2.0)), palette, rng)
    high = float(rng.uniform(0.8, 1.2))
    posts = np.arange(0, length + 0.01, length / max(1, round(length / 2.2)))
    if kind == "wall":
        stone, kind_of = (
            (palette.cover("brick"), 1.95) if rng.random() < 0.5 else (palette.cover("stone"), 2.4)
        )
        into.boxes(
            [[length / 2, 0.12, high / 2 - 0.5]], [[length / 2, 0.12, high / 2 + 0.5]], stone, tile=kind_of
        )
        into.boxes(
            [[length / 2, 0.12, high + 0.03]], [[length / 2, 0.16, 0.04]], palette.cover("concrete"), tile=3
        )
        return into
    if kind in ("pickets", "boards"):
        wood = palette.cover("planks", palette.pick(((1.0, 1.0, 1.0), (0.6, 0.6, 0.6), (2.0, 2.0, 2.0)), 0.1))
        step, half = (0.14, 0.04) if kind == "pickets" else (0.16, 0.078)
        high = high if kind == "pickets" else high + 0.6
        xs = np.arange(step / 2, length, step)
        tall = high * (1 + 0.01 * rng.standard_normal(len(xs)))
        into.boxes(
            np.stack([xs, 0 * xs, tall / 2 - 0.1], 1),
            np.stack([0 * xs + half, 0 * xs + 0.01, tall / 2 + 0.1], 1),
            wood,
            tile=1.2,
        )
        into.boxes(
            [[length / 2, 0.04, high * 0.25], [length / 2, 0.04, high * 0.8]],
            [[length / 2, 0.02, 0.04]],
            wood,
            tile=1.2,
        )
        into.boxes(
            np.stack([posts, 0 * posts + 0.06, 0 * posts + high / 2 - 0.1], 1),
            [[0.045, 0.045, high / 2 + 0.1]],
            wood,
        )
        return into
    metal = palette.paint(
        palette.pick(((0.02, 0.02, 0.02), (0.05, 0.12, 0.07), (0.45, 0.45, 0.45))), roughness=0.5
    )
    into.boxes(
        np.stack([posts, 0 * posts, 0 * posts + high / 2 - 0.1], 1), [[0.025, 0.025, high / 2 + 0.15]], metal
    )
    if kind == "railing":
        xs = np.arange(0.06, length, 0.12)
        into.boxes(np.stack([xs, 0 * xs, 0 * xs + high / 2], 1), [[0.008, 0.008, high / 2 - 0.02]], metal)
        into.boxes([[length / 2, 0, 0.12], [length / 2, 0, high - 0.05]], [[length / 2, 0.015, 0.015]], metal)
    else:
        z = np.arange(0.1, high, 0.16)
        lines = np.stack([np.stack([0 * z + e, 0 * z, z], 1) for e in (0.0, length)], 1)
        into.tubes(lines, 0.004, metal, sides=3)
        xs = np.arange(0.1, length, 0.1)
        lines = np.stack([np.stack([xs, 0 * xs, 0 * xs + e], 1) for e in (0.05, high)], 1)
        into.tubes(lines, 0.003, metal, sides=3)
    return into
