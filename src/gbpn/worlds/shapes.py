"""Shapes made here: rectangles, boxes, cylinders, spheres, waving sheets. Texture coordinates are metres /
`tile`."""

from __future__ import annotations

import numpy as np

from gbpn.worlds.scene import Floats, Mesh, Vector

__all__ = ["box", "cylinder", "grid", "quad", "sphere", "triangles", "tube"]


def triangles(
    corners: np.ndarray,
    material: int,
    name: str,
    *,
    coordinates: Floats | None = None,
    normals: Floats | None = None,
) -> Mesh:
    """[N, 3, 3] corners as one thing, flat unless normals are given."""
    corners = np.asarray(corners, np.float32)
    if normals is None:
        flat = np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0])
        flat = flat / np.maximum(np.linalg.norm(flat, axis=1, keepdims=True), 1e-12)
        normals = np.repeat(flat[:, None], 3, axis=1)
    if coordinates is None:
        coordinates = np.zeros((len(corners), 3, 2), np.float32)
    return Mesh(
        corners=corners,
        normals=np.asarray(normals, np.float32),
        coordinates=np.asarray(coordinates, np.float32),
        material=np.full(len(corners), material, np.int32),
        thing=np.zeros(len(corners), np.int32),
        names=(name,),
        credits=(None,),
    )


def quad(
    a: Vector,
    b: Vector,
    c: Vector,
    d: Vector,
    material: int,
    name: str = "surface",
    *,
    tile: float | None = None,
    turned: bool = False,
) -> Mesh:
    """a, b, c, d counter-clockwise as seen from the front.

    The texture is shown once, upright from a to d, or every `tile` metres; `turned` lays it on its side.
    """
    p = np.array([a, b, c, d], np.float32)
    places = np.array([[0, 0], [1, 0], [1, 1], [0, 1]], np.float32)
    if tile is not None:
        across, up = p[1] - p[0], p[3] - p[0]
        first = across / max(float(np.linalg.norm(across)), 1e-9)
        second = up - first * (up @ first)
        second /= max(float(np.linalg.norm(second)), 1e-9)
        # Neighbouring pieces of one wall continue each other's pattern: coordinates start at the world's
        # origin.
        places = np.asarray(np.stack([p @ first, p @ second], axis=1) / tile, np.float32)
    if turned:
        places = places[:, ::-1]
    order = np.array([[0, 1, 2], [0, 2, 3]])
    return triangles(p[order], material, name, coordinates=places[order])


_FACES = np.array(
    [
        [[-1, -1, -1], [-1, 1, -1], [1, 1, -1], [1, -1, -1]],
        [[-1, -1, 1], [1, -1, 1], [1, 1, 1], [-1, 1, 1]],
        [[-1, -1, -1], [1, -1, -1], [1, -1, 1], [-1, -1, 1]],
        [[1, 1, -1], [-1, 1, -1], [-1, 1, 1], [1, 1, 1]],
        [[1, -1, -1], [1, 1, -1], [1, 1, 1], [1, -1, 1]],
        [[-1, 1, -1], [-1, -1, -1], [-1, -1, 1], [-1, 1, 1]],
    ],
    np.float32,
)


def box(
    centre: Vector,
    size: Vector,
    material: int,
    name: str = "box",
    *,
    yaw: float = 0.0,
    tile: float | None = None,
) -> Mesh:
    """Whole side lengths `size`; the texture is shown once on each side, or every `tile` metres."""
    half = np.asarray(size, np.float32) / 2
    faces = _FACES * half  # [6, 4, 3]
    order = np.array([0, 1, 2, 0, 2, 3])
    corners = faces[:, order].reshape(12, 3, 3)
    places = np.tile(np.array([[0, 0], [1, 0], [1, 1], [0, 1]], np.float32), (6, 1, 1))
    if tile is not None:
        lengths = np.stack(
            [
                np.linalg.norm(faces[:, 1] - faces[:, 0], axis=1),
                np.linalg.norm(faces[:, 3] - faces[:, 0], axis=1),
            ],
            1,
        )
        places = places * (lengths / tile)[:, None].astype(np.float32)
    mesh = triangles(corners, material, name, coordinates=places[:, order].reshape(12, 3, 2))
    return mesh.moved(centre, yaw)


