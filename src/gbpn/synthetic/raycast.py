"""Exact depth of simple solids by casting one ray per pixel.

World axes are those of a level camera: x right, y down, z forward, metres. Rays have unit depth (z = 1 in the
camera), so the ray parameter at a hit is the depth itself.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import product

import numpy as np

__all__ = ["NEAR", "DepthBuffer", "FloatArray", "View", "turn"]

NEAR = 0.05
"""Metres; nothing nearer is seen."""
FloatArray = np.ndarray


@dataclass(frozen=True, kw_only=True)
class View:
    """Where a camera stands and looks."""

    intrinsics: FloatArray
    """[3, 3]."""
    rotation: FloatArray
    """[3, 3], camera to world."""
    position: FloatArray
    """[3], world."""
    height: int
    width: int


def turn(yaw: float = 0.0, pitch: float = 0.0, roll: float = 0.0) -> FloatArray:
    """[3, 3] camera to world: yaw to the right, pitch upwards, roll clockwise; radians."""
    cy, sy, cp, sp = math.cos(yaw), math.sin(yaw), math.cos(pitch), math.sin(pitch)
    cr, sr = math.cos(roll), math.sin(roll)
    about_y = np.array([[cy, 0, sy], [0, 1, 0], [-sy, 0, cy]])
    about_x = np.array([[1, 0, 0], [0, cp, -sp], [0, sp, cp]])
    about_z = np.array([[cr, -sr, 0], [sr, cr, 0], [0, 0, 1]])
    rotation: FloatArray = about_y @ about_x @ about_z
    return rotation


class DepthBuffer:
    """What each pixel sees first: depth, the place on the surface, its normal and material.

    Solids may be added in any order; the nearest wins.
    """

    def __init__(self, view: View) -> None:
        self.view = view
        shape = (view.height, view.width)
        x = ((np.arange(view.width) - view.intrinsics[0, 2]) / view.intrinsics[0, 0]).astype(np.float32)
        y = ((np.arange(view.height) - view.intrinsics[1, 2]) / view.intrinsics[1, 1]).astype(np.float32)
        turned = view.rotation.astype(np.float32)
        # Three planes [H, W]: sums over a last axis of three are slow in NumPy.
        self.direction = np.stack([x * row[0] + (y[:, None] * row[1] + row[2]) for row in turned])
        self.depth = np.full(shape, np.inf, np.float32)
        self.place = np.zeros((2, *shape), np.float32)  # metres on the surface
        self.normal = np.zeros((3, *shape), np.float32)
        self.material = np.full(shape, -1, np.int32)

    def box(
        self,
        centre: FloatArray,
        half: FloatArray,
        yaw: float,
        materials: tuple[int, ...],
        inside: bool = False,
    ) -> None:
        """A box of half sizes (x, y, z), turned by `yaw`; `materials` for −x, +x, −y, +y, −z, +z.

        With `inside`, the far faces are seen instead: a room around the camera.
        """
        to_local = turn(yaw).T.astype(np.float32)
        half = np.asarray(half, np.float32)
        corners = centre + (np.array(list(product((-1, 1), repeat=3))) * half) @ to_local
        window = np.s_[:, :] if inside else self._window(corners)
        if window is None:
            return
        origin = to_local @ (self.view.position - centre).astype(np.float32)
        direction = np.tensordot(to_local, self.direction[(slice(None), *window)], axes=1)  # [3, h, w]
        inverse = 1 / np.where(np.abs(direction) < 1e-7, np.float32(1e-7), direction)
        near_side = (-half - origin)[:, None, None] * inverse
        far_side = (half - origin)[:, None, None] * inverse
        leave = np.maximum(near_side, far_side)
        if inside:
            hit, axis = _least(leave)
            seen = hit > NEAR
        else:
            hit, axis = _least(-np.minimum(near_side, far_side))
            hit = -hit
            seen = (hit > NEAR) & (hit < _least(leave)[0])
        rows, columns = self._nearer(window, hit, seen)
        axis, direction, hit = axis[rows, columns], direction[:, rows, columns], hit[rows, columns]
        local = origin[:, None] + hit * direction  # [3, N]
        count = np.arange(hit.size)
        along = direction[axis, count]
        outward = np.zeros_like(local)
        outward[axis, count] = -np.sign(along)
        face = 2 * axis + ((along > 0) == inside)
        others = np.array([[2, 0, 0], [1, 2, 1]])[:, axis]  # the two coordinates on the face
        place = local[others, count]
        self._write(window, rows, columns, hit, place, to_local.T @ outward, np.asarray(materials)[face])

    def sphere(self, centre: FloatArray, radius: float, material: int) -> None:
        """A ball."""
        window = self._window(_ball(centre, radius))
        if window is None:
            return
        offset = (self.view.position - centre).astype(np.float32)
        direction = self.direction[(slice(None), *window)]
        a = _dot(direction, direction)
        b = _dot(offset, direction)
        inner = b * b - a * np.float32(offset @ offset - radius * radius)
        hit = (-b - np.sqrt(np.maximum(inner, 0))) / a
        rows, columns = self._nearer(window, hit, (inner > 0) & (hit > NEAR))
        hit = hit[rows, columns]
        normal = (offset[:, None] + hit * direction[:, rows, columns]) / np.float32(radius)
        longitude = np.arctan2(normal[0], normal[2]) * radius
        place = np.stack([longitude, np.arcsin(normal[1].clip(-1, 1)) * radius])
        self._write(window, rows, columns, hit, place, normal, material)

    def cylinder(self, centre: FloatArray, radius: float, half: float, material: int) -> None:
        """An upright cylinder of half height `half` without lids: a pole, a trunk, a person."""
        corners = centre + np.array(list(product((-1, 1), repeat=3))) * [radius, half, radius]
        window = self._window(corners)
        if window is None:
            return
        offset = (self.view.position - centre).astype(np.float32)
        direction = self.direction[(slice(None), *window)]
        a = np.maximum(_dot(direction[::2], direction[::2]), np.float32(1e-9))
        b = _dot(offset[::2], direction[::2])
        inner = b * b - a * np.float32(offset[0] ** 2 + offset[2] ** 2 - radius * radius)
        hit = (-b - np.sqrt(np.maximum(inner, 0))) / a
        level = offset[1] + hit * direction[1]
        rows, columns = self._nearer(window, hit, (inner > 0) & (hit > NEAR) & (np.abs(level) < half))
        hit = hit[rows, columns]
        local = offset[:, None] + hit * direction[:, rows, columns]
        normal = local / np.float32(radius)
        normal[1] = 0
        place = np.stack([np.arctan2(normal[0], normal[2]) * radius, local[1]])
        self._write(window, rows, columns, hit, place, normal, material)

    def ground(self, level: float, material: int, reach: float) -> None:
        """The horizontal plane y = level, seen up to `reach` metres of depth."""
        window = np.s_[:, :]
        down = self.direction[1]
        with np.errstate(divide="ignore"):
            hit = np.float32(level - self.view.position[1]) / down
        rows, columns = self._nearer(window, hit, (down != 0) & (hit > NEAR) & (hit < reach))
        hit = hit[rows, columns]
        point = self.view.position.astype(np.float32)[:, None] + hit * self.direction[:, rows, columns]
        normal = np.zeros_like(point)
        normal[1] = -1.0 if level > self.view.position[1] else 1.0
        self._write(window, rows, columns, hit, point[::2], normal, material)

    def _nearer(
        self, window: tuple[slice, slice], hit: FloatArray, seen: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        rows, columns = np.nonzero(seen & (hit < self.depth[window]))
        return rows, columns

    def _write(
        self,
        window: tuple[slice, slice],
        rows: FloatArray,
        columns: FloatArray,
        hit: FloatArray,
        place: FloatArray,
        normal: FloatArray,
        material: FloatArray | int,
    ) -> None:
        self.depth[window][rows, columns] = hit
        self.place[(slice(None), *window)][:, rows, columns] = place
        self.normal[(slice(None), *window)][:, rows, columns] = normal
        self.material[window][rows, columns] = material

    def _window(self, corners: FloatArray) -> tuple[slice, slice] | None:
        """Pixels that a convex solid with these corners [N, 3] can cover; None if it is out of view."""
        x, y, z = self.view.rotation.T @ (corners - self.view.position).T
        if z.max() < NEAR:
            return None
        if z.min() < NEAR:
            return np.s_[:, :]
        matrix = self.view.intrinsics
        spans = []
        for value, focal, middle, length in (
            (x, matrix[0, 0], matrix[0, 2], self.view.width),
            (y, matrix[1, 1], matrix[1, 2], self.view.height),
        ):
            pixel = focal * value / z + middle
            spans.append(slice(max(0, math.floor(pixel.min())), min(length, math.ceil(pixel.max()) + 1)))
        columns, rows = spans
        return None if columns.start >= columns.stop or rows.start >= rows.stop else (rows, columns)


def _ball(centre: FloatArray, radius: float) -> FloatArray:
    """[8, 3] corners of a cube around a ball."""
    corners: FloatArray = centre + np.array(list(product((-radius, radius), repeat=3)))
    return corners


def _dot(first: FloatArray, second: FloatArray) -> FloatArray:
    """Sum over the leading axis of two or three."""
    total: FloatArray = first[0] * second[0]
    for one, other in zip(first[1:], second[1:], strict=True):
        total = total + one * other
    return total


def _least(values: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Smallest of three planes [3, h, w], and which one it is."""
    least = np.minimum(np.minimum(values[0], values[1]), values[2])
    which = np.where(values[0] == least, 0, np.where(values[1] == least, 1, 2))
    return least, which
