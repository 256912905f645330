"""Colours and materials outdoors: plaster, paint of cars, clothes, walls of bricks."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from gbpn.worlds.palette import BasePalette, Colour
from gbpn.worlds.scene import SceneBuilder
from gbpn.worlds.streets.textures import TILES, pictures

__all__ = ["CAR_COLOURS", "CLOTHES", "PLASTERS", "Colour", "Palette"]

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


class Palette(BasePalette):
    """Materials with the pictures of streets."""

    def __init__(self, builder: SceneBuilder, rng: np.random.Generator) -> None:
        super().__init__(builder, rng)
        self._pictures, self._places = pictures()
        self._images = {number: self._pictures[number] for number in range(len(self._pictures))}

    def picture(self, kind: str, number: int | None) -> npt.NDArray[np.uint8]:
        places = self._places[kind]
        place = places[int(self.rng.integers(len(places))) if number is None else number % len(places)]
        image: npt.NDArray[np.uint8] = self._images[place]
        return image

    @staticmethod
    def tile(kind: str) -> float:
        """Metres of one repetition of a kind of texture."""
        return TILES[kind]
