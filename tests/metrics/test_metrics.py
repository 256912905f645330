"""Metrics: golden numbers, answers by hand, an independent NumPy version, and the laws of a table."""

from __future__ import annotations

import math
import random
from itertools import pairwise

import numpy as np
import pytest
import torch
from hypothesis import example, given, settings
from hypothesis import strategies as st

import goldens
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

GOLDEN_NAMES = {
    "RMSE": "rmse",
    "MAE": "mae",
    "iRMSE": "irmse",
    "iMAE": "imae",
    "REL": "rel",
    "D^1": "delta_1.25",
    "D^2": "delta_1.25^2",
    "D^3": "delta_1.25^3",
    "D102": "delta_1.02",
    "D105": "delta_1.05",
    "D110": "delta_1.10",
}


def maps(*rows: list[float]) -> torch.Tensor:
    return torch.tensor(rows)[None, None]


def batch(seed: int, size: int = 3, height: int = 6, width: int = 7) -> tuple[torch.Tensor, ...]:
    generator = torch.Generator().manual_seed(seed)
    target = torch.rand(size, 1, height, width, generator=generator) * 5
    target[torch.rand(target.shape, generator=generator) < 0.2] = 0
    noise = torch.randn(target.shape, generator=generator)
    std = torch.rand(target.shape, generator=generator) * 0.5 + 0.05
    return target + noise * std + 0.1, target, std


@pytest.mark.parametrize("folder", goldens.SETS.values(), ids=goldens.SETS)
def test_golden(folder) -> None:
    arrays = goldens.read(folder / "op_loss_metrics.npz")
    names, wanted = arrays["metric_names"], arrays["metrics_per_sample"]
    got = errors(torch.from_numpy(arrays["pred"]), torch.from_numpy(arrays["target"]))
    for column, name in enumerate(names):
        np.testing.assert_allclose(got[GOLDEN_NAMES[str(name)]], wanted[:, column], rtol=2e-6, err_msg=name)


def test_two_by_two_by_hand() -> None:
    prediction, target = maps([1.0, 2.2], [3.0, 9.0]), maps([1.0, 2.0], [4.0, 0.0])
    got = {name: float(value) for name, value in errors(prediction, target).items()}
    assert got["rmse"] == pytest.approx(math.sqrt((0 + 0.2**2 + 1) / 3))
    assert got["mae"] == pytest.approx((0 + 0.2 + 1) / 3)
    assert got["rel"] == pytest.approx((0 + 0.1 + 0.25) / 3)
    assert got["imae"] == pytest.approx((abs(1 / 2.2 - 1 / 2) + (1 / 3 - 1 / 4)) / 3)
    assert got["irmse"] == pytest.approx(math.sqrt(((1 / 2.2 - 1 / 2) ** 2 + (1 / 3 - 1 / 4) ** 2) / 3))
    assert got["delta_1.05"] == pytest.approx(1 / 3)
    assert got["delta_1.25"] == pytest.approx(2 / 3)  # 4 / 3 = 1.33 misses
    assert got["delta_1.25^2"] == 1
    assert got["observed"] == 1


def test_unobserved_pixels_are_counted_not_invented() -> None:
    prediction, target = maps([1.0, math.nan], [4.5, math.inf]), maps([1.0, 2.0], [4.0, 4.0])
    got = {name: float(value) for name, value in errors(prediction, target).items()}
    assert got["observed"] == 0.5
    assert got["rmse"] == pytest.approx(math.sqrt(0.25 / 2))  # over the two that have a prediction
    assert got["delta_1.25"] == 0.5  # the others are misses


def test_depth_behind_the_camera_is_no_hit() -> None:
    assert float(errors(maps([-1.0]), maps([1.0]))["delta_1.25^3"]) == 0


def test_samples_without_ground_truth_are_listed_and_not_averaged() -> None:
    prediction = torch.ones(3, 1, 2, 2)
    target = torch.stack([torch.full((1, 2, 2), 2.0), torch.zeros(1, 2, 2), torch.full((1, 2, 2), 4.0)])
    prediction[2] = math.nan
    table = MetricTable()
    table.update(prediction, target, names=["a", "b", "c"])
    assert (table.samples, table.pixels) == (2, 8)
    assert table.without_target == ["b"]
    assert table.without_prediction == ["c"]
    assert table.averages()["rmse"] == 1
    assert table.averages()["observed"] == 0.5


def test_wrong_shapes_say_what_to_do() -> None:
    with pytest.raises(InputError, match="never the other way round"):
        errors(torch.ones(1, 1, 2, 2), torch.ones(1, 1, 4, 4))
    with pytest.raises(InputError, match="add the batch"):
        errors(torch.ones(2, 2), torch.ones(2, 2))


def by_numpy(d: np.ndarray, t: np.ndarray) -> dict[str, float]:
    """Plain loops-free restatement on one sample, float64."""
    keep = t > 0
    d, t = d[keep].astype(np.float64), t[keep].astype(np.float64)
    ratio = np.maximum(d / (t + 1e-8), t / (d + 1e-8))  # the released guard of every denominator
    out = {
        "rmse": np.sqrt(np.mean((d - t) ** 2)),
        "mae": np.mean(np.abs(d - t)),
        "irmse": np.sqrt(np.mean((1 / (d + 1e-8) - 1 / (t + 1e-8)) ** 2)),
        "imae": np.mean(np.abs(1 / (d + 1e-8) - 1 / (t + 1e-8))),
        "rel": np.mean(np.abs(d - t) / (t + 1e-8)),
        "observed": 1.0,
    }
    for name in ERRORS:
        if name.startswith("delta_"):
            base, _, power = name.removeprefix("delta_").partition("^")
            out[name] = np.mean((ratio < float(base) ** int(power or 1)) & (d > 0))
    return out


