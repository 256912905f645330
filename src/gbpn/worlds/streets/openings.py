"""What fills the holes of a wall that lies in y = 0 and faces −y: windows, doors, shop fronts, garage
doors."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from gbpn.worlds.assembly import Assembly
from gbpn.worlds.streets.palette import Colour, Palette

__all__ = ["Opening", "doors", "garages", "shops", "windows"]


@dataclass(frozen=True)
class Opening:
    """A hole in a wall, metres along it and up."""

    kind: str
    left: float
    right: float
    bottom: float
    top: float


def _bounds(openings: list[Opening]) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Middles x and z, half widths and half heights, [N] each."""
    table = np.array([[o.left, o.right, o.bottom, o.top] for o in openings])
    return (
        table[:, :2].mean(axis=1),
        table[:, 2:].mean(axis=1),
        (table[:, 1] - table[:, 0]) / 2,
        (table[:, 3] - table[:, 2]) / 2,
    )


def _panes(into: Assembly, openings: list[Opening], y: float, material: np.ndarray | int) -> None:
    """One quad a hole at depth y, its texture shown once, upright."""
    x, z, w, h = _bounds(openings)
    corners = np.stack(
        [
            np.stack([x + a * w, np.full_like(x, y), z + b * h], 1)
            for a, b in ((-1, -1), (1, -1), (1, 1), (-1, 1))
        ],
        1,
    )
    once = np.array([[0.0, 0], [1, 0], [1, 1], [0, 1]])
    into.quads(corners, material, coordinates=np.broadcast_to(once, (len(x), 4, 2)))


def _reveals(into: Assembly, openings: list[Opening], depth: float, material: int) -> None:
    """The thickness of the wall round a hole."""
    x, z, w, h = _bounds(openings)
    four = ((-1, -1), (1, -1), (1, 1), (-1, 1))
    for (a, b), (c, d) in zip(four, (*four[1:], four[0]), strict=True):
        zero, deep = np.zeros_like(x), np.full_like(x, depth)
        corners = [
            np.stack([x + a * w, zero, z + b * h], 1),
            np.stack([x + c * w, zero, z + d * h], 1),
            np.stack([x + c * w, deep, z + d * h], 1),
            np.stack([x + a * w, deep, z + b * h], 1),
        ]
        into.quads(np.stack(corners, 1), material, tile=3.0)


def _bars(
    into: Assembly, x: np.ndarray, y: float, z: np.ndarray, half: tuple[object, float, object], material: int
) -> None:
    """Boxes at [N] places in the plane of the wall; half sides may be [N]."""
    centres = np.stack([x, np.full_like(x, y), z], axis=1)
    halves = np.stack(np.broadcast_arrays(*(np.asarray(v, float) + 0 * x for v in half)), axis=1)
    into.boxes(centres, halves, material)


def windows(
    into: Assembly,
    openings: list[Opening],
    palette: Palette,
    rng: np.random.Generator,
    trim: int,
    *,
    sunk: bool = True,
) -> None:
    """Panes that show curtains, blinds or a dark room and mirror the sky; frames, sills, shutters.

    Not `sunk`: laid on a closed wall instead of into its holes.
    """
    if not openings:
        return
    deep = float(rng.uniform(0.08, 0.22)) if sunk else -0.02
    x, z, w, h = _bounds(openings)
    behind = [
        palette.cover("window", roughness=0.03, mirror=float(rng.uniform(0.05, 0.16))) for _ in range(4)
    ]
    _panes(into, openings, deep, np.asarray(behind)[rng.integers(0, 4, len(openings))])
    if sunk:
        _reveals(into, openings, deep, trim)
    frame = 0.035
    for sign in (-1, 1):
        _bars(into, x + sign * (w - frame), deep - 0.02, z, (frame, 0.025, h), trim)
        _bars(into, x, deep - 0.02, z + sign * (h - frame), (w, 0.025, frame), trim)
    style = rng.integers(4)
    if style in (0, 1) and w.mean() > 0.4:
        _bars(into, x, deep - 0.02, z, (frame * 0.8, 0.022, h), trim)
    if style in (1, 2):
        _bars(into, x, deep - 0.02, z + h * 0.4, (w, 0.02, frame * 0.7), trim)
    if rng.random() < 0.75:
        stone = palette.cover("concrete", (0.8, 0.8, 0.78))
        _bars(into, x, -0.05, z - h - 0.03, (w + 0.06, 0.09, 0.03), stone)
        if rng.random() < 0.3:
            _bars(into, x, -0.01, z + h + 0.1, (w + 0.1, 0.03, 0.1), stone)
    if sunk and rng.random() < 0.18:
        colour = palette.pick(((0.1, 0.16, 0.09), (0.25, 0.12, 0.06), (0.5, 0.5, 0.48), (0.12, 0.16, 0.22)))
        wood = palette.cover("planks", tuple(2.0 * c for c in colour))  # type: ignore[arg-type]
        for sign in (-1, 1):
            _bars(into, x + sign * (w * 1.5 + 0.04), -0.03, z, (w / 2, 0.02, h), wood)
    if sunk and rng.random() < 0.15:
        flowers = palette.cover("leaves", (1.0, 0.8, 0.8))
        there = rng.random(len(x)) < 0.5
        _bars(into, x[there], -0.16, z[there] - h[there] + 0.1, (w[there] * 0.9, 0.1, 0.1), flowers)


