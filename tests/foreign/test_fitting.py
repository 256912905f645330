"""Maps without metres are brought to metres, whatever their kind, scale and shift."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gbpn.foreign.fitting import KINDS, fitted, most_fitting, rank_correlation

SIZE = (33, 65)


def scene() -> np.ndarray:
    """[H, W] metres, from 1 to 5: a floor that rises and a box before it."""
    depth = np.linspace(5, 1.5, SIZE[0])[:, None] + np.linspace(0, 0.6, SIZE[1])
    depth[10:20, 20:40] = 1.2
    return depth


def measured(depth: np.ndarray, count: int, seed: int = 0) -> np.ndarray:
    """[H, W] with some pixels of it, 0 elsewhere."""
    out = np.zeros_like(depth)
    chosen = np.random.default_rng(seed).choice(depth.size, count, replace=False)
    out.reshape(-1)[chosen] = depth.reshape(-1)[chosen]
    return out


def as_kind(depth: np.ndarray, kind: str, slope: float, shift: float) -> np.ndarray:
    terms = {"depth": depth, "disparity": 1 / depth, "log": np.log(depth)}[kind]
    return (terms - shift) / slope


@given(
    kind=st.sampled_from(KINDS),
    slope=st.floats(1e-3, 1e3),
    shift=st.floats(-0.15, 0.15),
    count=st.integers(40, 400),
)
def test_scale_and_shift_of_any_kind_are_found(kind: str, slope: float, shift: float, count: int) -> None:
    depth = scene()
    fit = most_fitting(as_kind(depth, kind, slope, shift), measured(depth, count), depth)
    assert fit is not None
    assert fit.kind == kind
    np.testing.assert_allclose(np.exp(fit.logarithm), depth, rtol=0.03)


@pytest.mark.parametrize("kind", KINDS)
def test_a_fifth_of_gross_errors_moves_nothing(kind: str) -> None:
    depth = scene()
    sparse = measured(depth, 50)
    rows, columns = np.nonzero(sparse)
    sparse[rows[:10], columns[:10]] *= 3
    fit = fitted(as_kind(depth, kind, 2.0, 0.1), sparse, kind)
    assert fit is not None
    np.testing.assert_allclose(np.exp(fit.logarithm), depth, rtol=0.05)


@pytest.mark.parametrize("count", [1, 2, 3, 4])
@pytest.mark.parametrize("kind", ["depth", "disparity"])
def test_few_measurements_leave_near_and_far_as_they_are(kind: str, count: int) -> None:
    """The network's own answer tells which way a map runs; the scale is that of the measurements."""
    depth = scene()
    sparse = measured(depth, count)
    fit = most_fitting(as_kind(depth, kind, 40.0, 0.0), sparse, depth)
    assert fit is not None
    assert (fit.kind == "disparity") == (kind == "disparity")
    np.testing.assert_allclose(np.exp(fit.logarithm), depth, rtol=1e-4)


def test_what_says_nothing_or_the_opposite_has_no_fit() -> None:
    depth = scene()
    sparse = measured(depth, 50)
    assert most_fitting(np.full(SIZE, 2.0), sparse, depth) is None
    assert most_fitting(np.full(SIZE, np.nan), sparse, depth) is None
    assert all(fitted(-as_kind(depth, kind, 1.0, 0.0), sparse, kind) is None for kind in KINDS)


def test_where_the_map_says_nothing_neither_does_the_fit() -> None:
    depth = scene()
    holes = depth.copy()
    holes[:5] = np.nan
    holes[5:8] = 0  # no depth, as files write it
    fit = fitted(holes, measured(depth, 60), "depth")
    assert fit is not None
    assert np.isnan(fit.logarithm[:8]).all()
    np.testing.assert_allclose(np.exp(fit.logarithm[8:]), depth[8:], rtol=1e-4)


@given(st.integers(2, 40), st.integers(0, 100))
def test_rank_correlation_is_that_of_ranks(count: int, seed: int) -> None:
    values = np.random.default_rng(seed).permutation(count).astype(float)
    assert rank_correlation(values, np.exp(values / 10)) == pytest.approx(1)
    assert rank_correlation(values, -(values**3)) == pytest.approx(-1)
    assert rank_correlation(values, np.ones(count)) == 0
