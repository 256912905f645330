"""Furniture of our own: tables, chairs of many kinds, benches, shelves, cupboards.

Thin parts are real ones: slats, legs, rungs, wires.
"""

from __future__ import annotations

import itertools
import math

import numpy as np

from gbpn.worlds.assembly import Assembly
from gbpn.worlds.rooms.interior import Interior
from gbpn.worlds.rooms.layout import Piece, Top

__all__ = ["bench", "chair", "cupboard", "shelves", "table"]


def _piece(
    name: str, into: Assembly, size: tuple[float, float, float], tops: tuple[Top, ...] = (), seat: float = 0.0
) -> Piece:
    return Piece(name=name, mesh=into.mesh(), size=size, tops=tops, seat=seat)


def table(
    palette: Interior,
    rng: np.random.Generator,
    width: float,
    depth: float,
    high: float,
    *,
    glass: bool = False,
) -> Piece:
    """A plate on legs, on trestles, on two panels, or round on a foot."""
    into = Assembly("table")
    thick = float(rng.uniform(0.015, 0.045))
    wood = palette.wooden_or_lacquered()
    frame = wood if rng.random() < 0.6 else palette.metal()
    plate = palette.pane() if glass else wood
    z = high - thick / 2
    kind = str(rng.choice(["legs", "legs", "legs", "panels", "trestle", "round"]))
    if kind == "round" and abs(width - depth) < 0.25:
        radius = min(width, depth) / 2
        into.discs([[0, 0, high]], (0, 0, 1), radius, plate, sides=28)
        into.discs([[0, 0, high - thick]], (0, 0, -1), radius, plate, sides=28)
        angle = np.linspace(0, 2 * math.pi, 29)
        rim = np.stack([np.cos(angle) * radius, np.sin(angle) * radius], 1)
        loft = np.stack([np.c_[rim, np.full(29, high - thick)], np.c_[rim, np.full(29, high)]])
        into.loft(loft, plate)
        into.tubes(
            np.array([[[0, 0, 0.03], [0, 0, high - thick]]]), rng.uniform(0.025, 0.06), frame, sides=10
        )
        into.discs([[0, 0, 0.03]], (0, 0, 1), radius * 0.55, frame, sides=20)
        inner = radius * 0.68
        return _piece(
            "table", into, (2 * radius, 2 * radius, high), ((-inner, inner, -inner, inner, high, 1.2),)
        )
    into.boxes([[0, 0, z]], [[width / 2, depth / 2, thick / 2]], plate, tile=0.9)
    x, y = width / 2 - rng.uniform(0.03, 0.09), depth / 2 - rng.uniform(0.03, 0.08)
    foot = (high - thick) / 2
    if kind == "panels":
        into.boxes([[x, 0, foot], [-x, 0, foot]], [[0.012, y, foot]], wood, tile=0.9)
        into.boxes([[0, y, 0.7 * high]], [[x, 0.01, 0.18 * high]], wood, tile=0.9)
    elif kind == "trestle":
        ends = [[[s * x, 0, high - thick], [s * x, t * y, 0]] for s in (-1, 1) for t in (-1, 1)]
        into.tubes(np.array(ends), 0.018, frame, sides=6)
        into.tubes(np.array([[[-x, 0, 0.5 * high], [x, 0, 0.5 * high]]]), 0.014, frame, sides=6)
    else:
        corners = np.array([[s * x, t * y] for s in (-1, 1) for t in (-1, 1)])
        if rng.random() < 0.45:
            spread = 1 + rng.uniform(0, 0.1)
            paths = np.stack(
                [np.c_[corners * spread, np.zeros(4)], np.c_[corners, np.full(4, high - thick)]], 1
            )
            into.tubes(paths, rng.uniform(0.012, 0.028), frame, sides=8)
        else:
            half = rng.uniform(0.015, 0.035)
            into.boxes(np.c_[corners, np.full(4, foot)], [[half, half, foot]], frame, tile=0.9)
        if rng.random() < 0.6 and not glass:
            drop = rng.uniform(0.03, 0.06)
            into.boxes([[0, y, z - drop], [0, -y, z - drop]], [[x, 0.01, drop]], wood, tile=0.9)
            into.boxes([[x, 0, z - drop], [-x, 0, z - drop]], [[0.01, y, drop]], wood, tile=0.9)
    plane = (-0.46 * width, 0.46 * width, -0.45 * depth, 0.45 * depth, high, 1.2)
    return _piece("table", into, (width, depth, high), (plane,))