@given(st.integers(0, 10_000))
@example(559)  # a target of a tenth of a millimetre
@settings(max_examples=30, deadline=None)
def test_equals_an_independent_numpy_version(seed) -> None:
    prediction, target, _ = batch(seed)
    got = errors(prediction, target)
    for b in range(len(target)):
        wanted = by_numpy(prediction[b].numpy(), target[b].numpy())
        assert set(wanted) == set(got)
        for name, value in wanted.items():
            assert float(got[name][b]) == pytest.approx(value, rel=1e-5), name


@given(st.integers(0, 10_000), st.integers(1, 4))
@settings(max_examples=25, deadline=None)
def test_table_does_not_depend_on_order_batches_or_processes(seed, size) -> None:
    prediction, target, std = batch(seed, size=8)
    names = [f"frame {b}" for b in range(8)]
    whole = MetricTable(score(prediction, target, std=std, names=names))
    order = random.Random(seed).sample(range(8), 8)
    parts = [MetricTable(), MetricTable()]
    for start in range(0, 8, size):
        rows = order[start : start + size]
        parts[(start // size) % 2].update(
            prediction[rows], target[rows], std=std[rows], names=[names[r] for r in rows]
        )
    merged = parts[1].merge(parts[0])
    assert merged.averages() == whole.averages()  # to the last digit
    assert merged.curves() == whole.curves()


def test_duplicates_are_harmless_when_equal_and_an_error_when_not() -> None:
    prediction, target, _ = batch(1)
    table = MetricTable(score(prediction, target, names=["a", "b", "c"]))
    assert table.merge(table).averages() == table.averages()
    with pytest.raises(InputError, match="two samples are called 'a'"):
        table.update(prediction[1:2], target[1:2], names=["a"])


def test_scores_survive_json() -> None:
    prediction, target, std = batch(2)
    target[1] = 0
    for row in score(prediction, target, std=std, names=["a", "b", "c"]):
        again = Scores.from_json(row.to_json())
        assert again.to_json() == row.to_json()
        assert again.name == row.name


def test_dropping_by_hand() -> None:
    target = torch.ones(1, 1, 10, 10)
    prediction = target.clone()
    prediction[0, 0, 0, 0] = 3.0  # one pixel of a hundred is wrong by 2 m
    knows, blind = torch.ones_like(target), torch.ones_like(target)
    knows[0, 0, 0, 0] = 0
    assert float(rmse_after_dropping(prediction, target, knows, 0.0)) == pytest.approx(0.2)
    assert float(rmse_after_dropping(prediction, target, knows, 0.01)) == 0
    # A constant confidence ranks nothing: whatever is dropped, the expected error stays.
    assert float(rmse_after_dropping(prediction, target, blind, 0.05)) == pytest.approx(0.2)


@given(st.integers(0, 10_000))
@settings(max_examples=25, deadline=None)
def test_no_ranking_beats_the_oracle(seed) -> None:
    prediction, target, std = batch(seed)
    ranked, oracle = sparsification(prediction, target, -std)
    assert bool((ranked - oracle > -1e-12).all())
    perfect, same = sparsification(prediction, target, -(prediction - target).abs().double())
    assert float(ause(perfect, same).abs().max()) < 1e-12
    assert bool((ause(ranked, oracle) >= 0).all())
    full = errors(prediction, target)["rmse"]
    assert torch.allclose(ranked[:, 0], full)


@given(st.integers(0, 10_000), st.floats(0.1, 10))
@settings(max_examples=20, deadline=None)
def test_ranking_ignores_monotone_changes_and_pixel_order(seed, power) -> None:
    prediction, target, std = batch(seed)
    ranked, _ = sparsification(prediction, target, -std)
    again, _ = sparsification(prediction, target, -(std.double() ** power))
    assert torch.allclose(ranked, again, atol=1e-9)
    flipped, _ = sparsification(prediction.flip(-1), target.flip(-1), (-std).flip(-1))
    assert torch.allclose(ranked, flipped, atol=1e-12)


def test_calibrated_gaussian_is_covered() -> None:
    generator = torch.Generator().manual_seed(0)
    target = torch.rand(1, 1, 200, 300, generator=generator) * 5 + 1
    std = torch.rand(target.shape, generator=generator) + 0.1
    prediction = target + std * torch.randn(target.shape, generator=generator)
    for level in (0.5, 0.9, 0.95):
        assert float(coverage(prediction, target, std, level)) == pytest.approx(level, abs=0.006)
    honest = float(negative_log_likelihood(prediction, target, std))
    expected = float((0.5 * math.log(2 * math.pi * math.e) + std.double().log()).mean())
    assert honest == pytest.approx(expected, abs=0.01)
    assert honest < float(negative_log_likelihood(prediction, target, std * 2))
    assert honest < float(negative_log_likelihood(prediction, target, std / 2))


def test_more_is_covered_by_wider_intervals() -> None:
    prediction, target, std = batch(5)
    shares = [coverage(prediction, target, std, level) for level in (0.1, 0.5, 0.9, 0.99)]
    assert all(bool((a <= b).all()) for a, b in pairwise(shares))


def test_uncertainty_columns_appear_only_with_an_uncertainty() -> None:
    prediction, target, std = batch(7)
    plain = MetricTable(score(prediction, target, names=list("abc"))).averages()
    assert set(plain) == set(ERRORS)
    ranked = MetricTable(score(prediction, target, confidence=-std, names=list("abc"))).averages()
    assert {"ause", "rmse_drop_1pct"} <= set(ranked)
    assert "nll" not in ranked
    full = MetricTable(score(prediction, target, std=std, names=list("abc"))).averages()
    assert {"ause", "coverage_90", "nll", "std"} <= set(full)
