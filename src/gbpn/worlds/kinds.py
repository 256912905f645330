"""What differs between rooms and streets for whoever draws them: how they are built, looked at and stored."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from gbpn.errors import InputError
from gbpn.worlds.assets import Stock
from gbpn.worlds.scene import Floats, World
from gbpn.worlds.tracing import Tracer
from gbpn.worlds.viewpoint import Viewpoint

__all__ = ["KINDS", "Kind", "Place", "kind_named"]


@dataclass(frozen=True, kw_only=True)
class Place:
    """One built world to take pictures of."""

    scene: World
    look: Callable[[Tracer, np.random.Generator, int, int], Viewpoint]
    """A viewpoint for a picture of this width and height."""
    through_air: Callable[[Floats, Floats], Floats]
    """Radiance [H, W, 3] as it arrives from depth [H, W]."""
    facts: dict[str, str]
    """What was drawn by lot, in words."""


@dataclass(frozen=True, kw_only=True)
class Kind:
    """One kind of world."""

    name: str
    build: Callable[[int, int, Stock | None], Place]
    """From seed and number, with the models that may be used."""
    depth_scale: float
    """Stored depth is metres times this, in 16 bits."""
    sensors: tuple[str, ...]
    """Those that look on unless others are named."""
    views: int
    """Frames of one world unless told otherwise: so many that drawing takes longer than building."""
    modelled: bool
    """Whether there is nothing to build without the models of others, even if only CC0 is allowed."""


def kind_named(name: str) -> Kind:
    """One of KINDS; raises for other names."""
    if name not in KINDS:
        raise InputError(f"kind must be one of {', '.join(KINDS)}; got {name!r}")
    return KINDS[name]


def _street(seed: int, number: int, stock: Stock | None) -> Place:
    from gbpn.worlds.streets.daylight import hazed
    from gbpn.worlds.streets.street import build
    from gbpn.worlds.streets.viewing import viewpoint

    street = build(seed, number, stock)
    return Place(
        scene=street.scene,
        look=lambda tracer, rng, width, height: viewpoint(street, tracer, rng, width, height),
        through_air=lambda radiance, depth: hazed(radiance, depth, street.day),
        facts={"style": street.style, "light": street.day.weather},
    )


def _room(seed: int, number: int, stock: Stock | None) -> Place:
    from gbpn.worlds.rooms.room import build
    from gbpn.worlds.rooms.viewing import viewpoint

    room = build(seed, number, stock)
    return Place(
        scene=room.scene,
        look=lambda tracer, rng, width, height: viewpoint(room, tracer, rng, width, height),
        through_air=lambda radiance, depth: radiance,
        facts={
            "room": room.kind,
            "light": f"{room.when.day.weather}, lamps {'lit' if room.when.lamps else 'out'}",
        },
    )


KINDS = {
    "rooms": Kind(
        name="rooms",
        build=_room,
        depth_scale=2000.0,
        sensors=("kinect",),
        views=2,
        modelled=True,
    ),
    "streets": Kind(
        name="streets",
        build=_street,
        depth_scale=256.0,
        sensors=("lidar_64",),
        views=3,
        modelled=False,
    ),
}
"""Kinds of worlds by name."""
