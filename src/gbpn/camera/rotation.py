"""A small rotation about the camera's centre, which moves pixels without asking how far away they are."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from torch import Tensor

__all__ = ["Rotation", "rotations"]


@dataclass(frozen=True, kw_only=True)
class Rotation:
    """A rotation vector, degrees: right-handed, about the camera's axes x (right), y (down), z (ahead).

    Points p of the camera become `matrix` · p: with y above 0 they move to the right, with x above 0 up, with
    z above 0 clockwise.
    """

    x: float
    y: float
    z: float

    @property
    def degrees(self) -> float:
        """By how much, about whatever axis."""
        return float(np.linalg.norm((self.x, self.y, self.z)))

    @property
    def matrix(self) -> np.ndarray:
        """[3, 3] float64."""
        return np.asarray(rotations(np.array([[self.x, self.y, self.z]]))[0])

    def after(self, to_camera: Tensor | None) -> Tensor:
        """[4, 4] float64: the points' way into the camera, then this."""
        import torch

        turn = torch.eye(4, dtype=torch.float64)
        turn[:3, :3] = torch.from_numpy(self.matrix)
        return turn if to_camera is None else turn @ to_camera.double()

    def __str__(self) -> str:
        return f"{self.degrees:.2f}° (x {self.x:+.2f}°, y {self.y:+.2f}°, z {self.z:+.2f}°)"


def rotations(vectors: np.ndarray) -> np.ndarray:
    """[M, 3, 3] of rotation vectors [M, 3] in degrees."""
    angle = np.radians(np.linalg.norm(vectors, axis=1))
    axis = np.radians(vectors) / np.maximum(angle, 1e-12)[:, None]
    x, y, z = axis.T
    nothing = np.zeros_like(x)
    cross = np.stack([nothing, -z, y, z, nothing, -x, -y, x, nothing], axis=1).reshape(-1, 3, 3)
    turned = np.sin(angle)[:, None, None] * cross + (1 - np.cos(angle))[:, None, None] * (cross @ cross)
    return np.asarray(np.eye(3) + turned)
