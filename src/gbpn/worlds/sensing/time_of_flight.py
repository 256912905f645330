"""A time-of-flight camera: dense, weak on dark and glancing surfaces, with pixels that fly between two
depths."""

from __future__ import annotations

import numpy as np
from scipy import ndimage

from gbpn.worlds.sensing.laser import Reading
from gbpn.worlds.sensing.sight import Sight

__all__ = ["time_of_flight"]

_PIXEL = 0.75
"""Half the width of one of its pixels in pixels of the picture."""


def time_of_flight(
    sight: Sight,
    rng: np.random.Generator,
    *,
    emitter: float = 0.03,
    reach: float = 7.5,
    noise: float = 0.003,
) -> Reading:
    """Depth registered to the colour camera; the emitter sits `emitter` metres to the right of it."""
    seen, exact = sight.surfaces, sight.depth
    inverse = np.where(exact > 0, 1 / np.maximum(exact, 1e-6), 0)
    near = ndimage.maximum_filter(inverse, 3)
    far = -ndimage.maximum_filter(-np.where(exact > 0, inverse, near), 3)
    edge = (
        (near > 0)
        & (far > 0)
        & (1 / np.maximum(far, 1e-6) - 1 / np.maximum(near, 1e-6) > 0.06 / np.maximum(near, 1e-6))
    )
    share = rng.random(sight.size)
    between = 1 / np.maximum(far, 1e-6) + (1 / np.maximum(near, 1e-6) - 1 / np.maximum(far, 1e-6)) * share
    flying = edge & (rng.random(sight.size) < _PIXEL)
    depth = np.where(flying & (exact > 0), between, exact)
    with np.errstate(divide="ignore", invalid="ignore"):
        light = seen.brightness * seen.cosine / np.maximum(seen.distance, 0.3) ** 2
    light = np.where(np.isfinite(light), light, 0).reshape(sight.size)
    deviation = noise + 0.0006 / np.sqrt(np.maximum(light, 1e-5))
    depth = depth + rng.standard_normal(sight.size) * deviation
    kept = (exact > 0) & (light > 0.0015) & (depth > 0.2) & (depth < reach)
    kept &= sight.sees(np.array([emitter, 0.0, 0.0])) & (seen.mirror.reshape(sight.size) < 0.3)
    return Reading(depth=np.where(kept, depth, 0).astype(np.float32))
