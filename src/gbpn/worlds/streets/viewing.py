"""Where pictures of a street are taken from: a car's windscreen or somebody's hand on the pavement."""

from __future__ import annotations

import math

import numpy as np

from gbpn.worlds.streets.street import Street
from gbpn.worlds.tracing import Tracer
from gbpn.worlds.viewpoint import Viewpoint, looking

__all__ = ["CAR_LIKE", "car_intrinsics", "viewpoint"]

CAR_LIKE = (0.5813, 0.4908, 0.461)
"""Focal length by the width, centre by width and height: the colour camera of the well-known street
recordings."""
_TRIES = 30
_NEAREST = 1.3
"""Metres: less than one in fifty rays may end nearer."""


def viewpoint(street: Street, tracer: Tracer, rng: np.random.Generator, width: int, height: int) -> Viewpoint:
    """A place with something to see: not inside a hedge, nor before a lorry. The last tried where none is."""
    view = _drawn(street, rng, width, height)
    for _ in range(_TRIES):
        if _worthwhile(view, tracer):
            break
        view = _drawn(street, rng, width, height)
    return view


def car_intrinsics(width: int, height: int) -> np.ndarray:
    """[3, 3] of a car's camera whose picture is this wide."""
    focal = CAR_LIKE[0] * width
    return np.array([[focal, 0, CAR_LIKE[1] * width], [0, focal, CAR_LIKE[2] * height], [0, 0, 1.0]])


def _drawn(street: Street, rng: np.random.Generator, width: int, height: int) -> Viewpoint:
    profile, course = street.profile, street.course
    s = float(rng.uniform(-5, 45))
    driving = rng.random() < 0.65
    matrix = car_intrinsics(width, height)
    if driving:
        t = street.side * profile.lane * rng.uniform(0.35, 0.6)
        eye, yaw = float(rng.uniform(1.4, 1.8)), float(rng.normal(0, 0.05))
        if rng.random() < 0.12:
            yaw += float(rng.normal(0, 0.5))
        pitch, roll = float(rng.normal(-0.01, 0.015)), float(rng.normal(0, 0.008))
    else:
        side = int(rng.choice([-1, 1]))
        on_foot = (profile.walk + profile.front) / 2 if profile.pavement else profile.road - 0.4
        t = side * on_foot if rng.random() < 0.8 else rng.uniform(-1, 1) * profile.road
        eye = float(rng.uniform(1.2, 1.75))
        yaw = float(rng.normal(-side * 0.25, 0.35)) + (math.pi if rng.random() < 0.15 else 0.0)
        pitch, roll = float(rng.normal(-0.03, 0.06)), float(rng.normal(0, 0.02))
    if not driving or rng.random() < 0.2:
        angle = math.radians(rng.uniform(55, 95))
        focal = width / (2 * math.tan(angle / 2))
        centre = [
            (width - 1) / 2 + rng.normal(0, 0.01) * width,
            (height - 1) / 2 + rng.normal(0, 0.01) * height,
        ]
        matrix = np.array(
            [[focal, 0, centre[0]], [0, focal * rng.uniform(0.995, 1.005), centre[1]], [0, 0, 1.0]]
        )
    place = course.place(s, float(t), eye)
    pose = looking(place, float(course.heading(s)) + yaw, pitch, roll)
    return Viewpoint(intrinsics=matrix, pose=pose, width=width, height=height)


def _worthwhile(view: Viewpoint, tracer: Tracer) -> bool:
    x, y = np.meshgrid(np.linspace(0, view.width - 1, 48), np.linspace(0, view.height - 1, 20))
    hits = tracer.cast(*view.rays_through(x.ravel(), y.ravel()))
    depth = hits.distance[hits.found]
    if hits.found.mean() < 0.45:
        return False
    thing = tracer.scene.mesh.thing[hits.triangle[hits.found]]
    near = np.bincount(thing[depth < 5], minlength=1)
    ground = {
        number
        for number, name in enumerate(tracer.scene.mesh.names)
        if name in ("road", "pavement", "land", "street")
    }
    near[[number for number in ground if number < len(near)]] = 0
    return bool(
        np.quantile(depth, 0.02) > _NEAREST
        and 4 < np.median(depth) < 70
        and near.max() < 0.2 * len(x.ravel())
    )
