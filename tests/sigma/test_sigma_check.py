"""Sigmas follow the measurements of the image at hand."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch

import gbpn
import gbpn.scenes
from gbpn import DepthDistribution
from gbpn.distribution import SigmaCalibration, Widening
from gbpn.sigma import check as sigma_check
from gbpn.sigma.held_out import LEVEL, LEVEL_QUANTILE, SETTINGS

ONE = SigmaCalibration(knots=(-1.0, 1.0), log_std=(0.0, 0.0))
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
    held = sigma_check.held_out(sparse)
    assert held is not None
    assert float(held[0].float().mean()) == pytest.approx(SETTINGS.share, abs=0.03)
    assert not bool(held[1].any())
    assert torch.equal(held, sigma_check.held_out(sparse))
    assert sigma_check.held_out(sparse[1:]) is None


def test_many_measurements_are_held_out_in_patches() -> None:
    sparse = torch.ones(1, 1, 60, 60)
    held = sigma_check.held_out(sparse)
    assert held is not None
    patches = held[0, 0].view(20, 3, 20, 3)
    assert torch.equal(patches, patches[:, :1, :, :1].expand_as(patches))
    sparse[:, :, ::2, ::2] = sparse[:, :, 1::2, 1::2] = 0  # 1800 are left, as on a chessboard
    held = sigma_check.held_out(sparse)
    assert held is not None
    assert len({tuple(row) for row in held[0, 0, 1::2].tolist()}) == 30


SIGMAS = torch.logspace(-3, -1, 100).expand(1, 1, 100, 100)
"""Of depth, from 0.1 to 10 %."""


def varied(mean: torch.Tensor) -> DepthDistribution:
    """States `SIGMAS`: their logarithm is the logit, with the sign changed."""
    return DepthDistribution(
        mean=mean,
        confidence_logit=-SIGMAS.log(),
        belief_precision=torch.ones_like(mean),
        calibration=SigmaCalibration(knots=(0.0, 10.0), log_std=(0.0, -10.0), relative=True),
    )


@pytest.mark.parametrize("factor", [0.4, 1.0, 3.0])
@pytest.mark.parametrize("noise", [0.0, 0.01, 0.05])
def test_wrong_sigmas_and_noise_are_told_apart(factor: float, noise: float) -> None:
    """Errors of the stated size times a factor, and measurements that err themselves."""
    generator = torch.Generator().manual_seed(0)
    truth = torch.full((1, 1, 100, 100), 5.0)
    answer = varied(truth * (1 + factor * SIGMAS * torch.randn(truth.shape, generator=generator)))
    sparse = truth * (1 + noise * torch.randn(truth.shape, generator=generator))
    spread, added = sigma_check.compare(answer, sparse, torch.ones_like(sparse, dtype=torch.bool))
    if noise and factor >= 1:
        assert float(spread) == pytest.approx(factor, rel=0.4)  # 1.0 to 3.3 times as wide without `noise`
        assert float(added) == pytest.approx(SETTINGS.noise_passed_on * noise, rel=0.3)
    elif noise == 0:
        assert float(spread) == pytest.approx(factor, rel=0.05)
        assert float(added) <= 0.5e-3 * factor
    stated = replace(answer, widening=Widening(spread, added)).std
    assert torch.allclose(stated, torch.hypot(spread * answer.std, added * answer.mean))
    covered = ((answer.mean - truth).abs() <= LEVEL_QUANTILE * stated).float().mean()
    assert float(covered) > LEVEL - 0.05  # of the truth, not of the noisy measurements


def test_few_measurements_widen_sigmas_by_their_number_alone() -> None:
    sparse = torch.zeros(4, 1, 6, 8)
    for image, count in enumerate((1, 3, 24, 30)):
        sparse[image].view(-1)[:count] = 2.0
    spread, noise = sigma_check.of_few(sparse)
    assert spread.shape == (4, 1, 1, 1)
    one, three, many, most = spread.flatten().tolist()
    assert one == pytest.approx(1 + SETTINGS.few[0])
    assert one > three > many > most == 1.0
    assert not noise.any()


def test_few_points_state_wider_sigmas_than_the_calibration() -> None:
    """Of weights that do not look at surroundings: those that do count the measurements themselves."""
    model = gbpn.load("default")
    assert model.calibration is not None
    model.calibration = replace(model.calibration, surroundings=())
    completer = gbpn.DepthCompleter(model)
    scene = gbpn.scenes.load("kitchen")
    found = completer(scene.image, [[100.0, 90.0, 2.0]], scene.intrinsics).distribution
    torch.testing.assert_close(found.std, found.unchecked_std * (1 + SETTINGS.few[0]))


def test_few_held_out_measurements_move_sigmas_little_and_none_not_at_all() -> None:
    sparse = torch.full((3, 1, 5, 6), 8.0)
    held = torch.zeros_like(sparse, dtype=torch.bool)
    held[1, 0, 0, :2] = True
    held[2] = True
    near, far = (answer(torch.full_like(sparse, 8 - error)) for error in (0.5, 6.0))
    narrower, noises = (found.flatten().tolist() for found in sigma_check.compare(near, sparse, held))
    assert narrower[0] == 1.0
    assert 0.5 / LEVEL_QUANTILE < narrower[2] < 0.8 < narrower[1] < 1.0
    assert not any(noises)
    wider, noises = (found.flatten().tolist() for found in sigma_check.compare(far, sparse, held))
    assert wider[0] == 1.0
    assert 1.0 < wider[1] < 1.2 < wider[2] < 6 / LEVEL_QUANTILE
    assert not any(noises)  # no sensor errs by three quarters


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
        covered = ((found.mean - rows).abs() < LEVEL_QUANTILE * found.std).float().mean()
        assert float(covered) > LEVEL - 0.1
        stated.append(float(found.std.median()))
    assert stated[1] > 2 * stated[0]


def test_a_held_out_measurement_that_nothing_else_reaches_says_nothing() -> None:
    """Its pixel has no depth without it; where no other is left, their number decides."""
    sparse = torch.full((2, 1, 6, 8), 8.0)
    held = torch.zeros_like(sparse, dtype=torch.bool)
    held[:, :, 1::2, ::2] = True
    reached = torch.ones_like(sparse)
    reached[0, 0, 1], reached[1] = 0.0, 0.0
    mean = torch.where(reached > 0, 6.0, torch.nan)
    found = sigma_check.compare(replace(answer(mean), belief_precision=reached), sparse, held)
    fewer = held & (reached > 0)
    wanted = sigma_check.compare(answer(torch.full_like(sparse, 6.0)), sparse, fewer)
    for one, other in zip(found, wanted, strict=True):
        assert torch.equal(one, other)
    assert float(found.spread[0]) != 1.0
    assert float(found.spread[1]) == 1.0  # 48 measurements are not few
