"""Pinhole views that cover what a wide camera sees, and how pixels go from one to the other.

Views stand upright on three rings, four on each, a right angle apart: all directions are seen by at least one
of them, and a camera that turned by a right angle sees the same views in another order.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from gbpn.camera.wide import WideCamera, inside

__all__ = ["FIELD", "PinholeView", "views_of"]

FIELD = 105.0
"""Degrees across each view, both ways; neighbours share the 15° that are more than a quarter turn."""
_TILT = 60.0
"""Degrees that the upper ring looks up, and the lower one down."""
_SMALLEST = 32
"""Pixels of the shorter side of a view."""
_FAINTEST = 1e-4
"""Weight at the very edge of a view, so that a pixel that no other one sees is not lost."""
_DIGITS = 6
"""Decimals of a pixel that count: beyond, rounding of angles would decide which pixel a point falls into."""


@dataclass(frozen=True, kw_only=True)
class PinholeView:
    """A pinhole picture of `size` with square pixels; a part of the square that its field spans."""

    yaw: float
    """Degrees to the right."""
    pitch: float
    """Degrees up."""
    focal: float
    """Pixels."""
    side: int
    """Pixels of the whole square."""
    row: int = 0
    column: int = 0
    """Where the part begins."""
    size: tuple[int, int] = (0, 0)
    """(h, w)."""

    @property
    def axes(self) -> np.ndarray:
        """[3, 3]: rows are the view's x (right), y (down) and z (ahead) in camera coordinates."""
        (cos_yaw, sin_yaw), (cos_pitch, sin_pitch) = _turn(self.yaw), _turn(self.pitch)
        right = [cos_yaw, 0.0, -sin_yaw]
        ahead = [cos_pitch * sin_yaw, -sin_pitch, cos_pitch * cos_yaw]
        down = [sin_pitch * sin_yaw, cos_pitch, sin_pitch * cos_yaw]
        return np.array([right, down, ahead])

    @property
    def intrinsics(self) -> np.ndarray:
        """[3, 3]."""
        middle = (self.side - 1) / 2
        return np.array(
            [[self.focal, 0, middle - self.column], [0, self.focal, middle - self.row], [0, 0, 1]]
        )

    def rays(self) -> np.ndarray:
        """[h, w, 3] unit directions of the pixels, in view coordinates."""
        camera = self.intrinsics
        x = (np.arange(self.size[1]) - camera[0, 2]) / self.focal
        y = (np.arange(self.size[0]) - camera[1, 2]) / self.focal
        across, down = np.meshgrid(x, y)
        rays = np.stack([across, down, np.ones_like(across)], axis=-1)
        return np.asarray(rays / np.linalg.norm(rays, axis=-1, keepdims=True))

    def directions(self) -> np.ndarray:
        """[h, w, 3] the same in camera coordinates."""
        return np.asarray(self.rays() @ self.axes)

    def project(self, towards: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """x, y [...] and the cosine to the view's axis, of unit directions [..., 3]; NaN behind the view."""
        turned = towards @ self.axes.T
        ahead = np.where(turned[..., 2] > 1e-6, turned[..., 2], np.nan)
        camera = self.intrinsics
        x = np.round(turned[..., 0] / ahead * self.focal + camera[0, 2], _DIGITS)
        y = np.round(turned[..., 1] / ahead * self.focal + camera[1, 2], _DIGITS)
        return x, y, ahead

    def window(self) -> np.ndarray:
        """[h, w] weight of the pixels: 1 in the middle of the square, falling smoothly to its edge."""
        at = (np.arange(self.side) + 0.5) / self.side * 2 - 1
        bell = np.cos(np.pi / 2 * at) ** 2
        rows = bell[self.row : self.row + self.size[0]]
        columns = bell[self.column : self.column + self.size[1]]
        return np.asarray(np.maximum(rows[:, None] * columns[None], _FAINTEST))


def views_of(camera: WideCamera, height: int, width: int) -> list[PinholeView]:
    """The rings that are needed for all that the camera sees, each view cut to what the camera sees of it."""
    towards = camera.directions(height, width)
    missing = np.isfinite(towards[..., 0])
    found = []
    for ring in _rings(camera.density(height, width)):
        left = missing.copy()  # views of one ring do not stand in for each other, so that turns are alike
        for view in ring:
            x, y, _ = view.project(towards)
            sees = inside(x, y, *view.size)
            if (sees & left).any():
                missing &= ~sees
                found.append(_cut(view, camera, height, width))
    return found


def _rings(density: float) -> Iterator[list[PinholeView]]:
    """Around the horizon, above and below it."""
    reach = math.tan(math.radians(FIELD / 2))
    side = max(math.ceil(2 * density * reach), _SMALLEST)
    for pitch in (0.0, _TILT, -_TILT):
        yield [
            PinholeView(yaw=yaw, pitch=pitch, focal=side / (2 * reach), side=side, size=(side, side))
            for yaw in (0.0, 90.0, 180.0, 270.0)
        ]


def _cut(view: PinholeView, camera: WideCamera, height: int, width: int) -> PinholeView:
    """The smallest part of the square with all that the camera sees, not narrower than a network takes."""
    sees = inside(*camera.pixels(view.directions(), height, width), height, width)
    (top, rows), (left, columns) = (_extent(np.asarray(sees.any(axis=axis)), view.side) for axis in (1, 0))
    return PinholeView(
        yaw=view.yaw,
        pitch=view.pitch,
        focal=view.focal,
        side=view.side,
        row=top,
        column=left,
        size=(rows, columns),
    )


def _extent(there: np.ndarray, side: int) -> tuple[int, int]:
    """Start and length of the part where it is true."""
    place = np.flatnonzero(there)
    first, last = (int(place[0]), int(place[-1]) + 1) if len(place) else (0, 0)
    length = max(last - first, _SMALLEST)
    return max(0, min(first - (length - (last - first)) // 2, side - length)), length


def _turn(degrees: float) -> tuple[float, float]:
    """Cosine and sine, exact at right angles."""
    quarter, rest = divmod(degrees, 90.0)
    cosine, sine = math.cos(math.radians(rest)), math.sin(math.radians(rest))
    for _ in range(int(quarter) % 4):
        cosine, sine = -sine, cosine
    return cosine, sine