def tube(
    start: Vector,
    end: Vector,
    radius: float,
    material: int,
    name: str = "rod",
    *,
    sides: int = 8,
    taper: float = 1.0,
) -> Mesh:
    """A round rod between two places, closed; its end's radius is `taper` times that of its start."""
    a, b = np.asarray(start, float), np.asarray(end, float)
    axis = (b - a) / max(float(np.linalg.norm(b - a)), 1e-9)
    helper = np.array([1.0, 0, 0]) if abs(axis[0]) < 0.9 else np.array([0, 1.0, 0])
    first = np.cross(axis, helper)
    first /= np.linalg.norm(first)
    second = np.cross(axis, first)
    angle = np.linspace(0, 2 * np.pi, sides + 1)
    out = np.cos(angle)[:, None] * first + np.sin(angle)[:, None] * second  # [sides + 1, 3]
    low, high = a + out * radius, b + out * radius * taper
    around = np.linspace(0, 1, sides + 1)
    length = float(np.linalg.norm(b - a)) / max(2 * np.pi * radius, 1e-6)
    side = _grid_mesh(
        np.stack([low, high]), np.stack([out, out]), _places(around, np.array([0, length])), material, name
    )
    caps = [
        np.stack([np.repeat(centre[None], sides, 0), ring[:-1], ring[1:]], axis=1)
        for centre, ring in ((a, low[::-1]), (b, high))
    ]
    lids = triangles(np.concatenate(caps).astype(np.float32), material, name)
    return _single([side, lids], name)


def cylinder(
    centre: Vector, radius: float, height: float, material: int, name: str = "cylinder", *, sides: int = 24
) -> Mesh:
    """Upright, standing on `centre`."""
    foot = np.asarray(centre, float)
    return tube(foot, foot + np.array([0, 0, height]), radius, material, name, sides=sides)


def sphere(centre: Vector, radius: float, material: int, name: str = "ball", *, sides: int = 24) -> Mesh:
    """A globe of `sides` meridians."""
    up = np.linspace(-np.pi / 2, np.pi / 2, sides // 2 + 1)
    around = np.linspace(0, 2 * np.pi, sides + 1)
    out = np.stack(
        [
            np.cos(up)[:, None] * np.cos(around),
            np.cos(up)[:, None] * np.sin(around),
            np.repeat(np.sin(up)[:, None], sides + 1, 1),
        ],
        axis=2,
    )
    places = _places(np.linspace(0, 1, sides + 1), np.linspace(0, 1, sides // 2 + 1))
    return _grid_mesh(np.asarray(centre, float) + radius * out, out, places, material, name)


def grid(points: Floats, material: int, name: str, *, tile: float = 1.0) -> Mesh:
    """[rows, columns, 3] points as a smooth sheet, such as a curtain or a hill; texture every `tile`
    metres."""
    p = np.asarray(points, np.float64)
    across, up = np.gradient(p, axis=1), np.gradient(p, axis=0)
    normal = np.cross(across, up)
    normal /= np.maximum(np.linalg.norm(normal, axis=2, keepdims=True), 1e-12)
    along = np.cumsum(np.linalg.norm(np.diff(p, axis=1, prepend=p[:, :1]), axis=2), axis=1)
    high = np.cumsum(np.linalg.norm(np.diff(p, axis=0, prepend=p[:1]), axis=2), axis=0)
    return _grid_mesh(p, normal, np.stack([along, high], axis=2) / tile, material, name)


def _grid_mesh(points: np.ndarray, normals: np.ndarray, places: np.ndarray, material: int, name: str) -> Mesh:
    """Two triangles between each four neighbours of [rows, columns, …] arrays."""

    def corners(values: np.ndarray) -> Floats:
        a, b, c, d = values[:-1, :-1], values[:-1, 1:], values[1:, 1:], values[1:, :-1]
        both = np.stack([np.stack([a, b, c], axis=2), np.stack([a, c, d], axis=2)], axis=2)
        return np.asarray(both.reshape(-1, 3, values.shape[-1]), np.float32)

    return triangles(corners(points), material, name, coordinates=corners(places), normals=corners(normals))


def _places(columns: np.ndarray, rows: np.ndarray) -> np.ndarray:
    return np.stack(np.broadcast_arrays(columns[None, :], rows[:, None]), axis=2)


def _single(parts: list[Mesh], name: str) -> Mesh:
    from gbpn.worlds.scene import joined

    return joined(parts, name)
