"""Where things stand in a room: its walls with what hangs on them, its floor with what is taken."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np

from gbpn.worlds.scene import Mesh, SceneBuilder

__all__ = ["Hole", "Layout", "Piece", "Placed", "Top", "Wall"]

_MOST_TRIANGLES = 180_000
Top = tuple[float, float, float, float, float, float]
"""A level place for things: x0, x1, y0, y1, z of a piece's own coordinates, and the height that is free."""


@dataclass(frozen=True, kw_only=True)
class Piece:
    """A thing for a room: it stands on z = 0 with its middle at the origin, its front towards −y."""

    name: str
    mesh: Mesh
    size: tuple[float, float, float]
    """Along x, y and z, metres."""
    tops: tuple[Top, ...] = ()
    seat: float = 0.0
    """Height of a seat or a lying place, 0 where there is none."""


@dataclass(frozen=True, kw_only=True)
class Placed:
    """A piece where it stands."""

    piece: Piece
    x: float
    y: float
    z: float
    yaw: float
    wall: int | None = None

    def at(self, x: float, y: float) -> np.ndarray:
        """[2] world coordinates of a place in the piece's own."""
        c, s = math.cos(self.yaw), math.sin(self.yaw)
        return np.array([self.x + c * x - s * y, self.y + s * x + c * y])


@dataclass(frozen=True, kw_only=True)
class Hole:
    """A hole in a wall: metres along it and up."""

    kind: str
    """window, door (closed), ajar, passage"""
    start: float
    end: float
    low: float
    high: float


@dataclass(kw_only=True)
class Wall:
    """One side of the room. `at` says where a place on it is."""

    corner: np.ndarray
    along: np.ndarray
    """[2] unit vector with the room to its left."""
    length: float
    openings: list[Hole] = field(default_factory=list)
    hung: list[tuple[float, float, float, float]] = field(default_factory=list)
    """What stands before it or hangs on it: start, end, low, high."""

    @property
    def inward(self) -> np.ndarray:
        """[2] unit vector into the room."""
        return np.array([-self.along[1], self.along[0]])

    @property
    def yaw(self) -> float:
        """Of a piece whose back is to this wall."""
        return math.atan2(self.inward[0], -self.inward[1])

    def at(self, s: float, z: float, out: float = 0.0) -> np.ndarray:
        """[3] the place `s` along, `z` up and `out` into the room."""
        x, y = self.corner + self.along * s + self.inward * out
        return np.array([x, y, z])

    def bare(self, start: float, end: float, low: float, high: float) -> bool:
        """Whether nothing is there yet, openings included."""
        taken = [*self.hung, *((o.start - 0.08, o.end + 0.08, o.low, o.high + 0.05) for o in self.openings)]
        return (
            start >= 0.05
            and end <= self.length - 0.05
            and not any(start < b and end > a and low < d and high > c for a, b, c, d in taken)
        )


