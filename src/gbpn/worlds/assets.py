"""Furniture of an ordinary package: the `.sh3f` libraries of `sweethome3d-furniture`, read once into a
compact cache.

A library is a zip file with OBJ models and a catalogue: name, category, real size, creator. Each model
becomes triangles in metres,
z up, standing on z = 0, its front towards −y. Models are read when they are first used, and kept in the
user's cache folder.
"""

from __future__ import annotations

import io
import json
import os
import re
import zipfile
from dataclasses import dataclass
from functools import cached_property, lru_cache
from pathlib import Path

import numpy as np
import numpy.typing as npt
from PIL import Image

from gbpn.errors import DatasetError, InputError
from gbpn.files.atomic import checksum, replacing
from gbpn.worlds.obj_files import ObjMaterial, ObjModel, read_materials, read_obj, thinned
from gbpn.worlds.scene import Credit, Floats, Ints, Mesh

__all__ = ["LICENCES", "Asset", "Furniture", "Stock", "cache_folder", "furniture_folder"]

LICENCES = ("any", "cc0")
"""What a world may be restricted to."""
_FORMAT = 3
"""Of the cached files; counts up when what is in them changes."""
_MOST_BYTES = 9_000_000
_MOST_TRIANGLES = 9_000
_TEXTURE = 256
_USUAL = Path("/usr/share/sweethome3d/furniture")


def furniture_folder() -> Path:
    """Where the libraries lie: the folder that GBPN_FURNITURE names, else the Debian package's."""
    return Path(os.environ.get("GBPN_FURNITURE") or _USUAL)


def cache_folder() -> Path:
    """Where models are kept once they are read: GBPN_CACHE, else the user's cache folder."""
    own = os.environ.get("GBPN_CACHE")
    base = Path(own) if own else Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "gbpn"
    return base / "worlds"


@dataclass(frozen=True, kw_only=True)
class Asset:
    """One entry of a catalogue."""

    identifier: str
    """`<library>/<number>`"""
    name: str
    category: str
    size: tuple[float, float, float]
    """Width, depth, height in metres: along x, y, z."""
    top: float
    """Height in metres on which things are put; below 0 where nothing can stand."""
    elevation: float
    """Metres above the floor at which it hangs."""
    opening: bool
    """Whether it is a door or a window."""
    creator: str
    licence: str
    path: str
    """Inside the library."""
    rotation: tuple[float, ...] = ()

    @property
    def credit(self) -> Credit:
        library = self.identifier.partition("/")[0]
        return Credit(
            name=f"{self.name} ({self.identifier})",
            creator=self.creator,
            licence=self.licence,
            source=f"Sweet Home 3D furniture library {library}",
        )


@dataclass(frozen=True, kw_only=True)
class Furniture:
    """The triangles of an asset and what they are made of."""

    asset: Asset
    mesh: Mesh
    """Its materials are numbered as `materials`."""
    materials: tuple[ObjMaterial, ...]
    pictures: tuple[npt.NDArray[np.uint8] | None, ...]
    """[height, width, 3] by material; sides are powers of two."""


class Stock:
    """The assets of a folder of libraries that may be used under a licence."""

    def __init__(self, folder: str | Path | None = None, licence: str = "any") -> None:
        if licence not in LICENCES:
            raise InputError(f"licence must be one of {', '.join(LICENCES)}; got {licence!r}")
        self.folder = Path(folder) if folder is not None else furniture_folder()
        libraries = sorted(self.folder.glob("*.sh3f")) if self.folder.is_dir() else []
        if not libraries:
            raise DatasetError(
                f"{self.folder}: no furniture library (*.sh3f): apt-get install sweethome3d-furniture, "
                "or set GBPN_FURNITURE to a folder that has one"
            )
        self.licence = licence
        self._paths = {path.stem: path for path in libraries}
        every = [asset for path in libraries for asset in _catalogue(path)]
        self.assets = tuple(asset for asset in every if licence == "any" or asset.licence.startswith("CC0"))

    @cached_property
    def by_identifier(self) -> dict[str, Asset]:
        return {asset.identifier: asset for asset in self.assets}

    def named(self, *names: str, category: str | None = None) -> list[Asset]:
        """Assets whose name is one of the given ones, in any case."""
        wanted = {name.lower() for name in names}
        return [
            asset
            for asset in self.assets
            if asset.name.lower() in wanted and (category is None or asset.category == category)
        ]

    def model(self, asset: Asset) -> Furniture | None:
        """Its triangles; None where the file has none, or is cut out of pictures with holes."""
        return _loaded(self._paths[asset.identifier.partition("/")[0]], asset)


