"""Errors of a depth map against ground truth, one value per sample.

One validity rule everywhere: a pixel counts if its target is measured (`gbpn.measurements.validity`). A
prediction that is NaN or infinite says "not observed"; nothing is put in its place. RMSE, MAE, REL and the
inverse errors are taken over the pixels that have both, the share of valid pixels that have a prediction
is `observed`, and an unobserved pixel is a miss for every δ. A value that does not exist (no valid or no
predicted pixel) is NaN.
"""

from __future__ import annotations

import torch
from torch import Tensor

from gbpn.errors import InputError
from gbpn.kernels.checks import require_shape
from gbpn.measurements.validity import measured

__all__ = ["ERRORS", "check_maps", "errors", "valid"]

_DELTAS = {
    "delta_1.02": 1.02,
    "delta_1.05": 1.05,
    "delta_1.10": 1.10,
    "delta_1.25": 1.25,
    "delta_1.25^2": 1.25**2,
    "delta_1.25^3": 1.25**3,
}
"""Thresholds of max(predicted / true, true / predicted)."""

ERRORS = ("rmse", "mae", "irmse", "imae", "rel", *_DELTAS, "observed")
"""Names of the values of `errors`, in the order of a table. Metres, 1/metres, and fractions."""

_TINY = 1e-8
"""Added to denominators, as the authors' evaluation does."""


def valid(target: Tensor) -> Tensor:
    """Where there is ground truth to compare with."""
    return measured(target)


def check_maps(prediction: Tensor, target: Tensor, **others: Tensor | None) -> None:
    """Raise unless all maps are [B, 1, H, W] of one size."""
    require_shape("prediction", prediction, (None, 1, None, None), "add the batch and channel axes, x[None]")
    wanted = tuple(prediction.shape)
    for name, tensor in {"target": target, **others}.items():
        if tensor is not None and tuple(tensor.shape) != wanted:
            raise InputError(
                f"{name} must be {list(wanted)} like prediction; got {list(tensor.shape)}: "
                "resize the prediction to the ground truth, never the other way round"
            )


def errors(prediction: Tensor, target: Tensor) -> dict[str, Tensor]:
    """All of `ERRORS` for maps [B, 1, H, W] in metres: float64 [B] each, NaN where there is no value."""
    check_maps(prediction, target)
    truth = valid(target).flatten(1)  # [B, N]
    seen = truth & torch.isfinite(prediction).flatten(1)
    one = torch.ones((), dtype=torch.float64, device=target.device)
    d = torch.where(seen, prediction.flatten(1).double(), one)  # depth predicted; 1 = 1 where nothing counts
    t = torch.where(seen, target.flatten(1).double(), one)
    n_truth, n_seen = truth.sum(1).double(), seen.sum(1).double()

    difference = d - t
    inverse = 1 / (d + _TINY) - 1 / (t + _TINY)
    out = {
        "rmse": (difference.square().sum(1) / n_seen).sqrt(),
        "mae": difference.abs().sum(1) / n_seen,
        "irmse": (inverse.square().sum(1) / n_seen).sqrt(),
        "imae": inverse.abs().sum(1) / n_seen,
        "rel": (difference.abs() / (t + _TINY)).sum(1) / n_seen,
    }
    ratio = torch.maximum(d / (t + _TINY), t / (d + _TINY))
    hit = seen & (d > 0)  # negative ratios are below any threshold, but depth behind the camera is no hit
    for name, threshold in _DELTAS.items():
        out[name] = (hit & (ratio < threshold)).sum(1) / n_truth
    out["observed"] = n_seen / n_truth
    return out
