"""Which measurements are held out, and what their errors say of σ, where the answer is known exactly."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from gbpn.sigma.held_out import LEVEL_QUANTILE, SETTINGS, drawn_patches, explain, factor_of_few


def drawn(rows: int, columns: int) -> np.ndarray:
    """As torch draws them."""
    return torch.rand(rows, columns, generator=torch.Generator().manual_seed(0)).numpy() < SETTINGS.share


def scattered(height: int, width: int, count: int, seed: int = 1) -> np.ndarray:
    """[height, width] bool: so many measurements, anywhere."""
    there = np.zeros(height * width, dtype=bool)
    there[np.random.default_rng(seed).choice(height * width, count, replace=False)] = True
    return there.reshape(height, width)


@pytest.mark.parametrize("size", [(7, 5), (30, 41), (64, 3)])
def test_single_pixels_are_those_that_torch_draws(size: tuple[int, int]) -> None:
    np.testing.assert_array_equal(drawn_patches(scattered(*size, SETTINGS.fewest)), drawn(*size))
    assert not drawn_patches(scattered(*size, SETTINGS.fewest - 1)).any()


@given(st.integers(60, 130), st.integers(60, 130), st.integers(0, 1600))
def test_patches_are_squares_of_some_distances_between_measurements(
    height: int, width: int, more: int
) -> None:
    """Cut off at the right and lower border; below the number that asks for patches, single pixels."""
    count = SETTINGS.patches_from + more
    side = round(SETTINGS.patch * math.sqrt(height * width / count))
    held = drawn_patches(scattered(height, width, count))
    cells = drawn(math.ceil(height / side), math.ceil(width / side))
    row, column = np.mgrid[:height, :width] // side
    np.testing.assert_array_equal(held, cells[row, column])
    few = scattered(height, width, SETTINGS.patches_from - 1)
    np.testing.assert_array_equal(drawn_patches(few), drawn(height, width))


@given(st.integers(3, 12), st.integers(0, 2), st.integers(0, 5))
def test_pieces_of_scan_lines_are_held_out_whole(gap: int, slant: int, seed: int) -> None:
    """Lines that are `gap` rows apart and fall by `slant` over the image."""
    height, width = 60, 200
    there = np.zeros((height, width), dtype=bool)
    columns = np.arange(width)
    for top in range(seed % gap, height - slant, gap):
        there[top + slant * columns // width, columns] = True
    distance = math.sqrt(there.size / there.sum())
    across, along = (max(1, round(size * distance)) for size in SETTINGS.line_patch)
    cells = drawn(math.ceil(height / across), math.ceil(width / along))
    row, column = np.mgrid[:height, :width]
    np.testing.assert_array_equal(drawn_patches(there), cells[row // across, column // along])
    turned = drawn(math.ceil(width / along), math.ceil(height / across))
    np.testing.assert_array_equal(drawn_patches(there.T.copy()), turned[column // along, row // across].T)


@given(st.integers(0, 119), st.integers(1, 3), st.integers(30, 160))
def test_of_a_line_or_two_some_is_held_out_and_never_most(row: int, lines: int, length: int) -> None:
    there = np.zeros((130, 160), dtype=bool)
    there[row : row + 3 * lines : 3, :length] = True
    held = there & drawn_patches(there)
    assert 0 < held.sum() <= there.sum() / 2


@pytest.mark.parametrize("step", [1, 2, 3, 5])
def test_a_regular_grid_has_no_lines(step: int) -> None:
    there = np.zeros((60, 80), dtype=bool)
    there[::step, ::step] = True
    side = round(SETTINGS.patch * step) if there.sum() >= SETTINGS.patches_from else 1
    row, column = np.mgrid[:60, :80] // side
    cells = drawn(math.ceil(60 / side), math.ceil(80 / side))
    np.testing.assert_array_equal(drawn_patches(there), cells[row, column])


@given(st.integers(1, 900), st.floats(0.01, 40.0))
def test_errors_of_one_size_ask_for_exactly_that_size(count: int, times: float) -> None:
    """σ so wide that no sensor's noise explains them; as much as the stored calibration leaves to them."""
    sigma = np.full(count, 3.0, np.float32)
    factor, noise = explain(LEVEL_QUANTILE * times * sigma, sigma)
    trust = count / (count + SETTINGS.calibration_weight)
    assert factor == pytest.approx(min(max(times, 0.1), 10.0) ** trust, rel=1e-4)
    assert noise == 0


@given(st.integers(2, 300), st.integers(0, 1000))
def test_the_order_of_measurements_says_nothing(count: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    sigma = rng.uniform(0.001, 0.1, count).astype(np.float32)
    error = np.abs(rng.normal(0, 2, count).astype(np.float32)) * sigma
    order = rng.permutation(count)
    assert explain(error[order], sigma[order]) == pytest.approx(explain(error, sigma), rel=1e-5)


@given(st.integers(0, 1000), st.floats(0.02, 0.9))
def test_errors_within_their_sigmas_are_never_noise(seed: int, times: float) -> None:
    rng = np.random.default_rng(seed)
    sigma = rng.uniform(0.001, 0.1, 200).astype(np.float32)
    factor, noise = explain(times * sigma * rng.uniform(0, LEVEL_QUANTILE, 200).astype(np.float32), sigma)
    assert factor < 1
    assert noise == 0


@pytest.mark.parametrize("noise", [0.005, 0.02, 0.1])
def test_noise_shows_where_sigmas_are_small(noise: float) -> None:
    """Half of it is passed on, and pixels that were uncertain anyhow are not widened for it."""
    rng = np.random.default_rng(3)
    count = 4000
    sigma = np.exp(rng.uniform(np.log(noise / 100), np.log(noise / 3), count)).astype(np.float32)
    error = np.abs(rng.normal(0, 1, count) * np.hypot(sigma, noise)).astype(np.float32)
    factor, added = explain(error, sigma)
    trust = count / (count + SETTINGS.calibration_weight)
    assert added == pytest.approx(SETTINGS.noise_passed_on * noise * trust, rel=0.3)
    plain = np.quantile(error / LEVEL_QUANTILE / sigma, 0.9)
    assert 1 <= factor < plain


def test_without_errors_nothing_is_said() -> None:
    assert explain(np.zeros(0), np.zeros(0)) == (1.0, 0.0)


def test_few_measurements_widen_by_a_power_of_their_number() -> None:
    amount, power = SETTINGS.few
    factors = [factor_of_few(count) for count in range(SETTINGS.fewest + 2)]
    assert factors[0] == factors[1] == 1 + amount
    for count in range(1, SETTINGS.fewest):
        assert (factors[1] - 1) / (factors[count] - 1) == pytest.approx(count**power)
    assert factors[SETTINGS.fewest] == factors[SETTINGS.fewest + 1] == 1.0