@lru_cache(maxsize=240)
def _loaded(library: Path, asset: Asset) -> Furniture | None:
    place = cache_folder() / f"{_FORMAT}-{_mark(library)}" / f"{asset.identifier.replace('/', '-')}.npz"
    if place.is_file():
        try:
            return _from_cache(place, asset)
        except (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile):
            place.unlink(missing_ok=True)  # cut short by a full disk
    model = _from_library(library, asset)
    with replacing(place) as temporary:
        _into_cache(temporary, model)
    return model


@lru_cache(maxsize=32)
def _mark(library: Path) -> str:
    return f"{library.stem}-{checksum(library)}"


def _catalogue(library: Path) -> list[Asset]:
    """Entries with a model, in the order of their numbers."""
    with zipfile.ZipFile(library) as file:
        names = set(file.namelist())
        listed = next((n for n in names if n.endswith("Catalog.properties")), None)
        if listed is None:
            raise DatasetError(f"{library}: no catalogue in it; expected a library of Sweet Home 3D")
        text = file.read(listed).decode("latin1")
        licence = _licence(file.read("LICENSE.TXT").decode("latin1") if "LICENSE.TXT" in names else "")
    entries: dict[int, dict[str, str]] = {}
    for key, number, value in re.findall(r"^(\w+)#(\d+)=(.*)$", text, re.MULTILINE):
        entries.setdefault(int(number), {})[key] = _unescaped(value.strip())
    return [
        _asset(f"{library.stem}/{number}", entry, licence)
        for number, entry in sorted(entries.items())
        if entry.get("model", "").endswith(".obj") and entry["model"].lstrip("/") in names and licence
    ]


def _asset(identifier: str, entry: dict[str, str], licence: str) -> Asset:
    def metres(key: str, default: float = 0.0) -> float:
        return float(entry[key]) / 100 if key in entry else default

    size = metres("width"), metres("depth"), metres("height")
    return Asset(
        identifier=identifier,
        name=entry.get("name", ""),
        category=entry.get("category", ""),
        size=size,
        top=metres("dropOnTopElevation", size[2]),
        elevation=metres("elevation"),
        opening=entry.get("doorOrWindow") == "true",
        creator=entry.get("creator", "unknown"),
        licence=licence,
        path=entry["model"].lstrip("/"),
        rotation=tuple(float(word) for word in entry.get("modelRotation", "").split()),
    )


def _licence(text: str) -> str:
    """Short name of the licences that may be used; "" for others, whose library is left alone."""
    lower = text.lower()
    if "creative commons zero" in lower:
        return "CC0 1.0"
    if "creativecommons.org/licenses/by/3.0/us" in lower:
        return "CC BY 3.0 US"
    return "CC BY 3.0" if "creativecommons.org/licenses/by/3.0" in lower else ""


def _unescaped(value: str) -> str:
    return re.sub(r"\\u([0-9a-fA-F]{4})", lambda found: chr(int(found[1], 16)), value)


def _from_library(library: Path, asset: Asset) -> Furniture | None:
    with zipfile.ZipFile(library) as file:
        if file.getinfo(asset.path).file_size > _MOST_BYTES:
            return None
        model = read_obj(file.read(asset.path).decode("latin1"))
        if model is None:
            return None
        names = {name.lower(): name for name in file.namelist()}
        folder = asset.path.rpartition("/")[0]
        known: dict[str, ObjMaterial] = {}
        for own in model.libraries:
            path = names.get(f"{folder}/{own}".lower())
            if path is not None:
                known.update(read_materials(file.read(path).decode("latin1")))
        materials = [known.get(name, ObjMaterial(name)) for name in model.names]
        pictures, holes = _pictures(file, names, folder, materials)
    return _shaped(asset, model, materials, pictures, holes)


def _pictures(
    file: zipfile.ZipFile, names: dict[str, str], folder: str, materials: list[ObjMaterial]
) -> tuple[list[npt.NDArray[np.uint8] | None], list[float]]:
    """Pictures of materials, and the share of each that is transparent."""
    pictures: list[npt.NDArray[np.uint8] | None] = []
    holes = []
    for material in materials:
        base = material.picture.replace("\\", "/").rpartition("/")[2]
        path = names.get(f"{folder}/{base}".lower()) if base else None
        picture, share = _picture(file.read(path)) if path is not None else (None, 0.0)
        pictures.append(picture)
        holes.append(share)
    return pictures, holes