def chair(palette: Interior, rng: np.random.Generator, *, stool: bool = False) -> Piece:
    """Four legs or a bent tube; a back of slats, spindles, rungs, a board, or none."""
    into = Assembly("stool" if stool else "chair")
    width, depth = float(rng.uniform(0.38, 0.46)), float(rng.uniform(0.38, 0.46))
    seat = float(rng.uniform(0.42, 0.48)) if not stool else float(rng.choice([0.46, 0.62, 0.76]))
    high = seat + float(rng.uniform(0.36, 0.55))
    wood = palette.wooden_or_lacquered()
    frame = wood if rng.random() < 0.55 else palette.metal()
    cover = palette.cloth() if rng.random() < 0.4 else wood
    thick = 0.025 if cover == wood else rng.uniform(0.03, 0.07)
    into.boxes([[0, 0, seat - thick / 2]], [[width / 2, depth / 2, thick / 2]], cover, tile=0.5)
    x, y = width / 2 - 0.025, depth / 2 - 0.025
    lean = float(rng.uniform(0.02, 0.1))
    radius = float(rng.uniform(0.009, 0.017))
    legs = [[[s * x, -y, 0], [s * x, -y, seat]] for s in (-1, 1)]
    legs += [[[s * x, y + 0.4 * lean, 0], [s * x, y, seat]] for s in (-1, 1)]
    into.tubes(np.array(legs), radius, frame, sides=6)
    if rng.random() < 0.6:
        level = rng.uniform(0.12, 0.25)
        rungs = [[[s * x, -y, level], [s * x, y, level]] for s in (-1, 1)] + [[[-x, y, level], [x, y, level]]]
        into.tubes(np.array(rungs), 0.7 * radius, frame, sides=5)
    if stool:
        return _piece("stool", into, (width, depth, seat), seat=seat)
    posts = np.array(
        [
            [[s * x, y, seat], [s * x, y + 0.5 * lean, (seat + high) / 2], [s * x, y + lean, high]]
            for s in (-1, 1)
        ]
    )
    into.tubes(posts, radius, frame, sides=6)
    _back(
        into,
        rng,
        str(rng.choice(["rungs", "spindles", "board", "cushion", "slats"])),
        (x, y, lean),
        (seat, high),
        frame,
        cover,
    )
    if rng.random() < 0.2:  # arms
        arms = [
            [[s * x, y, seat + 0.2], [s * x, -y + 0.05, seat + 0.2], [s * x, -y + 0.03, seat]]
            for s in (-1, 1)
        ]
        into.tubes(np.array(arms), radius, frame, sides=6)
    return _piece("chair", into, (width, depth + lean, high), seat=seat)


