"""Completion by image morphology in the manner of IP-Basic (Ku, Harakeh, Waslander 2018)."""

from __future__ import annotations

import numpy as np
from scipy import ndimage

from gbpn.baselines.interpolation import closeness, nearest_depth
from gbpn.baselines.measured_points import Array, MeasuredPoints, as_map, nothing
from gbpn.distribution import DepthDistribution
from gbpn.sample import Sample

__all__ = ["ip_basic"]

_DIAMOND = np.abs(np.mgrid[-2:3, -2:3]).sum(0) <= 2
"""5×5 kernel of the first dilation."""


def ip_basic(sample: Sample) -> DepthDistribution:
    """Nearer depth grows over farther: dilate, close, fill holes, then blur.

    Works on depth directly with "empty" as infinity; the original inverts depth so that empty is zero, which
    is the same. It fills holes of 7×7 pixels once, made for 64 LiDAR lines; here that is repeated until no
    pixel is empty. Its extension of the top row to the sky is left out, as by its own default.
    """
    points = MeasuredPoints.of(sample)
    if not len(points):
        return nothing(sample)
    depth = np.full(points.shape, np.inf)
    depth[points.rows, points.columns] = points.depth
    depth = _grow(depth, _DIAMOND)
    depth = ndimage.maximum_filter(_grow(depth, np.ones((5, 5), bool)), size=5, mode="nearest")
    while not np.isfinite(depth).all():
        depth = _fill(depth, 7)
    depth = ndimage.median_filter(depth, size=5, mode="nearest")
    depth = ndimage.gaussian_filter(depth, sigma=1.1, radius=2, mode="nearest")
    _, distance = nearest_depth(points)
    return DepthDistribution.of_depth(as_map(depth), confidence=closeness(distance))


def _grow(depth: Array, footprint: Array) -> Array:
    """Each pixel takes the nearest depth of its neighbourhood."""
    return ndimage.minimum_filter(depth, footprint=footprint, mode="nearest")


def _fill(depth: Array, size: int) -> Array:
    """Empty pixels take the nearest depth within a square of `size`."""
    return np.where(np.isfinite(depth), depth, ndimage.minimum_filter(depth, size=size, mode="nearest"))
