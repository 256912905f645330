"""What a world is made of: triangles with a material each, textures and lights. Metres, z up, colours
linear."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import numpy.typing as npt

__all__ = [
    "Credit",
    "Floats",
    "Ints",
    "Light",
    "Material",
    "Mesh",
    "Scene",
    "SceneBuilder",
    "Surface",
    "Vector",
    "World",
    "joined",
]

Floats = npt.NDArray[np.float32]
Ints = npt.NDArray[np.int32]
Vector = Sequence[float] | npt.NDArray[np.floating]


@dataclass(frozen=True, kw_only=True)
class Surface:
    """How a surface answers light."""

    colour: tuple[float, float, float] = (0.7, 0.7, 0.7)
    """Share of red, green and blue light that is given back, linear."""
    texture: int | None = None
    """Number of the scene's texture that multiplies the colour."""
    roughness: float = 1.0
    """0 is a polished surface, 1 a dull one: how far reflections are spread."""
    mirror: float = 0.0
    """Share of light that is reflected as by a mirror, seen from the front; more at grazing angles."""
    clear: float = 0.0
    """Share of light that goes straight through, as through a pane of glass; shadows are not cast then."""
    emission: float = 0.0
    """Radiance that the surface shows by itself, times its colour and texture; it lights nothing else."""


@dataclass(frozen=True, kw_only=True)
class Credit:
    """Where a thing comes from: what must be said beside every picture of it."""

    name: str
    creator: str
    licence: str
    source: str


@dataclass(frozen=True, kw_only=True)
class Mesh:
    """N triangles; each belongs to a numbered thing."""

    corners: Floats
    """[N, 3, 3] metres."""
    normals: Floats
    """[N, 3, 3] unit normals at the corners."""
    coordinates: Floats
    """[N, 3, 2] places in the texture; its size is 1, its first row lies at 1, and it repeats."""
    material: Ints
    """[N] number of the scene's material."""
    thing: Ints
    """[N] number of the thing."""
    names: tuple[str, ...]
    """What each thing is."""
    credits: tuple[Credit | None, ...]
    """Whose model each thing is; None for what is made here."""

    def __len__(self) -> int:
        return len(self.corners)

    def moved(self, place: Vector, yaw: float = 0.0, scale: float | Vector = 1.0) -> Mesh:
        """Scaled, turned about the upright axis (radians, counter-clockwise from above), then moved."""
        cos, sin = np.cos(yaw), np.sin(yaw)
        turn = np.array([[cos, -sin, 0], [sin, cos, 0], [0, 0, 1]])
        size = np.broadcast_to(np.asarray(scale, float), 3)
        # As rows of one matrix: a stack of small products is many times slower.
        corners = self.corners.reshape(-1, 3) @ (turn * size).T.astype(np.float32)
        normals = self.normals.reshape(-1, 3) @ (turn / size).T.astype(np.float32)
        if not np.all(size == 1):
            normals = _unit(normals)
        return replace(
            self,
            corners=(corners + np.asarray(place, np.float32)).reshape(-1, 3, 3),
            normals=normals.reshape(-1, 3, 3),
        )

    def leaning(self, pitch: float) -> Mesh:
        """Turned about the x axis by `pitch` radians, as a picture that leans on a wall."""
        cos, sin = np.cos(pitch), np.sin(pitch)
        turn = np.array([[1, 0, 0], [0, cos, -sin], [0, sin, cos]], np.float32)
        return replace(self, corners=self.corners @ turn.T, normals=self.normals @ turn.T)

    def with_materials(self, numbers: Sequence[int]) -> Mesh:
        """The same with material k replaced by numbers[k]."""
        return replace(self, material=np.asarray(numbers, np.int32)[self.material])


