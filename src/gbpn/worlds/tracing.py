"""What a ray meets first: Embree behind two questions. Panes of glass are kept apart from what is solid."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from gbpn.errors import BackendError, InputError
from gbpn.worlds.scene import Floats, Ints, World

__all__ = ["Hits", "Tracer", "require_packages"]


def require_packages() -> None:
    """Raise with advice unless what draws worlds is installed."""
    missing = []
    for name in ("embreex", "numba"):
        try:
            __import__(name)
        except ImportError:
            missing.append(name)
    if missing:
        raise BackendError(
            f"drawing worlds needs embreex and numba; {' and '.join(missing)} cannot be imported: "
            "pip install 'gbpn[worlds]'"
        )


@dataclass(frozen=True, kw_only=True)
class Hits:
    """The first surface along each of R rays."""

    distance: Floats
    """[R] in lengths of the given direction: place = origin + distance · direction; infinite where there is
    nothing.
    With directions whose z in the camera is 1, this is the planar depth."""
    triangle: Ints
    """[R] row of the scene's mesh, −1 where there is nothing."""
    u: Floats
    v: Floats
    """[R] share of the second and third corner."""

    @cached_property
    def found(self) -> npt.NDArray[np.bool_]:
        """[R] whether there is anything."""
        return self.triangle >= 0


class Tracer:
    """A scene prepared for rays."""

    def __init__(self, scene: World) -> None:
        require_packages()
        self.scene = scene
        clear = np.array([material.clear > 0 for material in scene.materials], bool)
        pane = clear[scene.mesh.material]
        self._solid = _Part(scene.mesh.corners, np.flatnonzero(~pane))
        self._panes = _Part(scene.mesh.corners, np.flatnonzero(pane))

    @property
    def has_panes(self) -> bool:
        """Whether anything in the scene is clear."""
        return self._panes.count > 0

    def cast(self, origins: Floats, directions: Floats) -> Hits:
        """The nearest surface, panes of glass included."""
        solid = self.cast_through(origins, directions)
        if not self.has_panes:
            return solid
        pane = self._panes.cast(*_checked(origins, directions))
        nearer = pane.distance < solid.distance
        return Hits(
            distance=np.where(nearer, pane.distance, solid.distance),
            triangle=np.where(nearer, pane.triangle, solid.triangle),
            u=np.where(nearer, pane.u, solid.u),
            v=np.where(nearer, pane.v, solid.v),
        )

    def cast_through(self, origins: Floats, directions: Floats) -> Hits:
        """The nearest surface that is not clear: what light and lasers reach through glass."""
        return self._solid.cast(*_checked(origins, directions))

    def cast_panes(self, origins: Floats, directions: Floats) -> Hits:
        """The nearest pane of glass."""
        return self._panes.cast(*_checked(origins, directions))

    def blocked(self, origins: Floats, directions: Floats, limit: Floats | float) -> npt.NDArray[np.bool_]:
        """[R] whether anything solid lies nearer than `limit` lengths of the direction. Glass blocks
        nothing."""
        origins, directions = _checked(origins, directions)
        reach = np.array(np.broadcast_to(np.asarray(limit, np.float32), len(origins)))
        return self._solid.blocked(origins, directions, reach)


class _Part:
    """Some triangles of a mesh in an Embree scene of their own."""

    def __init__(self, corners: Floats, rows: npt.NDArray[np.intp]) -> None:
        self.count = len(rows)
        self._rows: Ints | None = None if len(rows) == len(corners) else rows.astype(np.int32)
        if not self.count:
            return
        from embreex.mesh_construction import TriangleMesh
        from embreex.rtcore_scene import EmbreeScene

        self._scene: Any = EmbreeScene()
        own = corners if self._rows is None else corners[rows]
        self._mesh: Any = TriangleMesh(self._scene, np.ascontiguousarray(own, np.float32))

    def cast(self, origins: Floats, directions: Floats) -> Hits:
        if not self.count or not len(origins):
            nothing = np.zeros(len(origins), np.float32)
            return Hits(
                distance=np.full(len(origins), np.inf, np.float32),
                triangle=np.full(len(origins), -1, np.int32),
                u=nothing,
                v=nothing,
            )
        answer = self._scene.run(origins, directions, query="INTERSECT", output=1)
        found = answer["primID"]
        triangle = found if self._rows is None else np.where(found >= 0, self._rows[found], -1)
        distance = answer["tfar"]
        distance[found < 0] = np.inf
        return Hits(distance=distance, triangle=triangle, u=answer["u"], v=answer["v"])

    def blocked(self, origins: Floats, directions: Floats, limit: Floats) -> npt.NDArray[np.bool_]:
        if not self.count or not len(origins):
            return np.zeros(len(origins), bool)
        met: npt.NDArray[np.int32] = self._scene.run(origins, directions, dists=limit, query="OCCLUDED")
        return met >= 0


def _checked(origins: Floats, directions: Floats) -> tuple[Floats, Floats]:
    """Both as contiguous float32 [R, 3], as Embree wants them."""
    if origins.shape != directions.shape or origins.ndim != 2 or origins.shape[1] != 3:
        raise InputError(
            f"rays need origins and directions [R, 3] alike; got {list(origins.shape)} and "
            f"{list(directions.shape)}"
        )
    return np.ascontiguousarray(origins, np.float32), np.ascontiguousarray(directions, np.float32)
