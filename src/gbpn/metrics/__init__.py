"""How good a depth map is, and how honest its uncertainty: per sample, then averaged over samples."""

from gbpn.metrics.errors import ERRORS, errors, valid
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
    "UNCERTAINTIES",
    "MetricTable",
    "Scores",
    "ause",
    "coverage",
    "errors",
    "negative_log_likelihood",
    "rmse_after_dropping",
    "score",
    "sparsification",
    "valid",
]
