"""Is the uncertainty true? Ranking (sparsification, AUSE) and calibration (coverage, likelihood).

All per sample over pixels with ground truth, a finite prediction and a finite uncertainty; NaN where
none exists. Pixels of equal confidence are exchangeable: each counts with the mean squared error of its
group, so that a constant confidence ranks nothing and no pixel order leaks into a score.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

from gbpn.metrics.errors import check_maps, valid

__all__ = [
    "DROPS",
    "FRACTIONS",
    "INTERVALS",
    "LEVELS",
    "UNCERTAINTIES",
    "ause",
    "coverage",
    "negative_log_likelihood",
    "rmse_after_dropping",
    "sparsification",
    "uncertainties",
]

FRACTIONS = (0.0, 0.01, 0.02, 0.03, 0.04, *(i / 20 for i in range(1, 20)), 0.99)
"""Shares of pixels dropped along a sparsification curve; finer where the paper drops 1 %."""

DROPS = {"rmse_drop_1pct": 0.01, "rmse_drop_5pct": 0.05}
"""Shares dropped for the table."""

INTERVALS = {"coverage_50": 0.50, "coverage_90": 0.90, "coverage_95": 0.95}
"""Nominal central intervals of the table."""

LEVELS = tuple(i / 20 for i in range(1, 20))
"""Nominal central intervals of the calibration plot."""

UNCERTAINTIES = (*DROPS, "ause", *INTERVALS, "nll", "std")
"""Names of the values of `uncertainties`. Metres, fractions, nats; `std` is the mean σ (sharpness)."""


def rmse_after_dropping(prediction: Tensor, target: Tensor, confidence: Tensor, share: float) -> Tensor:
    """[B]: RMSE without the `share` of valid pixels that are least confident (the paper drops 1 %)."""
    check_maps(prediction, target, confidence=confidence)
    return torch.stack([_curve(*row, (share,))[0] for row in _rows(prediction, target, confidence)])


def sparsification(
    prediction: Tensor, target: Tensor, confidence: Tensor, fractions: tuple[float, ...] = FRACTIONS
) -> tuple[Tensor, Tensor]:
    """RMSE left after dropping each fraction, [B, F]: by `confidence`, and by the true error (the oracle)."""
    check_maps(prediction, target, confidence=confidence)
    rows = _rows(prediction, target, confidence)
    ranked = torch.stack([_curve(squared, rank, fractions) for squared, rank in rows])
    oracle = torch.stack([_curve(squared, -squared, fractions) for squared, _ in rows])
    return ranked, oracle


def ause(ranked: Tensor, oracle: Tensor, fractions: tuple[float, ...] = FRACTIONS) -> Tensor:
    """[B]: area between the two curves of `sparsification` over the dropped share, metres."""
    steps = torch.tensor(fractions, dtype=torch.float64, device=ranked.device)
    return torch.trapezoid(ranked - oracle, steps, dim=1)


def coverage(prediction: Tensor, target: Tensor, std: Tensor, level: float) -> Tensor:
    """[B]: share of pixels whose truth lies in the central `level` interval of N(prediction, std²)."""
    check_maps(prediction, target, std=std)
    width = math.sqrt(2) * float(torch.erfinv(torch.tensor(level, dtype=torch.float64)))
    rows = _rows(prediction, target, std)
    return torch.stack([(squared.sqrt() <= width * sigma).double().mean() for squared, sigma in rows])


def negative_log_likelihood(prediction: Tensor, target: Tensor, std: Tensor) -> Tensor:
    """[B]: mean of −log N(target; prediction, std²), nats per pixel, depth in metres."""
    check_maps(prediction, target, std=std)
    out = []
    for squared, sigma in _rows(prediction, target, std):
        variance = sigma.square()
        out.append((0.5 * (2 * math.pi * variance).log() + squared / (2 * variance)).mean())
    return torch.stack(out)


def uncertainties(
    prediction: Tensor, target: Tensor, confidence: Tensor | None, std: Tensor | None
) -> tuple[dict[str, Tensor], dict[str, Tensor]]:
    """Values [B] by name and curves [B, F] by name of whatever uncertainty there is.

    Ranking uses `confidence`, or −`std` where only that is given.
    """
    values: dict[str, Tensor] = {}
    curves: dict[str, Tensor] = {}
    rank = confidence if confidence is not None else (-std if std is not None else None)
    if rank is not None:
        ranked, oracle = sparsification(prediction, target, rank)
        curves |= {"sparsification": ranked, "oracle": oracle}
        values |= {name: ranked[:, FRACTIONS.index(share)] for name, share in DROPS.items()}
        values["ause"] = ause(ranked, oracle)
    if std is not None:
        values |= {name: coverage(prediction, target, std, level) for name, level in INTERVALS.items()}
        values["nll"] = negative_log_likelihood(prediction, target, std)
        values["std"] = torch.stack([sigma.mean() for _, sigma in _rows(prediction, target, std)])
        curves["calibration"] = torch.stack([coverage(prediction, target, std, lv) for lv in LEVELS], 1)
    return values, curves


def _rows(prediction: Tensor, target: Tensor, measure: Tensor) -> list[tuple[Tensor, Tensor]]:
    """Per sample: squared errors and the uncertainty measure of the pixels that count, float64 [n]."""
    counts = valid(target) & torch.isfinite(prediction) & torch.isfinite(measure)
    squared = (prediction.double() - target.double()).square()
    return [(squared[b][counts[b]], measure[b][counts[b]].double()) for b in range(len(target))]


def _curve(squared: Tensor, rank: Tensor, fractions: tuple[float, ...]) -> Tensor:
    """[F]: RMSE of what is left after dropping each fraction of lowest `rank`."""
    n = len(squared)
    if n == 0:
        return squared.new_full((len(fractions),), torch.nan)
    rank, order = rank.sort(descending=True)
    _, group, size = torch.unique_consecutive(rank, return_inverse=True, return_counts=True)
    total = squared.new_zeros(len(size)).index_add_(0, group, squared[order])
    left = (total / size)[group].cumsum(0)
    keep = torch.tensor([n - math.floor(share * n) for share in fractions], device=squared.device)
    curve: Tensor = (left[keep - 1].clamp(min=0) / keep).sqrt()
    return curve
