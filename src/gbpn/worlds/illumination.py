"""Light that falls on surfaces, compiled: lamps and windows as rectangles, the sun, and where the next ray
goes."""

from __future__ import annotations

import math

import numba as nb
import numpy as np

from gbpn.worlds.scene import Floats, Light

__all__ = ["Lamps", "bounced", "lit_by_areas", "lit_by_sun", "mirrored"]


class Lamps:
    """The lights of a scene as flat arrays."""

    def __init__(self, lights: tuple[Light, ...]) -> None:
        areas = [light for light in lights if light.kind == "area"]
        rows = [(*light.corner, *light.along, *light.across, *light.radiance) for light in areas]
        self.areas: Floats = np.array(rows, np.float32).reshape(-1, 12)
        self.suns = [light for light in lights if light.kind == "sun"]


@nb.njit(cache=True, inline="always")
def _random(number, seed):
    """A number in [0, 1) that depends on both alone."""
    mask = np.uint64(0xFFFFFFFF)
    state = (np.uint64(number) * np.uint64(747796405) + np.uint64(seed) * np.uint64(2891336453)) & mask
    state = (((state >> ((state >> np.uint64(28)) + np.uint64(4))) ^ state) * np.uint64(277803737)) & mask
    state = ((state >> np.uint64(22)) ^ state) * np.uint64(2654435769) & mask
    state = (state >> np.uint64(15)) ^ state
    return np.float32(state >> np.uint64(8)) * np.float32(5.9604645e-08)


@nb.njit(cache=True, fastmath=True, error_model="numpy")
def lit_by_areas(place, normal, flat, areas, seed, sample, origin, direction, light):
    """One shadow ray to each place, towards one rectangle chosen by how much it would give.

    `light` gets irradiance / π if nothing is in the way; directions end on the lamp.
    """
    count = areas.shape[0]
    given = np.empty(count, np.float32)
    towards = np.empty((count, 3), np.float32)
    for i in range(place.shape[0]):
        for c in range(3):
            light[i, c] = 0
        px, py, pz = place[i, 0], place[i, 1], place[i, 2]
        nx, ny, nz = normal[i, 0], normal[i, 1], normal[i, 2]
        total = np.float32(0)
        s = (_random(i, seed) + sample * np.float32(0.75487767)) % 1
        t = (_random(i, seed + 1) + sample * np.float32(0.56984029)) % 1
        for k in range(count):
            x = areas[k, 0] + s * areas[k, 3] + t * areas[k, 6] - px
            y = areas[k, 1] + s * areas[k, 4] + t * areas[k, 7] - py
            z = areas[k, 2] + s * areas[k, 5] + t * areas[k, 8] - pz
            towards[k, 0], towards[k, 1], towards[k, 2] = x, y, z
            ax = areas[k, 4] * areas[k, 8] - areas[k, 5] * areas[k, 7]
            ay = areas[k, 5] * areas[k, 6] - areas[k, 3] * areas[k, 8]
            az = areas[k, 3] * areas[k, 7] - areas[k, 4] * areas[k, 6]
            square = x * x + y * y + z * z + np.float32(1e-9)
            front = -(x * ax + y * ay + z * az)
            facing = x * nx + y * ny + z * nz
            given[k] = 0
            if front > 0 and facing > 0:
                bright = (areas[k, 9] + areas[k, 10] + areas[k, 11]) / 3
                near = max(square, np.float32(0.01))
                given[k] = bright * front * facing / (near * near * np.float32(math.pi))
            total += given[k]
        if total <= np.float32(1e-7):
            continue
        pick = ((_random(i, seed + 2) + sample * np.float32(0.6180340)) % 1) * total
        k = 0
        while k < count - 1 and pick >= given[k]:
            pick -= given[k]
            k += 1
        while k > 0 and given[k] <= 0:
            k -= 1
        if given[k] <= 0:
            continue
        bright = (areas[k, 9] + areas[k, 10] + areas[k, 11]) / 3
        for c in range(3):
            light[i, c] = total * areas[k, 9 + c] / bright
            origin[i, c] = place[i, c] + flat[i, c] * np.float32(1.5e-3)
            direction[i, c] = towards[k, c] - flat[i, c] * np.float32(1.5e-3)


