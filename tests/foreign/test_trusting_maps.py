"""Gains at held-out measurements become shares: surely better is believed, the rest is not."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gbpn.foreign.trust import SETTINGS, folds, share, share_by_place


@given(count=st.integers(0, 600), seed=st.integers(0, 20))
def test_each_measurement_is_held_out_at_most_once(count: int, seed: int) -> None:
    there = np.zeros((31, 40), bool)
    there.reshape(-1)[np.random.default_rng(seed).choice(there.size, count, replace=False)] = True
    parts = folds(there)
    if count < SETTINGS.fewest:
        assert parts == []
        return
    total = sum(part.astype(int) for part in parts)
    assert total.max() == 1
    assert not (total.astype(bool) & ~there).any()
    assert all(0 < part.sum() < count for part in parts)
    if count < SETTINGS.enough:
        assert total.sum() == count


@given(st.integers(5, 500), st.floats(1e-3, 0.4))
def test_who_always_gains_is_believed_and_who_always_loses_is_not(count: int, gain: float) -> None:
    gains = gain * (1 + 0.1 * np.random.default_rng(0).standard_normal(count))
    assert share(gains) == 1
    assert share(-gains) == 0
    assert share(np.zeros(count)) == 0


@pytest.mark.parametrize("count", [5, 10, 50, 500])
def test_noise_is_believed_little(count: int) -> None:
    draw = np.random.default_rng(0)
    shares = [share(0.1 * draw.standard_normal(count)) for _ in range(400)]
    assert np.mean(shares) < 0.16


def test_one_large_gain_is_not_many_small_ones() -> None:
    assert share(np.array([8.0, *[-0.01] * 19])) < 0.3


def test_places_are_told_apart() -> None:
    draw, size = np.random.default_rng(1), (120, 160)
    rows, columns = draw.integers(0, 120, 400), draw.integers(0, 160, 400)
    gain = np.where(columns < 80, 0.1, -0.1) + 0.03 * draw.standard_normal(400)
    found = share_by_place(gain, rows, columns, size)
    assert found.shape == size
    assert found[:, :40].mean() > 0.9
    assert found[:, 120:].mean() < 0.1
    few = share_by_place(gain[:20], rows[:20], columns[:20], size)
    assert np.ptp(few) == 0
