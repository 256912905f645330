"""What was hit: colour, normal and gloss of surfaces, compiled. Textures are read at the size that a pixel
sees."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numba as nb
import numpy as np
import numpy.typing as npt

from gbpn.worlds.scene import Floats, Light, World
from gbpn.worlds.tracing import Hits

__all__ = ["Skin", "SurfacePoints"]

_LINEAR = np.where(
    np.arange(256) / 255 <= 0.04045,
    np.arange(256) / 255 / 12.92,
    ((np.arange(256) / 255 + 0.055) / 1.055) ** 2.4,
).astype(np.float32)
_COLUMNS = 9
"""red, green, blue, texture, roughness, mirror, clear, emission, unused"""


@dataclass(frozen=True, kw_only=True)
class SurfacePoints:
    """R places that rays have hit; those that hit nothing have normal 0."""

    place: Floats
    albedo: Floats
    """[R, 3] linear."""
    normal: Floats
    """[R, 3] towards where the ray came from, smooth."""
    flat: Floats
    """[R, 3] the same of the triangle."""
    gloss: Floats
    """[R, 4] roughness, mirror share, clear share, emission."""

    def at(self, rows: npt.NDArray[np.intp]) -> SurfacePoints:
        """Some of them."""
        return SurfacePoints(
            place=self.place[rows],
            albedo=self.albedo[rows],
            normal=self.normal[rows],
            flat=self.flat[rows],
            gloss=self.gloss[rows],
        )


class Skin:
    """Materials and textures of a scene as flat arrays."""

    def __init__(self, scene: World) -> None:
        self.mesh = scene.mesh
        rows = [
            (
                *material.colour,
                -1 if material.texture is None else material.texture,
                material.roughness,
                material.mirror,
                material.clear,
                material.emission,
                0.0,
            )
            for material in scene.materials
        ]
        self.materials = np.array(rows, np.float32).reshape(-1, _COLUMNS)
        self.texels, self.table = _pyramids(scene.textures)
        sizes = np.array([image.shape[0] for image in scene.textures] or [1], np.float32)
        self.density = _density(
            scene.mesh.corners, scene.mesh.coordinates, scene.mesh.material, self.materials, sizes
        )
        self.sky = _sky_row(next((light for light in scene.lights if light.kind == "sky"), None))

    def look(self, hits: Hits, origins: Floats, directions: Floats, pixel: float) -> SurfacePoints:
        """Surfaces at hits; `pixel` is the size that is seen of a surface at distance 1 (the angle of a
        pixel)."""
        count = len(hits.triangle)
        out = [np.zeros((count, 3), np.float32) for _ in range(4)]
        gloss = np.zeros((count, 4), np.float32)
        mesh = self.mesh
        _surfaces(
            hits.triangle, hits.u, hits.v, hits.distance, origins, directions, np.float32(pixel),
            mesh.corners, mesh.normals, mesh.coordinates, mesh.material, self.materials, self.texels,
            self.table, self.density, _LINEAR, *out, gloss,
        )  # fmt: skip
        return SurfacePoints(place=out[0], albedo=out[1], normal=out[2], flat=out[3], gloss=gloss)

    def sky_towards(self, directions: Floats) -> Floats:
        """[R, 3] radiance where there is nothing."""
        out = np.zeros((len(directions), 3), np.float32)
        _skies(directions, self.sky, self.texels, self.table, _LINEAR, out)
        return out


def _pyramids(
    textures: tuple[npt.NDArray[np.uint8], ...],
) -> tuple[npt.NDArray[np.uint8], npt.NDArray[np.int64]]:
    """All textures with their halvings, one behind the other: [texels, 3], and [T, 12, 3] start, height,
    width."""
    table = np.zeros((max(1, len(textures)), 12, 3), np.int64)
    parts: list[npt.NDArray[np.uint8]] = []
    start = 0
    for number, image in enumerate(textures):
        level = image
        for step in range(12):
            table[number, step] = start, level.shape[0], level.shape[1]
            if step == 0 or table[number, step - 1, 1:].tolist() != list(level.shape[:2]):
                parts.append(level.reshape(-1, 3))
                start += level.shape[0] * level.shape[1]
            else:
                table[number, step] = table[number, step - 1]
            level = _halved(level)
    return (np.concatenate(parts) if parts else np.full((1, 3), 255, np.uint8)), table


def _halved(image: npt.NDArray[np.uint8]) -> npt.NDArray[np.uint8]:
    """Half the size, at least 4 pixels; sides are powers of two."""
    height, width = image.shape[0], image.shape[1]
    if min(height, width) <= 4:
        return image
    wide = image.reshape(height // 2, 2, width // 2, 2, 3).astype(np.uint16)
    return ((wide[:, 0, :, 0] + wide[:, 0, :, 1] + wide[:, 1, :, 0] + wide[:, 1, :, 1] + 2) // 4).astype(
        np.uint8
    )


def _density(corners: Floats, places: Floats, material: np.ndarray, table: Floats, sizes: Floats) -> Floats:
    """[N] texels a metre on each triangle."""
    e1, e2 = corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0]
    area = np.linalg.norm(np.cross(e1, e2), axis=1)
    f1, f2 = places[:, 1] - places[:, 0], places[:, 2] - places[:, 0]
    flat = np.abs(f1[:, 0] * f2[:, 1] - f1[:, 1] * f2[:, 0])
    texture = table[material, 3].astype(np.int64)
    size = np.where(texture >= 0, sizes[np.maximum(texture, 0)], 0)
    return np.asarray(size * np.sqrt(flat / np.maximum(area, 1e-12)), np.float32)


def _sky_row(light: Light | None) -> Floats:
    """[14] overhead, horizon, ground, panorama, lights."""
    if light is None:
        return np.array([0] * 9 + [-1, 0], np.float32)
    panorama = -1 if light.panorama is None else light.panorama
    return np.array([*light.radiance, *light.horizon, *light.ground, panorama, light.lights], np.float32)


@nb.njit(cache=True, fastmath=True, error_model="numpy", inline="always")
def _texel(texels, table, linear, number, level, s, t, out):
    """Bilinear, repeating; the first row lies at t = 1."""
    start, height, width = table[number, level, 0], table[number, level, 1], table[number, level, 2]
    x = (s - math.floor(s)) * width - 0.5
    y = (1.0 - (t - math.floor(t))) * height - 0.5
    x0, y0 = math.floor(x), math.floor(y)
    fx, fy = x - x0, y - y0
    xa, xb = (x0 + width) % width, (x0 + 1) % width
    ya, yb = (y0 + height) % height, (y0 + 1) % height
    for c in range(3):
        top = (
            linear[texels[start + ya * width + xa, c]] * (1 - fx)
            + linear[texels[start + ya * width + xb, c]] * fx
        )
        low = (
            linear[texels[start + yb * width + xa, c]] * (1 - fx)
            + linear[texels[start + yb * width + xb, c]] * fx
        )
        out[c] = top * (1 - fy) + low * fy


@nb.njit(cache=True, fastmath=True, error_model="numpy")
def _surfaces(
    triangle, u, v, distance, origin, direction, pixel, corners, normals, places, material,
    materials, texels, table, density, linear, where, albedo, smooth, flat, gloss,
):  # fmt: skip
    colour = np.ones(3, np.float32)
    for i in range(triangle.shape[0]):
        t = triangle[i]
        if t < 0:
            continue
        b, c = u[i], v[i]
        a = 1 - b - c
        dx, dy, dz = direction[i, 0], direction[i, 1], direction[i, 2]
        for k in range(3):
            where[i, k] = origin[i, k] + distance[i] * direction[i, k]
            smooth[i, k] = a * normals[t, 0, k] + b * normals[t, 1, k] + c * normals[t, 2, k]
        ax, ay, az = (
            corners[t, 1, 0] - corners[t, 0, 0],
            corners[t, 1, 1] - corners[t, 0, 1],
            corners[t, 1, 2] - corners[t, 0, 2],
        )
        bx, by, bz = (
            corners[t, 2, 0] - corners[t, 0, 0],
            corners[t, 2, 1] - corners[t, 0, 1],
            corners[t, 2, 2] - corners[t, 0, 2],
        )
        fx, fy, fz = ay * bz - az * by, az * bx - ax * bz, ax * by - ay * bx
        length = math.sqrt(fx * fx + fy * fy + fz * fz) + 1e-20
        if fx * dx + fy * dy + fz * dz > 0:
            length = -length
        fx, fy, fz = fx / length, fy / length, fz / length
        flat[i, 0], flat[i, 1], flat[i, 2] = fx, fy, fz
        nx, ny, nz = smooth[i, 0], smooth[i, 1], smooth[i, 2]
        length = math.sqrt(nx * nx + ny * ny + nz * nz) + 1e-20
        if nx * fx + ny * fy + nz * fz < 0:
            length = -length
        nx, ny, nz = nx / length, ny / length, nz / length
        if nx * dx + ny * dy + nz * dz > 0 or nx * fx + ny * fy + nz * fz < 0.3:
            nx, ny, nz = fx, fy, fz  # smoothed past the outline, or a wrong normal in the file
        smooth[i, 0], smooth[i, 1], smooth[i, 2] = nx, ny, nz
        m = material[t]
        texture = int(materials[m, 3])
        for k in range(3):
            colour[k] = 1.0
        if texture >= 0:
            s = a * places[t, 0, 0] + b * places[t, 1, 0] + c * places[t, 2, 0]
            q = a * places[t, 0, 1] + b * places[t, 1, 1] + c * places[t, 2, 1]
            speed = math.sqrt(dx * dx + dy * dy + dz * dz)
            facing = abs(fx * dx + fy * dy + fz * dz) / speed
            seen = pixel * distance[i] * speed * density[t] / math.sqrt(max(facing, 0.05))
            level = min(max(int(math.log2(max(seen, 1.0)) + 0.3), 0), 11)
            _texel(texels, table, linear, texture, level, s, q, colour)
        for k in range(3):
            albedo[i, k] = colour[k] * materials[m, k]
        for k in range(4):
            gloss[i, k] = materials[m, 4 + k]


@nb.njit(cache=True, fastmath=True, error_model="numpy")
def _skies(direction, sky, texels, table, linear, out):
    colour = np.ones(3, np.float32)
    panorama = int(sky[9])
    for i in range(direction.shape[0]):
        x, y, z = direction[i, 0], direction[i, 1], direction[i, 2]
        z /= math.sqrt(x * x + y * y + z * z)
        if panorama >= 0:
            s = math.atan2(y, x) / (2 * math.pi)
            _texel(
                texels,
                table,
                linear,
                panorama,
                0,
                s,
                min(max(0.5 + math.asin(z) / math.pi, 0.004), 0.996),
                colour,
            )
        for k in range(3):
            if panorama >= 0:
                out[i, k] = sky[k] * colour[k]
            elif z >= 0:
                rise = z**0.45
                out[i, k] = sky[3 + k] * (1 - rise) + sky[k] * rise
            else:
                out[i, k] = sky[6 + k]