class Layout:
    """A room x in [−X, X], y in [−Y, Y], z in [0, height], into which pieces are put."""

    def __init__(
        self, builder: SceneBuilder, rng: np.random.Generator, width: float, depth: float, height: float
    ) -> None:
        self.builder, self.rng = builder, rng
        self.half, self.height = np.array([width / 2, depth / 2]), height
        corners = np.array([[-1, -1], [1, -1], [1, 1], [-1, 1]]) * self.half
        self.walls = []
        for k in range(4):
            way = corners[(k + 1) % 4] - corners[k]
            length = float(np.linalg.norm(way))
            self.walls.append(Wall(corner=corners[k], along=way / length, length=length))
        self.taken: list[tuple[float, float, float, float, float]] = []
        """x, y, half sides and height of what stands on the floor."""
        self.placed: list[Placed] = []

    @property
    def crowded(self) -> bool:
        """Whether so many triangles are there that small things are left out."""
        return sum(len(mesh) for mesh in self.builder.meshes) > _MOST_TRIANGLES

    def free(self, x: float, y: float, hx: float, hy: float, pad: float = 0.02) -> bool:
        """Whether an upright rectangle of half sides is inside the room and touches nothing."""
        if abs(x) + hx > self.half[0] or abs(y) + hy > self.half[1]:
            return False
        return all(abs(x - q[0]) > hx + q[2] + pad or abs(y - q[1]) > hy + q[3] + pad for q in self.taken)

    def keep(self, x: float, y: float, hx: float, hy: float, height: float = 0.0) -> None:
        """Nothing else may stand there."""
        self.taken.append((x, y, hx, hy, height))

    def put(
        self, piece: Piece, x: float, y: float, yaw: float, *, z: float = 0.0, wall: int | None = None
    ) -> Placed:
        """Stand a piece somewhere, free or not; its floor counts as taken if it stands on it."""
        self.builder.add(piece.mesh.moved((x, y, z), yaw))
        placed = Placed(piece=piece, x=x, y=y, z=z, yaw=yaw, wall=wall)
        if z < 0.3:
            hx, hy = _upright(piece.size, yaw)
            self.keep(x, y, hx, hy, piece.size[2])
        self.placed.append(placed)
        return placed

    def try_put(self, piece: Piece, x: float, y: float, yaw: float, pad: float = 0.0) -> Placed | None:
        """The same if there is room for it."""
        hx, hy = _upright(piece.size, yaw)
        if piece.size[2] > self.height - 0.02 or not self.free(x, y, hx - 0.01, hy - 0.01, pad):
            return None
        return self.put(piece, x, y, yaw)

    def along_wall(
        self,
        piece: Piece,
        wall: int | None = None,
        near: float | None = None,
        *,
        gap: float = 0.02,
        tries: int = 22,
        front: float = 0.0,
    ) -> Placed | None:
        """With its back to a wall, near a place along it or anywhere; `front` metres stay free."""
        width, depth, high = piece.size
        if high > self.height - 0.02:
            return None
        for attempt in range(tries):
            k = int(self.rng.integers(4)) if wall is None else wall
            side = self.walls[k]
            if width + 0.1 > side.length:
                continue
            s = float(self.rng.uniform(width / 2 + 0.03, side.length - width / 2 - 0.03))
            if near is not None:
                s = float(
                    np.clip(
                        near + self.rng.normal() * 0.08 * attempt,
                        width / 2 + 0.02,
                        side.length - width / 2 - 0.02,
                    )
                )
            if any(
                s - width / 2 < o.end
                and s + width / 2 > o.start
                and (o.kind != "window" or high > o.low + 0.25)
                for o in side.openings
            ):
                continue
            x, y, _ = side.at(s, 0, depth / 2 + gap + front / 2)
            hx, hy = _upright((width, depth + front, high), side.yaw)
            if not self.free(x, y, hx - 0.012, hy - 0.012, 0.0):
                continue
            x, y, _ = side.at(s, 0, depth / 2 + gap)
            side.hung.append((s - width / 2, s + width / 2, 0.0, high))
            return self.put(piece, float(x), float(y), side.yaw, wall=k)
        return None

    def anywhere(self, piece: Piece, *, tries: int = 10, straight: bool = False) -> Placed | None:
        """Somewhere on the free floor, turned at will or along the walls."""
        for _ in range(tries):
            yaw = float(self.rng.uniform(0, 2 * math.pi))
            if straight:
                yaw = float(self.rng.integers(4) * math.pi / 2 + self.rng.normal() * 0.04)
            x, y = (float(v) for v in self.rng.uniform(-1, 1, 2) * (self.half - 0.2))
            placed = self.try_put(piece, x, y, yaw)
            if placed is not None:
                return placed
        return None

    def hang(self, piece: Piece, wall: int, s: float, low: float) -> Placed | None:
        """On a wall at a height, if it is bare there."""
        side, (width, depth, high) = self.walls[wall], piece.size
        if low + high > self.height or not side.bare(s - width / 2, s + width / 2, low, low + high):
            return None
        side.hung.append((s - width / 2, s + width / 2, low, low + high))
        x, y, _ = side.at(s, 0, depth / 2 + 0.002)
        return self.put(piece, float(x), float(y), side.yaw, z=low, wall=wall)


def _upright(size: tuple[float, float, float], yaw: float) -> tuple[float, float]:
    """Half sides of the upright rectangle around a turned piece."""
    c, s = abs(math.cos(yaw)), abs(math.sin(yaw))
    return (size[0] * c + size[1] * s) / 2, (size[0] * s + size[1] * c) / 2
