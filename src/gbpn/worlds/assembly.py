"""Many shapes at once, gathered as triangles: quads, boxes, lofts, tubes, discs and copies of other
assemblies.

Every function takes arrays of shapes, so a façade of eighty windows is one call. Metres, z up; a face counts
from both sides. Texture coordinates are metres divided by `tile`, the side of one repetition.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from gbpn.worlds.scene import Mesh

__all__ = ["Assembly", "turning"]


def turning(angle: float) -> np.ndarray:
    """[3, 3]: a turn about the upward axis by so many radians."""
    c, s = math.cos(angle), math.sin(angle)
    return np.array([[c, -s, 0.0], [s, c, 0.0], [0.0, 0.0, 1.0]])


class Assembly:
    """Triangles in the making. `next_thing` starts a new object; everything added belongs to the last one."""

    def __init__(self, name: str = "street") -> None:
        self.names: list[str] = [name]
        self._corners: list[np.ndarray] = []
        self._normals: list[np.ndarray] = []
        self._coordinates: list[np.ndarray] = []
        self._materials: list[np.ndarray] = []
        self._things: list[np.ndarray] = []

    def next_thing(self, name: str) -> None:
        """What follows belongs to a new object."""
        self.names.append(name)

    def triangles(
        self, corners: np.ndarray, normals: np.ndarray, coordinates: np.ndarray, material: np.ndarray | int
    ) -> None:
        """[N, 3, 3] corners and normals, [N, 3, 2] coordinates, [N] material or one for all."""
        if not len(corners):
            return
        normals = np.asarray(normals, np.float32)
        without = ~(np.einsum("nki,nki->nk", normals, normals) > 0.5)
        if without.any():  # of shapes that are drawn together to a line or a point
            normals = normals.copy()
            normals[without] = (0, 0, 1)
        self._corners.append(np.asarray(corners, np.float32))
        self._normals.append(normals)
        self._coordinates.append(np.asarray(coordinates, np.float32))
        self._materials.append(np.broadcast_to(np.asarray(material, np.int32), len(corners)))
        self._things.append(np.full(len(corners), len(self.names) - 1, np.int32))

    def quads(
        self,
        corners: np.ndarray,
        material: np.ndarray | int,
        *,
        tile: float = 1.0,
        coordinates: np.ndarray | None = None,
        normals: np.ndarray | None = None,
    ) -> None:
        """[Q, 4, 3] corners in order round the quad; [Q] material. Coordinates [Q, 4, 2]: by default
        metres."""
        p = np.asarray(corners, np.float64).reshape(-1, 4, 3)
        if coordinates is None:
            coordinates = np.zeros((len(p), 4, 2))
            coordinates[:, 1:3, 0] = _length(p[:, 1] - p[:, 0])[:, None] / tile
            coordinates[:, 2:, 1] = _length(p[:, 3] - p[:, 0])[:, None] / tile
        if normals is None:
            a, b = p[:, 2] - p[:, 0], p[:, 3] - p[:, 1]
            facing = a[:, [1, 2, 0]] * b[:, [2, 0, 1]] - a[:, [2, 0, 1]] * b[:, [1, 2, 0]]
            facing /= np.maximum(_length(facing)[:, None], 1e-12)
            normals = np.repeat(facing[:, None], 4, axis=1)
        order = np.array([[0, 1, 2], [0, 2, 3]])
        coordinates = np.broadcast_to(coordinates, (len(p), 4, 2))
        self.triangles(
            p[:, order].reshape(-1, 3, 3),
            np.asarray(normals)[:, order].reshape(-1, 3, 3),
            coordinates[:, order].reshape(-1, 3, 2),
            np.repeat(np.broadcast_to(np.asarray(material, np.int32), len(p)), 2),
        )

    def boxes(
        self,
        centres: npt.ArrayLike,
        halves: npt.ArrayLike,
        material: np.ndarray | int,
        *,
        turn: float = 0.0,
        tile: float = 1.0,
    ) -> None:
        """[B, 3] centres and half sides (broadcast), all turned about the upward axis by `turn` radians."""
        centre = np.asarray(centres, np.float64).reshape(-1, 3)
        half = np.asarray(halves, np.float64).reshape(-1, 3)
        count = max(len(centre), len(half))
        corners = _BOX[None] * np.broadcast_to(half, (count, 3))[:, None, None]  # [B, 6, 4, 3]
        facing = _BOX_FACING
        if turn:
            corners, facing = corners @ turning(turn).T, facing @ turning(turn).T
        corners = corners + np.broadcast_to(centre, (count, 3))[:, None, None]
        materials = np.broadcast_to(np.asarray(material, np.int32), count)
        self.quads(
            corners.reshape(-1, 4, 3),
            np.repeat(materials, 6),
            tile=tile,
            normals=np.tile(np.repeat(facing[:, None], 4, axis=1), (count, 1, 1)),
        )

    def loft(
        self,
        points: np.ndarray,
        material: np.ndarray | int,
        *,
        tile: float = 1.0,
        coordinates: np.ndarray | None = None,
        smooth: bool = True,
    ) -> None:
        """A surface through a grid of points [S, R, 3]; material for each of its cells [S − 1, R − 1] or
        one."""
        p = np.asarray(points, np.float64)
        rows, columns = p.shape[0] - 1, p.shape[1] - 1
        if coordinates is None:
            along = np.linalg.norm(np.diff(p, axis=0), axis=2).mean(axis=1)
            around = np.linalg.norm(np.diff(p, axis=1), axis=2).mean(axis=0)
            u = np.concatenate([[0.0], np.cumsum(along)]) / tile
            v = np.concatenate([[0.0], np.cumsum(around)]) / tile
            coordinates = np.stack(np.broadcast_arrays(u[:, None], v[None]), -1)
        normals = _grid_normals(p) if smooth else None

        def cells(grid: np.ndarray) -> np.ndarray:
            four = np.stack([grid[:-1, :-1], grid[1:, :-1], grid[1:, 1:], grid[:-1, 1:]], axis=2)
            return four.reshape(rows * columns, 4, -1)

        materials = np.broadcast_to(np.asarray(material, np.int32), (rows, columns)).reshape(-1)
        self.quads(
            cells(p),
            materials,
            coordinates=cells(np.asarray(coordinates)),
            normals=None if normals is None else cells(normals),
        )

    def tubes(
        self, paths: np.ndarray, radius: np.ndarray | float, material: np.ndarray | int, *, sides: int = 6
    ) -> None:
        """Round bars along paths [P, K, 3]; radius one, [P] or [P, K] metres; material one or [P]."""
        p = np.asarray(paths, np.float64)
        count, steps = p.shape[:2]
        if not count:
            return
        radii = np.asarray(radius, np.float64)
        radii = np.broadcast_to(radii[:, None] if radii.ndim == 1 else radii, (count, steps))
        along = np.gradient(p, axis=1)
        along /= np.maximum(np.linalg.norm(along, axis=2, keepdims=True), 1e-12)
        helper = np.where(np.abs(along[:, :1, 2:]) > 0.9, [[[1.0, 0, 0]]], [[[0, 0, 1.0]]])
        side = np.cross(np.broadcast_to(helper, along.shape), along)
        side /= np.maximum(np.linalg.norm(side, axis=2, keepdims=True), 1e-12)
        other = np.cross(along, side)
        angle = np.linspace(0, 2 * math.pi, sides + 1)
        out = side[:, :, None] * np.cos(angle)[:, None] + other[:, :, None] * np.sin(angle)[:, None]
        ring = p[:, :, None] + out * radii[:, :, None, None]  # [P, K, sides + 1, 3]

        def cells(grid: np.ndarray) -> np.ndarray:
            four = [grid[:, :-1, :-1], grid[:, 1:, :-1], grid[:, 1:, 1:], grid[:, :-1, 1:]]
            return np.stack(four, axis=3).reshape(-1, 4, 3)

        materials = np.broadcast_to(np.asarray(material, np.int32), count)
        self.quads(cells(ring), np.repeat(materials, (steps - 1) * sides), normals=cells(out))

    def discs(
        self,
        centres: npt.ArrayLike,
        facing: npt.ArrayLike,
        radius: np.ndarray | float,
        material: np.ndarray | int,
        *,
        sides: int = 16,
        squash: float = 1.0,
    ) -> None:
        """Flat discs: centres [D, 3], directions that they face [D, 3], coordinates 0 … 1 across the disc."""
        centre = np.asarray(centres, np.float64).reshape(-1, 3)
        normal = np.broadcast_to(np.asarray(facing, np.float64), centre.shape)
        radii = np.broadcast_to(np.asarray(radius, np.float64), len(centre))
        helper = np.where(np.abs(normal[:, 2:]) > 0.9, [[1.0, 0, 0]], [[0, 0, 1.0]])
        side = np.cross(helper, normal)
        side /= np.linalg.norm(side, axis=1, keepdims=True)
        up = np.cross(normal, side)
        angle = np.linspace(0, 2 * math.pi, sides + 1) + math.pi / sides
        rim = (
            side[:, None] * np.cos(angle)[:, None] + up[:, None] * np.sin(angle)[:, None] * squash
        ) * radii[:, None, None] + centre[:, None]
        corners = np.stack([np.repeat(centre[:, None], sides, 1), rim[:, :-1], rim[:, 1:]], axis=2)
        flat = np.stack([np.cos(angle), np.sin(angle)], -1) * 0.5 + 0.5
        middle = np.full((sides, 2), 0.5)
        coordinates = np.stack([middle, flat[:-1], flat[1:]], axis=1)
        count = len(centre)
        self.triangles(
            corners.reshape(-1, 3, 3),
            np.repeat(normal, sides * 3, axis=0).reshape(-1, 3, 3),
            np.broadcast_to(coordinates, (count, sides, 3, 2)).reshape(-1, 3, 2),
            np.repeat(np.broadcast_to(np.asarray(material, np.int32), count), sides),
        )

    def ellipsoids(
        self, centres: npt.ArrayLike, halves: npt.ArrayLike, material: np.ndarray | int, *, detail: int = 8
    ) -> None:
        """[E, 3] centres and half axes; `detail` cells from pole to pole."""
        centre = np.asarray(centres, np.float64).reshape(-1, 3)
        half = np.broadcast_to(np.asarray(halves, np.float64), centre.shape)
        theta = np.linspace(0, math.pi, detail + 1)[:, None]
        phi = np.linspace(0, 2 * math.pi, 2 * detail + 1)[None]
        unit = np.stack(
            np.broadcast_arrays(np.sin(theta) * np.cos(phi), np.sin(theta) * np.sin(phi), np.cos(theta)), -1
        )
        materials = np.broadcast_to(np.asarray(material, np.int32), len(centre))
        for c, h, m in zip(centre, half, materials, strict=True):
            self.loft(unit * h + c, int(m))

    def add(
        self,
        part: Assembly,
        position: Sequence[float] | np.ndarray = (0.0, 0.0, 0.0),
        turn: float = 0.0,
        scale: Sequence[float] | np.ndarray | float = 1.0,
        recolour: dict[int, int] | None = None,
    ) -> None:
        """A copy of another assembly as one object: scaled, turned about the upward axis, moved."""
        if not part._corners:
            return
        size = np.broadcast_to(np.asarray(scale, np.float32), 3)
        turned = turning(turn).astype(np.float32)
        corners, normals, coordinates, material = part.arrays()
        facing = (normals / size) @ turned.T
        facing /= np.maximum(np.linalg.norm(facing, axis=2, keepdims=True), 1e-9)
        if recolour:
            table = np.arange(int(material.max()) + 1, dtype=np.int32)
            for old, new in recolour.items():
                if old < len(table):
                    table[old] = new
            material = table[material]
        self.triangles(
            (corners * size) @ turned.T + np.asarray(position, np.float32), facing, coordinates, material
        )

    def arrays(self) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """(corners, normals, coordinates, material), each of all triangles so far; gathered once."""
        for parts in (self._corners, self._normals, self._coordinates, self._materials, self._things):
            if len(parts) > 1:
                parts[:] = [np.concatenate(parts)]
        return self._corners[0], self._normals[0], self._coordinates[0], self._materials[0]

    def mesh(self) -> Mesh:
        """All triangles as one mesh."""
        corners, normals, coordinates, material = self.arrays()
        return Mesh(
            corners=np.ascontiguousarray(corners),
            normals=np.ascontiguousarray(normals),
            coordinates=np.ascontiguousarray(coordinates),
            material=np.ascontiguousarray(material),
            thing=np.ascontiguousarray(self._things[0]),
            names=tuple(self.names),
            credits=(None,) * len(self.names),
        )


def _length(vectors: np.ndarray) -> np.ndarray:
    """[N] of [N, 3]."""
    return np.asarray(np.sqrt(np.einsum("ni,ni->n", vectors, vectors)))


def _grid_normals(points: np.ndarray) -> np.ndarray:
    """[S, R, 3]: unit normals of a grid by central differences; closed grids are smooth across their seam."""
    p = points
    down = np.empty_like(p)
    down[1:-1] = p[2:] - p[:-2]
    down[0], down[-1] = p[1] - p[0], p[-1] - p[-2]
    right = np.empty_like(p)
    right[:, 1:-1] = p[:, 2:] - p[:, :-2]
    if p.shape[1] > 2 and float(np.abs(p[:, 0] - p[:, -1]).max()) < 1e-6:
        right[:, 0] = right[:, -1] = p[:, 1] - p[:, -2]
    else:
        right[:, 0], right[:, -1] = p[:, 1] - p[:, 0], p[:, -1] - p[:, -2]
    normals = np.cross(down, right)
    length = np.linalg.norm(normals, axis=2, keepdims=True)
    flat = length[..., 0] < 1e-12  # poles: take the way out of the middle
    if flat.any():
        away = p - p.reshape(-1, 3).mean(axis=0)
        normals[flat], length[flat] = away[flat], np.linalg.norm(away[flat], axis=1, keepdims=True)
    return np.asarray(normals / np.maximum(length, 1e-12))


def _box_faces() -> np.ndarray:
    """[6, 4, 3]: the corners of each face of the cube ±1; on upright faces the first edge is level."""
    faces = []
    for axis in range(3):
        i, j = ((axis + 1) % 3, (axis + 2) % 3) if axis != 1 else (0, 2)
        for sign in (-1.0, 1.0):
            face = np.zeros((4, 3))
            face[:, axis] = sign
            face[:, i], face[:, j] = (-1, 1, 1, -1), (-1, -1, 1, 1)
            faces.append(face)
    return np.stack(faces)


_BOX = _box_faces()
_BOX_FACING = _BOX.mean(axis=1)
