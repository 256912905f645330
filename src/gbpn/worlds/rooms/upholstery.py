"""Soft furniture of our own, and what else stands about: beds, sofas, clothes rails, lamps, radiators."""

from __future__ import annotations

import math

import numpy as np

from gbpn.worlds.assembly import Assembly
from gbpn.worlds.rooms.interior import Interior
from gbpn.worlds.rooms.layout import Piece

__all__ = ["bed", "clothes_rail", "floor_lamp", "radiator", "sofa"]


def _cushion(
    into: Assembly, centre: np.ndarray, half: np.ndarray, material: int, *, power: float = 4.0
) -> None:
    """A rounded box."""
    v = np.linspace(-math.pi / 2, math.pi / 2, 7)[:, None]
    u = np.linspace(-math.pi, math.pi, 17)[None]

    def bent(value: np.ndarray) -> np.ndarray:
        return np.asarray(np.sign(value) * np.abs(value) ** (2 / power))

    unit = np.stack(
        np.broadcast_arrays(
            bent(np.cos(v)) * bent(np.cos(u)), bent(np.cos(v)) * bent(np.sin(u)), bent(np.sin(v))
        ),
        -1,
    )
    into.loft(unit * half + centre, material, tile=0.6)


def bed(palette: Interior, rng: np.random.Generator, width: float) -> Piece:
    """A frame with a headboard, a mattress, a blanket that hangs over, pillows."""
    into = Assembly("bed")
    length, high = 2.05, float(rng.uniform(0.38, 0.55))
    frame = palette.wooden_or_lacquered() if rng.random() < 0.7 else palette.cloth()
    into.boxes([[0, 0, high * 0.45]], [[width / 2, length / 2, 0.12]], frame, tile=0.9)
    legs = [[s * (width / 2 - 0.06), t * (length / 2 - 0.06), high * 0.18] for s in (-1, 1) for t in (-1, 1)]
    into.boxes(legs, [[0.025, 0.025, high * 0.18]], frame, tile=0.9)
    board = float(rng.uniform(0.75, 1.2))
    if rng.random() < 0.25:  # bars
        metal = palette.metal()
        x = np.linspace(-width / 2, width / 2, int(width / 0.12))
        into.tubes(np.array([[[a, length / 2, 0], [a, length / 2, board]] for a in x]), 0.009, metal, sides=5)
        into.tubes(np.array([[[x[0], length / 2, board], [x[-1], length / 2, board]]]), 0.014, metal, sides=6)
    else:
        into.boxes([[0, length / 2, board / 2]], [[width / 2, 0.03, board / 2]], frame, tile=0.9)
    white = palette.cover("fabric", (0.8, 0.79, 0.76), number=int(rng.integers(5)))
    _cushion(
        into,
        np.array([0, -0.02, high]),
        np.array([width / 2 - 0.02, length / 2 - 0.03, 0.11]),
        white,
        power=9,
    )
    blanket = palette.cloth()
    start = float(rng.uniform(0.15, 0.55))
    _blanket(
        into,
        rng,
        blanket,
        (width, start - length / 2, length),
        high + 0.12,
        reach=float(rng.uniform(0.1, 0.3)),
    )
    for pillow in range(1 if width < 1.2 else 2):
        middle = 0.0 if width < 1.2 else (pillow - 0.5) * width * 0.5
        cover = white if rng.random() < 0.6 else palette.cloth()
        _cushion(
            into,
            np.array([middle, length / 2 - 0.28, high + 0.17]),
            np.array([0.3, 0.19, 0.08]),
            cover,
            power=3,
        )
    lying = (-0.4 * width, 0.4 * width, -0.45 * length, 0.2 * length, high + 0.15, 1.0)
    return Piece(
        name="bed",
        mesh=into.mesh(),
        size=(width, length, max(board, high + 0.25)),
        tops=(lying,),
        seat=high + 0.13,
    )


