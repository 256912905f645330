"""Cars, vans and buses: a skin through sections along the car, with panes, wheels, lights and plates.

A car stands on z = 0 about the origin and drives towards +x.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from gbpn.worlds.assembly import Assembly
from gbpn.worlds.streets.palette import CAR_COLOURS, Palette

__all__ = ["KINDS", "Body", "car"]


@dataclass(frozen=True, kw_only=True)
class Body:
    """A make of car. Shares run from the rear 0 to the front 1, heights from the ground 0 to the roof 1."""

    length: tuple[float, float]
    width: tuple[float, float]
    height: tuple[float, float]
    top: tuple[tuple[float, float], ...]
    """The outline from the side."""
    belt: float
    """Where the side windows begin."""
    windscreen: tuple[float, float]
    rear_window: tuple[float, float]
    side_windows: tuple[tuple[float, float], ...]
    wheels: tuple[float, float] = (0.19, 0.81)
    wheel: float = 0.32
    """Radius in metres."""
    lean: float = 0.2
    """How far the windows lean inwards, share of half the width."""


_NOSE = ((0.8, 0.62), (0.94, 0.54), (0.985, 0.44), (1.0, 0.36))
_TAIL = ((0.0, 0.48), (0.012, 0.6))
KINDS: dict[str, Body] = {
    "hatchback": Body(
        length=(3.7, 4.3),
        width=(1.66, 1.8),
        height=(1.44, 1.55),
        top=(
            *_TAIL,
            (0.1, 0.9),
            (0.16, 0.965),
            (0.3, 0.995),
            (0.45, 1.0),
            (0.57, 0.955),
            (0.74, 0.665),
            *_NOSE,
        ),
        belt=0.62,
        windscreen=(0.57, 0.745),
        rear_window=(0.02, 0.115),
        side_windows=((0.13, 0.235), (0.26, 0.435), (0.46, 0.655)),
    ),
    "saloon": Body(
        length=(4.4, 4.9),
        width=(1.74, 1.86),
        height=(1.4, 1.48),
        top=(
            *_TAIL,
            (0.05, 0.665),
            (0.15, 0.69),
            (0.29, 0.945),
            (0.4, 0.995),
            (0.5, 0.99),
            (0.56, 0.955),
            (0.71, 0.68),
            *_NOSE,
        ),
        belt=0.645,
        windscreen=(0.56, 0.715),
        rear_window=(0.15, 0.29),
        side_windows=((0.25, 0.31), (0.33, 0.46), (0.48, 0.635)),
    ),
    "estate": Body(
        length=(4.4, 4.85),
        width=(1.74, 1.86),
        height=(1.42, 1.52),
        top=(
            *_TAIL,
            (0.06, 0.91),
            (0.1, 0.955),
            (0.3, 1.0),
            (0.48, 0.995),
            (0.57, 0.95),
            (0.72, 0.675),
            *_NOSE,
        ),
        belt=0.635,
        windscreen=(0.57, 0.725),
        rear_window=(0.02, 0.07),
        side_windows=((0.09, 0.235), (0.26, 0.43), (0.45, 0.64)),
    ),
    "off-roader": Body(
        length=(4.2, 4.8),
        width=(1.8, 1.95),
        height=(1.62, 1.82),
        top=(
            *_TAIL,
            (0.05, 0.92),
            (0.1, 0.97),
            (0.3, 1.0),
            (0.48, 0.995),
            (0.57, 0.955),
            (0.7, 0.68),
            (0.8, 0.65),
            (0.95, 0.57),
            (0.99, 0.47),
            (1.0, 0.38),
        ),
        belt=0.63,
        windscreen=(0.57, 0.705),
        rear_window=(0.015, 0.06),
        side_windows=((0.09, 0.22), (0.25, 0.425), (0.45, 0.635)),
        wheel=0.37,
    ),
    "van": Body(
        length=(4.8, 5.9),
        width=(1.9, 2.05),
        height=(1.95, 2.6),
        top=(
            (0.0, 0.3),
            (0.006, 0.94),
            (0.03, 0.985),
            (0.3, 1.0),
            (0.68, 1.0),
            (0.76, 0.95),
            (0.89, 0.56),
            (0.96, 0.48),
            (0.992, 0.38),
            (1.0, 0.28),
        ),
        belt=0.52,
        windscreen=(0.76, 0.89),
        rear_window=(2.0, 2.0),
        side_windows=((0.68, 0.82),),
        wheels=(0.18, 0.83),
        wheel=0.34,
        lean=0.1,
    ),
    "bus": Body(
        length=(10.0, 12.0),
        width=(2.45, 2.55),
        height=(2.9, 3.2),
        top=(
            (0.0, 0.3),
            (0.004, 0.96),
            (0.02, 0.99),
            (0.5, 1.0),
            (0.96, 0.99),
            (0.985, 0.95),
            (0.998, 0.45),
            (1.0, 0.25),
        ),
        belt=0.42,
        windscreen=(0.985, 0.999),
        rear_window=(0.003, 0.012),
        side_windows=tuple((a, a + 0.14) for a in (0.03, 0.18, 0.33, 0.48, 0.63, 0.78)),
        wheels=(0.27, 0.8),
        wheel=0.48,
        lean=0.04,
    ),
}
_SHARES = (0.42, 0.23, 0.15, 0.1, 0.08, 0.02)


def car(
    palette: Palette, rng: np.random.Generator, kind: str | None = None, *, lit: bool = False
) -> Assembly:
    """A car of a kind (one that is common, by default); `lit` has its lamps on."""
    body = KINDS[kind or str(rng.choice(list(KINDS), p=_SHARES))]
    into = Assembly()
    length, width, height = (float(rng.uniform(*span)) for span in (body.length, body.width, body.height))
    paint = palette.paint(
        palette.pick(CAR_COLOURS, 0.08), roughness=0.06, mirror=float(rng.uniform(0.02, 0.05))
    )
    glass = palette.paint((0.015, 0.018, 0.02), roughness=0.03, mirror=float(rng.uniform(0.04, 0.1)))
    rubber = palette.paint((0.022, 0.022, 0.023), roughness=0.9)
    _skin(into, body, length, width, height, (paint, glass, rubber))
    _wheels(into, body, length, width, palette, rubber, rng)
    _lamps(into, body, length, width, height, palette, rubber, lit)
    _trim(into, body, length, width, height, paint, rubber)
    return into


def _skin(
    into: Assembly, body: Body, length: float, width: float, height: float, materials: tuple[int, int, int]
) -> None:
    """Sections across the car, from the rear to the front, and both ends closed."""
    paint, glass, rubber = materials
    marks = {u for u, _ in body.top} | {u for pair in body.side_windows for u in pair}
    marks |= {u for pair in (body.windscreen, body.rear_window) for u in pair if u < 1}
    share = np.array(sorted(marks | set(np.linspace(0, 1, 19).tolist())))
    u, z = (np.array(axis) for axis in zip(*body.top, strict=True))
    top = np.interp(share, u, z)
    belt = np.minimum(body.belt + 0.02 * (1 - share), top - 0.015)
    tall = np.clip((top - belt) / (0.94 - body.belt), 0, 1)
    half = (
        width
        / 2
        * (
            1
            - 0.2 * np.clip((share - 0.88) / 0.12, 0, 1) ** 2
            - 0.1 * np.clip(0.1 / (share + 0.1) - 0.5, 0, 1)
        )
    )
    bottom, ones = np.full_like(share, 0.18 / height), np.ones_like(share)
    low = np.minimum(0.36, belt - 0.08)
    lean = body.lean * tall
    ring_y = [
        0 * ones,
        0.86 * ones,
        0.97 * ones,
        ones,
        0.985 * ones,
        0.95 * ones,
        0.93 - lean,
        0.6 - 0.5 * lean,
        0 * ones,
    ]
    ring_z = [
        bottom,
        bottom,
        bottom + 0.07,
        low,
        belt - 0.03,
        belt,
        belt + (top - belt) * 0.86,
        top - 0.012 * tall,
        top + 0.006,
    ]
    y, zz = np.stack(ring_y, 1) * half[:, None], np.stack(ring_z, 1) * height
    y, zz = np.concatenate([y, -y[:, -2::-1]], 1), np.concatenate([zz, zz[:, -2::-1]], 1)
    x = np.broadcast_to((share[:, None] - 0.5) * length, y.shape)
    points = np.stack([x, y, zz], -1)
    middle = (share[:-1] + share[1:]) / 2
    cells = np.full((len(share) - 1, 16), paint)
    cells[:, [0, 1, 14, 15]] = rubber
    for a, b in body.side_windows:
        cells[np.ix_((middle > a) & (middle < b), [5, 10])] = glass
    for a, b in (body.windscreen, body.rear_window):
        cells[np.ix_((middle > a) & (middle < b), [6, 7, 8, 9])] = glass
    into.loft(points, cells)
    for end, facing in ((0, -1.0), (-1, 1.0)):
        rim = points[end]
        centre = rim.mean(axis=0)
        corners = np.stack([np.broadcast_to(centre, rim[:-1].shape), rim[:-1], rim[1:]], 1)
        into.triangles(corners, np.broadcast_to([facing, 0, 0], corners.shape), np.zeros((16, 3, 2)), paint)


def _wheels(
    into: Assembly,
    body: Body,
    length: float,
    width: float,
    palette: Palette,
    rubber: int,
    rng: np.random.Generator,
) -> None:
    """Tyres with their rims, in dark arches."""
    rim = palette.cover("rim", roughness=0.4)
    black = palette.paint((0.006, 0.006, 0.006))
    r, out = body.wheel, width / 2
    places = np.array([[(share - 0.5) * length, side] for share in body.wheels for side in (-1.0, 1.0)])
    x, side, zero = places[:, 0], places[:, 1], np.full(4, r)
    facing = np.stack([0 * x, side, 0 * x], 1)
    into.discs(np.stack([x, side * (out + 0.003), zero * 1.12], 1), facing, r * 1.12, black, sides=18)
    inner, outer = (np.stack([x, side * (out + shift), zero], 1) for shift in (-0.2, 0.012))
    into.tubes(np.stack([inner, outer], 1), r, rubber, sides=18)
    into.discs(outer, facing, r, rim, sides=18)


def _lamps(
    into: Assembly,
    body: Body,
    length: float,
    width: float,
    height: float,
    palette: Palette,
    rubber: int,
    lit: bool,
) -> None:
    """Head and tail lamps, plates, the grille."""
    white = palette.paint((0.75, 0.75, 0.72), roughness=0.1, mirror=0.15, emission=6.0 if lit else 0.0)
    red = palette.paint((0.4, 0.01, 0.01), roughness=0.15, emission=2.5 if lit else 0.0)
    plate = palette.cover("plate")
    u, z = (np.array(axis) for axis in zip(*body.top, strict=True))
    head, tail = float(np.interp(0.985, u, z)) * height * 0.93, body.belt * 0.9 * height
    end = length / 2
    for side in (-1, 1):
        into.boxes([[end * 0.955, side * width * 0.35, head]], [[end * 0.025, width * 0.09, 0.065]], white)
        into.boxes([[-end * 0.985, side * width * 0.39, tail]], [[0.035, width * 0.065, 0.1]], red)
    into.boxes(
        [[end * 0.985, 0, head * 0.72], [end * 0.99, 0, 0.32]],
        [[0.045, width * 0.24, 0.07], [0.035, width * 0.4, 0.08]],
        rubber,
    )
    into.boxes([[-end * 0.99, 0, 0.36]], [[0.05, width * 0.43, 0.09]], rubber)
    once = np.array([[[0.0, 0], [1, 0], [1, 1], [0, 1]]])
    shape = np.array([[-0.26, -0.055], [0.26, -0.055], [0.26, 0.055], [-0.26, 0.055]])
    for sign, high in ((1, 0.43), (-1, 0.5 * height)):
        corners = np.stack([np.full(4, sign * (end + 0.02)), sign * shape[:, 0], high + shape[:, 1]], 1)
        into.quads(corners[None], plate, coordinates=once)


def _trim(
    into: Assembly, body: Body, length: float, width: float, height: float, paint: int, rubber: int
) -> None:
    """Gaps of the doors, handles, mirrors."""
    belt, half = body.belt * height, width / 2
    if len(body.side_windows) == 3:
        gaps = np.array(
            [
                (share - 0.5) * length
                for share in (body.side_windows[1][0] - 0.01, body.side_windows[2][0] - 0.01, 0.69)
            ]
        )
        for side in (-1, 1):
            low, high = 0.3, belt - 0.06
            places = np.stack([gaps, np.full(3, side * half), np.full(3, (low + high) / 2)], 1)
            into.boxes(places, [[0.004, 0.004, (high - low) / 2]], rubber)
            handles = np.stack(
                [gaps[:2] + 0.16, np.full(2, side * (half + 0.005)), np.full(2, belt - 0.12)], 1
            )
            into.boxes(handles, [[0.09, 0.02, 0.014]], paint)
    front = (body.side_windows[-1][1] - 0.5 - 0.02) * length
    mirrors = np.array([[front, side * (half + 0.07), belt + 0.07] for side in (-1, 1)])
    into.ellipsoids(mirrors, [[0.07, 0.1, 0.07]], paint, detail=5)