def _picture(data: bytes) -> tuple[npt.NDArray[np.uint8] | None, float]:
    """Sides of at most 256, powers of two; holes are filled with the mean of the rest."""
    try:
        image = Image.open(io.BytesIO(data)).convert("RGBA")
    except OSError:
        return None, 0.0
    sides = [min(_TEXTURE, max(4, 2 ** round(np.log2(side)))) for side in image.size]
    pixels = np.asarray(image.resize((sides[0], sides[1]), Image.Resampling.BOX), np.float32)
    seen = pixels[..., 3:] / 255
    mean = (pixels[..., :3] * seen).sum((0, 1)) / max(float(seen.sum()), 1e-6)
    filled = pixels[..., :3] * seen + mean * (1 - seen)
    return np.asarray(np.rint(filled), np.uint8), float((seen < 0.5).mean())


def _shaped(
    asset: Asset,
    model: ObjModel,
    materials: list[ObjMaterial],
    pictures: list[npt.NDArray[np.uint8] | None],
    holes: list[float],
) -> Furniture | None:
    """In metres, upright, in the middle of its foot; stickers with holes are left out."""
    corners, normals = model.corners, model.normals
    if len(asset.rotation) == 9:
        turn = np.array(asset.rotation, np.float32).reshape(3, 3)
        corners, normals = corners @ turn.T, normals @ turn.T
    # From the file's y up, front +z, to z up, front −y.
    corners, normals = (np.stack([a[..., 0], -a[..., 2], a[..., 1]], axis=-1) for a in (corners, normals))
    low, high = corners.min((0, 1)), corners.max((0, 1))
    extent = np.maximum(high - low, 1e-6)
    scale = np.array(asset.size, np.float32) / extent
    corners = (corners - (low + high) / 2 * [1, 1, 0] - low * [0, 0, 1]) * scale
    solid = np.array([share < 0.6 for share in holes])[model.material]
    if solid.mean() < 0.7:
        return None
    moved, kept = thinned(corners[solid].astype(np.float32), _MOST_TRIANGLES)
    kept = np.flatnonzero(solid)[kept]
    mesh = Mesh(
        corners=np.asarray(moved, np.float32),
        normals=_upright(normals[kept] / scale, np.asarray(corners[kept], np.float32)),
        coordinates=np.asarray(model.places[kept], np.float32),
        material=model.material[kept],
        thing=np.zeros(len(kept), np.int32),
        names=(asset.name.lower(),),
        credits=(asset.credit,),
    )
    return Furniture(asset=asset, mesh=mesh, materials=tuple(materials), pictures=tuple(pictures))


def _upright(normals: np.ndarray, corners: Floats) -> Floats:
    """Unit normals; the triangle's own where the file has none."""
    flat = np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0])
    flat = flat / np.maximum(np.linalg.norm(flat, axis=1, keepdims=True), 1e-12)
    length = np.linalg.norm(normals, axis=2, keepdims=True)
    unit = np.where(length > 1e-6, normals / np.maximum(length, 1e-6), flat[:, None])
    return np.asarray(unit, np.float32)


def _into_cache(path: Path, model: Furniture | None) -> None:
    if model is None:
        with path.open("wb") as file:
            np.savez(file, empty=np.zeros(1))
        return
    facts = [(m.name, m.colour, m.opacity, m.specular, m.shininess) for m in model.materials]
    pictures = {f"picture{k}": p for k, p in enumerate(model.pictures) if p is not None}
    mesh = model.mesh
    with path.open("wb") as file:
        np.savez(
            file,
            corners=mesh.corners,
            normals=np.rint(mesh.normals * 127).astype(np.int8),
            coordinates=mesh.coordinates,
            material=mesh.material.astype(np.uint16),
            facts=np.array(json.dumps(facts)),
            **pictures,  # type: ignore[arg-type]
        )


def _from_cache(path: Path, asset: Asset) -> Furniture | None:
    with np.load(path) as file:
        if "empty" in file:
            return None
        facts = json.loads(str(file["facts"]))
        material: Ints = file["material"].astype(np.int32)
        normals = file["normals"].astype(np.float32)
        mesh = Mesh(
            corners=file["corners"],
            normals=normals / np.maximum(np.linalg.norm(normals, axis=2, keepdims=True), 1e-6),
            coordinates=file["coordinates"],
            material=material,
            thing=np.zeros(len(material), np.int32),
            names=(asset.name.lower(),),
            credits=(asset.credit,),
        )
        pictures = tuple(file.get(f"picture{k}") for k in range(len(facts)))
    materials = tuple(
        ObjMaterial(name, tuple(colour), opacity, specular, shininess)
        for name, colour, opacity, specular, shininess in facts
    )
    return Furniture(asset=asset, mesh=mesh, materials=materials, pictures=pictures)