def _blanket(
    into: Assembly,
    rng: np.random.Generator,
    material: int,
    extent: tuple[float, float, float],
    high: float,
    *,
    reach: float,
) -> None:
    """A sheet with folds over a bed from its foot to `extent[1]` from the head, hanging down at the sides."""
    width, _, length = extent
    rows, columns = 22, 27
    y = np.linspace(-length / 2 - 0.01, length / 2 - rng.uniform(0.5, 0.9), rows)
    across = np.linspace(-1, 1, columns) * (width / 2 + reach)
    inside = np.clip(across, -width / 2 - 0.01, width / 2 + 0.01)
    drop = np.abs(across) - np.abs(inside)
    fold = np.zeros((rows, columns))
    for _ in range(7):
        direction, phase = rng.normal(0, 1, 2), rng.uniform(0, 6.3)
        fold += np.sin(across * 5 * direction[0] + y[:, None] * 5 * direction[1] + phase)
    fold *= 0.006
    z = high + fold - drop
    x = inside + np.sign(inside) * np.where(drop > 0, 0.012 + 0.012 * np.sin(y[:, None] * 22), 0)
    points = np.stack([np.broadcast_to(x, z.shape), np.broadcast_to(y[:, None], z.shape), z], -1)
    into.loft(points, material, tile=0.7)


def sofa(palette: Interior, rng: np.random.Generator, width: float) -> Piece:
    """A frame with arms, a back and cushions; an armchair if it is narrow."""
    into = Assembly("sofa")
    depth, seat = float(rng.uniform(0.78, 0.98)), float(rng.uniform(0.38, 0.46))
    back, arm = float(rng.uniform(0.7, 0.92)), float(rng.uniform(0.08, 0.2))
    high = float(rng.uniform(0.52, 0.66))
    cloth = palette.cloth()
    round_ = float(rng.uniform(5, 10))
    into.boxes([[0, 0, seat * 0.45]], [[width / 2 - 0.02, depth / 2 - 0.03, seat * 0.3]], cloth, tile=0.6)
    legs = [[s * (width / 2 - 0.1), t * (depth / 2 - 0.1), 0.05] for s in (-1, 1) for t in (-1, 1)]
    into.boxes(legs, [[0.025, 0.025, 0.05]], palette.wood(), tile=0.6)
    _cushion(
        into,
        np.array([0, depth / 2 - 0.1, (0.1 + back) / 2]),
        np.array([width / 2, 0.1, (back - 0.1) / 2]),
        cloth,
        power=round_,
    )
    for side in (-1, 1):
        centre = np.array([side * (width / 2 - arm / 2), 0, (0.1 + high) / 2])
        _cushion(into, centre, np.array([arm / 2, depth / 2, (high - 0.1) / 2]), cloth, power=round_)
    count = max(1, round((width - 2 * arm) / 0.7))
    step = (width - 2 * arm) / count
    for k in range(count):
        x = -width / 2 + arm + (k + 0.5) * step
        _cushion(
            into,
            np.array([x, -0.08, seat - 0.05]),
            np.array([step / 2 - 0.004, depth / 2 - 0.1, 0.09]),
            cloth,
            power=6,
        )
        _cushion(
            into,
            np.array([x, depth / 2 - 0.25, seat + 0.22]),
            np.array([step / 2 - 0.006, 0.09, 0.2]),
            cloth,
            power=4,
        )
    if rng.random() < 0.7:
        for _ in range(int(rng.integers(1, 4))):
            x = rng.uniform(-1, 1) * (width / 2 - arm - 0.2) if width > 1.2 else 0.0
            _cushion(
                into,
                np.array([x, depth / 2 - 0.4, seat + 0.2]),
                np.array([0.2, 0.06, 0.19]),
                palette.cloth(),
                power=2.7,
            )
    lying = (-width / 2 + arm, width / 2 - arm, -depth / 2 + 0.1, 0.1, seat + 0.045, 1.0)
    return Piece(
        name="sofa",
        mesh=into.mesh(),
        size=(width, depth, max(back, seat + 0.44)),
        tops=(lying,),
        seat=seat + 0.04,
    )


