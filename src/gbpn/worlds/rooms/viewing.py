"""Where pictures of a room are taken from: somebody's hands, at a height between a table's and a head's."""

from __future__ import annotations

import math

import numpy as np

from gbpn.worlds.rooms.room import Room
from gbpn.worlds.tracing import Tracer
from gbpn.worlds.viewpoint import Viewpoint, drawn_intrinsics, looking

__all__ = ["viewpoint"]

_TRIES = 40
_RAYS = 28, 21


def viewpoint(room: Room, tracer: Tracer, rng: np.random.Generator, width: int, height: int) -> Viewpoint:
    """A place with something to see. Where none of those that are tried is, the best of them."""
    best: tuple[float, Viewpoint] | None = None
    for _ in range(_TRIES):
        view = _drawn(room, rng, width, height)
        worth = _worth(view, tracer)
        if worth >= 1:
            return view
        if best is None or worth > best[0]:
            best = worth, view
    assert best is not None
    return best[1]


def _drawn(room: Room, rng: np.random.Generator, width: int, height: int) -> Viewpoint:
    """Where nothing stands, or over it; towards the room's other half more often than not."""
    x, y = room.half
    for _ in range(30):
        eye = float(np.clip(rng.normal(1.35, 0.25), 0.8, min(1.85, room.height - 0.3)))
        place = rng.uniform(-1, 1, 2) * (np.array([x, y]) - 0.15)
        if all(
            abs(place[0] - q[0]) > q[2] + 0.15 or abs(place[1] - q[1]) > q[3] + 0.15 or q[4] < eye - 0.35
            for q in room.taken
        ):
            break
    aim = rng.uniform(-0.75, 0.75, 2) * np.array([x, y])
    yaw = math.atan2(aim[1] - place[1], aim[0] - place[0]) + float(rng.normal(0, 0.2))
    pitch = float(rng.normal(-0.2, 0.17))
    roll = float(rng.normal(0, 0.035))
    pose = looking((place[0], place[1], eye), yaw, pitch, roll)
    return Viewpoint(intrinsics=drawn_intrinsics(rng, width, height), pose=pose, width=width, height=height)


def _worth(view: Viewpoint, tracer: Tracer) -> float:
    """1 and more where a view is good: few things too near, several to see, depth of a room."""
    x, y = np.meshgrid(np.linspace(0, view.width - 1, _RAYS[0]), np.linspace(0, view.height - 1, _RAYS[1]))
    hits = tracer.cast(*view.rays_through(x.ravel(), y.ravel()))
    depth = np.where(hits.found, hits.distance, 100.0)
    thing = tracer.scene.mesh.thing[hits.triangle[hits.found]]
    share = np.bincount(thing) / len(depth) if len(thing) else np.zeros(1)
    near = float(np.quantile(depth, 0.02))
    kinds = int((share > 0.004).sum())
    checks = (
        near / 0.45,
        float(np.median(depth)) / 1.1,
        kinds / 13,
        0.5 / max(float(share.max()), 0.01),
        hits.found.mean() / 0.85,
    )
    return float(min(checks))
