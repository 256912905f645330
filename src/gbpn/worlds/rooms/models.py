"""Furniture of the libraries by the part that it plays, with materials made from what its file says."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from gbpn.worlds.assets import Asset, Furniture, Stock
from gbpn.worlds.obj_files import ObjMaterial
from gbpn.worlds.rooms.interior import CLOTHS, Interior
from gbpn.worlds.rooms.layout import Piece, Top
from gbpn.worlds.rooms.parts import playing
from gbpn.worlds.scene import Mesh, Surface

__all__ = ["Models"]

_STANDS = (
    "coffee table",
    "tv stand",
    "sideboard",
    "table",
    "bedside",
    "desk",
    "filing",
    "washer",
    "dressing table",
    "bookcase",
)
"""Parts on which things are put."""
_SMALL = 0.5
"""Metres: larger things come in slightly different sizes."""


class Models:
    """Pieces of a stock, dressed for one room."""

    def __init__(self, stock: Stock | None, palette: Interior, rng: np.random.Generator) -> None:
        self.stock, self.palette, self.rng = stock, palette, rng

    def piece(
        self, role: str, fits: Callable[[tuple[float, float, float]], bool] | None = None
    ) -> Piece | None:
        """One of those that play a part and fit; None where there is none."""
        choice = [asset for asset in self._assets(role) if fits is None or fits(asset.size)]
        for _ in range(min(3, len(choice))):
            asset = choice[int(self.rng.integers(len(choice)))]
            model = self.stock.model(asset) if self.stock is not None else None
            if model is not None:
                return self._piece(asset, model, role)
        return None

    def _assets(self, role: str) -> tuple[Asset, ...]:
        return () if self.stock is None else playing(self.stock, role)

    def _piece(self, asset: Asset, model: Furniture, role: str) -> Piece:
        width, depth, high = asset.size
        stretch = np.ones(3)
        if max(asset.size) > _SMALL and role != "person":
            stretch = np.clip(np.exp(self.rng.normal(0, 0.05, 3)), 0.88, 1.13)
        mesh = self._dressed(model).moved((0, 0, 0), 0.0, stretch)
        size = width * float(stretch[0]), depth * float(stretch[1]), high * float(stretch[2])
        top = asset.top * float(stretch[2])
        tops: tuple[Top, ...] = ()
        if role in _STANDS and top > 0.2 and top > 0.9 * size[2]:
            tops = ((-0.45 * size[0], 0.45 * size[0], -0.42 * size[1], 0.42 * size[1], top, 1.2),)
        elif role in _STANDS and top > 0.2:
            tops = (
                (-0.4 * size[0], 0.4 * size[0], -0.4 * size[1], 0.1 * size[1], top, min(0.3, size[2] - top)),
            )
        return Piece(name=asset.name.lower(), mesh=mesh, size=size, tops=tops, seat=max(top, 0.0))

    def _dressed(self, model: Furniture) -> Mesh:
        """With materials of this room: woods and fabrics are varied, some colours are replaced."""
        mesh = model.mesh
        palette, rng = self.palette, self.rng
        cloth = palette.pick(CLOTHS, 0.25)
        wood = palette.wood() if rng.random() < 0.5 else None
        change = rng.random() < 0.4
        numbers, boxed = [], np.zeros(len(mesh), bool)
        for k, (material, picture) in enumerate(zip(model.materials, model.pictures, strict=True)):
            made = _surface(material, picture is not None)
            if picture is not None:
                numbers.append(palette.builder.material(made, image=picture))
                continue
            nature = _nature(material)
            if nature == "wood" and wood is not None:
                numbers.append(wood)
                boxed |= mesh.material == k
            elif nature == "cloth" and (change or rng.random() < 0.3):
                red, green, blue = (min(1.0, 1.2 * value) for value in cloth)
                numbers.append(palette.cover("fabric", (red, green, blue)))
                boxed |= mesh.material == k
            else:
                numbers.append(palette.builder.material(made))
        if boxed.any():
            mesh = replace(mesh, coordinates=_wrapped(mesh, boxed, 0.7))
        return mesh.with_materials(numbers)


def _surface(material: ObjMaterial, textured: bool) -> Surface:
    """What an MTL material looks like: duller and less coloured than files say."""
    colour = np.clip(np.asarray(material.colour, float), 0.04, 0.95) ** 2.2
    if textured:
        colour = np.full(3, 0.88)
    colour = colour + 0.3 * (colour.mean() - colour)
    name = material.name.lower()
    red, green, blue = (round(float(value), 3) for value in np.clip(colour, 0.012, 0.85))
    if material.opacity < 0.65 or "glasstransp" in name or "vidrio" in name or name == "glass":
        return Surface(colour=(0.9, 0.93, 0.92), clear=0.88, roughness=0.0)
    if any(word in name for word in ("mirror", "espejo", "miroir")):
        return Surface(colour=(0.9, 0.9, 0.9), mirror=0.88, roughness=0.0)
    if any(word in name for word in ("chrom", "cr.", "inox", "steel", "alum", "metal")):
        return Surface(colour=(red, green, blue), mirror=0.3, roughness=0.25)
    if material.specular > 0.6 and material.shininess > 60:
        return Surface(colour=(red, green, blue), mirror=0.06, roughness=0.25)
    return Surface(colour=(red, green, blue))


def _nature(material: ObjMaterial) -> str:
    """What a material without a picture may be: wood, cloth or anything else."""
    name = material.name.lower()
    if any(word in name for word in ("wood", "madera", "bois", "oak", "legno", "timber")):
        return "wood"
    if any(
        word in name
        for word in (
            "fabric",
            "textile",
            "cloth",
            "cushion",
            "tissu",
            "coussin",
            "couch",
            "pillow",
            "sofa",
            "seat",
            "leather",
            "blanket",
            "blanquet",
            "sheet",
            "tela",
            "cuero",
        )
    ):
        return "cloth"
    red, green, blue = material.colour
    brown = red > 1.15 * green > 1.15 * blue and 0.2 < red < 0.85
    return "wood" if brown else ""


def _wrapped(mesh: Mesh, rows: np.ndarray, tile: float) -> np.ndarray:
    """Coordinates [N, 3, 2] in which `rows` are covered from the side that they face, every `tile` metres."""
    out = mesh.coordinates.copy()
    corners = mesh.corners[rows]
    facing = np.abs(np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0]))
    axis = facing.argmax(axis=1)
    across = np.array([1, 0, 0])[axis]
    up = np.array([2, 2, 1])[axis]
    number = np.arange(len(corners))[:, None]
    three = np.arange(3)[None]
    out[rows] = (
        np.stack([corners[number, three, across[:, None]], corners[number, three, up[:, None]]], 2) / tile
    )
    return out
