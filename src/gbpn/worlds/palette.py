"""Materials by what they are: paint of a colour, a surface with a picture, one of several colours."""

from __future__ import annotations

from abc import ABC, abstractmethod

import numpy as np
import numpy.typing as npt

from gbpn.worlds.scene import SceneBuilder, Surface

__all__ = ["BasePalette", "Colour"]

Colour = tuple[float, float, float]


class BasePalette(ABC):
    """Makes materials in a scene's builder; equal ones are made once."""

    def __init__(self, builder: SceneBuilder, rng: np.random.Generator) -> None:
        self.builder, self.rng = builder, rng

    @abstractmethod
    def picture(self, kind: str, number: int | None) -> npt.NDArray[np.uint8]:
        """One of the pictures of a kind; a random one without a number."""

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
        image = self.picture(kind, number)
        material = Surface(colour=_rounded(colour), roughness=roughness, mirror=mirror, emission=emission)
        return self.builder.material(material, image=image)

    def pick(self, colours: tuple[Colour, ...], spread: float = 0.12) -> Colour:
        """One of the colours, a little lighter, darker or tinted."""
        colour = np.asarray(colours[int(self.rng.integers(len(colours)))])
        shade = np.exp(self.rng.normal(0, spread)) * np.exp(self.rng.normal(0, spread / 4, 3))
        red, green, blue = (float(value) for value in np.clip(colour * shade, 0.008, None))
        return red, green, blue


def _rounded(colour: Colour) -> Colour:
    red, green, blue = (round(float(value), 3) for value in colour)
    return red, green, blue
