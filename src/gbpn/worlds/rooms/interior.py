"""Colours and materials indoors."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from gbpn.worlds.palette import BasePalette, Colour
from gbpn.worlds.rooms.textures import COUNTS, TILES, picture
from gbpn.worlds.scene import Surface

__all__ = ["CLOTHS", "FRONTS", "METALS", "WALLS", "Interior"]

WALLS: tuple[Colour, ...] = (
    *((0.8, 0.79, 0.76), (0.72, 0.7, 0.64), (0.7, 0.65, 0.54), (0.62, 0.62, 0.6)) * 3,
    (0.6, 0.52, 0.38),
    (0.48, 0.5, 0.46),
    (0.5, 0.56, 0.6),
    (0.34, 0.38, 0.4),
    (0.55, 0.6, 0.5),
    (0.66, 0.5, 0.42),
    (0.3, 0.36, 0.32),
    (0.36, 0.42, 0.5),
    (0.62, 0.54, 0.24),
    (0.45, 0.2, 0.15),
)
"""Linear colours of painted walls: pale more often than not."""
CLOTHS: tuple[Colour, ...] = (
    *((0.55, 0.52, 0.46), (0.3, 0.28, 0.25), (0.12, 0.12, 0.12), (0.4, 0.33, 0.24), (0.75, 0.73, 0.68)) * 2,
    (0.1, 0.13, 0.2),
    (0.2, 0.08, 0.06),
    (0.14, 0.18, 0.12),
    (0.45, 0.28, 0.16),
    (0.3, 0.36, 0.4),
    (0.25, 0.14, 0.08),
    (0.5, 0.42, 0.2),
    (0.35, 0.2, 0.24),
    (0.04, 0.04, 0.045),
    (0.2, 0.28, 0.36),
)
"""Of upholstery, curtains and blankets."""
FRONTS: tuple[Colour, ...] = (
    *((0.8, 0.79, 0.77), (0.7, 0.67, 0.6)) * 3,
    (0.4, 0.4, 0.4),
    (0.1, 0.1, 0.1),
    (0.3, 0.36, 0.38),
    (0.35, 0.08, 0.06),
    (0.5, 0.56, 0.46),
    (0.2, 0.26, 0.3),
)
"""Of lacquered doors and drawers."""
METALS: tuple[Colour, ...] = (
    (0.5, 0.5, 0.5),
    (0.35, 0.35, 0.36),
    (0.06, 0.06, 0.06),
    (0.6, 0.58, 0.52),
    (0.75, 0.75, 0.73),
)


class Interior(BasePalette):
    """Materials with the pictures of rooms."""

    def picture(self, kind: str, number: int | None) -> npt.NDArray[np.uint8]:
        count = COUNTS[kind]
        return picture(kind, int(self.rng.integers(count)) if number is None else number % count)

    def wood(self) -> int:
        """Furniture's wood: oiled or varnished, one kind of this room's more often than not."""
        shine = float(self.rng.choice([0.0, 0.04, 0.06]))
        return self.cover("wood", self._shade(), roughness=0.35 if shine else 1.0, mirror=shine)

    def lacquer(self) -> int:
        """Painted fronts, dull or glossy."""
        shine = float(self.rng.choice([0.0, 0.0, 0.05]))
        return self.paint(self.pick(FRONTS), roughness=0.3 if shine else 1.0, mirror=shine)

    def wooden_or_lacquered(self) -> int:
        """What cupboards and tables are made of."""
        return self.wood() if self.rng.random() < 0.65 else self.lacquer()

    def cloth(self) -> int:
        """Plain or patterned, of some colour."""
        red, green, blue = (min(0.95, 1.15 * value) for value in self.pick(CLOTHS, 0.18))
        return self.cover("fabric", (red, green, blue))

    def metal(self) -> int:
        """Bare, chromed or painted."""
        shine = float(self.rng.choice([0.0, 0.15, 0.35]))
        return self.paint(self.pick(METALS), roughness=0.25, mirror=shine)

    def pane(self) -> int:
        """Clear glass."""
        return self.builder.material(Surface(colour=(0.92, 0.95, 0.94), clear=0.9, roughness=0.0))

    def mirror(self) -> int:
        """Silvered glass."""
        return self.paint((0.9, 0.9, 0.9), roughness=0.0, mirror=0.9)

    def _shade(self) -> Colour:
        value = float(self.rng.uniform(0.75, 1.0))
        return value, value, value

    @staticmethod
    def tile(kind: str) -> float:
        """Metres of one repetition of a kind of picture; 1 for those that fill their shape."""
        return TILES.get(kind, 1.0)
