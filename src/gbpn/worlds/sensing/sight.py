"""What a sensor looks at: the scene, the camera that it goes with, and the surfaces that rays meet."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from gbpn.worlds.scene import Floats, Ints
from gbpn.worlds.surfaces import Skin
from gbpn.worlds.tracing import Tracer
from gbpn.worlds.viewpoint import Viewpoint

__all__ = ["Sight", "Surfaces"]

_INFRARED = np.array([0.6, 0.25, 0.15], np.float32)
"""How much red, green and blue say about the near infrared, in which sensors work."""
_LIFT = np.float32(2e-3)
"""Metres by which a ray starts above the surface that it leaves."""


@dataclass(frozen=True, kw_only=True)
class Surfaces:
    """What R rays met: solid surfaces, also those behind clear panes."""

    distance: Floats
    """[R] in lengths of the ray's direction, infinite where there is nothing."""
    points: Floats
    """[R, 3] in the world."""
    normals: Floats
    """[R, 3] towards where the ray comes from; 0 where there is nothing."""
    cosine: Floats
    """[R] of the angle between ray and normal: 1 is head on, 0 glancing or nothing."""
    brightness: Floats
    """[R] share of infrared light that is scattered back; 0 where there is nothing."""
    mirror: Floats
    """[R] share that is reflected as by a mirror."""
    polish: Floats
    """[R] 1 − roughness; 0 where there is nothing."""
    triangle: Ints
    """[R] row of the mesh, −1 for nothing."""


@dataclass(frozen=True, kw_only=True)
class Sight:
    """A camera's view of a scene; sensors are placed beside the camera."""

    tracer: Tracer
    skin: Skin
    view: Viewpoint
    image: npt.NDArray[np.uint8] | None = None
    """[H, W, 3]: the photograph, for sensors that need it."""

    @property
    def size(self) -> tuple[int, int]:
        """(height, width)."""
        return self.view.height, self.view.width

    @cached_property
    def surfaces(self) -> Surfaces:
        """What the pixels' centres see; directions have z = 1, so distances are planar depth."""
        return self._met(*self.view.rays())

    @cached_property
    def depth(self) -> Floats:
        """[H, W] planar depth in metres to what is solid, 0 where nothing is."""
        distance = self.surfaces.distance
        return np.where(np.isfinite(distance), distance, 0).astype(np.float32).reshape(self.size)

    def look(self, directions: np.ndarray, place: np.ndarray) -> Surfaces:
        """What rays meet from `place` [3] along [R, 3], both in camera coordinates."""
        turned = np.ascontiguousarray(directions @ self.view.pose[:3, :3].T, np.float32)
        origins = np.broadcast_to(self.world(place[None]).astype(np.float32), turned.shape)
        return self._met(np.ascontiguousarray(origins), turned)

    def reflected(self, seen: Surfaces, directions: np.ndarray, rows: np.ndarray) -> Surfaces:
        """What some of the rays, of `directions` [R, 3] in camera coordinates, meet after a mirror."""
        incoming = directions[rows] @ self.view.pose[:3, :3].T
        normal = seen.normals[rows].astype(np.float64)
        outgoing = incoming - 2 * np.einsum("ri,ri->r", incoming, normal)[:, None] * normal
        return self._met(seen.points[rows] + seen.normals[rows] * _LIFT, outgoing.astype(np.float32))

    def world(self, points: np.ndarray) -> npt.NDArray[np.float64]:
        """[N, 3] camera coordinates → world."""
        return np.asarray(points @ self.view.pose[:3, :3].T + self.view.pose[:3, 3])

    def sees(self, place: np.ndarray) -> npt.NDArray[np.bool_]:
        """[H, W] whether each pixel's surface is seen from `place` [3], camera coordinates, too."""
        seen = self.surfaces
        there = np.flatnonzero(seen.triangle >= 0)
        start = seen.points[there] + seen.normals[there] * _LIFT
        towards = self.world(place[None])[0].astype(np.float32) - start
        facing = np.einsum("ri,ri->r", towards, seen.normals[there]) > 0
        out = np.zeros(len(seen.triangle), bool)
        out[there] = facing & ~self.tracer.blocked(start, towards, 1.0)
        return out.reshape(self.size)

    def _met(self, origins: Floats, directions: Floats) -> Surfaces:
        hits = self.tracer.cast_through(origins, directions)
        pixel = 1 / float(self.view.intrinsics[0, 0])
        points = self.skin.look(hits, origins, directions, pixel)
        speed = np.sqrt(np.einsum("ri,ri->r", directions, directions))
        along = -np.einsum("ri,ri->r", directions, points.normal) / np.maximum(speed, 1e-12)
        rough, mirror = points.gloss[:, 0], points.gloss[:, 1]
        return Surfaces(
            distance=np.where(hits.found, hits.distance, np.float32(np.inf)),
            points=points.place,
            normals=points.normal,
            cosine=np.clip(along, 0, 1).astype(np.float32),
            brightness=(points.albedo @ _INFRARED) * (1 - mirror),
            mirror=mirror,
            polish=np.where(hits.found, 1 - rough, 0).astype(np.float32),
            triangle=hits.triangle,
        )
