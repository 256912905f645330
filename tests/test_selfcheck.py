"""Sigmas follow the measurements of the image at hand."""

from __future__ import annotations

import pytest
import torch

import gbpn
from gbpn import DepthDistribution, selfcheck
from gbpn.depth import LEVEL, Calibration

ONE = Calibration(knots=(-1.0, 1.0), log_std=(0.0, 0.0))
"""σ = 1 m everywhere."""


def answer(mean: torch.Tensor) -> DepthDistribution:
    return DepthDistribution(
        mean=mean,
        confidence_logit=torch.zeros_like(mean),
        belief_precision=torch.ones_like(mean),
        calibration=ONE,
    )


def test_a_fifth_is_held_out_always_the_same_and_never_of_a_few() -> None:
    sparse = torch.ones(2, 1, 50, 60)
    sparse[1] = 0
    sparse[1, 0, :3, :8] = 1  # 24 measurements
    held = selfcheck.choose(sparse)
    assert held is not None
    assert float(held[0].float().mean()) == pytest.approx(selfcheck.SHARE, abs=0.03)
    assert not bool(held[1].any())
    assert torch.equal(held, selfcheck.choose(sparse))
    assert selfcheck.choose(sparse[1:]) is None


@pytest.mark.parametrize("sigma", [0.4, 1.0, 3.0])
def test_the_factor_is_the_true_sigma_over_the_stated_one(sigma: float) -> None:
    generator = torch.Generator().manual_seed(0)
    sparse = 50 + sigma * torch.randn(1, 1, 100, 100, generator=generator)
    held = torch.ones_like(sparse, dtype=torch.bool)
    factor = selfcheck.spread(answer(torch.full_like(sparse, 50.0)), sparse, held)
    assert float(factor) == pytest.approx(sigma, rel=0.05)


def test_few_held_out_measurements_move_sigmas_little_and_none_not_at_all() -> None:
    sparse = torch.full((3, 1, 4, 5), 8.0)
    held = torch.zeros_like(sparse, dtype=torch.bool)
    held[1, 0, 0, :2] = True
    held[2] = True
    factors = selfcheck.spread(answer(torch.full_like(sparse, 2.0)), sparse, held).flatten()
    assert float(factors[0]) == 1.0
    assert 1.0 < float(factors[1]) < 1.2 < float(factors[2]) < 6 / 1.6449


def test_noisy_measurements_widen_the_sigmas_of_the_embedded_weights() -> None:
    """A slanted plane, measured well and measured badly; intervals must hold the truth in both."""
    model = gbpn.load("default")
    generator = torch.Generator().manual_seed(0)
    rows = torch.linspace(2, 4, 96).view(1, 1, -1, 1).expand(1, 1, 96, 128)
    image = 0.5 + 0.1 * torch.randn(1, 3, 96, 128, generator=generator)
    picked = torch.rand(rows.shape, generator=generator) < 0.05
    noise = 1 + 0.1 * (2 * torch.rand(rows.shape, generator=generator) - 1)
    stated = []
    for values in (rows, rows * noise):
        with torch.inference_mode():
            found = model(image, torch.where(picked, values, torch.zeros_like(rows)))
        covered = ((found.mean - rows).abs() < 1.6449 * found.std).float().mean()
        assert float(covered) > LEVEL - 0.1
        stated.append(float(found.std.median()))
    assert stated[1] > 2 * stated[0]
