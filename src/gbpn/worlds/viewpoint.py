"""Where a picture is taken from: intrinsics of many cameras, heights, tilts and rolls; short hand-held
sequences."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from gbpn.worlds.scene import Floats, Vector

__all__ = ["Viewpoint", "drawn_intrinsics", "handheld", "looking"]

_NYU = (0.81072, 0.81167, 0.50794, 0.52758)
"""Focal lengths of NYUv2's colour camera by the width, its centre by width and height."""


@dataclass(frozen=True, kw_only=True)
class Viewpoint:
    """A pinhole camera in the world; pixel centres lie at integer coordinates."""

    intrinsics: np.ndarray
    """[3, 3] pixels."""
    pose: np.ndarray
    """[4, 4] camera to world; the camera looks along its z, x to the right, y down."""
    width: int
    height: int

    def rays(self, dx: float = 0.0, dy: float = 0.0) -> tuple[Floats, Floats]:
        """Origins and directions [H · W, 3] through places off the pixel centres; their z in the camera is
        1."""
        x, y = np.meshgrid(np.arange(self.width) + dx, np.arange(self.height) + dy)
        return self.rays_through(x.ravel(), y.ravel())

    def rays_through(self, x: np.ndarray, y: np.ndarray) -> tuple[Floats, Floats]:
        """The same through given pixel coordinates [R]."""
        k = self.intrinsics
        seen = np.stack([(x - k[0, 2]) / k[0, 0], (y - k[1, 2]) / k[1, 1], np.ones(len(x))], axis=1)
        directions = np.ascontiguousarray(seen @ self.pose[:3, :3].T, np.float32)
        origins = np.broadcast_to(self.pose[:3, 3].astype(np.float32), directions.shape)
        return np.ascontiguousarray(origins), directions


def looking(place: Vector, yaw: float, pitch: float = 0.0, roll: float = 0.0) -> np.ndarray:
    """[4, 4] pose at `place`; yaw 0 looks along +x, counter-clockwise from above; pitch > 0 looks up;
    radians."""
    cy, sy, cp, sp = math.cos(yaw), math.sin(yaw), math.cos(pitch), math.sin(pitch)
    forward = np.array([cy * cp, sy * cp, sp])
    right = np.array([sy, -cy, 0.0])
    down = np.cross(forward, right)
    cr, sr = math.cos(roll), math.sin(roll)
    pose = np.eye(4)
    pose[:3, 0], pose[:3, 1] = cr * right + sr * down, cr * down - sr * right
    pose[:3, 2], pose[:3, 3] = forward, np.asarray(place, float)
    return pose


def drawn_intrinsics(rng: np.random.Generator, width: int, height: int) -> np.ndarray:
    """[3, 3]: a third as NYUv2's, the others phones and webcams of 50 to 90 degrees along the longer side."""
    if rng.random() < 1 / 3:
        scale = max(width, height * 4 / 3)
        fx, fy = _NYU[0] * scale, _NYU[1] * scale
        cx, cy = _NYU[2] * (width - 1), _NYU[3] * (height - 1)
    else:
        view = math.radians(rng.choice([rng.uniform(50, 60), rng.uniform(58, 72), rng.uniform(70, 90)]))
        fx = max(width, height) / (2 * math.tan(view / 2))
        fy = fx * rng.uniform(0.99, 1.01)
        cx = (width - 1) / 2 + rng.normal() * 0.012 * width
        cy = (height - 1) / 2 + rng.normal() * 0.012 * height
    return np.array([[fx, 0, cx], [0, fy, cy], [0, 0, 1.0]])


def handheld(
    start: Viewpoint,
    rng: np.random.Generator,
    frames: int,
    *,
    speed: float = 0.02,
    turn: float = 0.012,
    free: Callable[[np.ndarray, np.ndarray], bool] = lambda place, step: True,
) -> list[Viewpoint]:
    """A short sequence from `start`: `speed` metres and `turn` radians a frame, changing smoothly.

    Where a step [3] from a place [3] in the world is not `free`, it is left out and the walk turns back.
    """
    out = [start]
    velocity = rng.normal(size=6)
    for _ in range(frames - 1):
        velocity = 0.9 * velocity + 0.45 * rng.normal(size=6)
        move, spin = velocity[:3] * speed, velocity[3:] * turn * np.array([1.0, 1.0, 0.4])
        pose = out[-1].pose.copy()
        step = pose[:3, :3] @ (move * [1, 0.5, 1])
        if free(pose[:3, 3], step):
            pose[:3, 3] += step
        else:
            velocity[:3] *= -1
        pose[:3, :3] = pose[:3, :3] @ _rotation(spin)
        out.append(replace(start, pose=pose))
    return out


def _rotation(angles: np.ndarray) -> np.ndarray:
    """[3, 3] about the axis `angles` by its length, radians."""
    length = float(np.linalg.norm(angles))
    if length < 1e-12:
        return np.eye(3)
    x, y, z = angles / length
    cross = np.array([[0, -z, y], [z, 0, -x], [-y, x, 0]])
    return np.asarray(np.eye(3) + math.sin(length) * cross + (1 - math.cos(length)) * cross @ cross)
