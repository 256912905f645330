"""Laws of metrics: what is masked does not count, averages count each once, one name is one sample."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from gbpn.errors import InputError
from gbpn.metrics import (
    ERRORS,
    MetricTable,
    Scores,
    ause,
    coverage,
    errors,
    negative_log_likelihood,
    rmse_after_dropping,
    score,
    sparsification,
)
from gbpn.metrics.uncertainty import DROPS, FRACTIONS, INTERVALS, LEVELS, UNCERTAINTIES, uncertainties


def maps(seed: int, size: int = 2, height: int = 8, width: int = 9) -> tuple[Tensor, Tensor, Tensor]:
    """Prediction, target and standard deviation [B, 1, H, W], all valid."""
    g = torch.Generator().manual_seed(seed)
    target = 0.5 + 4 * torch.rand(size, 1, height, width, generator=g)
    std = 0.05 + 0.4 * torch.rand(target.shape, generator=g)
    return target + std * torch.randn(target.shape, generator=g), target, std


@given(seed=st.integers(0, 1000), top=st.integers(0, 4), left=st.integers(0, 4), unseen=st.booleans())
@settings(max_examples=20, deadline=None)
def test_errors_under_a_mask_are_errors_of_the_cropped_map(seed, top, left, unseen):
    """By truth that is not there, and, but for shares of all truth, by predictions that are not there."""
    prediction, target, std = maps(seed)
    inside = torch.zeros_like(target, dtype=torch.bool)
    inside[..., top : top + 3, left : left + 4] = True
    cut = (..., slice(top, top + 3), slice(left, left + 4))
    wanted, wanted_more, wanted_curves = whole(prediction[cut], target[cut], std[cut])
    if unseen:
        got, more, curves = whole(torch.where(inside, prediction, math.nan), target, std)
        shares = {name for name in ERRORS if name.startswith("delta") or name == "observed"}
        for name in shares:
            assert torch.allclose(got[name], wanted[name] * 12 / 72), name
    else:
        got, more, curves = whole(prediction, torch.where(inside, target, 0.0), std)
        shares = set()
    for name in set(ERRORS) - shares:
        assert torch.allclose(got[name], wanted[name], rtol=1e-12), name
    for name, values in (more | curves).items():
        assert torch.allclose(values, (wanted_more | wanted_curves)[name], rtol=1e-12), name


def whole(prediction: Tensor, target: Tensor, std: Tensor) -> tuple[dict[str, Tensor], ...]:
    return errors(prediction, target), *uncertainties(prediction, target, None, std)


def test_errors_do_not_depend_on_the_unit_but_by_their_dimension():
    prediction, target, std = maps(3)
    one, ten = errors(prediction, target), errors(prediction * 10, target * 10)
    power = {"rmse": 1, "mae": 1, "irmse": -1, "imae": -1}
    for name in ERRORS:
        assert torch.allclose(ten[name], one[name] * 10.0 ** power.get(name, 0), rtol=1e-5), name
    ranked, oracle = sparsification(prediction, target, -std)
    assert torch.allclose(ause(10 * ranked, 10 * oracle), 10 * ause(ranked, oracle))


def test_any_depth_above_zero_is_ground_truth():
    target = torch.tensor([0.0, 2e-4, torch.nan, -1.0]).view(1, 1, 1, 4)
    row = score(torch.full_like(target, 1.0), target, names=["a"])[0]
    assert row.pixels == 1
    assert row.values["mae"] == pytest.approx(1 - 2e-4)


def test_thresholds_stand_in_their_names():
    """A prediction off by a factor just below a threshold is a hit, just above it a miss, both ways."""
    target = torch.full((1, 1, 1, 1), 2.0)
    for name in ERRORS:
        if name.startswith("delta_"):
            base, _, power = name.removeprefix("delta_").partition("^")
            factor = float(base) ** int(power or 1)
            for near, hit in ((factor * 0.999, 1.0), (factor * 1.001, 0.0)):
                assert float(errors(target * near, target)[name]) == hit
                assert float(errors(target / near, target)[name]) == hit


def test_perfect_predictions_have_no_error_and_every_hit():
    _, target, _ = maps(4)
    for name, value in errors(target, target).items():
        wanted = 1.0 if name.startswith("delta") or name == "observed" else 0.0
        assert torch.equal(value, torch.full((2,), wanted, dtype=torch.float64)), name


# --- uncertainty -------------------------------------------------------------------------------------------


def test_what_a_table_says_of_uncertainty_is_what_the_functions_say():
    prediction, target, std = maps(5)
    values, curves = uncertainties(prediction, target, None, std)
    assert (*values,) == UNCERTAINTIES
    assert set(curves) == {"sparsification", "oracle", "calibration"}
    for name, share in DROPS.items():
        assert name == f"rmse_drop_{share * 100:.0f}pct"
        assert torch.equal(values[name], rmse_after_dropping(prediction, target, -std, share))
    for name, level in INTERVALS.items():
        assert name == f"coverage_{level * 100:.0f}"
        assert torch.equal(values[name], coverage(prediction, target, std, level))
    for column, level in enumerate(LEVELS):
        assert torch.equal(curves["calibration"][:, column], coverage(prediction, target, std, level))
    ranked, oracle = sparsification(prediction, target, -std)
    assert torch.equal(curves["sparsification"], ranked)
    assert torch.equal(curves["oracle"], oracle)
    assert torch.equal(values["ause"], ause(ranked, oracle))
    assert torch.equal(values["nll"], negative_log_likelihood(prediction, target, std))
    assert torch.allclose(values["std"], std.double().mean(dim=(1, 2, 3)))
    assert FRACTIONS[0] == 0
    assert 0.01 in FRACTIONS
    assert list(FRACTIONS) == sorted(set(FRACTIONS))
    assert FRACTIONS[-1] == 0.99
    assert pytest.approx([0.05 * i for i in range(1, 20)]) == LEVELS


def test_confidence_ranks_before_sigma_does():
    prediction, target, std = maps(6)
    by_confidence, _ = uncertainties(prediction, target, std, std)
    ranked, _ = sparsification(prediction, target, std)
    assert torch.equal(by_confidence["rmse_drop_5pct"], ranked[:, FRACTIONS.index(0.05)])
    only_confidence, curves = uncertainties(prediction, target, std, None)
    assert set(only_confidence) == {*DROPS, "ause"}
    assert set(curves) == {"sparsification", "oracle"}
    assert uncertainties(prediction, target, None, None) == ({}, {})


def test_a_sparsification_curve_by_sorting():
    """Each fraction: the RMSE over the n − ⌊share · n⌋ most confident pixels."""
    prediction, target, std = maps(7, size=1, height=10, width=10)
    order = std.flatten().argsort()
    squared = (prediction - target).double().square().flatten()[order]
    ranked, _ = sparsification(prediction, target, -std)
    for column, share in enumerate(FRACTIONS):
        kept = 100 - math.floor(share * 100)
        assert float(ranked[0, column]) == pytest.approx(float(squared[:kept].mean().sqrt()), rel=1e-9)


def test_coverage_at_its_border_and_likelihood_by_hand():
    target = torch.zeros(1, 1, 1, 4) + 1
    std = torch.full_like(target, 0.1)
    prediction = target + std * torch.tensor([0.0, 0.6, -0.7, 3.0])
    assert float(coverage(prediction, target, std, 0.5)) == 0.5  # half of a Gaussian lies within 0.6745 σ
    wanted = sum(0.5 * z * z for z in (0, 0.6, 0.7, 3.0)) / 4 + math.log(0.1 * math.sqrt(2 * math.pi))
    assert float(negative_log_likelihood(prediction, target, std)) == pytest.approx(wanted, rel=1e-5)


def test_nothing_to_measure_is_nan():
    prediction, target, std = maps(8)
    prediction[1] = math.nan
    _, more, curves = whole(prediction, target, std)
    for name, value in (more | curves).items():
        assert torch.isfinite(value[0]).all(), name
        assert torch.isnan(value[1]).all(), name


def test_maps_of_another_shape_are_refused_everywhere():
    prediction, target, std = maps(9)
    small = std[..., 1:]
    calls = {
        "target": lambda: errors(prediction, small),
        "confidence": lambda: rmse_after_dropping(prediction, target, small, 0.1),
        "confidence ": lambda: sparsification(prediction, target, small),
        "std": lambda: coverage(prediction, target, small, 0.5),
        "std ": lambda: negative_log_likelihood(prediction, target, small),
    }
    for name, call in calls.items():
        with pytest.raises(InputError, match=rf"^{name.strip()} must be \[2, 1, 8, 9\] like prediction"):
            call()
    with pytest.raises(InputError, match="one entry per sample: wanted 2, got 1"):
        score(prediction, target, names=["a"])


# --- tables ------------------------------------------------------------------------------------------------


def table(**rows: tuple[int, dict[str, float], dict[str, list[float]]]) -> MetricTable:
    return MetricTable(Scores(name=n, pixels=p, values=v, curves=c) for n, (p, v, c) in rows.items())


def test_averages_and_curves_are_means_over_those_that_have_them():
    nothing = {"rmse": math.nan, "observed": 0.0}
    found = table(
        c=(4, {"rmse": 1.0, "observed": 1.0}, {"oracle": [1.0, 0.0]}),
        a=(4, {"rmse": 4.0, "observed": 0.5}, {"oracle": [3.0, 0.5], "calibration": [0.2]}),
        b=(2, nothing, {"oracle": [math.nan, math.nan]}),
        d=(0, {"rmse": math.nan, "observed": math.nan}, {}),
    )
    assert found.averages() == {"rmse": 2.5, "observed": 0.5}
    assert found.curves() == {"oracle": [2.0, 0.25], "calibration": [0.2]}
    assert [row.name for row in found.rows] == ["a", "b", "c", "d"]
    assert len(found) == 4
    assert (found.samples, found.pixels) == (3, 10)
    assert found.without_target == ["d"]
    assert found.without_prediction == ["b"]


@given(st.integers(0, 1000), st.integers(2, 5))
@settings(max_examples=10, deadline=None)
def test_copies_under_other_names_change_no_average(seed, copies):
    rows = score(*maps(seed)[:2], std=maps(seed)[2], names=["a", "b"])
    more = [replace(row, name=f"{row.name}{i}") for row in rows for i in range(copies)]
    one, many = MetricTable(rows), MetricTable(more)
    assert many.averages() == pytest.approx(one.averages())
    assert {k: pytest.approx(c) for k, c in one.curves().items()} == many.curves()
    assert many.pixels == copies * one.pixels


def test_an_average_of_scores_is_the_average_of_the_functions():
    prediction, target, std = maps(10, size=3)
    found = MetricTable()
    for b in range(3):  # without names: counted through
        found.update(prediction[b : b + 1], target[b : b + 1], std=std[b : b + 1])
    assert len(found) == 3
    assert [row.name for row in found.rows] == ["sample 0", "sample 1", "sample 2"]
    values, _ = uncertainties(prediction, target, None, std)
    wanted = {k: float(v.mean()) for k, v in (errors(prediction, target) | values).items()}
    assert found.averages() == pytest.approx(wanted)
    assert [*found.averages()] == [*ERRORS, *UNCERTAINTIES]


def test_one_name_is_one_sample():
    row = Scores(name="a", pixels=5, values={"rmse": 1.0, "mae": math.nan})
    for same in (row, replace(row, values={"rmse": 1.00005, "mae": math.nan})):
        assert len(MetricTable([row, same])) == 1
    for values in (
        {"rmse": 1.001, "mae": math.nan},
        {"rmse": 1.0, "mae": 0.0},
        {"rmse": 1.0},
        {"rmse": math.nan},
    ):
        with pytest.raises(InputError, match="two samples are called 'a'"):
            MetricTable([row, replace(row, values=values)])
    with pytest.raises(InputError, match="two samples are called 'a'"):
        MetricTable([row, replace(row, pixels=6)])
    assert len(MetricTable([row]).merge(MetricTable([replace(row, name="b")]))) == 2


def test_json_says_none_where_there_is_no_number():
    row = Scores(
        name="a", pixels=3, values={"rmse": 1.5, "mae": math.nan}, curves={"oracle": [math.nan, 0.5]}
    )
    data = row.to_json()
    assert data == {
        "name": "a",
        "pixels": 3,
        "values": {"rmse": 1.5, "mae": None},
        "curves": {"oracle": [None, 0.5]},
    }
    again = Scores.from_json(data)
    assert again.pixels == 3
    assert again.values["rmse"] == 1.5
    assert math.isnan(again.values["mae"])
    assert math.isnan(again.curves["oracle"][0])
    assert again.curves["oracle"][1] == 0.5
    assert Scores.from_json({"name": "a", "pixels": 3, "values": {}}).curves == {}


def test_pixels_without_truth_do_not_count_whatever_is_said_of_them() -> None:
    """Neither in what is left after dropping, nor in coverage; a pixel without an answer drops out too."""
    generator = torch.Generator().manual_seed(0)
    target = 1 + torch.rand(1, 1, 8, 9, generator=generator)
    prediction = target + 0.1 * torch.randn(target.shape, generator=generator)
    confidence, std = torch.rand(target.shape, generator=generator), torch.full_like(target, 0.1)
    full = {
        "kept": rmse_after_dropping(prediction[..., :5, :], target[..., :5, :], confidence[..., :5, :], 0.2),
        "within": coverage(prediction[..., :5, :], target[..., :5, :], std[..., :5, :], 0.5),
        "nll": negative_log_likelihood(prediction[..., :5, :], target[..., :5, :], std[..., :5, :]),
    }
    for nothing in (0.0, float("nan")):
        unknown, absent = target.clone(), prediction.clone()
        unknown[..., 5:, :] = nothing
        absent[..., 5:, :] = float("nan")
        for answer, truth in ((prediction, unknown), (absent, target)):
            torch.testing.assert_close(rmse_after_dropping(answer, truth, confidence, 0.2), full["kept"])
            torch.testing.assert_close(coverage(answer, truth, std, 0.5), full["within"])
            torch.testing.assert_close(negative_log_likelihood(answer, truth, std), full["nll"])


def test_the_first_map_sets_the_shape_and_the_error_names_the_other() -> None:
    maps = torch.ones(1, 1, 4, 5)
    for call in (
        lambda wrong: coverage(maps, wrong, maps, 0.5),
        lambda wrong: rmse_after_dropping(maps, wrong, maps, 0.1),
        lambda wrong: negative_log_likelihood(maps, wrong, maps),
    ):
        with pytest.raises(
            InputError, match=r"target must be \[1, 1, 4, 5\] like prediction; got \[1, 1, 4, 4\]"
        ):
            call(maps[..., :4])


@pytest.mark.parametrize(
    "metric",
    [
        lambda p, t, u: rmse_after_dropping(p, t, u, 0.1),
        lambda p, t, u: sparsification(p, t, u),
        lambda p, t, u: coverage(p, t, u, 0.9),
        lambda p, t, u: negative_log_likelihood(p, t, u),
        lambda p, t, u: score(p, t, confidence=u, std=u, names=["a"] * len(p)),
    ],
)
def test_maps_of_other_sizes_are_named_and_their_sizes_told(metric):
    """The prediction is what the others are compared with, in every metric."""
    prediction, target, std = maps(0)
    small = (..., slice(5), slice(None))
    with pytest.raises(
        InputError, match=r"target must be \[2, 1, 8, 9\] like prediction; got \[2, 1, 5, 9\]"
    ):
        metric(prediction, target[small], std)
    with pytest.raises(
        InputError, match=r"(confidence|std) must be \[2, 1, 8, 9\] like prediction; got \[2, 1, 5"
    ):
        metric(prediction, target, std[small])
    with pytest.raises(InputError, match=r"prediction must have shape \[\*, 1, \*, \*\]; got \[2, 8, 9\]"):
        metric(prediction[:, 0], target, std)
