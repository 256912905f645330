"""Smoothing that follows the edges of the image: guided filter and fast global smoother."""

from __future__ import annotations

import numpy as np
from scipy import ndimage
from scipy.linalg import solve_banded

from gbpn.baselines.interpolation import closeness, linear_depth
from gbpn.baselines.measured_points import Array, MeasuredPoints, as_map, luminance, nothing
from gbpn.distribution import DepthDistribution
from gbpn.sample import Sample

__all__ = ["fast_global", "guided"]

_GUIDED_RADIUS = 4
"""Pixels."""
_GUIDED_EPSILON = 1e-3
"""Regularisation, in squared brightness."""

_GLOBAL_LAMBDA = 900.0
"""Strength of the fast global smoother."""
_GLOBAL_SIGMA = 0.03
"""Colour difference (RGB in [0, 1], Euclidean) at which neighbours are tied e times less."""
_GLOBAL_ITERATIONS = 4


def guided(sample: Sample) -> DepthDistribution:
    """Linear interpolation, then He's guided filter with the brightness as guide."""
    points = MeasuredPoints.of(sample)
    if not len(points):
        return nothing(sample)
    depth, distance = linear_depth(points)
    guide = luminance(sample)

    def box(values: Array) -> Array:
        return ndimage.uniform_filter(values, size=2 * _GUIDED_RADIUS + 1, mode="nearest")

    mean_guide, mean_depth = box(guide), box(depth)
    slope = (box(guide * depth) - mean_guide * mean_depth) / (
        box(guide * guide) - mean_guide**2 + _GUIDED_EPSILON
    )
    smooth = box(slope) * guide + box(mean_depth - slope * mean_guide)
    return DepthDistribution.of_depth(as_map(smooth), confidence=closeness(distance))


def fast_global(sample: Sample) -> DepthDistribution:
    """MeasuredPoints spread by the fast global smoother (Min et al. 2014): smoothed depth / smoothed mask.

    The smoothed mask says how much measurement arrived at a pixel, which is its confidence.
    """
    points = MeasuredPoints.of(sample)
    if not len(points):
        return nothing(sample)
    mask = np.zeros(points.shape)
    depth = np.zeros(points.shape)
    mask[points.rows, points.columns] = 1
    depth[points.rows, points.columns] = points.depth
    ties = _ties(sample)
    for step in range(1, _GLOBAL_ITERATIONS + 1):
        strength = 1.5 * 4 ** (_GLOBAL_ITERATIONS - step) / (4**_GLOBAL_ITERATIONS - 1) * _GLOBAL_LAMBDA
        for axis in (1, 0):
            depth, mask = _smooth_lines([depth, mask], strength * ties[axis], axis)
    mask = np.maximum(mask, np.finfo(np.float64).tiny)
    return DepthDistribution.of_depth(as_map(depth / mask), confidence=as_map(np.log(mask)))


def _ties(sample: Sample) -> tuple[Array, Array]:
    """Affinity of each pixel with the next along rows (axis 0) and columns (axis 1); 0 at the last."""
    image = sample.image.numpy().astype(np.float64)
    out = []
    for axis in (0, 1):
        difference = np.linalg.norm(np.diff(image, axis=axis + 1), axis=0)
        pad = ((0, 1), (0, 0)) if axis == 0 else ((0, 0), (0, 1))
        out.append(np.pad(np.exp(-difference / _GLOBAL_SIGMA), pad))
    return out[0], out[1]


def _smooth_lines(fields: list[Array], ties: Array, axis: int) -> list[Array]:
    """Minimise Σ (u − f)² + Σ tie (u − u_next)² along all lines of `axis`, as one banded system."""
    if axis == 0:
        return [u.T for u in _smooth_lines([f.T for f in fields], ties.T, 1)]
    tie = ties.ravel()  # zero at the end of each line, so lines stay apart
    before = np.concatenate([[0.0], tie[:-1]])
    bands = np.stack([-before, 1 + tie + before, -tie])  # [above (shifted right), diagonal, below]
    right = np.stack([f.ravel() for f in fields], 1)
    solved = solve_banded((1, 1), bands, right, check_finite=False)
    return [solved[:, k].reshape(ties.shape) for k in range(len(fields))]