def _back(
    into: Assembly,
    rng: np.random.Generator,
    kind: str,
    frame_at: tuple[float, float, float],
    levels: tuple[float, float],
    frame: int,
    cover: int,
) -> None:
    """What fills the back between two posts that lean."""
    (x, y, lean), (seat, high) = frame_at, levels

    def back(z: float) -> float:
        return y + lean * (z - seat) / (high - seat)

    if kind == "rungs":
        heights = np.linspace(seat + 0.14, high - 0.02, int(rng.integers(2, 5)))
        for z in heights:
            into.boxes([[0, back(z), z]], [[x, 0.007, rng.uniform(0.012, 0.03)]], frame, tile=0.5)
        return
    low = seat + rng.uniform(0.02, 0.18)
    if kind in ("spindles", "slats"):
        count = int(rng.integers(3, 8))
        places = np.linspace(-x, x, count + 2)[1:-1]
        paths = np.array([[[p, back(low), low], [p, back(high), high - 0.02]] for p in places])
        into.tubes(paths, 0.006 if kind == "spindles" else 0.011, frame, sides=5)
        for z in (low, high - 0.02):
            into.boxes([[0, back(z), z]], [[x, 0.01, 0.02]], frame, tile=0.5)
        return
    middle = (low + high) / 2
    deep = 0.008 if kind == "board" else 0.022
    into.boxes(
        [[0, back(middle), middle]],
        [[x, deep, (high - low) / 2]],
        frame if kind == "board" else cover,
        tile=0.5,
    )


def bench(palette: Interior, rng: np.random.Generator, width: float) -> Piece:
    into = Assembly("bench")
    wood, high, depth = palette.wood(), 0.45, float(rng.uniform(0.3, 0.42))
    for y in np.linspace(-depth / 2 + 0.04, depth / 2 - 0.04, 3):
        into.boxes([[0, y, high - 0.015]], [[width / 2, depth / 8, 0.015]], wood, tile=0.9)
    feet = [[s * (width / 2 - 0.15), 0, high / 2 - 0.02] for s in (-1, 1)]
    into.boxes(feet, [[0.02, depth / 2 - 0.02, high / 2 - 0.015]], palette.metal(), tile=0.9)
    return _piece("bench", into, (width, depth, high), seat=high)


def shelves(
    palette: Interior,
    rng: np.random.Generator,
    width: float,
    depth: float,
    high: float,
    *,
    open_back: bool | None = None,
) -> Piece:
    """Boards between sides or on posts of metal; the places between are for things."""
    into = Assembly("shelves")
    posts = rng.random() < 0.2 if open_back is None else open_back
    wood = palette.metal() if posts and rng.random() < 0.5 else palette.wooden_or_lacquered()
    count = max(2, round(high / rng.uniform(0.28, 0.42)))
    levels = np.linspace(0.07, high - 0.012, count)
    into.boxes(np.c_[np.zeros((count, 2)), levels], [[width / 2 - 0.01, depth / 2, 0.011]], wood, tile=0.9)
    if posts:
        corners = [
            [s * (width / 2 - 0.015), t * (depth / 2 - 0.015), high / 2] for s in (-1, 1) for t in (-1, 1)
        ]
        into.boxes(corners, [[0.014, 0.014, high / 2]], wood, tile=0.9)
        brace = [
            [[-width / 2, depth / 2, levels[0]], [width / 2, depth / 2, levels[-1]]],
            [[width / 2, depth / 2, levels[0]], [-width / 2, depth / 2, levels[-1]]],
        ]
        into.tubes(np.array(brace), 0.004, wood, sides=4)
    else:
        into.boxes(
            [[s * (width / 2 - 0.01), 0, high / 2] for s in (-1, 1)],
            [[0.01, depth / 2, high / 2]],
            wood,
            tile=0.9,
        )
        if rng.random() < 0.75:
            into.boxes([[0, depth / 2 - 0.004, high / 2]], [[width / 2, 0.004, high / 2]], wood, tile=0.9)
        if rng.random() < 0.12:  # behind glass
            y, panes = -depth / 2 - 0.006, 2 if width > 0.7 else 1
            edges = np.linspace(-width / 2, width / 2, panes + 1)
            for a, b in itertools.pairwise(edges):
                corners = [[a, y, 0.05], [b, y, 0.05], [b, y, high], [a, y, high]]
                into.quads(np.array([corners]), palette.pane())
                for x in (a + 0.02, b - 0.02):
                    into.boxes(
                        [[x, y, (high + 0.05) / 2]], [[0.02, 0.006, (high - 0.05) / 2]], wood, tile=0.9
                    )
        if width > 0.95:
            into.boxes([[0, 0, high / 2]], [[0.009, depth / 2 - 0.01, high / 2 - 0.02]], wood, tile=0.9)
    tops: list[Top] = []
    for low, above in zip(levels, [*levels[1:], high + 0.4], strict=True):
        for a, b in (
            ((-width / 2 + 0.03, -0.02), (0.02, width / 2 - 0.03))
            if width > 0.95 and not posts
            else ((-width / 2 + 0.04, width / 2 - 0.04),)
        ):
            tops.append(
                (a, b, -depth / 2 + 0.02, depth / 2 - 0.02, float(low + 0.012), float(above - low - 0.03))
            )
    return _piece("shelves", into, (width, depth, high), tuple(tops))


