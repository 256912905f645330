"""The answer of every method: how confidence becomes σ, and what cutting, mirroring and averaging keep."""

from __future__ import annotations

from dataclasses import fields, replace

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from gbpn.distribution import DepthDistribution, SigmaCalibration, Widening, stacked
from gbpn.errors import InputError

MAPS = ("mean", "confidence_logit", "belief_precision")


def answer(seed: int = 0, batch: int = 3) -> DepthDistribution:
    """[B, 1, 4, 5]; a fifth of the pixels is not observed."""
    draw = torch.Generator().manual_seed(seed)
    mean, logit, precision, std = (
        torch.rand(batch, 1, 4, 5, generator=draw, dtype=torch.float64) for _ in range(4)
    )
    seen = precision > 0.2
    return DepthDistribution(
        mean=torch.where(seen, mean + 1, torch.nan),
        confidence_logit=6 * logit - 3,
        belief_precision=torch.where(seen, precision, 0.0),
        stated_std=std + 0.1,
        dropped=std > 0.7,
    )


@st.composite
def calibrations(draw: st.DrawFn) -> SigmaCalibration:
    steps = draw(st.lists(st.floats(0.1, 3.0), min_size=2, max_size=6))
    falls = draw(st.lists(st.floats(0.0, 2.0), min_size=len(steps), max_size=len(steps)))
    knots, values = np.cumsum(steps) - 4.0, 1.0 - np.cumsum(falls)
    return SigmaCalibration(
        knots=tuple(knots.tolist()), log_std=tuple(values.tolist()), relative=draw(st.booleans())
    )


@given(calibrations())
def test_sigma_is_interpolated_in_its_logarithm_and_constant_beyond_the_knots(one: SigmaCalibration) -> None:
    logit = torch.linspace(-9, 14, 231, dtype=torch.float64)
    mean = torch.linspace(0.5, 8, 231, dtype=torch.float64)
    wanted = np.exp(np.interp(logit.numpy(), one.knots, one.log_std)) * (mean.numpy() if one.relative else 1)
    np.testing.assert_allclose(one.std(mean, logit).numpy(), wanted, rtol=1e-9)
    np.testing.assert_allclose(one.std(-mean, logit).numpy(), wanted, rtol=1e-9)  # a σ is never negative
    knots = torch.tensor(one.knots, dtype=torch.float64)
    at_knots = one.std(torch.ones_like(knots), knots)
    np.testing.assert_allclose(at_knots.log().numpy(), one.log_std, rtol=0, atol=1e-9)


def test_the_check_widens_sigmas_by_its_factor_and_adds_its_noise() -> None:
    plain = replace(
        answer(), stated_std=None, calibration=SigmaCalibration(knots=(-3.0, 3.0), log_std=(0.0, -2.0))
    )
    spread, noise = (torch.tensor(v).double().view(3, 1, 1, 1) for v in ((1.0, 2.0, 0.5), (0.0, 0.0, 0.1)))
    found = replace(plain, widening=Widening(spread, noise))
    seen = plain.observed
    wanted = (spread * plain.std).square() + (noise * plain.mean).square()
    torch.testing.assert_close(found.std.square()[seen], wanted[seen])
    assert found.spread is spread
    assert found.noise is noise
    torch.testing.assert_close(found.unchecked_std, plain.std)


def test_a_stated_sigma_is_the_answer() -> None:
    one = answer()
    assert one.calibrated
    assert one.std is one.stated_std
    assert not replace(one, stated_std=None).calibrated


def part(whole: DepthDistribution, index: int) -> DepthDistribution:
    """The answer for one image of a batch."""
    maps = {
        one.name: value[index : index + 1]
        for one in fields(whole)
        if isinstance(value := getattr(whole, one.name), Tensor)
    }
    return replace(whole, **maps)


def test_stacking_keeps_every_map_and_sigma() -> None:
    whole = answer()
    parts = [part(whole, k) for k in range(3)]
    again = stacked(parts)
    for name in (*MAPS, "stated_std"):
        one, other = getattr(whole, name), getattr(again, name)
        assert torch.equal(one.nan_to_num(-1), other.nan_to_num(-1)), name
    assert stacked([parts[0], replace(parts[1], stated_std=None)]).stated_std is None


def test_a_sigma_that_was_left_out_is_an_error_that_says_what_to_do() -> None:
    without = replace(answer(), sigma_left_out=True, stated_std=None)
    assert not without.calibrated
    with pytest.raises(InputError, match="sigmas=True"):
        _ = without.std


def test_mirroring_twice_is_nothing_and_once_turns_every_map() -> None:
    one = replace(answer(), stated_std=None)
    for name in (*MAPS, "dropped"):
        maps, once, twice = (getattr(x, name) for x in (one, one.flipped(), one.flipped().flipped()))
        assert torch.equal(maps.nan_to_num(-1), twice.nan_to_num(-1)), name
        assert torch.equal(maps.flip(-1).nan_to_num(-1), once.nan_to_num(-1)), name


def test_an_average_lies_in_the_middle_and_is_observed_where_both_are() -> None:
    one, other = answer(0), answer(1)
    both = one.averaged(other)
    assert torch.equal(both.observed, one.observed & other.observed)
    assert torch.equal(both.observed, torch.isfinite(both.mean))
    for name in MAPS:
        a, b, middle = (getattr(x, name)[both.observed] for x in (one, other, both))
        torch.testing.assert_close(middle - a, b - middle)
    same = one.averaged(one)
    for name in MAPS:
        assert torch.equal(getattr(same, name).nan_to_num(-1), getattr(one, name).nan_to_num(-1))


@pytest.mark.parametrize("name", ["confidence", "std"])
def test_methods_without_belief_propagation_observe_where_they_have_a_depth(name: str) -> None:
    mean: Tensor = answer().mean
    plain = DepthDistribution.of_depth(mean)
    assert torch.equal(plain.observed, torch.isfinite(mean))
    assert not plain.ranked
    assert not plain.calibrated
    some = torch.rand_like(mean)
    more = DepthDistribution.of_depth(mean, **{name: some})
    assert (more.ranked, more.calibrated) == (name == "confidence", name == "std")
    if more.ranked:
        torch.testing.assert_close(more.confidence, 1 / (1 + torch.exp(-some)))
