"""Lens distortion: where a lens puts what a pinhole would have seen, and back.

Coordinates are normalised, x/z and y/z, with x right and y down. Formulas and order of the parameters are
those of OpenCV and of COLMAP:

radtan       k1 k2 p1 p2 k3 k4 k5 k6, trailing ones may be missing: Brown's lens, with a denominator from k4
on equidistant  k1 k2 k3 k4: angle θ from the axis → θ (1 + k1 θ² + k2 θ⁴ + k3 θ⁶ + k4 θ⁸), as `cv2.fisheye`
fov          ω: radius r → atan(2 r tan(ω/2)) / ω

A picture is undistorted with its own focal lengths and size, as `cv2.undistort` does by default.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from gbpn.camera.pinhole import nearest_wins
from gbpn.errors import InputError

if TYPE_CHECKING:
    from torch import Tensor

__all__ = ["LENSES", "Lens", "undistorted_picture", "undistorted_pixels", "undistorted_sparse"]

LENSES = {"radtan": 8, "equidistant": 4, "fov": 1}
"""Kind of a lens → how many parameters it has at most."""
_STEPS = 30
"""Newton steps; the cameras of the tests need fewer than ten."""
_STRAIGHT = 1e-9
"""Radius or angle below which a lens changes nothing, so that nothing is divided by zero."""


@dataclass(frozen=True, kw_only=True)
class Lens:
    """A lens that bends."""

    kind: str
    """A key of `LENSES`."""
    parameters: tuple[float, ...]
    """In OpenCV's order, see the module."""

    def __post_init__(self) -> None:
        if self.kind not in LENSES:
            raise InputError(f"a lens is one of {', '.join(LENSES)}; got {self.kind!r}")
        most = LENSES[self.kind]
        if len(self.parameters) > most or not np.isfinite(self.parameters).all():
            raise InputError(
                f"a {self.kind} lens has at most {most} finite parameters; got {list(self.parameters)}"
            )
        missing = (0.0,) * (most - len(self.parameters))
        object.__setattr__(self, "parameters", (*map(float, self.parameters), *missing))

    @property
    def straight(self) -> bool:
        """Whether it changes nothing. An equidistant lens always does: its angles are not tangents."""
        return self.kind != "equidistant" and not any(self.parameters)

    def distort(self, x: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Where the lens puts what a pinhole sees at x, y."""
        if self.kind == "radtan":
            return _radtan(x, y, self.parameters)
        radius = np.hypot(x, y)
        grown = self._bent(np.arctan(radius)) if self.kind == "equidistant" else self._fov(radius)
        factor = np.where(radius > _STRAIGHT, grown / np.maximum(radius, _STRAIGHT), self._at_centre())
        return x * factor, y * factor

    def undistort(self, x: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Where a pinhole sees what the lens puts at x, y; NaN where the lens puts nothing."""
        if self.kind == "radtan":
            return self._newton(np.asarray(x, float), np.asarray(y, float))
        radius = np.hypot(x, y)
        if self.kind == "equidistant":
            grown = np.tan(self._angle(radius))
        else:
            omega = self.parameters[0]
            angle = radius * omega
            grown = np.tan(np.where(np.abs(angle) < np.pi / 2, angle, np.nan)) / (2 * np.tan(omega / 2))
        factor = np.where(radius > _STRAIGHT, grown / np.maximum(radius, _STRAIGHT), 1 / self._at_centre())
        return x * factor, y * factor

    def _at_centre(self) -> float:
        """How much the lens enlarges close to the axis."""
        omega = self.parameters[0]
        return 1.0 if self.kind == "equidistant" else 2 * float(np.tan(omega / 2)) / omega

    def _fov(self, radius: np.ndarray) -> np.ndarray:
        omega = self.parameters[0]
        return np.asarray(np.arctan(2 * radius * np.tan(omega / 2)) / omega)

    def _bent(self, angle: np.ndarray) -> np.ndarray:
        k1, k2, k3, k4 = self.parameters
        square = angle * angle
        return np.asarray(angle * (1 + square * (k1 + square * (k2 + square * (k3 + square * k4)))))

    def radius(self, angle: np.ndarray) -> np.ndarray:
        """Of an equidistant lens: where it puts what stands at this angle from the axis."""
        return self._bent(angle)

    @cached_property
    def widest(self) -> float:
        """Of an equidistant lens: the angle up to which its radius grows, π at most."""
        angles = np.linspace(0, np.pi, 4097)
        falls = np.flatnonzero(np.diff(self._bent(angles)) <= 0)
        return float(angles[falls[0]] if len(falls) else np.pi)

    def angle(self, radius: np.ndarray) -> np.ndarray:
        """Inverse of `radius` up to `widest`; NaN beyond."""
        k1, k2, k3, k4 = self.parameters
        angle = np.minimum(radius, np.pi / 2)
        for _ in range(_STEPS):
            square = angle * angle
            slope = 1 + square * (3 * k1 + square * (5 * k2 + square * (7 * k3 + square * 9 * k4)))
            angle = np.clip(angle - (self._bent(angle) - radius) / np.maximum(slope, 1e-3), 0, np.pi)
        found = (np.abs(self._bent(angle) - radius) < 1e-8) & (angle <= self.widest)
        return np.where(found, angle, np.nan)

    def _angle(self, radius: np.ndarray) -> np.ndarray:
        """Inverse of `_bent`; NaN beyond a right angle, which no pinhole sees."""
        angle = self.angle(radius)
        return np.where(angle < np.pi / 2, angle, np.nan)

    def _newton(self, x: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Newton's method in two dimensions, from where a straight lens would be."""
        step = 1e-6
        u, v = x.copy(), y.copy()
        with np.errstate(all="ignore"):  # where there is no answer, it runs away
            for _ in range(_STEPS):
                at_x, at_y = self.distort(u, v)
                (right_x, right_y), (left_x, left_y) = self.distort(u + step, v), self.distort(u - step, v)
                (down_x, down_y), (up_x, up_y) = self.distort(u, v + step), self.distort(u, v - step)
                a, b = (right_x - left_x) / (2 * step), (down_x - up_x) / (2 * step)
                c, d = (right_y - left_y) / (2 * step), (down_y - up_y) / (2 * step)
                off_x, off_y, area = at_x - x, at_y - y, a * d - b * c
                u, v = u - (d * off_x - b * off_y) / area, v - (a * off_y - c * off_x) / area
            at_x, at_y = self.distort(u, v)
            found = np.hypot(at_x - x, at_y - y) < 1e-6
        return np.where(found, u, np.nan), np.where(found, v, np.nan)


def undistorted_pixels(
    x: np.ndarray, y: np.ndarray, intrinsics: Tensor, lens: Lens
) -> tuple[np.ndarray, np.ndarray]:
    """Pixels of the picture as taken → pixels of the undistorted one, by the same intrinsics [3, 3]."""
    matrix = intrinsics.double().numpy()
    inverse = np.linalg.inv(matrix)
    seen_x = inverse[0, 0] * x + inverse[0, 1] * y + inverse[0, 2]
    seen_y = inverse[1, 1] * y + inverse[1, 2]
    straight_x, straight_y = lens.undistort(seen_x, seen_y)
    return (
        matrix[0, 0] * straight_x + matrix[0, 1] * straight_y + matrix[0, 2],
        matrix[1, 1] * straight_y + matrix[1, 2],
    )


def undistorted_sparse(sparse: Tensor, intrinsics: Tensor, lens: Lens) -> Tensor:
    """[1, H, W] depth: every measured pixel goes where a pinhole sees it; the nearest wins where two meet."""
    import torch

    depth = sparse[0].numpy()
    rows, columns = np.nonzero(depth)
    x, y = undistorted_pixels(columns.astype(float), rows.astype(float), intrinsics, lens)
    inside = np.isfinite(x) & np.isfinite(y) & (np.abs(x) < 1e6) & (np.abs(y) < 1e6)
    moved = nearest_wins(x[inside], y[inside], depth[rows, columns][inside], *depth.shape)
    return torch.from_numpy(moved)[None]


def undistorted_picture(picture: Tensor, intrinsics: Tensor, lens: Lens) -> Tensor:
    """[3, H, W] as a pinhole of the same intrinsics sees it; black where the lens has seen nothing."""
    import torch

    _, height, width = picture.shape
    matrix = intrinsics.double().numpy()
    inverse = np.linalg.inv(matrix)
    column, row = np.meshgrid(np.arange(width, dtype=float), np.arange(height, dtype=float))
    seen_x = inverse[0, 0] * column + inverse[0, 1] * row + inverse[0, 2]
    bent_x, bent_y = lens.distort(seen_x, inverse[1, 1] * row + inverse[1, 2])
    x = matrix[0, 0] * bent_x + matrix[0, 1] * bent_y + matrix[0, 2]  # [H, W] where to look
    y = matrix[1, 1] * bent_y + matrix[1, 2]
    grid = np.stack([2 * x / max(width - 1, 1) - 1, 2 * y / max(height - 1, 1) - 1], axis=-1)
    grid = np.nan_to_num(np.clip(grid, -3, 3), nan=-3.0)
    looked = torch.nn.functional.grid_sample(
        picture[None].double(), torch.from_numpy(grid)[None], padding_mode="zeros", align_corners=True
    )
    return looked[0].to(picture.dtype)


def _radtan(x: np.ndarray, y: np.ndarray, parameters: tuple[float, ...]) -> tuple[np.ndarray, np.ndarray]:
    k1, k2, p1, p2, k3, k4, k5, k6 = parameters
    square = x * x + y * y
    radial = (1 + square * (k1 + square * (k2 + square * k3))) / (
        1 + square * (k4 + square * (k5 + square * k6))
    )
    moved_x = x * radial + 2 * p1 * x * y + p2 * (square + 2 * x * x)
    moved_y = y * radial + p1 * (square + 2 * y * y) + 2 * p2 * x * y
    return moved_x, moved_y
