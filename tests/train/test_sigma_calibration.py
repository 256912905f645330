"""The fitted σ is monotone and covers what it says."""

from __future__ import annotations

import numpy as np
import torch

from gbpn.train.sigma_calibration import fit


def test_coverage_and_monotony_on_known_noise() -> None:
    rng = np.random.default_rng(0)
    logits = rng.normal(0, 2, 40_000)
    scale = 0.05 * np.exp(-0.5 * logits)
    calibration = fit(logits, np.abs(rng.normal(0, scale)))
    assert calibration.relative
    assert list(calibration.knots) == sorted(calibration.knots)
    assert list(calibration.log_std) == sorted(calibration.log_std, reverse=True)

    fresh = rng.normal(0, 2, 40_000)
    depth = torch.from_numpy(rng.uniform(1, 9, 40_000)).view(1, 1, 200, 200)
    error = torch.from_numpy(rng.normal(0, 0.05 * np.exp(-0.5 * fresh))).view_as(depth) * depth
    std = calibration.std(depth, torch.from_numpy(fresh).view_as(depth))
    for level, quantile in ((0.5, 0.6745), (0.9, 1.6449), (0.95, 1.96)):
        covered = float((error.abs() <= quantile * std).double().mean())
        assert abs(covered - level) < 0.02
