"""Light without noise, compiled: averages that stop at edges, and what each finer sample takes from its
pixel."""

from __future__ import annotations

import math

import numba as nb
import numpy as np

__all__ = ["enlarged", "rough_pixels", "shared", "smoothed", "without_sparks"]


@nb.njit(cache=True, fastmath=True, error_model="numpy")
def smoothed(light, normal, place, height, width, step, sharp, out):
    """One pass of 5×5 taps `step` pixels apart over [H · W, 3]; `sharp` per metre off the surface's plane."""
    kernel = np.array([0.11, 0.6, 1.0, 0.6, 0.11], np.float32)
    for y in range(height):
        for x in range(width):
            i = y * width + x
            nx, ny, nz = normal[i, 0], normal[i, 1], normal[i, 2]
            total = np.float32(1.0)
            red, green, blue = light[i, 0], light[i, 1], light[i, 2]
            if nx == 0 and ny == 0 and nz == 0:
                out[i, 0], out[i, 1], out[i, 2] = red, green, blue
                continue
            for dy in range(-2, 3):
                yy = y + dy * step
                if yy < 0 or yy >= height:
                    continue
                for dx in range(-2, 3):
                    xx = x + dx * step
                    if xx < 0 or xx >= width or (dx == 0 and dy == 0):
                        continue
                    j = yy * width + xx
                    alike = nx * normal[j, 0] + ny * normal[j, 1] + nz * normal[j, 2]
                    if alike < 0.8:
                        continue
                    px, py, pz = (
                        place[j, 0] - place[i, 0],
                        place[j, 1] - place[i, 1],
                        place[j, 2] - place[i, 2],
                    )
                    off = abs(px * nx + py * ny + pz * nz) * sharp
                    if off > 3:
                        continue
                    far = px * px + py * py + pz * pz
                    alike *= alike
                    weight = (
                        kernel[dy + 2] * kernel[dx + 2] * alike * alike / ((1 + off * off) * (1 + 4 * far))
                    )
                    total += weight
                    red += weight * light[j, 0]
                    green += weight * light[j, 1]
                    blue += weight * light[j, 2]
            out[i, 0], out[i, 1], out[i, 2] = red / total, green / total, blue / total


@nb.njit(cache=True, fastmath=True, error_model="numpy")
def enlarged(small, rows, columns, stride, normal, place, height, width, out):
    """Light of every `stride`-th pixel for all, from the four around each that lie on the same surface."""
    for y in range(height):
        for x in range(width):
            i = y * width + x
            total = np.float32(1e-8)
            red = green = blue = np.float32(0)
            y0, x0 = y // stride, x // stride
            for yy in range(y0, min(y0 + 2, rows)):
                for xx in range(x0, min(x0 + 2, columns)):
                    j = yy * columns + xx
                    k = yy * stride * width + xx * stride
                    near = (1.05 - abs(yy - y / stride)) * (1.05 - abs(xx - x / stride))
                    alike = (
                        normal[i, 0] * normal[k, 0]
                        + normal[i, 1] * normal[k, 1]
                        + normal[i, 2] * normal[k, 2]
                    )
                    off = (
                        (place[k, 0] - place[i, 0]) * normal[i, 0]
                        + (place[k, 1] - place[i, 1]) * normal[i, 1]
                        + (place[k, 2] - place[i, 2]) * normal[i, 2]
                    )
                    alike = max(alike, np.float32(0.02))
                    weight = near * alike * alike * alike / (1 + 2500 * off * off)
                    total += weight
                    red += weight * small[j, 0]
                    green += weight * small[j, 1]
                    blue += weight * small[j, 2]
            out[i, 0], out[i, 1], out[i, 2] = red / total, green / total, blue / total


@nb.njit(cache=True, fastmath=True, error_model="numpy")
def rough_pixels(thing, depth, normal, albedo, height, width, out):
    """Marks pixels that one sample does not describe: outlines, creases, changes of colour."""
    for y in range(height):
        for x in range(width):
            i = y * width + x
            for side in range(2):
                yy, xx = y + side, x + 1 - side
                if yy >= height or xx >= width:
                    continue
                j = yy * width + xx
                near = min(depth[i], depth[j])
                bright = abs(albedo[i, 1] - albedo[j, 1]) + abs(albedo[i, 0] - albedo[j, 0])
                level = albedo[i, 1] + albedo[j, 1] + np.float32(0.04)
                alike = (
                    normal[i, 0] * normal[j, 0] + normal[i, 1] * normal[j, 1] + normal[i, 2] * normal[j, 2]
                )
                if (
                    thing[i] != thing[j]
                    or abs(depth[i] - depth[j]) > np.float32(0.03) * near
                    or alike < 0.9
                    or bright > np.float32(0.25) * level
                ):
                    out[i] = True
                    out[j] = True


@nb.njit(cache=True, fastmath=True, error_model="numpy")
def shared(
    pixel, albedo, normal, place, emission, light, dim, shine, own_normal, own_place, height, width, out
):
    """Adds the radiance of finer samples to their pixels: each takes the light of the best of nine pixels."""
    for s in range(pixel.shape[0]):
        i = pixel[s]
        y, x = i // width, i % width
        best, chosen = np.float32(1e9), i
        empty = normal[s, 0] == 0 and normal[s, 1] == 0 and normal[s, 2] == 0
        for dy in range(-1, 2):
            for dx in range(-1, 2):
                yy, xx = y + dy, x + dx
                if yy < 0 or xx < 0 or yy >= height or xx >= width:
                    continue
                j = yy * width + xx
                px, py, pz = (
                    own_place[j, 0] - place[s, 0],
                    own_place[j, 1] - place[s, 1],
                    own_place[j, 2] - place[s, 2],
                )
                cost = np.float32(0.01) * (dx * dx + dy * dy)
                if empty:
                    cost += abs(own_normal[j, 0]) + abs(own_normal[j, 1]) + abs(own_normal[j, 2])
                else:
                    alike = (
                        normal[s, 0] * own_normal[j, 0]
                        + normal[s, 1] * own_normal[j, 1]
                        + normal[s, 2] * own_normal[j, 2]
                    )
                    off = abs(px * normal[s, 0] + py * normal[s, 1] + pz * normal[s, 2])
                    cost += 20 * off + 2 * (1 - alike) + math.sqrt(px * px + py * py + pz * pz)
                if cost < best:
                    best, chosen = cost, j
        for c in range(3):
            given = emission[s] if empty else light[chosen, c] + emission[s]
            value = dim[chosen, c] * albedo[s, c] * given + shine[chosen, c]
            out[i, c] += min(value, np.float32(8.0))


@nb.njit(cache=True)
def without_sparks(light, pixels, height, width):
    """Dims, in place, what shines far more than all but one of its neighbours in the picture.

    light   [K, 3] of the pixels
    pixels  [K] of H · W
    """
    level = np.zeros(height * width, np.float32)
    for k in range(len(pixels)):
        level[pixels[k]] = (light[k, 0] + light[k, 1] + light[k, 2]) / np.float32(3)
    for k in range(len(pixels)):
        y, x = pixels[k] // width, pixels[k] % width
        first = second = third = np.float32(0)
        for yy in range(max(y - 1, 0), min(y + 2, height)):
            for xx in range(max(x - 1, 0), min(x + 2, width)):
                value = level[yy * width + xx]
                if (yy == y and xx == x) or value <= third:
                    continue
                if value > first:
                    first, second, third = value, first, second
                elif value > second:
                    second, third = value, second
                else:
                    third = value
        own = level[pixels[k]]
        if own > third:
            light[k] *= third / own
