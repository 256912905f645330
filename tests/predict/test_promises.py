"""What is done to measurements before, and to answers after the model: laws of each step."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import gbpn
from gbpn.distribution import DepthDistribution, SigmaCalibration
from gbpn.errors import InputError
from gbpn.measurements.areas import AreaGrid
from gbpn.measurements.keeping import change_at_measurements, kept
from gbpn.measurements.plausible import kept_promises, without_implausible
from gbpn.sigma.limit import USUAL_LIMIT, SigmaLimit

HEIGHT, WIDTH = 24, 40


def answer(mean: torch.Tensor, precision: torch.Tensor | float = 1.0) -> DepthDistribution:
    known = torch.as_tensor(precision) * torch.isfinite(mean)
    return DepthDistribution(mean=mean, confidence_logit=torch.zeros_like(mean), belief_precision=known)


def flat(metres: float) -> torch.Tensor:
    return torch.full((1, 1, HEIGHT, WIDTH), metres)


# --- measured pixels given back ----------------------------------------------------------------------------


def test_measured_pixels_come_back_and_far_ones_stay() -> None:
    sparse = torch.zeros(1, HEIGHT, WIDTH)
    sparse[0, :, :8] = 3.0
    found = kept(answer(flat(2.0)), sparse)
    assert torch.equal(found.mean[0, 0, :, :8], sparse[0, :, :8])
    assert torch.equal(
        found.mean[0, 0, :, 14:], flat(2.0)[0, 0, :, 14:]
    )  # 6 pixels on, nothing is left of it
    row = found.mean[0, 0, HEIGHT // 2, 7:15]
    assert bool((row[:-1] >= row[1:]).all())  # fades into the hole …
    assert float(row[1]) > 2.6  # … and begins at its edge without a step
    assert float(row[3]) > 2.1


@given(st.floats(0.1, 3), st.floats(-0.5, 4))
def test_a_change_fades_in_proportion(depth: float, off: float) -> None:
    """Twice the change at the edge is twice the change in the hole; no change is none."""
    sparse = torch.zeros(1, HEIGHT, WIDTH)
    sparse[0, ::2, :12] = 5.0

    def change(by: float) -> torch.Tensor:
        return kept(answer(flat(5.0 - by)), sparse).mean - (5.0 - by)

    assert float(change(0.0).abs().max()) == 0.0
    torch.testing.assert_close(change(depth) * 2, change(2 * depth), atol=1e-4, rtol=1e-4)
    torch.testing.assert_close(change(-off), -change(off), atol=1e-4, rtol=1e-4)


def test_a_few_lonely_points_change_little_around_them() -> None:
    sparse = torch.zeros(1, HEIGHT, WIDTH)
    sparse[0, 12, 20] = 3.0
    found = kept(answer(flat(2.0)), sparse).mean[0, 0]
    assert float(found[12, 20]) == 3.0
    assert 2.0 < float(found[12, 21]) < 2.1  # one point among many unknown ones is no surface
    assert float(found[13, 20]) == pytest.approx(float(found[12, 21]))  # alike in both directions


def test_where_the_answer_is_unknown_a_measurement_is_one() -> None:
    mean = flat(2.0)
    mean[..., 5, 5:8] = torch.nan
    sparse = torch.zeros(1, HEIGHT, WIDTH)
    sparse[0, 5, 5] = 4.0
    found = kept(answer(mean), sparse)
    assert float(found.mean[0, 0, 5, 5]) == 4.0
    assert found.observed[0, 0, 5].tolist() == [x not in (6, 7) for x in range(WIDTH)]
    assert torch.equal(found.mean[0, 0, 10:], flat(2.0)[0, 0, 10:])  # an unknown change spreads nowhere


def test_what_was_dropped_is_not_given_back() -> None:
    dropped = torch.zeros(1, 1, HEIGHT, WIDTH, dtype=torch.bool)
    dropped[..., 3, 4] = True
    sparse = torch.zeros(1, HEIGHT, WIDTH)
    sparse[0, 3, 4], sparse[0, 10, 11] = 90.0, 2.5
    found = kept(replace(answer(flat(2.0)), dropped=dropped), sparse)
    assert float(found.mean[0, 0, 3, 4]) == 2.0
    assert float(found.mean[0, 0, 10, 11]) == 2.5


def test_areas_get_their_means_back() -> None:
    small = torch.linspace(1, 3, 6 * 10).view(1, 1, 6, 10)
    grid = AreaGrid.of((6, 10), (HEIGHT, WIDTH))
    found = kept(answer(flat(2.0)), grid.placed(small)[0], (6, 10))
    torch.testing.assert_close(grid.means(found.mean), small, rtol=1e-5, atol=1e-5)


def test_the_change_at_measurements_is_what_it_says() -> None:
    mean, sparse = flat(2.0)[0], torch.zeros(1, HEIGHT, WIDTH)
    sparse[0, 0, :3] = torch.tensor([1.5, 2.0, 4.0])
    mean = mean.clone()
    mean[0, 0, 1] = torch.nan
    assert change_at_measurements(mean, sparse).tolist() == [0.5, 2.0]


# --- limits ------------------------------------------------------------------------------------------------


def test_limits_read_as_they_are_written() -> None:
    assert SigmaLimit.of(" 5% ") == USUAL_LIMIT == SigmaLimit(value=0.05, relative=True)
    assert SigmaLimit.of("0.05") == SigmaLimit.of(0.05) == SigmaLimit(value=0.05)
    assert SigmaLimit.of(USUAL_LIMIT) is USUAL_LIMIT
    assert (str(SigmaLimit.of("2.5%")), str(SigmaLimit.of(0.05))) == ("2.5%", "0.05 m")
    depth, std = np.array([1.0, 2.0, 2.0, np.nan]), np.array([0.05, 0.1, 0.11, 0.01])
    assert SigmaLimit.of("5%").keeps(depth, std).tolist() == [True, True, False, False]
    assert SigmaLimit.of(0.1).keeps(depth, np.array([0.1, 0.11, np.nan, 0.0])).tolist() == [
        True,
        False,
        False,
        True,
    ]
    for wrong in ("0%", "inf", "-5%", "%", None):
        with pytest.raises(InputError, match="a largest sigma is metres"):
            SigmaLimit.of(wrong)


def completed(distribution: DepthDistribution, sparse: torch.Tensor | None = None, **more: object):
    return gbpn.CompletedDepth(
        distribution=distribution,
        image=torch.rand(3, HEIGHT, WIDTH, generator=torch.Generator().manual_seed(0)),
        sparse=torch.full((1, HEIGHT, WIDTH), 2.0) if sparse is None else sparse,
        intrinsics=torch.tensor([[30.0, 0, 19.5], [0, 30, 11.5], [0, 0, 1]]),
        **more,
    )


def test_without_sigma_the_surest_nineteen_twentieths_are_trusted() -> None:
    logit = torch.linspace(-3, 3, HEIGHT * WIDTH).view(1, 1, HEIGHT, WIDTH)
    mean = flat(2.0)
    mean[..., :4, :] = torch.nan
    result = completed(replace(answer(mean), confidence_logit=logit))
    trusted = result.trusted()
    assert not trusted[:4].any()
    assert trusted[4:].mean() == pytest.approx(0.95, abs=0.005)
    assert result.confidence[trusted].min() > result.confidence[4:][~trusted[4:]].max()
    np.testing.assert_array_equal(np.isfinite(result.trusted_depth()), trusted)
    nothing = completed(answer(flat(float("nan"))))
    assert not nothing.trusted().any()
    for call in (lambda: result.trusted("5%"), lambda: replace(result, max_sigma=USUAL_LIMIT).trusted()):
        with pytest.raises(InputError, match="state no sigma"):
            call()


def test_the_limit_of_the_call_goes_before_the_frame_s_own() -> None:
    std = flat(1.0) * torch.linspace(0.01, 0.4, WIDTH)
    result = completed(DepthDistribution.of_depth(flat(2.0), std=std))
    own = replace(result, max_sigma=SigmaLimit.of(0.2))
    for found, limit in ((result.trusted(), 0.1), (own.trusted(), 0.2), (own.trusted(0.3), 0.3)):
        np.testing.assert_array_equal(found, result.std <= limit)


def test_the_least_confident_share_is_left_out_of_a_cloud_if_asked_for() -> None:
    logit = torch.linspace(-3, 3, HEIGHT * WIDTH).view(1, 1, HEIGHT, WIDTH)
    result = completed(replace(answer(flat(2.0)), confidence_logit=logit))
    for drop in (0.0, 0.25, 0.9):
        points, colours = result.to_point_cloud(drop=drop)
        assert len(points) == len(colours) == pytest.approx((1 - drop) * HEIGHT * WIDTH, abs=1)
    points, _ = result.to_point_cloud()
    assert len(points) == int(result.trusted().sum())
    np.testing.assert_allclose(points[:, 2], 2.0)
    kept_pixels = np.zeros((HEIGHT, WIDTH), bool)
    kept_pixels[5, 7] = True
    np.testing.assert_allclose(
        result.cloud(kept_pixels).points, [[(7 - 19.5) / 15, (5 - 11.5) / 15, 2.0]], rtol=1e-5
    )


def test_sigma_is_bounded_by_the_reach_of_answers_and_never_nothing() -> None:
    std = flat(1.0)
    std[0, 0, 0, :4] = torch.tensor([0.0, torch.inf, torch.nan, 1e9])
    result = completed(DepthDistribution.of_depth(flat(2.0), std=std))
    assert result.std[0, 0] == pytest.approx(20e-9)
    assert result.std[0, 1:4].tolist() == [20.0] * 3
    assert (result.std[1:] == 1.0).all()


# --- what no sensor measured -------------------------------------------------------------------------------


@given(
    st.floats(0.25, 30),
    st.lists(st.floats(1.1e-3, 990), min_size=0, max_size=5),
    st.lists(st.sampled_from([1e-6, 9.0e-4, 1100.0, 5e7]), min_size=0, max_size=5),
)
def test_metres_outside_of_what_sensors_reach_are_dropped_and_the_rest_stays(
    middle: float, good: list[float], bad: list[float]
) -> None:
    """For a median that can be metres, 1 mm to 1 km and within a thousand times the median."""
    inside = [value for value in good if middle / 999 < value < middle * 999]
    sparse = torch.zeros(1, 6, 10)
    usual = torch.full((len(good) + len(bad) + 5,), middle)
    values = torch.cat((usual, torch.tensor([*inside, *bad], dtype=torch.float32)))
    sparse.view(-1)[: len(values)] = values
    codes = torch.tensor([65.535, 65535 / 256])
    if bool(((values[:, None] - codes).abs() < 1e-3 * codes).any()):
        return
    found, notice = without_implausible(sparse)
    wanted = sparse.clone()
    wanted.view(-1)[len(usual) + len(inside) : len(values)] = 0
    torch.testing.assert_close(found, wanted)
    if not bad:
        assert notice is None
        return
    assert notice is not None
    assert notice.startswith(
        f"{len(bad)} of {len(values)} measurements are dropped, {min(bad):g} to {max(bad):g}"
    )


def test_other_units_are_held_within_a_thousand_times_their_median() -> None:
    """2000 as a median are no metres: what sensors reach says nothing, only the factor does."""
    sparse = torch.full((1, 4, 5), 2000.0)
    sparse[0, 0, :4] = torch.tensor([1.9, 2.1, 1.9e6, 2.1e6])
    found, notice = without_implausible(sparse)
    assert found[0, 0].tolist() == [0.0, pytest.approx(2.1), pytest.approx(1.9e6), 0.0, 2000.0]
    assert notice is not None
    assert notice.startswith("2 of 20 measurements")


@pytest.mark.parametrize("scale", [1.0, 1000.0, 256.0, 5000.0, None])
def test_the_largest_number_of_a_format_is_no_measurement(scale: float | None) -> None:
    codes = {65535 / divisor for divisor in (1.0, 1000.0, 256.0, scale or 1.0)} | {65504.0}
    for code in codes:
        sparse = torch.full((1, 4, 5), float(np.float32(code * 0.9)))
        sparse[0, 0, 0] = code
        assert float(without_implausible(sparse, scale)[0][0, 0, 0]) == 0
        sparse[0, 0, 0] = code * (1 - 1e-4)  # a neighbour of it is one
        assert without_implausible(sparse, scale)[1] is None


@pytest.mark.parametrize(("middle", "fits"), [(0.9e-4, False), (1.1e-4, True), (0.9e6, True), (1.1e6, False)])
def test_medians_that_float32_does_not_carry_are_refused(middle: float, fits: bool) -> None:
    sparse = torch.full((1, 4, 5), middle)
    if fits:
        assert without_implausible(sparse) == (sparse, None)
        return
    with pytest.raises(InputError, match="give --scale"):
        without_implausible(sparse)


def test_nothing_is_said_of_nothing() -> None:
    empty = torch.zeros(1, 4, 5)
    assert without_implausible(empty) == (empty, None)


@given(st.floats(0.5, 50), st.floats(1, 20))
def test_answers_stay_within_ten_times_the_measurements(low: float, wide: float) -> None:
    sparse = torch.zeros(1, HEIGHT, WIDTH)
    sparse[0, 0, :2] = torch.tensor([low, low * wide])
    mean = flat(low)
    edge = torch.tensor(
        [low / 10 * 0.999, low / 10 * 1.001, low * wide * 10 * 0.999, low * wide * 10 * 1.001]
    )
    mean[0, 0, 3, :4] = edge
    found = kept_promises(answer(mean), sparse, 10.0)
    assert found.observed[0, 0, 3, :5].tolist() == [False, True, True, False, True]
    assert torch.equal(torch.isfinite(found.mean), found.observed)
    same = answer(flat(low))
    assert kept_promises(same, sparse, 10.0) is same


# --- files -------------------------------------------------------------------------------------------------


def test_a_wide_preview_stands_in_rows_and_a_large_one_is_thinned(tmp_path: Path) -> None:
    result = completed(answer(flat(2.0)))
    page = result.preview(tmp_path / "p.png")
    assert page.width > 4 * WIDTH  # side by side
    tall = replace(
        result,
        distribution=answer(torch.full((1, 1, 8, WIDTH), 2.0)),
        image=torch.rand(3, 8, WIDTH),
        sparse=torch.full((1, 8, WIDTH), 2.0),
    )
    assert tall.preview().height > 4 * 8
    assert tall.preview().width < page.width / 1.5
    mean = torch.full((1, 1, 30, 2600), 2.0)
    sparse = torch.zeros(1, 30, 2600)
    sparse[0, 4, 1001] = 3.0  # in no pixel that is shown, and shown all the same
    large = gbpn.CompletedDepth(
        distribution=answer(mean), image=torch.zeros(3, 30, 2600), sparse=sparse, intrinsics=result.intrinsics
    )
    thin = np.asarray(large.preview())
    assert thin.shape[1] < 1280 + 200
    background = (thin[..., 0] != thin[..., 1]) | (thin[..., 1] != thin[..., 2])
    assert background.any()


def test_sigma_is_shown_instead_of_confidence_where_there_is_one() -> None:
    plain = np.asarray(completed(answer(flat(2.0))).preview())
    stated = np.asarray(completed(DepthDistribution.of_depth(flat(2.0), std=flat(0.1))).preview())
    assert plain.shape != stated.shape or not np.array_equal(plain, stated)


def test_notices_of_outliers_count_them() -> None:
    dropped = torch.zeros(1, 1, HEIGHT, WIDTH, dtype=torch.bool)
    dropped[..., 2, 3:5] = True
    sparse = torch.zeros(1, HEIGHT, WIDTH)
    sparse[0, 2, 3], sparse[0, 9, 9] = 2.0, 2.5
    result = completed(replace(answer(flat(2.0)), dropped=dropped), sparse)
    assert np.argwhere(result.dropped).tolist() == [[2, 3]]  # of the measured pixels only
    assert result.outlier_notice is not None
    assert result.outlier_notice.startswith("1 of 2 measurements contradict the rest")
    assert result.change.tolist() == [0.5]
    assert completed(answer(flat(2.0))).outlier_notice is None


def test_a_calibration_is_what_makes_sigma() -> None:
    calibration = SigmaCalibration(knots=(-1.0, 1.0), log_std=(0.0, -2.0))
    result = completed(replace(answer(flat(2.0)), calibration=calibration))
    assert result.calibrated
    np.testing.assert_allclose(result.std, np.exp(-1), rtol=1e-5)
