"""Colourisation (Levin, Lischinski, Weiss 2004) of depth: like brightness nearby means like depth."""

from __future__ import annotations

import numpy as np
from scipy import sparse
from scipy.sparse.linalg import splu

from gbpn.baselines.interpolation import closeness, nearest_depth
from gbpn.baselines.measured_points import Array, MeasuredPoints, as_map, luminance, nothing
from gbpn.distribution import DepthDistribution
from gbpn.mrf import RING
from gbpn.sample import Sample

__all__ = ["MEASUREMENT_WEIGHT", "colourisation", "ring_average"]

MEASUREMENT_WEIGHT = 1.0
"""Weight of a measured depth against its pixel's smoothness equation."""

_SMALLEST_SCALE = 2e-6
"""Floor of the brightness scale, so that flat regions stay connected."""


def colourisation(sample: Sample) -> DepthDistribution:
    """Each pixel is the weighted mean of its 3×3 ring; measured pixels are drawn to their measurement.

    The filled ground truth of the labelled NYUv2 frames was made by this very method from the raw sensor.
    """
    points = MeasuredPoints.of(sample)
    if not len(points):
        return nothing(sample)
    height, width = points.shape
    pull = np.zeros(points.shape)
    right = np.zeros(points.shape)
    pull[points.rows, points.columns] = MEASUREMENT_WEIGHT
    right[points.rows, points.columns] = MEASUREMENT_WEIGHT * points.depth
    matrix = sparse.eye(height * width) - ring_average(luminance(sample)) + sparse.diags(pull.ravel())
    depth = splu(matrix.tocsc(), permc_spec="MMD_AT_PLUS_A", options={"SymmetricMode": True}).solve(
        right.ravel()
    )
    _, distance = nearest_depth(points)
    return DepthDistribution.of_depth(as_map(depth.reshape(points.shape)), confidence=closeness(distance))


def ring_average(brightness: Array) -> sparse.csr_matrix:
    """[N, N]: row i averages the 3×3 ring of pixel i with weights exp(−(difference of brightness)² / scale).

    The scale is 0.6 times the local variance, raised where needed so that the neighbour most alike keeps 1 %.
    """
    height, width = brightness.shape
    padded = np.pad(brightness, 1, constant_values=np.nan)
    around = np.stack([padded[1 + y : 1 + y + height, 1 + x : 1 + x + width] for y, x in RING])  # [8, H, W]
    inside = np.isfinite(around)
    window = np.concatenate([around, brightness[None]])
    squared = np.where(inside, (around - brightness) ** 2, np.inf)
    scale = np.maximum(0.6 * np.nanvar(window, axis=0), -squared.min(0) / np.log(0.01))
    weights = np.exp(-squared / np.maximum(scale, _SMALLEST_SCALE))
    weights /= weights.sum(0)
    index = np.arange(height * width).reshape(height, width)
    rows, columns, values = [], [], []
    for slot, (y, x) in enumerate(RING):
        here = inside[slot]
        rows.append(index[here])
        columns.append(index[here] + y * width + x)
        values.append(weights[slot][here])
    entries = (np.concatenate(values), (np.concatenate(rows), np.concatenate(columns)))
    return sparse.csr_matrix(entries, shape=(height * width, height * width))
