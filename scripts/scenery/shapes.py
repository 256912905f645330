"""Meshes made of boxes, prisms, tubes and leaves: everything that is not catalogue furniture."""

from __future__ import annotations

import math
from collections.abc import Sequence

import bpy
import numpy as np

Point = tuple[float, float, float]


class Solid:
    """Collects faces with materials, then becomes one Blender object."""

    def __init__(self, name: str) -> None:
        self.name = name
        self._vertices: list[Point] = []
        self._faces: list[tuple[int, ...]] = []
        self._slots: list[int] = []
        self._materials: list[bpy.types.Material] = []

    def faces(
        self, points: Sequence[Point], faces: Sequence[Sequence[int]], material: bpy.types.Material
    ) -> Solid:
        """Add faces given by indices into `points`."""
        if material not in self._materials:
            self._materials.append(material)
        start = len(self._vertices)
        self._vertices.extend(points)
        self._faces.extend(tuple(start + i for i in face) for face in faces)
        self._slots.extend([self._materials.index(material)] * len(faces))
        return self

    def box(self, low: Point, high: Point, material: bpy.types.Material) -> Solid:
        """An upright box between two opposite corners."""
        (x0, y0, z0), (x1, y1, z1) = low, high
        points = [(x, y, z) for z in (z0, z1) for x, y in ((x0, y0), (x1, y0), (x1, y1), (x0, y1))]
        sides = [(0, 1, 5, 4), (1, 2, 6, 5), (2, 3, 7, 6), (3, 0, 4, 7)]
        return self.faces(points, [(3, 2, 1, 0), (4, 5, 6, 7), *sides], material)

    def extrude(
        self,
        profile: Sequence[tuple[float, float]],
        x0: float,
        x1: float,
        material: bpy.types.Material,
        taper: Sequence[float] | None = None,
    ) -> Solid:
        """A (y, z) outline, anticlockwise from +x, drawn out from x0 to x1; `taper` narrows each point."""
        n = len(profile)
        inward = taper or [0.0] * n
        points: list[Point] = [(x0 + t, y, z) for (y, z), t in zip(profile, inward, strict=True)]
        points += [(x1 - t, y, z) for (y, z), t in zip(profile, inward, strict=True)]
        sides = [(i, (i + 1) % n, n + (i + 1) % n, n + i) for i in range(n)]
        return self.faces(points, [tuple(reversed(range(n))), tuple(range(n, 2 * n)), *sides], material)

    def tube(
        self,
        start: Point,
        end: Point,
        radius: float,
        material: bpy.types.Material,
        end_radius: float | None = None,
        sides: int = 24,
    ) -> Solid:
        """A closed cylinder or cone between two points."""
        a, b = np.array(start, float), np.array(end, float)
        axis = (b - a) / np.linalg.norm(b - a)
        across = np.cross(axis, [1.0, 0, 0] if abs(axis[0]) < 0.9 else [0, 1.0, 0])
        across /= np.linalg.norm(across)
        up = np.cross(axis, across)
        angles = np.arange(sides) * 2 * math.pi / sides
        ring = np.cos(angles)[:, None] * across + np.sin(angles)[:, None] * up
        far = radius if end_radius is None else end_radius
        points = [tuple(p) for p in np.concatenate([a + radius * ring, b + far * ring]).tolist()]
        walls = [(i, (i + 1) % sides, sides + (i + 1) % sides, sides + i) for i in range(sides)]
        caps = [tuple(reversed(range(sides))), tuple(range(sides, 2 * sides))]
        return self.faces(points, walls + caps, material)

    def leaves(
        self, centre: Point, radii: Point, count: int, size: float, material: bpy.types.Material, seed: int
    ) -> Solid:
        """A cloud of small quads, denser towards the surface of an ellipsoid."""
        rng = np.random.default_rng(seed)
        direction = rng.normal(size=(count, 3))
        direction /= np.linalg.norm(direction, axis=1, keepdims=True)
        where = np.array(centre) + direction * np.array(radii) * rng.uniform(0.55, 1.0, (count, 1))
        a, b = rng.normal(size=(2, count, 3))
        a *= size / np.linalg.norm(a, axis=1, keepdims=True)
        b *= size / np.linalg.norm(b, axis=1, keepdims=True)
        corners = np.stack([where - a, where - b, where + a, where + b], axis=1).reshape(
            -1, 3
        )  # [4·count, 3]
        quads = [tuple(range(4 * i, 4 * i + 4)) for i in range(count)]
        return self.faces([tuple(p) for p in corners.tolist()], quads, material)

    def build(self, at: Point = (0, 0, 0), yaw: float = 0.0, bevel: float = 0.0) -> bpy.types.Object:
        """The object, in the scene. `bevel` rounds the edges by that many metres."""
        mesh = bpy.data.meshes.new(self.name)
        mesh.from_pydata(self._vertices, [], self._faces)
        for material in self._materials:
            mesh.materials.append(material)
        mesh.polygons.foreach_set("material_index", self._slots)
        mesh.update()
        thing = bpy.data.objects.new(self.name, mesh)
        thing.location, thing.rotation_euler = at, (0, 0, math.radians(yaw))
        bpy.context.scene.collection.objects.link(thing)
        if bevel:
            modifier = thing.modifiers.new("bevel", "BEVEL")
            modifier.width, modifier.segments, modifier.limit_method = bevel, 2, "ANGLE"
        return thing
