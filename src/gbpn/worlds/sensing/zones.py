"""A time-of-flight chip of few zones: each says one distance for a whole area."""

from __future__ import annotations

import math

import numpy as np

from gbpn.worlds.sensing.laser import Reading, into_picture
from gbpn.worlds.sensing.sight import Sight, Surfaces

__all__ = ["zones"]

_PEAK = 0.12
"""Relative gap in distance that parts one target from the next within a zone."""


def zones(
    sight: Sight,
    rng: np.random.Generator,
    *,
    rows: int = 8,
    columns: int = 8,
    opening: tuple[float, float] = (math.radians(45), math.radians(45)),
    place: tuple[float, float, float] = (0.02, 0.0, 0.0),
    rays: int = 6,
    reach: float = 4.0,
    noise: float = 0.012,
) -> Reading:
    """`rows` × `columns` zones over `opening` (across, up); each casts `rays`² rays.

    A zone answers with the target that sends back the most light, at the mean of that target's distances
    along the sensor's axis, weighted by light; it is written at the zone's middle direction.
    """
    across = _cells(columns, rays, opening[0])
    up = _cells(rows, rays, opening[1])
    y, x = np.meshgrid(up, across, indexing="ij")
    directions = np.stack([x.reshape(-1), y.reshape(-1), np.ones(x.size)], axis=1)
    origin = np.asarray(place, np.float64)
    seen = sight.look(directions, origin)
    depth = _by_zone(seen.distance, rows, columns, rays).astype(np.float64)
    light = _by_zone(_light(seen), rows, columns, rays).astype(np.float64)
    answer = _strongest(depth, light)
    answer = answer * (1 + rng.normal(0, noise, len(answer)))
    middle_x, middle_y = (
        across.reshape(columns, rays).mean(axis=1),
        up.reshape(rows, rays).mean(axis=1),
    )
    my, mx = np.meshgrid(middle_y, middle_x, indexing="ij")
    middles = np.stack([mx.reshape(-1), my.reshape(-1), np.ones(rows * columns)], axis=1)
    with np.errstate(invalid="ignore"):
        there = np.isfinite(answer) & (answer < reach) & (light.sum(axis=1) / rays**2 > 0.002)
    return into_picture(sight, origin + middles[there] * answer[there, None])


def _cells(count: int, rays: int, opening: float) -> np.ndarray:
    """[count · rays] tangents, zone after zone."""
    angle = ((np.arange(count * rays) + 0.5) / (count * rays) - 0.5) * opening
    return np.asarray(np.tan(angle))


def _by_zone(values: np.ndarray, rows: int, columns: int, rays: int) -> np.ndarray:
    """[R] → [zones, rays²]."""
    grid = values.reshape(rows, rays, columns, rays)
    return np.asarray(grid.transpose(0, 2, 1, 3).reshape(rows * columns, rays * rays))


def _light(seen: Surfaces) -> np.ndarray:
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(
            np.isfinite(seen.distance), seen.brightness * seen.cosine / np.maximum(seen.distance, 0.1) ** 2, 0
        )


def _strongest(depth: np.ndarray, light: np.ndarray) -> np.ndarray:
    """[zones]: weighted mean depth of the group of rays with the most light, infinite where there is none."""
    out = np.full(len(depth), np.inf)
    for zone, (distances, weights) in enumerate(zip(depth, light, strict=True)):
        there = np.isfinite(distances) & (weights > 0)
        if not there.any():
            continue
        order = np.argsort(distances[there], kind="stable")
        d, w = distances[there][order], weights[there][order]
        group = np.concatenate([[0], np.cumsum(np.diff(d) > _PEAK * d[:-1])])
        power = np.bincount(group, w)
        best = group == int(np.argmax(power))
        out[zone] = np.average(d[best], weights=w[best])
    return out
