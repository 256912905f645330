"""LiDAR without a spinning head: rosettes, rasters, and the few hundred dots of a telephone."""

from __future__ import annotations

import math

import numpy as np

from gbpn.errors import InputError
from gbpn.worlds.sensing.laser import Laser, Reading, fire, into_picture
from gbpn.worlds.sensing.sight import Sight

__all__ = ["PHONE", "SHAPES", "solid_state"]

SHAPES = ("rosette", "raster", "dots")
PHONE = Laser(
    reach=5.5, nearest=0.2, reach_dark=4.0, divergence=0.004, merging=0.15, noise=0.008, noise_per_metre=0.002
)
"""A telephone's emitter: weak, wide, near."""


def solid_state(
    sight: Sight,
    rng: np.random.Generator,
    *,
    shape: str = "rosette",
    shots: int = 10000,
    opening: tuple[float, float] = (math.radians(70), math.radians(70)),
    place: tuple[float, float, float] = (0.05, -0.06, 0.0),
    laser: Laser | None = None,
) -> Reading:
    """One frame of `shots` shots within `opening` (radians across and up, full angles).

    rosette  two turning prisms: dense in the middle, never the same twice
    raster   lines that a mirror sweeps to and fro
    dots     a jittered grid, all at once
    """
    across, up = _pattern(shape, shots, rng)
    x, y = np.tan(across * opening[0] / 2), np.tan(up * opening[1] / 2)
    directions = np.stack([x, y, np.ones_like(x)], axis=1)
    directions /= np.linalg.norm(directions, axis=1, keepdims=True)
    origin = np.asarray(place, np.float64)
    distance = fire(sight, origin, directions, laser or (PHONE if shape == "dots" else Laser()), rng)
    there = np.isfinite(distance)
    return into_picture(sight, origin + directions[there] * distance[there, None])


def _pattern(shape: str, shots: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """([S], [S]) shares −1 … 1 of half the opening, right and down."""
    time = np.arange(shots) / shots + rng.uniform(0, 1)
    if shape == "rosette":
        fast, slow = 2 * math.pi * 61.7 * time, -2 * math.pi * 38.3 * time
        return (np.cos(fast) + np.cos(slow)) / 2, (np.sin(fast) + np.sin(slow)) / 2
    if shape == "raster":
        lines = max(2, round(math.sqrt(shots / 3)))
        sweep = (time * lines / 2) % 1
        return 1 - 4 * np.abs(sweep - 0.5), 2 * (time % 1) - 1
    if shape == "dots":
        side = max(2, round(math.sqrt(shots)))
        grid = (np.arange(side) + 0.5) / side * 2 - 1
        x, y = (g.reshape(-1) for g in np.meshgrid(grid, grid))
        wobble = rng.normal(0, 0.08 / side, (2, len(x)))
        return x + wobble[0], y + wobble[1]
    raise InputError(f"a solid-state scanner is one of {', '.join(SHAPES)}; got {shape!r}")
