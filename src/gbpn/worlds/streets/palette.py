"""Materials by what they are: paint of a colour, a wall of bricks, a pane that reflects the sky."""

from __future__ import annotations

import numpy as np

from gbpn.worlds.scene import SceneBuilder, Surface
from gbpn.worlds.streets.textures import TILES, pictures

__all__ = ["CAR_COLOURS", "CLOTHES", "PLASTERS", "Colour", "Palette"]

Colour = tuple[float, float, float]

PLASTERS: tuple[Colour, ...] = (
    (0.8, 0.78, 0.74),
    (0.74, 0.68, 0.55),
    (0.7, 0.58, 0.36),
    (0.62, 0.46, 0.36),
    (0.52, 0.5, 0.46),
    (0.5, 0.56, 0.58),
    (0.42, 0.27, 0.2),
    (0.56, 0.58, 0.47),
    (0.82, 0.82, 0.8),
    (0.66, 0.62, 0.56),
    (0.36, 0.36, 0.36),
    (0.74, 0.6, 0.5),
)
"""Linear colours of plastered walls, pale more often than not."""
CAR_COLOURS: tuple[Colour, ...] = (
    *((0.5, 0.5, 0.51), (0.36, 0.37, 0.39), (0.62, 0.62, 0.63), (0.78, 0.78, 0.76)) * 2,
    *((0.025, 0.025, 0.028), (0.02, 0.02, 0.022), (0.1, 0.1, 0.11), (0.2, 0.2, 0.215)) * 2,
    (0.02, 0.04, 0.12),
    (0.05, 0.09, 0.2),
    (0.28, 0.02, 0.02),
    (0.16, 0.015, 0.015),
    (0.04, 0.07, 0.05),
    (0.33, 0.28, 0.2),
    (0.45, 0.3, 0.06),
    (0.12, 0.19, 0.24),
)
"""Silver, white, black and grey are most of them."""
CLOTHES: tuple[Colour, ...] = (
    (0.03, 0.03, 0.04),
    (0.05, 0.06, 0.12),
    (0.1, 0.14, 0.25),
    (0.25, 0.24, 0.22),
    (0.45, 0.43, 0.4),
    (0.3, 0.05, 0.04),
    (0.1, 0.15, 0.08),
    (0.5, 0.4, 0.25),
    (0.65, 0.65, 0.65),
    (0.2, 0.1, 0.05),
)


class Palette:
    """Makes materials in a scene's builder; equal ones are made once."""

    def __init__(self, builder: SceneBuilder, rng: np.random.Generator) -> None:
        self.builder, self.rng = builder, rng
        self._pictures, self._places = pictures()
        self._images = {number: self._pictures[number] for number in range(len(self._pictures))}

    def paint(
        self, colour: Colour, *, roughness: float = 1.0, mirror: float = 0.0, emission: float = 0.0
    ) -> int:
        """One colour, linear."""
        return self.builder.material(
            Surface(colour=_rounded(colour), roughness=roughness, mirror=mirror, emission=emission)
        )

    def cover(
        self,
        kind: str,
        colour: Colour = (1.0, 1.0, 1.0),
        *,
        number: int | None = None,
        roughness: float = 1.0,
        mirror: float = 0.0,
        emission: float = 0.0,
    ) -> int:
        """A texture of a kind, times a colour; which of them is random unless `number` says it."""
        places = self._places[kind]
        place = places[int(self.rng.integers(len(places))) if number is None else number % len(places)]
        material = Surface(colour=_rounded(colour), roughness=roughness, mirror=mirror, emission=emission)
        return self.builder.material(material, image=self._images[place])

    def pick(self, colours: tuple[Colour, ...], spread: float = 0.12) -> Colour:
        """One of the colours, a little lighter, darker or tinted."""
        colour = np.asarray(colours[int(self.rng.integers(len(colours)))])
        shade = np.exp(self.rng.normal(0, spread)) * np.exp(self.rng.normal(0, spread / 4, 3))
        red, green, blue = (float(value) for value in np.clip(colour * shade, 0.008, None))
        return red, green, blue

    @staticmethod
    def tile(kind: str) -> float:
        """Metres of one repetition of a kind of texture."""
        return TILES[kind]


def _rounded(colour: Colour) -> Colour:
    red, green, blue = (round(float(value), 3) for value in colour)
    return red, green, blue
