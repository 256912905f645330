"""One frame of a data set: the world of its number, looked at, photographed and measured."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from gbpn.errors import InputError
from gbpn.worlds.assets import LICENCES, Stock
from gbpn.worlds.kinds import Kind, Place, kind_named
from gbpn.worlds.lens import Photography, photographed
from gbpn.worlds.scene import Floats
from gbpn.worlds.sensing.laser import Reading
from gbpn.worlds.sensing.rig import measure, require_sensors
from gbpn.worlds.sensing.sight import Sight
from gbpn.worlds.shading import Shader
from gbpn.worlds.tracing import Tracer
from gbpn.worlds.viewpoint import Viewpoint

__all__ = ["THROUGH", "DrawnFrame", "Wanted", "frames_of", "stock_for"]

THROUGH = "through"
"""Among the sensors: the exact depth behind panes and along what mirrors throw on."""
_SIDES = 16, 4096


@dataclass(frozen=True, kw_only=True)
class Wanted:
    """What decides the bytes of frame N, together with N itself."""

    kind: str
    """rooms or streets."""
    seed: int = 1
    size: tuple[int, int] = (320, 240)
    """Width and height."""
    views: int = 2
    """Frames in a row that are taken in one world, each from a place of its own: N // views is the world."""
    licence: str = "any"
    """any, or cc0: models that may be used without naming anybody."""
    sensors: tuple[str, ...] | None = None
    """Who looks on; None for the usual ones of the kind."""

    def checked(self) -> Wanted:
        """The same with its sensors named; raises for what cannot be drawn."""
        kind = kind_named(self.kind)
        low, high = _SIDES
        if not all(low <= side <= high for side in self.size):
            raise InputError(
                f"a frame must be {low} to {high} pixels wide and high; got {self.size[0]}x{self.size[1]}"
            )
        if self.views < 1:
            raise InputError(f"views must be 1 or more to a world; got {self.views}")
        if self.seed < 0:
            raise InputError(f"seed must be 0 or more; got {self.seed}")
        if self.licence not in LICENCES:
            raise InputError(f"licence must be one of {', '.join(LICENCES)}; got {self.licence!r}")
        sensors = kind.sensors if self.sensors is None else self.sensors
        require_sensors([name for name in sensors if name != THROUGH])
        return replace(self, sensors=tuple(dict.fromkeys(sensors)))


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
    if any(number // wanted.views != world for number in numbers):
        raise InputError(f"world {world} of {wanted.views} views has no such frames: {list(numbers)}")
    kind = kind_named(wanted.kind)
    place = kind.build(wanted.seed, world, stock)
    shader = Shader(Tracer(place.scene))
    for number in numbers:
        yield _taken(wanted, kind, place, shader, number)


def _taken(wanted: Wanted, kind: Kind, place: Place, shader: Shader, number: int) -> DrawnFrame:
    """One picture and what sensors say; random numbers come from the seed and the frame's number only."""
    rng = np.random.default_rng([wanted.seed, number, *kind.name.encode()])
    view = place.look(shader.tracer, rng, *wanted.size)
    drawing = shader.draw(view, int(rng.integers(2**31)))
    lens = Photography.drawn(rng)
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
        credits=tuple(credit.name for credit in place.scene.credits()),
    )