def doors(
    into: Assembly, openings: list[Opening], palette: Palette, rng: np.random.Generator, plinth: float
) -> None:
    """A door leaf set back, its frame, steps up to it, often a small roof above."""
    if not openings:
        return
    deep = float(rng.uniform(0.15, 0.4))
    leaf = palette.cover("door", roughness=0.5)
    frame = palette.paint(palette.pick(((0.75, 0.74, 0.7), (0.3, 0.28, 0.26))))
    _panes(into, openings, deep, leaf)
    _reveals(into, openings, deep, frame)
    x, z, w, h = _bounds(openings)
    for sign in (-1, 1):
        _bars(into, x + sign * (w + 0.05), -0.01, z, (0.06, 0.04, h + 0.1), frame)
    stone = palette.cover("concrete", (0.75, 0.74, 0.72))
    steps = max(1, round(plinth / 0.17))
    for step in range(steps):
        top = plinth * (1 - step / steps)
        out = 0.3 * (step + 1)
        _bars(into, x, -out / 2, 0 * z + top / 2 - 0.1, (w + 0.25, out / 2, top / 2 + 0.1), stone)
    if rng.random() < 0.4:
        _bars(into, x, -0.4, z + h + 0.25, (w + 0.3, 0.4, 0.05), frame)


def shops(into: Assembly, openings: list[Opening], palette: Palette, rng: np.random.Generator) -> None:
    """Large panes, a name above them, sometimes an awning."""
    if not openings:
        return
    frame = palette.paint(
        palette.pick(((0.05, 0.05, 0.05), (0.4, 0.4, 0.4), (0.12, 0.2, 0.14), (0.3, 0.08, 0.06))),
        roughness=0.5,
    )
    inside = [palette.cover("shop", (1.3, 1.3, 1.3), roughness=0.02, mirror=0.07) for _ in range(3)]
    _panes(into, openings, 0.12, np.asarray(inside)[rng.integers(0, 3, len(openings))])
    _reveals(into, openings, 0.12, frame)
    x, z, w, h = _bounds(openings)
    for sign in (-1, 1):
        _bars(into, x + sign * w, 0.05, z, (0.05, 0.08, h), frame)
        _bars(into, x, 0.05, z + sign * h, (w, 0.08, 0.05), frame)
    left, right = float((x - w).min()), float((x + w).max())
    top = float((z + h).max())
    board = palette.paint(
        palette.pick(
            (
                (0.5, 0.06, 0.05),
                (0.05, 0.1, 0.3),
                (0.06, 0.2, 0.08),
                (0.6, 0.5, 0.1),
                (0.6, 0.6, 0.6),
                (0.03, 0.03, 0.03),
            )
        ),
        roughness=0.4,
    )
    into.boxes([[(left + right) / 2, -0.08, top + 0.35]], [[(right - left) / 2, 0.08, 0.25]], board)
    letters = palette.paint((0.8, 0.8, 0.75))
    count = int(rng.integers(4, 11))
    size = rng.uniform(0.06, 0.13, count)
    start = (left + right) / 2 - count * 0.14
    places = np.stack([start + np.arange(count) * 0.28, np.full(count, -0.17), np.full(count, top + 0.35)], 1)
    into.boxes(places, np.stack([size * 0.7, np.full(count, 0.01), size], 1), letters)
    if rng.random() < 0.4:
        _awning(into, left, right, top + 0.1, palette, rng)


def _awning(
    into: Assembly, left: float, right: float, top: float, palette: Palette, rng: np.random.Generator
) -> None:
    """A sheet of striped cloth that slopes down over the pavement."""
    out, drop = rng.uniform(0.8, 1.5), rng.uniform(0.35, 0.6)
    colours: tuple[Colour, Colour] = (
        palette.pick(((0.4, 0.05, 0.05), (0.05, 0.2, 0.1), (0.1, 0.15, 0.35))),
        (0.7, 0.68, 0.62),
    )
    both = [palette.paint(colour) for colour in colours]
    edges = np.linspace(left, right, max(3, int((right - left) / 0.3)))
    a, b = edges[:-1], edges[1:]

    def sheet(y0: float, z0: float, y1: float, z1: float) -> np.ndarray:
        def at(x: np.ndarray, y: float, z: float) -> np.ndarray:
            return np.stack([x, np.full_like(x, y), np.full_like(x, z)], 1)

        return np.stack([at(a, y1, z1), at(b, y1, z1), at(b, y0, z0), at(a, y0, z0)], 1)

    stripes = np.asarray(both)[np.arange(len(a)) % 2]
    into.quads(sheet(0, top, -out, top - drop), stripes)
    into.quads(sheet(-out, top - drop, -out, top - drop - 0.18), stripes)


def garages(into: Assembly, openings: list[Opening], palette: Palette, rng: np.random.Generator) -> None:
    """Doors for cars."""
    if not openings:
        return
    tone = float(rng.uniform(0.5, 1.0))
    _panes(into, openings, 0.15, palette.cover("garage", (tone, tone, tone), roughness=0.7))
    _reveals(into, openings, 0.15, palette.cover("concrete"))
