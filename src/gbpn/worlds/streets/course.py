"""Where a street runs: a bending line over gentle hills. Places on it are (s along, t to the left, z above
ground)."""

from __future__ import annotations

import math

import numpy as np

__all__ = ["BACK", "FRONT", "Course"]

BACK, FRONT = -60.0, 260.0
"""Metres of street behind and before the place where pictures are taken."""


class Course:
    """The street's middle line, through the origin towards +x, and the land's height."""

    def __init__(self, rng: np.random.Generator, *, bend: float, hill: float) -> None:
        """`bend`: greatest change of heading in radians per metre; `hill`: slope of the land near the
        street."""
        self._s = np.arange(BACK - 40, FRONT + 140, 1.0)
        length, phase = rng.uniform(120, 260), rng.uniform(0, 2 * math.pi)
        curvature = bend * np.sin(2 * math.pi * self._s / length + phase)
        start = int(np.flatnonzero(self._s == 0)[0])
        heading = np.cumsum(curvature)
        self._heading = heading - heading[start]
        x, y = np.cumsum(np.cos(self._heading)), np.cumsum(np.sin(self._heading))
        self._x, self._y = x - x[start], y - y[start]
        self._waves = [
            (hill * wave / (2 * math.pi), 2 * math.pi / wave, *rng.uniform(0, 2 * math.pi, 2))
            for wave in rng.uniform(150, 420, 3)
        ]
        self._far = [(rng.uniform(0.3, 1), rng.integers(1, 7), rng.uniform(0, 2 * math.pi)) for _ in range(5)]
        self._rise = rng.choice([0.0, 15.0, 40.0, 90.0], p=[0.35, 0.3, 0.25, 0.1])

    def heading(self, s: float | np.ndarray) -> np.ndarray:
        """Radians, counter-clockwise from +x."""
        return np.asarray(np.interp(s, self._s, self._heading))

    def height(self, x: np.ndarray, y: np.ndarray) -> np.ndarray:
        """The land at (x, y): waves near the street, hills beyond 150 m."""
        out = np.zeros(np.broadcast(x, y).shape)
        for rise, rate, phase, direction in self._waves:
            along = x * math.cos(direction) + y * math.sin(direction)
            out = out + rise * (np.sin(rate * along + phase) - math.sin(phase))
        radius, angle = np.hypot(x, y), np.arctan2(y, x)
        ring = sum(size * np.cos(count * angle + phase) for size, count, phase in self._far)
        away = np.clip((radius - 260) / 500, 0, 1)
        return np.asarray(out + self._rise * away * away * (3 - 2 * away) * (0.8 + 0.5 * np.asarray(ring)))

    def place(self, s: float | np.ndarray, t: float | np.ndarray, z: float | np.ndarray = 0.0) -> np.ndarray:
        """[…, 3] world coordinates of places on the street."""
        s, t, z = np.broadcast_arrays(np.asarray(s, float), np.asarray(t, float), np.asarray(z, float))
        heading = self.heading(s)
        x = np.interp(s, self._s, self._x) - t * np.sin(heading)
        y = np.interp(s, self._s, self._y) + t * np.cos(heading)
        return np.stack([x, y, self.height(x, y) + z], axis=-1)

    def nearest(self, x: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """(s, distance) of the street's point that is nearest to each place [N]."""
        step = slice(None, None, 4)
        apart = np.hypot(x[:, None] - self._x[step], y[:, None] - self._y[step])
        best = apart.argmin(axis=1)
        return self._s[step][best], apart[np.arange(len(best)), best]
