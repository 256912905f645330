"""What a room's surfaces are made of."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from gbpn.worlds.rooms.interior import WALLS, Interior

__all__ = ["Style"]


@dataclass(frozen=True, kw_only=True)
class Style:
    """What a room's surfaces are made of."""

    walls: tuple[tuple[int, float], ...]
    """Material and tile of each wall."""
    dado: tuple[int, float, float] | None
    """Material, tile and height of a lower part, as tiles in a bath."""
    floor: tuple[int, float]
    ceiling: tuple[int, float]
    trim: int
    """Of skirting, frames and doors."""

    @staticmethod
    def drawn(palette: Interior, rng: np.random.Generator, kind: str) -> Style:
        wet = kind in ("bathroom", "laundry")
        public = kind in ("office", "classroom", "shop", "corridor", "waiting")
        colour = palette.pick(WALLS[:12] if public else WALLS)
        cover = str(rng.choice(["plaster", "wallpaper", "brick", "panel"], p=[0.74, 0.17, 0.05, 0.04]))
        if public or wet or kind == "storage":
            cover = str(rng.choice(["plaster", "brick", "concrete"], p=[0.88, 0.08, 0.04]))
        tint = (0.95, 0.95, 0.95) if cover in ("wallpaper", "brick", "panel", "concrete") else colour
        usual = palette.cover(cover, tint), palette.tile(cover)
        accent = palette.cover("plaster", palette.pick(WALLS, 0.3)), palette.tile("plaster")
        walls = [usual, usual, usual, accent if rng.random() < 0.18 else usual]
        dado = None
        if wet or (kind == "kitchen" and rng.random() < 0.3):
            tiles = palette.cover("wall_tile", roughness=0.25, mirror=0.04)
            dado = tiles, palette.tile("wall_tile"), float(rng.choice([1.2, 1.6, 2.05, 9.0]))
        elif rng.random() < 0.07:
            dado = palette.cover("panel"), palette.tile("panel"), float(rng.uniform(0.8, 1.1))
        kinds = ["parquet", "carpet", "floor_tile", "concrete"]
        shares = [0.62, 0.25, 0.12, 0.01]
        if wet or kind == "kitchen":
            shares = [0.22, 0.0, 0.75, 0.03]
        elif public:
            shares = [0.25, 0.45, 0.22, 0.08]
        elif kind == "storage":
            shares = [0.2, 0.1, 0.3, 0.4]
        ground = str(rng.choice(kinds, p=shares))
        gloss = 0.0 if ground in ("carpet", "concrete") else float(rng.choice([0.0, 0.03, 0.06]))
        shade = float(rng.uniform(0.75, 1.0))
        floor = palette.cover(
            ground, (shade, shade, shade), roughness=float(rng.uniform(0.2, 0.45)), mirror=gloss
        )
        over = "ceiling" if public and rng.random() < 0.6 else "plaster"
        white = float(rng.uniform(0.75, 0.88))
        ceiling = palette.cover(over, (white, white, white * 0.98)), palette.tile(over)
        trim = (
            palette.wood()
            if rng.random() < 0.3
            else palette.paint((0.78, 0.77, 0.74), roughness=0.4, mirror=0.02)
        )
        return Style(
            walls=tuple(walls), dado=dado, floor=(floor, palette.tile(ground)), ceiling=ceiling, trim=trim
        )