@nb.njit(cache=True, fastmath=True, error_model="numpy")
def lit_by_sun(place, normal, flat, sun, spread, radiance, seed, origin, direction, light):
    """The same towards a place on the sun's disc; directions have unit length."""
    x, y, z = sun[0], sun[1], sun[2]
    for i in range(place.shape[0]):
        r = spread * math.sqrt(_random(i, seed))
        angle = 2 * math.pi * _random(i, seed + 1)
        a, b = r * math.cos(angle), r * math.sin(angle)
        # Two directions across the sun's.
        sign = 1.0 if z >= 0 else -1.0
        p = -1 / (sign + z)
        q = x * y * p
        dx = x + a * (1 + sign * x * x * p) + b * q
        dy = y + a * sign * q + b * (sign + y * y * p)
        dz = z - a * sign * x - b * y
        facing = dx * normal[i, 0] + dy * normal[i, 1] + dz * normal[i, 2]
        above = dx * flat[i, 0] + dy * flat[i, 1] + dz * flat[i, 2]
        for c in range(3):
            light[i, c] = radiance[c] * facing / np.float32(math.pi) if facing > 0 and above > 0 else 0
            origin[i, c] = place[i, c] + flat[i, c] * np.float32(2e-3)
        direction[i, 0], direction[i, 1], direction[i, 2] = dx, dy, dz


@nb.njit(cache=True, fastmath=True, error_model="numpy")
def bounced(normal, seed, sample, out):
    """Directions over each normal, the denser the closer to it (cosine)."""
    for i in range(normal.shape[0]):
        first = (_random(i, seed) + sample * np.float32(0.75487767)) % 1
        second = (_random(i, seed + 1) + sample * np.float32(0.56984029)) % 1
        angle, radius = 2 * math.pi * first, math.sqrt(second)
        a, b, c = radius * math.cos(angle), radius * math.sin(angle), math.sqrt(max(0.0, 1 - second))
        x, y, z = normal[i, 0], normal[i, 1], normal[i, 2]
        sign = 1.0 if z >= 0 else -1.0
        p = -1 / (sign + z)
        q = x * y * p
        out[i, 0] = a * (1 + sign * x * x * p) + b * q + c * x
        out[i, 1] = a * sign * q + b * (sign + y * y * p) + c * y
        out[i, 2] = -a * sign * x - b * y + c * z


@nb.njit(cache=True, fastmath=True, error_model="numpy")
def mirrored(direction, normal, flat, roughness, seed, out):
    """Directions after a reflection, of the same length, spread by the surface's roughness."""
    for i in range(direction.shape[0]):
        nx, ny, nz = normal[i, 0], normal[i, 1], normal[i, 2]
        dx, dy, dz = direction[i, 0], direction[i, 1], direction[i, 2]
        length = math.sqrt(dx * dx + dy * dy + dz * dz)
        if roughness[i] > 0.01:
            # A facet's normal: as far off as the square of the roughness says, more often near.
            width = roughness[i] * roughness[i] * 0.7
            r1, r2 = _random(i, seed), _random(i, seed + 1)
            radius, angle = width * math.sqrt(r1 / (1.02 - r1)), 2 * math.pi * r2
            sign = 1.0 if nz >= 0 else -1.0
            p = -1 / (sign + nz)
            q = nx * ny * p
            a, b = radius * math.cos(angle), radius * math.sin(angle)
            mx = nx + a * (1 + sign * nx * nx * p) + b * q
            my = ny + a * sign * q + b * (sign + ny * ny * p)
            mz = nz - a * sign * nx - b * ny
            size = math.sqrt(mx * mx + my * my + mz * mz)
            nx, ny, nz = mx / size, my / size, mz / size
        along = 2 * (dx * nx + dy * ny + dz * nz)
        x, y, z = dx - along * nx, dy - along * ny, dz - along * nz
        above = x * flat[i, 0] + y * flat[i, 1] + z * flat[i, 2]
        if above < 0.01 * length:  # not into the surface
            lift = 0.01 * length - above
            x, y, z = x + lift * flat[i, 0], y + lift * flat[i, 1], z + lift * flat[i, 2]
        out[i, 0], out[i, 1], out[i, 2] = x, y, z
