"""Public-domain furniture from Debian's `sweethome3d-furniture`, placed in metres.

The archive calls itself CC0 as a whole, yet holds models whose own licence file says otherwise or that have
none. Only models whose own file says CC0 are let in.
"""

from __future__ import annotations

import math
import re
import zipfile
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import bpy
import numpy as np
from mathutils import Matrix, Vector

ARCHIVE = Path("/usr/share/sweethome3d/furniture/BlendSwap-CC-0.sh3f")
"""Where Debian's package puts the file."""


@dataclass(frozen=True, kw_only=True)
class Model:
    """One piece of furniture."""

    name: str
    """Folder in the archive."""
    size: tuple[float, float, float]
    """Width (x), depth (y) and height (z) in metres."""
    creator: str
    """Who made it."""
    source: str
    """Address of the original, where the licence file names it."""


class Catalogue:
    """Reads the archive, checks each model's licence and puts models into the scene."""

    def __init__(self, folder: Path, archive: Path = ARCHIVE) -> None:
        self._folder = folder
        if not (folder / "PluginFurnitureCatalog.properties").is_file():
            with zipfile.ZipFile(archive) as packed:
                packed.extractall(folder)
        self.used: set[str] = set()
        self._meshes: dict[str, list[tuple[bpy.types.Mesh, Matrix]]] = {}

    @cached_property
    def models(self) -> dict[str, Model]:
        """Every model whose own licence file says Creative Commons Zero."""
        entries: dict[str, dict[str, str]] = {}
        text = (self._folder / "PluginFurnitureCatalog.properties").read_text("latin-1")
        for key, number, value in re.findall(r"^(\w+)#(\d+)=(.*)$", text, re.MULTILINE):
            entries.setdefault(number, {})[key] = value.strip()
        found = {}
        for entry in entries.values():
            name = Path(entry["model"]).parent.name
            licence = self._licence(name)
            if "creative commons zero" not in licence.lower():
                continue
            address = re.search(r"(?:www\.)?blendswap\.com/blends/view/\d+", licence)
            found[name] = Model(
                name=name,
                size=tuple(float(entry[key]) / 100 for key in ("width", "depth", "height")),  # type: ignore[arg-type]
                creator=entry["creator"],
                source=address.group(0).removeprefix("www.") if address else "",
            )
        return found

    def _licence(self, name: str) -> str:
        files = [p for p in (self._folder / "blendswap-cc-0" / name).glob("*") if "licen" in p.name.lower()]
        return "\n".join(p.read_text("latin-1") for p in files)

    def place(
        self,
        name: str,
        x: float,
        y: float,
        z: float = 0.0,
        yaw: float = 0.0,
        scale: float = 1.0,
        tint: tuple[float, float, float] | None = None,
    ) -> list[bpy.types.Object]:
        """Stand a model with the middle of its footprint at (x, y) and its lowest point at z."""
        model = self.models[name]
        self.used.add(name)
        if name not in self._meshes:
            self._meshes[name] = self._load(model)
        where = (
            Matrix.Translation((x, y, z))
            @ Matrix.Rotation(math.radians(yaw), 4, "Z")
            @ Matrix.Scale(scale, 4)
        )
        placed = []
        for mesh, local in self._meshes[name]:
            thing = bpy.data.objects.new(name, mesh if tint is None else _tinted(mesh, tint))
            thing.matrix_world = where @ local
            bpy.context.scene.collection.objects.link(thing)
            placed.append(thing)
        return placed

    def forget(self) -> None:
        """After the scene was emptied: meshes must be loaded anew."""
        self._meshes.clear()

    def _load(self, model: Model) -> list[tuple[bpy.types.Mesh, Matrix]]:
        """Meshes with the transform that brings them to catalogue size, standing centred on the origin."""
        path = self._folder / "blendswap-cc-0" / model.name / f"{model.name}.obj"
        before = set(bpy.data.objects)
        bpy.ops.wm.obj_import(filepath=str(path), forward_axis="NEGATIVE_Z", up_axis="Y")
        parts = [thing for thing in bpy.data.objects if thing not in before]
        bpy.context.view_layer.update()
        corners = np.array([part.matrix_world @ Vector(c) for part in parts for c in part.bound_box])
        low, high = corners.min(axis=0), corners.max(axis=0)
        ratio = np.array(model.size) / np.maximum(high - low, 1e-6)
        middle = (low + high) / 2
        fit = Matrix.Diagonal((*ratio.tolist(), 1.0)) @ Matrix.Translation((-middle[0], -middle[1], -low[2]))
        loaded = []
        for part in parts:
            loaded.append((part.data, fit @ part.matrix_world))
            _calm(part.data)
            bpy.data.objects.remove(part)
        return loaded


def _surfaces(mesh: bpy.types.Mesh) -> list[bpy.types.Node]:
    return [
        node
        for material in mesh.materials
        if material and material.node_tree
        for node in material.node_tree.nodes
        if node.type == "BSDF_PRINCIPLED"
    ]


def _calm(mesh: bpy.types.Mesh) -> None:
    """OBJ materials come as mirrors, as pure white or as glass: keep them within what rooms look like.

    Nothing may be seen through, or the picture would show what the depth does not.
    """
    for surface in _surfaces(mesh):
        for name, opaque in (("Alpha", 1.0), ("Transmission Weight", 0.0)):
            for link in list(surface.inputs[name].links):
                surface.id_data.links.remove(link)
            surface.inputs[name].default_value = opaque
        roughness = surface.inputs["Roughness"]
        roughness.default_value = max(0.3, roughness.default_value)
        base = surface.inputs["Base Color"]
        for link in list(base.links):
            texture = getattr(link.from_node, "image", None)
            # Blender shows a texture that the archive lacks in magenta: use the plain colour instead.
            if texture is not None and not Path(bpy.path.abspath(texture.filepath)).is_file():
                surface.id_data.links.remove(link)
        if not base.is_linked:
            base.default_value = (*(min(0.82, c) for c in base.default_value[:3]), 1.0)


def _tinted(mesh: bpy.types.Mesh, tint: tuple[float, float, float]) -> bpy.types.Mesh:
    """A copy whose untextured surfaces have their colour multiplied by `tint`."""
    copy = mesh.copy()
    for index, material in enumerate(copy.materials):
        if material:
            copy.materials[index] = material.copy()
    for surface in _surfaces(copy):
        base = surface.inputs["Base Color"]
        if not base.is_linked:
            old = base.default_value
            base.default_value = (*(min(1.0, a * b) for a, b in zip(old[:3], tint, strict=True)), 1.0)
    return copy