@dataclass(frozen=True, kw_only=True)
class Light:
    """A sun, a luminous rectangle or the sky; made by the named constructors."""

    kind: str
    radiance: tuple[float, float, float]
    """Rectangle: emitted radiance. Sun: irradiance of a surface that faces it. Sky: radiance overhead."""
    corner: tuple[float, float, float] = (0.0, 0.0, 0.0)
    along: tuple[float, float, float] = (0.0, 0.0, 0.0)
    across: tuple[float, float, float] = (0.0, 0.0, 0.0)
    """A rectangle's sides; it shines towards along × across."""
    direction: tuple[float, float, float] = (0.0, 0.0, 1.0)
    """From the world towards the sun, unit length."""
    spread: float = 0.0
    """Half angle of the sun's disc in radians: the softness of its shadows."""
    horizon: tuple[float, float, float] = (0.0, 0.0, 0.0)
    ground: tuple[float, float, float] = (0.0, 0.0, 0.0)
    """Radiance of the sky at its edge, and below."""
    panorama: int | None = None
    """Texture that multiplies the sky: columns go round from +x, rows from overhead to underfoot."""
    lights: bool = True
    """Whether the sky lights surfaces. Rooms let it in by rectangles at their windows instead."""

    @staticmethod
    def sun(direction: Vector, irradiance: Vector, spread: float = 0.005) -> Light:
        """Far away in `direction`."""
        length = float(np.linalg.norm(direction))
        towards = _triple(np.asarray(direction, float) / length)
        return Light(kind="sun", radiance=_triple(irradiance), direction=towards, spread=spread)

    @staticmethod
    def area(corner: Vector, along: Vector, across: Vector, radiance: Vector) -> Light:
        """A rectangle that shines towards along × across; it is not seen itself."""
        return Light(
            kind="area",
            radiance=_triple(radiance),
            corner=_triple(corner),
            along=_triple(along),
            across=_triple(across),
        )

    @staticmethod
    def sky(
        overhead: Vector,
        horizon: Vector,
        ground: Vector,
        *,
        panorama: int | None = None,
        lights: bool = True,
    ) -> Light:
        """What is seen where there is nothing."""
        return Light(
            kind="sky",
            radiance=_triple(overhead),
            horizon=_triple(horizon),
            ground=_triple(ground),
            panorama=panorama,
            lights=lights,
        )


@dataclass(frozen=True, kw_only=True)
class World:
    """Everything a ray can meet, and what lights it."""

    mesh: Mesh
    materials: tuple[Surface, ...]
    textures: tuple[npt.NDArray[np.uint8], ...]
    """[height, width, 3] sRGB each; sides are powers of two."""
    lights: tuple[Light, ...]

    def credits(self) -> list[Credit]:
        """Each model that is used, once."""
        return list(dict.fromkeys(credit for credit in self.mesh.credits if credit is not None))


@dataclass
class SceneBuilder:
    """Collects the parts of a scene; equal materials and textures are kept once."""

    meshes: list[Mesh] = field(default_factory=list)
    lights: list[Light] = field(default_factory=list)
    _materials: dict[Surface, int] = field(default_factory=dict)
    _textures: dict[int, tuple[int, npt.NDArray[np.uint8]]] = field(default_factory=dict)

    def material(
        self,
        material: Surface | None = None,
        *,
        image: npt.NDArray[np.uint8] | None = None,
        **fields: object,
    ) -> int:
        """Number of a material, given whole or by fields, with `image` as its texture."""
        made = material or Surface(**fields)  # type: ignore[arg-type]
        if image is not None:
            made = replace(made, texture=self.texture(image))
        return self._materials.setdefault(made, len(self._materials))

    def texture(self, image: npt.NDArray[np.uint8]) -> int:
        """Number of a texture [height, width, 3], the same one for the same array."""
        return self._textures.setdefault(id(image), (len(self._textures), image))[0]

    def add(self, *meshes: Mesh) -> None:
        self.meshes += meshes

    def build(self) -> World:
        return World(
            mesh=joined(self.meshes),
            materials=tuple(self._materials),
            textures=tuple(image for _, image in self._textures.values()),
            lights=tuple(self.lights),
        )


def joined(meshes: Iterable[Mesh], name: str | None = None, credit: Credit | None = None) -> Mesh:
    """One mesh with the things of all, renumbered; with a `name` they become a single thing."""
    parts = list(meshes)
    starts = np.cumsum([0, *(len(part.names) for part in parts)])
    thing = np.concatenate([part.thing + start for part, start in zip(parts, starts, strict=False)])
    whole = Mesh(
        corners=np.concatenate([part.corners for part in parts]),
        normals=np.concatenate([part.normals for part in parts]),
        coordinates=np.concatenate([part.coordinates for part in parts]),
        material=np.concatenate([part.material for part in parts]),
        thing=thing.astype(np.int32),
        names=tuple(own for part in parts for own in part.names),
        credits=tuple(own for part in parts for own in part.credits),
    )
    if name is None:
        return whole
    return replace(whole, thing=np.zeros_like(whole.thing), names=(name,), credits=(credit,))


def _unit(vectors: Floats) -> Floats:
    length = np.sqrt(np.einsum("...i,...i->...", vectors, vectors))[..., None]
    return np.asarray(vectors / np.maximum(length, 1e-12), np.float32)


def _triple(values: Vector) -> tuple[float, float, float]:
    x, y, z = (float(value) for value in values)
    return x, y, z


Scene, Material = World, Surface
"""Other names for the same."""
