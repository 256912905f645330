"""Who is on a street: parked and moving cars, cyclists, people."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from gbpn.worlds.assembly import Assembly
from gbpn.worlds.assets import Furniture
from gbpn.worlds.streets.cars import car
from gbpn.worlds.streets.course import BACK, Course
from gbpn.worlds.streets.figures import bicycle, cyclist, modelled, person
from gbpn.worlds.streets.ground import Profile
from gbpn.worlds.streets.palette import Palette

__all__ = ["traffic"]


def traffic(
    into: Assembly,
    course: Course,
    profile: Profile,
    palette: Palette,
    rng: np.random.Generator,
    *,
    side: int,
    lit: bool,
    busy: bool,
    models: Sequence[Furniture] = (),
) -> None:
    """Fill a street; `side` is where traffic that drives along +s keeps (t of this sign).

    Where there are `models` of people, most people are of them.
    """

    def put(part: Assembly, name: str, s: float, t: float, z: float, turn: float) -> None:
        into.next_thing(name)
        into.add(part, course.place(s, t, z), float(course.heading(s)) + turn)

    _parked(put, profile, palette, rng, side)
    for _ in range(int(rng.poisson(3.0 if busy else 1.2))):
        way = int(rng.choice([-1, 1]))
        s = float(rng.uniform(10, 150)) if way > 0 else float(rng.uniform(4, 170))
        t = way * side * profile.lane * 0.5 + rng.normal(0, 0.15)
        turn = (0.0 if way > 0 else math.pi) + float(rng.normal(0, 0.02))
        put(car(palette, rng, lit=lit or bool(rng.random() < 0.3)), "car", s, float(t), 0.0, turn)
    for _ in range(int(rng.poisson(0.7))):
        way = int(rng.choice([-1, 1]))
        t = way * side * (profile.lane - 0.7)
        put(cyclist(palette, rng), "cyclist", float(rng.uniform(5, 45)), t, 0.0, 0.0 if way > 0 else math.pi)
    walk = (profile.walk + profile.front) / 2 if profile.pavement else profile.road - 0.5
    for _ in range(int(rng.poisson(5.0 if busy else 2.0))):
        where = int(rng.choice([-1, 1]))
        crosses = rng.random() < 0.1
        t = (
            float(rng.uniform(-1, 1) * profile.road)
            if crosses
            else where * (walk + float(rng.uniform(-0.4, 0.4)))
        )
        turn = float(rng.choice([0.0, math.pi]) + (math.pi / 2 if crosses else rng.normal(0, 0.25)))
        pose = "walk" if rng.random() < 0.75 else "stand"
        s = float(rng.uniform(3, 55))
        z = 0.0 if crosses else profile.kerb
        if models and rng.random() < 0.7:
            model = modelled(models[int(rng.integers(len(models)))], palette.builder)
            heading = float(course.heading(s)) + turn
            palette.builder.add(model.moved(course.place(s, t, z), heading))
        else:
            put(person(palette, rng, pose=pose), "person", s, t, z, turn)
    for _ in range(int(rng.poisson(0.8))):
        where = int(rng.choice([-1, 1]))
        put(
            bicycle(palette, rng),
            "bicycle",
            float(rng.uniform(3, 40)),
            where * (profile.front - 0.35),
            profile.kerb,
            float(rng.normal(0, 0.2)),
        )


def _parked(put, profile: Profile, palette: Palette, rng: np.random.Generator, side: int) -> None:  # type: ignore[no-untyped-def]
    """Rows of cars in the parking strip, or half on the pavement where there is none."""
    ready = [car(palette, rng) for _ in range(9)]
    for where in (-1, 1):
        density = float(rng.uniform(0.2, 0.9)) if profile.parking else float(rng.choice([0.0, 0.12, 0.3]))
        t = (
            where * (profile.lane + profile.parking * 0.52)
            if profile.parking
            else where * (profile.road - 0.55)
        )
        s = BACK + float(rng.uniform(0, 5))
        while s < 170:
            if rng.random() < density:
                forward = where == side
                if rng.random() < 0.15:
                    forward = not forward
                part = ready[int(rng.integers(len(ready)))] if s > 30 or s < 0 else car(palette, rng)
                place = float(t + rng.normal(0, 0.1))
                put(part, "car", s, place, 0.0, (0.0 if forward else math.pi) + float(rng.normal(0, 0.025)))
            s += float(rng.uniform(5.3, 7.0))