def cupboard(
    palette: Interior,
    rng: np.random.Generator,
    width: float,
    depth: float,
    high: float,
    *,
    plinth: float = 0.06,
    worktop: bool = False,
    front: int | None = None,
) -> Piece:
    """A body with doors or drawers and their handles; with a worktop it is a kitchen's."""
    into = Assembly("cupboard")
    body = front if front is not None else palette.wooden_or_lacquered()
    handle = palette.metal()
    thick = 0.038 if worktop else 0.02
    into.boxes(
        [[0, 0.01, (plinth + high - thick) / 2]],
        [[width / 2, depth / 2 - 0.01, (high - thick - plinth) / 2]],
        body,
        tile=0.9,
    )
    into.boxes(
        [[0, 0.03, plinth / 2]],
        [[width / 2 - 0.02, depth / 2 - 0.05, plinth / 2]],
        palette.paint((0.05, 0.05, 0.05)),
    )
    top = palette.cover("worktop", roughness=0.4, mirror=0.03) if worktop else body
    over = 0.015 if worktop else 0.0
    into.boxes(
        [[0, -over / 2, high - thick / 2]],
        [[width / 2 + over / 2, depth / 2 + over / 2, thick / 2]],
        top,
        tile=0.9,
    )
    columns = max(1, round(width / rng.uniform(0.4, 0.62)))
    y = -depth / 2
    step = width / columns
    for k in range(columns):
        rows = int(rng.integers(3, 5)) if rng.random() < 0.35 and high < 1.3 else 1
        edges = np.linspace(plinth, high - thick - 0.005, rows + 1)
        for a, b in itertools.pairwise(edges):
            x = -width / 2 + (k + 0.5) * step
            into.boxes(
                [[x, y + 0.002, (a + b) / 2]], [[step / 2 - 0.003, 0.01, (b - a) / 2 - 0.003]], body, tile=0.9
            )
            _handle(into, rng, handle, x, y - 0.012, (a, b), step, drawer=rows > 1)
    tops = (
        (
            -width / 2 + 0.03,
            width / 2 - 0.03,
            -depth / 2 + 0.04,
            depth / 2 - 0.03,
            high,
            0.5 if worktop else 1.0,
        ),
    )
    return _piece("cupboard", into, (width, depth, high), tops if high < 1.6 else ())


def _handle(
    into: Assembly,
    rng: np.random.Generator,
    metal: int,
    x: float,
    y: float,
    levels: tuple[float, float],
    step: float,
    *,
    drawer: bool,
) -> None:
    a, b = levels
    if drawer:
        into.tubes(
            np.array(
                [[[x - 0.05, y - 0.015, (a + b) / 2 + 0.02], [x + 0.05, y - 0.015, (a + b) / 2 + 0.02]]]
            ),
            0.005,
            metal,
            sides=5,
        )
        return
    side = x + (0.5 if rng.random() < 0.5 else -0.5) * (step - 0.09)
    z = b - 0.12 if b < 1.2 else min(1.1, (a + b) / 2)
    into.tubes(np.array([[[side, y - 0.015, z - 0.06], [side, y - 0.015, z + 0.06]]]), 0.005, metal, sides=5)
