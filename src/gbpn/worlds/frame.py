"""One frame of a data set: the world of its number, looked at, photographed and measured."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from gbpn.errors import InputError
from gbpn.worlds.assets import LICENCES, Stock
from gbpn.worlds.kinds import Place, kind_named
from gbpn.worlds.lens import Photography, photographed
from gbpn.worlds.scene import Floats
from gbpn.worlds.sensing.laser import Reading
from gbpn.worlds.sensing.rig import measure, require_sensors
from gbpn.worlds.sensing.sight import Sight
from gbpn.worlds.shading import Drawing, Shader
from gbpn.worlds.tracing import Tracer
from gbpn.worlds.viewpoint import Viewpoint, handheld

__all__ = ["THROUGH", "DrawnFrame", "Wanted", "frame_taken", "frames_of", "stock_for"]

THROUGH = "through"
"""Among the sensors: the exact depth behind panes and along what mirrors throw on."""
_SIDES = 16, 4096
_CLEARANCE = 0.3
"""Metres that a hand-held camera keeps from what it walks towards."""


@dataclass(frozen=True, kw_only=True)
class Wanted:
    """What decides the bytes of frame N, together with N itself."""

    kind: str
    """rooms or streets."""
    seed: int = 1
    size: tuple[int, int] = (320, 240)
    """Width and height."""
    views: int | None = None
    """Frames in a row that are taken in one world, each from a place of its own: N // views is the world.
    None for the usual number of the kind."""
    handheld: bool = False
    """Whether the views of a world are a sequence by one camera in somebody's hands."""
    licence: str = "any"
    """any, or cc0: models that may be used without naming anybody."""
    sensors: tuple[str, ...] | None = None
    """Who looks on; None for the usual ones of the kind."""

    def world_of(self, number: int) -> int:
        """The world in which a frame is taken."""
        return number // self.frames_of_a_world

    @property
    def frames_of_a_world(self) -> int:
        """Its views, the usual number where none is told."""
        return kind_named(self.kind).views if self.views is None else self.views

    def checked(self) -> Wanted:
        """The same with views and sensors told; raises for what cannot be drawn."""
        kind = kind_named(self.kind)
        low, high = _SIDES
        if not all(low <= side <= high for side in self.size):
            raise InputError(
                f"a frame must be {low} to {high} pixels wide and high; got {self.size[0]}x{self.size[1]}"
            )
        views = self.frames_of_a_world
        if views < 1:
            raise InputError(f"views must be 1 or more to a world; got {views}")
        if self.seed < 0:
            raise InputError(f"seed must be 0 or more; got {self.seed}")
        if self.licence not in LICENCES:
            raise InputError(f"licence must be one of {', '.join(LICENCES)}; got {self.licence!r}")
        sensors = kind.sensors if self.sensors is None else self.sensors
        require_sensors([name for name in sensors if name != THROUGH])
        return replace(self, views=views, sensors=tuple(dict.fromkeys(sensors)))


@dataclass(frozen=True, kw_only=True)
class DrawnFrame:
    """What is stored of one number."""

    number: int
    image: npt.NDArray[np.uint8]
    """[H, W, 3] sRGB."""
    quality: int
    """Of its JPEG."""
    depth: Floats
    """[H, W] exact planar metres to the first surface, panes and mirrors included; 0 where nothing is."""
    through: Floats
    """[H, W] the same for light that passes panes and is thrown on by mirrors."""
    readings: dict[str, Reading]
    view: Viewpoint
    facts: dict[str, str]
    seen: dict[str, int]
    """Pixels of each kind of thing in the picture, the largest first."""
    credits: tuple[str, ...]
    """Names of the models in this world."""


def stock_for(wanted: Wanted) -> Stock | None:
    """The models that may be used; None where none is needed. Raises with advice where they are missing."""
    if wanted.licence == "cc0" and not kind_named(wanted.kind).modelled:
        return None  # no model of anybody: the same frames with and without the package
    return Stock(licence=wanted.licence)


def frames_of(
    wanted: Wanted, world: int, numbers: Sequence[int], stock: Stock | None
) -> Iterator[DrawnFrame]:
    """The frames of these numbers, all of them taken in this world."""
    views = wanted.frames_of_a_world
    if any(wanted.world_of(number) != world for number in numbers):
        raise InputError(f"world {world} of {views} views has no such frames: {list(numbers)}")
    kind = kind_named(wanted.kind)
    place = kind.build(wanted.seed, world, stock)
    shader = Shader(Tracer(place.scene))
    lens: Photography | None = None
    path: list[Viewpoint] = []
    if wanted.handheld:
        rng = np.random.default_rng([wanted.seed, world, *b"handheld", *kind.name.encode()])
        path = _walked(place.look(shader.tracer, rng, *wanted.size), shader.tracer, rng, views)
        lens = Photography.drawn(rng)
    for number in numbers:
        # Random numbers come from the seed and the frame's number only.
        rng = np.random.default_rng([wanted.seed, number, *kind.name.encode()])
        view = path[number % views] if path else place.look(shader.tracer, rng, *wanted.size)
        drawing = shader.draw(view, int(rng.integers(2**31)))
        yield frame_taken(wanted, place, shader, view, drawing, lens or Photography.drawn(rng), number, rng)


def _walked(start: Viewpoint, tracer: Tracer, rng: np.random.Generator, views: int) -> list[Viewpoint]:
    """A hand-held sequence that keeps its distance from walls and things."""

    def free(place: np.ndarray, step: np.ndarray) -> bool:
        length = float(np.linalg.norm(step))
        origin, towards = (np.asarray(v, np.float32)[None] for v in (place, step / max(length, 1e-9)))
        return float(tracer.cast(origin, towards).distance[0]) > length + _CLEARANCE

    return handheld(start, rng, views, free=free)


def frame_taken(
    wanted: Wanted,
    place: Place,
    shader: Shader,
    view: Viewpoint,
    drawing: Drawing,
    lens: Photography,
    number: int,
    rng: np.random.Generator,
) -> DrawnFrame:
    """A drawing as its photograph, and what sensors say."""
    image = photographed(place.through_air(drawing.radiance, drawing.depth), lens, rng)
    sight = Sight(tracer=shader.tracer, skin=shader.skin, view=view, image=image)
    sensors = [name for name in wanted.sensors or () if name != THROUGH]
    return DrawnFrame(
        number=number,
        image=image,
        quality=lens.quality,
        depth=drawing.depth,
        through=drawing.through,
        readings=measure(sight, sensors, wanted.seed, number),
        view=view,
        facts=place.facts,
        seen=_seen(drawing.thing, place.scene.mesh.names),
        credits=tuple(credit.name for credit in place.scene.credits()),
    )


def _seen(thing: npt.NDArray[np.int32], names: Sequence[str]) -> dict[str, int]:
    """Pixels by what is there."""
    numbers, counts = np.unique(thing[thing >= 0], return_counts=True)
    pixels: dict[str, int] = {}
    for number, count in zip(numbers, counts, strict=True):
        pixels[names[number]] = pixels.get(names[number], 0) + int(count)
    return dict(sorted(pixels.items(), key=lambda item: (-item[1], item[0])))
