"""Models in Wavefront OBJ with their MTL, as arrays; heavy ones are thinned."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from gbpn.worlds.scene import Floats, Ints

__all__ = ["ObjMaterial", "ObjModel", "read_materials", "read_obj", "thinned"]


@dataclass
class ObjMaterial:
    """What an MTL file says of a material."""

    name: str
    colour: tuple[float, float, float] = (0.7, 0.7, 0.7)
    opacity: float = 1.0
    specular: float = 0.0
    shininess: float = 10.0
    picture: str = ""


@dataclass(frozen=True, kw_only=True)
class ObjModel:
    """N triangles in the file's own axes and unit."""

    corners: Floats
    """[N, 3, 3]"""
    normals: Floats
    """[N, 3, 3]; 0 where the file gives none."""
    places: Floats
    """[N, 3, 2]"""
    material: Ints
    """[N] number of a name."""
    names: tuple[str, ...]
    libraries: tuple[str, ...]
    """MTL files that it names."""


@dataclass
class _Lines:
    """The numbers of an OBJ file, still as text, by what they are."""

    vertices: list[str] = field(default_factory=list)
    places: list[str] = field(default_factory=list)
    normals: list[str] = field(default_factory=list)
    faces: list[tuple[int, str, tuple[int, int, int]]] = field(default_factory=list)
    names: dict[str, int] = field(default_factory=lambda: {"": 0})
    libraries: list[str] = field(default_factory=list)


def read_obj(text: str) -> ObjModel | None:
    """The triangles of a file; None where there are none. Polygons are fans."""
    lines = _sorted_lines(text)
    vertices, places, normals = (
        _numbers(lines.vertices, 3),
        _numbers(lines.places, 2),
        _numbers(lines.normals, 3),
    )
    rows, material = _fans(lines, (len(vertices), len(places), len(normals)))
    if not len(rows):
        return None
    return ObjModel(
        corners=vertices[rows[:, :, 0]],
        places=_taken(places, rows[:, :, 1]),
        normals=_taken(normals, rows[:, :, 2]),
        material=material,
        names=tuple(lines.names),
        libraries=tuple(lines.libraries),
    )


def _sorted_lines(text: str) -> _Lines:
    out = _Lines()
    current = 0
    for line in text.splitlines():
        start = line[:2]
        if start == "v ":
            out.vertices.append(line[2:])
        elif start == "vt":
            out.places.append(line[3:])
        elif start == "vn":
            out.normals.append(line[3:])
        elif start == "f ":
            counts = len(out.vertices), len(out.places), len(out.normals)
            out.faces.append((current, line[2:], counts))
        elif start == "us":
            name = line.partition(" ")[2].strip()
            current = out.names.setdefault(name, len(out.names))
        elif start == "mt":
            out.libraries.append(line.partition(" ")[2].strip())
    return out


def _numbers(lines: list[str], columns: int) -> Floats:
    """[lines, columns]; further columns of the file are left out."""
    if not lines:
        return np.zeros((0, columns), np.float32)
    given = len(lines[0].split())
    try:
        table = np.array(" ".join(lines).split(), np.float32).reshape(-1, given)
    except ValueError:  # lines of unlike length
        table = np.array([(line.split() + ["0"] * columns)[:columns] for line in lines], np.float32)
    return np.ascontiguousarray(table[:, :columns])


def _fans(lines: _Lines, totals: tuple[int, int, int]) -> tuple[np.ndarray, Ints]:
    """[N, 3, 3] rows of vertex, place, normal by corner (−1: none), and [N] materials."""
    rows: list[tuple[list[int], list[int], list[int]]] = []
    material: list[int] = []
    for current, text, counts in lines.faces:
        corners = [_corner(word, counts) for word in text.split()]
        if any(not 0 <= corner[0] < totals[0] for corner in corners):
            continue
        for k in range(1, len(corners) - 1):
            rows.append((corners[0], corners[k], corners[k + 1]))
            material.append(current)
    table = np.array(rows, np.int64).reshape(-1, 3, 3)
    table[table >= np.array(totals)] = -1
    return table, np.array(material, np.int32)


def _corner(word: str, counts: tuple[int, int, int]) -> list[int]:
    """v/vt/vn as rows from 0; negative numbers count from the end."""
    out = [-1, -1, -1]
    for k, part in enumerate(word.split("/")[:3]):
        if part:
            number = int(part)
            out[k] = number - 1 if number > 0 else counts[k] + number
    return out


def _taken(values: Floats, rows: np.ndarray) -> Floats:
    if not len(values):
        return np.zeros((*rows.shape, values.shape[1]), np.float32)
    return np.where(rows[..., None] >= 0, values[rows], np.float32(0))


def read_materials(text: str) -> dict[str, ObjMaterial]:
    """Materials of an MTL file by name."""
    found: dict[str, ObjMaterial] = {}
    current: ObjMaterial | None = None
    readers: dict[str, Callable[[ObjMaterial, list[str]], None]] = {
        "Kd": lambda m, w: setattr(m, "colour", tuple(float(x) for x in w[:3])),
        "Ks": lambda m, w: setattr(m, "specular", sum(float(x) for x in w[:3]) / 3),
        "Ns": lambda m, w: setattr(m, "shininess", float(w[0])),
        "d": lambda m, w: setattr(m, "opacity", float(w[-1])),
        "Tr": lambda m, w: setattr(m, "opacity", 1 - float(w[-1])),
        "map_Kd": lambda m, w: setattr(m, "picture", " ".join(w)),
    }
    for line in text.splitlines():
        words = line.split()
        if len(words) < 2:
            continue
        if words[0] == "newmtl":
            name = line.strip().partition(" ")[2].strip()
            current = found.setdefault(name, ObjMaterial(name))
        elif current is not None and words[0] in readers:
            readers[words[0]](current, words[1:])
    return found


def thinned(corners: Floats, most: int) -> tuple[Floats, np.ndarray]:
    """Corners moved onto ever coarser grids until at most `most` triangles have an area, and which those
    are."""
    kept = np.arange(len(corners))
    if len(corners) <= most:
        return corners, kept
    low = corners.reshape(-1, 3).min(axis=0)
    extent = float((corners.reshape(-1, 3).max(axis=0) - low).max())
    moved = corners
    for share in (0.002, 0.004, 0.006, 0.009, 0.013, 0.018, 0.026):
        cell = extent * share
        key = np.floor((corners - low) / cell).astype(np.int64)
        code = (key[..., 0] << 42) + (key[..., 1] << 21) + key[..., 2]
        _, inverse = np.unique(code.ravel(), return_inverse=True)
        count = np.bincount(inverse)
        mean = np.stack(
            [np.bincount(inverse, corners.reshape(-1, 3)[:, k]) / count for k in range(3)], axis=1
        )
        moved = mean[inverse].reshape(corners.shape).astype(np.float32)
        code = inverse.reshape(-1, 3)
        whole = (code[:, 0] != code[:, 1]) & (code[:, 1] != code[:, 2]) & (code[:, 0] != code[:, 2])
        _, first = np.unique(np.sort(code, axis=1), axis=0, return_index=True)
        single = np.zeros(len(code), bool)
        single[first] = True
        kept = np.flatnonzero(whole & single)
        if len(kept) <= most:
            break
    return moved[kept], kept