def floor_lamp(palette: Interior, rng: np.random.Generator) -> Piece:
    """A thin pole with a shade; the light is put by who places it."""
    into = Assembly("floor lamp")
    high = float(rng.uniform(1.35, 1.85))
    metal, shade = palette.metal(), palette.paint((0.75, 0.68, 0.55), emission=0.6)
    into.discs([[0, 0, 0.015]], (0, 0, 1), 0.13, metal)
    into.tubes(np.array([[[0, 0, 0], [0, 0, high]]]), rng.uniform(0.007, 0.013), metal, sides=7)
    angle = np.linspace(0, 2 * math.pi, 19)
    low, top = rng.uniform(0.13, 0.22), rng.uniform(0.09, 0.2)
    rings = [
        np.c_[np.cos(angle) * r, np.sin(angle) * r, np.full(19, z)]
        for r, z in ((low, high - 0.24), (top, high + 0.02))
    ]
    into.loft(np.stack(rings), shade)
    return Piece(name="floor lamp", mesh=into.mesh(), size=(0.36, 0.36, high))


def radiator(palette: Interior, rng: np.random.Generator, width: float) -> Piece:
    """Ribs on two tubes, or a panel."""
    into = Assembly("radiator")
    white, high = palette.paint((0.78, 0.77, 0.74), roughness=0.4, mirror=0.03), float(rng.uniform(0.45, 0.7))
    if rng.random() < 0.6:
        x = np.arange(-width / 2, width / 2, 0.055)
        into.boxes(
            np.c_[x, np.zeros(len(x)), np.full(len(x), 0.12 + high / 2)], [[0.017, 0.045, high / 2]], white
        )
        for z in (0.18, 0.06 + high):
            into.tubes(np.array([[[-width / 2, 0, z], [width / 2, 0, z]]]), 0.015, white, sides=6)
    else:
        into.boxes([[0, 0, 0.12 + high / 2]], [[width / 2, 0.04, high / 2]], white)
        x = np.arange(-width / 2 + 0.02, width / 2, 0.034)
        into.boxes(
            np.c_[x, np.full(len(x), -0.042), np.full(len(x), 0.12 + high / 2)],
            [[0.009, 0.004, high / 2 - 0.03]],
            white,
        )
    into.tubes(
        np.array([[[width / 2 - 0.03, 0.02, 0.0], [width / 2 - 0.03, 0.02, 0.16]]]), 0.009, white, sides=6
    )
    return Piece(name="radiator", mesh=into.mesh(), size=(width, 0.1, 0.12 + high))


def clothes_rail(palette: Interior, rng: np.random.Generator) -> Piece:
    """A rail on two thin frames, with clothes on it."""
    into = Assembly("clothes rail")
    width, high = float(rng.uniform(0.8, 1.4)), float(rng.uniform(1.35, 1.65))
    metal = palette.metal()
    paths = [[[s * width / 2, 0, 0], [s * width / 2, 0, high]] for s in (-1, 1)]
    into.tubes(np.array(paths), 0.012, metal, sides=6)
    into.tubes(np.array([[[-width / 2, 0, high], [width / 2, 0, high]]]), 0.012, metal, sides=6)
    into.tubes(
        np.array([[[s * width / 2, -0.22, 0.02], [s * width / 2, 0.22, 0.02]] for s in (-1, 1)]),
        0.012,
        metal,
        sides=6,
    )
    for x in np.arange(-width / 2 + 0.1, width / 2 - 0.1, 0.07):
        if rng.random() < 0.75:
            low = high - rng.uniform(0.6, 1.05)
            half = np.array([0.016, rng.uniform(0.17, 0.23), (high - 0.06 - low) / 2])
            _cushion(into, np.array([x, 0, (low + high - 0.06) / 2]), half, palette.cloth(), power=3.5)
    return Piece(name="clothes rail", mesh=into.mesh(), size=(width, 0.46, high))
