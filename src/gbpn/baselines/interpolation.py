"""Interpolation that looks at the measurements alone."""

from __future__ import annotations

import numpy as np
from scipy import ndimage
from scipy.interpolate import RBFInterpolator
from scipy.spatial import Delaunay, QhullError
from torch import Tensor

from gbpn.baselines.measured_points import Array, MeasuredPoints, as_map, nothing
from gbpn.distribution import DepthDistribution
from gbpn.sample import Sample

__all__ = [
    "closeness",
    "linear",
    "linear_depth",
    "natural_neighbour",
    "nearest",
    "nearest_depth",
    "thin_plate",
]

_THIN_PLATE_GLOBAL = 1500
"""Up to this many measurements one spline covers the image; beyond, each pixel has one of its neighbours."""

_THIN_PLATE_NEIGHBOURS = 24


def nearest(sample: Sample) -> DepthDistribution:
    """Depth of the nearest measured pixel; the nearer, the more confident."""
    points = MeasuredPoints.of(sample)
    if not len(points):
        return nothing(sample)
    depth, distance = nearest_depth(points)
    return DepthDistribution.of_depth(as_map(depth), confidence=closeness(distance))


def linear(sample: Sample) -> DepthDistribution:
    """Linear on the Delaunay triangles of the measurements, nearest outside their hull."""
    points = MeasuredPoints.of(sample)
    if not len(points):
        return nothing(sample)
    depth, distance = linear_depth(points)
    return DepthDistribution.of_depth(as_map(depth), confidence=closeness(distance))


def natural_neighbour(sample: Sample) -> DepthDistribution:
    """Sibson's natural neighbours, counted in pixels.

    Every pixel p, with its nearest measurement at distance r, would be taken over by a new point anywhere
    nearer than r: p hands its nearest depth to all pixels of that disc, and a pixel averages what it got.
    """
    points = MeasuredPoints.of(sample)
    if not len(points):
        return nothing(sample)
    depth, distance = nearest_depth(points)
    mean = _painted_discs(depth, distance) / _painted_discs(np.ones_like(depth), distance)
    return DepthDistribution.of_depth(as_map(mean), confidence=closeness(distance))


def thin_plate(sample: Sample) -> DepthDistribution:
    """The thin-plate spline through the measurements, kept within the measured range."""
    points = MeasuredPoints.of(sample)
    if not len(points):
        return nothing(sample)
    depth, distance = nearest_depth(points)
    neighbours = None if len(points) <= _THIN_PLATE_GLOBAL else _THIN_PLATE_NEIGHBOURS
    try:
        spline = RBFInterpolator(
            points.places, points.depth, neighbors=neighbours, kernel="thin_plate_spline"
        )
        depth = spline(points.grid).reshape(points.shape)
    except (ValueError, np.linalg.LinAlgError):
        pass  # fewer than three measurements, or all on a line: no plate is fixed by them, nearest stays
    depth = depth.clip(points.depth.min(), points.depth.max())
    return DepthDistribution.of_depth(as_map(depth), confidence=closeness(distance))


def nearest_depth(points: MeasuredPoints) -> tuple[Array, Array]:
    """Depth of the nearest measurement and its distance in pixels, [H, W] each."""
    empty = np.ones(points.shape, dtype=bool)
    empty[points.rows, points.columns] = False
    depth = np.zeros(points.shape)
    depth[points.rows, points.columns] = points.depth
    distance, (row, column) = ndimage.distance_transform_edt(empty, return_indices=True)
    return depth[row, column], distance


def linear_depth(points: MeasuredPoints) -> tuple[Array, Array]:
    """Delaunay interpolation, nearest outside the hull, and the distance to the nearest measurement."""
    depth, distance = nearest_depth(points)
    try:
        inside = _on_triangles(points)
    except (QhullError, ValueError):
        return depth, distance  # fewer than three measurements, or all on a line: there is no triangle
    return np.where(np.isnan(inside), depth, inside), distance


def _on_triangles(points: MeasuredPoints) -> Array:
    """[H, W] linear on Delaunay triangles, NaN outside.

    Looked up by matplotlib: SciPy inverts a matrix per triangle with LAPACK, whose threads wait for each
    other for seconds on a busy machine.
    """
    from matplotlib.tri import LinearTriInterpolator, Triangulation

    corners = Delaunay(points.places).simplices
    (a, b), (c, d) = np.moveaxis(points.places[corners[:, 1:]] - points.places[corners[:, :1]], 0, -1)
    corners = corners[a * d != b * c]  # flat triangles cover nothing
    triangles = Triangulation(points.places[:, 1], points.places[:, 0], corners)
    rows, columns = points.grid.reshape(*points.shape, 2).transpose(2, 0, 1)
    return LinearTriInterpolator(triangles, points.depth)(columns, rows).filled(np.nan)


def closeness(distance: Array) -> Tensor:
    """Confidence that falls with the distance to the nearest measurement: 1 there, towards 0 far away."""
    return as_map(1 / (1 + distance))


def _painted_discs(values: Array, radius: Array) -> Array:
    """[H, W]: at each pixel the sum of `values` of all pixels that are nearer to it than their `radius`.

    A pixel always counts for itself. Row by row of the discs: a run of equal additions is two entries of a
    difference array.
    """
    height, width = values.shape
    steps = np.zeros((height, width + 1))
    row, column = np.mgrid[:height, :width]
    # Squared distances between pixels are whole numbers, so "nearer than r" is "at most r² − 1".
    reach = np.maximum(np.rint(radius**2).astype(np.int64) - 1, 0)
    furthest = int(np.sqrt(reach.max()))
    for dy in range(-furthest, furthest + 1):
        reached = (reach >= dy * dy) & (row + dy >= 0) & (row + dy < height)
        half = np.sqrt(reach[reached] - dy * dy).astype(np.int64)
        left = np.maximum(column[reached] - half, 0)
        right = np.minimum(column[reached] + half + 1, width)
        line = (row[reached] + dy) * (width + 1)
        steps += np.bincount(line + left, values[reached], steps.size).reshape(steps.shape)
        steps -= np.bincount(line + right, values[reached], steps.size).reshape(steps.shape)
    return steps[:, :-1].cumsum(1)
