"""How good a depth map is, and how honest its uncertainty: per sample, then averaged over samples."""

from gbpn.metrics.errors import ERRORS, errors, valid
from gbpn.metrics.surfaces import SURFACES, depth_edges, map_errors, surface_errors
from gbpn.metrics.table import MetricTable, Scores, score
from gbpn.metrics.uncertainty import (
    UNCERTAINTIES,
    ause,
    coverage,
    negative_log_likelihood,
    rmse_after_dropping,
    sparsification,
)

__all__ = [
    "ERRORS",
    "SURFACES",
    "UNCERTAINTIES",
    "MetricTable",
    "Scores",
    "ause",
    "coverage",
    "depth_edges",
    "errors",
    "map_errors",
    "negative_log_likelihood",
    "rmse_after_dropping",
    "score",
    "sparsification",
    "surface_errors",
    "valid",
]
