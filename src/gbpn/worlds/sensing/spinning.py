"""A spinning LiDAR of 8 to 128 lines beside or above the camera."""

from __future__ import annotations

import math

import numpy as np

from gbpn.errors import InputError
from gbpn.worlds.sensing.laser import Laser, Reading, fire, into_picture
from gbpn.worlds.sensing.sight import Sight

__all__ = ["BESIDE_A_CAR_CAMERA", "elevations", "spinning"]

BESIDE_A_CAR_CAMERA = (-0.06, -0.08, -0.27)
"""Metres right, down and ahead of the camera: where a car of the well-known street recordings has its
scanner."""


def elevations(lines: int) -> np.ndarray:
    """[lines] angles above the horizon in radians, from the top down, as scanners of so many lines have
    them."""
    if lines == 64:  # two blocks: a third of a degree apart above, half a degree below
        degrees = np.concatenate([np.linspace(2.0, -8.33, 32), np.linspace(-8.83, -24.33, 32)])
    elif lines == 32:  # denser about the horizon
        share = np.linspace(-1, 1, 32)
        degrees = -5.0 - 20.0 * np.sign(share) * np.abs(share) ** 1.6
    elif 1 <= lines <= 128:
        top, bottom = {8: (2.0, -18.0), 16: (15.0, -15.0), 128: (15.0, -25.0)}.get(lines, (5.0, -22.0))
        degrees = np.linspace(top, bottom, lines)
    else:
        raise InputError(f"a spinning scanner has 1 to 128 lines; got {lines}")
    return np.asarray(np.radians(degrees))


def spinning(
    sight: Sight,
    rng: np.random.Generator,
    *,
    lines: int = 64,
    place: tuple[float, float, float] = BESIDE_A_CAR_CAMERA,
    tilt: tuple[float, float] = (0.0, 0.0),
    azimuth_step: float = math.radians(0.172),
    laser: Laser | None = None,
    jitter: float = math.radians(0.02),
) -> Reading:
    """One turn of the scanner, as far as the camera can see it.

    place         metres right, down, ahead of the camera
    tilt          radians of pitch (nose up) and roll against the camera
    azimuth_step  radians between shots; the phase of the spin is random
    jitter        radians by which a line's elevation is off, the same all the way round
    """
    width = sight.view.width
    matrix = sight.view.intrinsics
    left = math.atan2(matrix[0, 2] + 1, matrix[0, 0]) + math.radians(8)
    right = math.atan2(width - matrix[0, 2], matrix[0, 0]) + math.radians(8)
    azimuth = np.arange(-min(left, 1.55), min(right, 1.55), azimuth_step) + rng.uniform(0, azimuth_step)
    up = elevations(lines) + rng.normal(0, 1, lines) * jitter
    a, e = (grid.reshape(-1) for grid in np.meshgrid(azimuth, up, indexing="xy"))
    directions = np.stack([np.sin(a) * np.cos(e), -np.sin(e), np.cos(a) * np.cos(e)], axis=1)
    directions = directions @ _tilted(*tilt).T
    origin = np.asarray(place, np.float64)
    distance = fire(sight, origin, directions, laser or Laser(), rng)
    there = np.isfinite(distance)
    ring = np.repeat(np.arange(lines), len(azimuth))[there]
    return into_picture(sight, origin + directions[there] * distance[there, None], ring)


def _tilted(pitch: float, roll: float) -> np.ndarray:
    """[3, 3] scanner axes in camera axes (x right, y down, z ahead)."""
    cp, sp, cr, sr = math.cos(pitch), math.sin(pitch), math.cos(roll), math.sin(roll)
    nose = np.array([[1, 0, 0], [0, cp, -sp], [0, sp, cp]])
    return np.asarray(np.array([[cr, -sr, 0], [sr, cr, 0], [0, 0, 1]]) @ nose)
