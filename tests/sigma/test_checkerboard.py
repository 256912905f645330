"""The pattern of the heads goes out of confidence and σ; scenes stay."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import gbpn
from gbpn import scenes
from gbpn.model.pipeline import SparseDepth
from gbpn.sigma.checkerboard import amplitudes, without_checkerboard
from gbpn.sigma.even_confidence import evenly_sure

EVERYWHERE = np.ones((48, 80), bool)


def boards(strength: float, block: int = 1) -> np.ndarray:
    y, x = np.mgrid[:48, :80] // block
    return (strength * (((-1.0) ** (x + y)) + 0.5 * (-1.0) ** x - 0.7 * (-1.0) ** y)).astype(np.float32)


@pytest.mark.parametrize("strengths", [(0.3, 0.0), (0.0, 0.2), (0.3, 0.2)])
def test_what_alternates_everywhere_is_removed(strengths: tuple[float, float]) -> None:
    """With a period of two pixels, of four, and both."""
    y, x = np.mgrid[:48, :80].astype(np.float32)
    plane = 0.02 * x - 0.01 * y
    even = without_checkerboard(plane + boards(strengths[0]) + boards(strengths[1], 2), EVERYWHERE)
    np.testing.assert_allclose(even[4:-4, 4:-4], plane[4:-4, 4:-4], atol=1e-4)


def test_scenes_stay_as_they_are() -> None:
    """Steps, also beside each other, and a point: none alternates over half of a square."""
    steps = np.zeros((48, 80), np.float32)
    steps[20:, 31:] += 2.0
    steps[:, 33:] -= 1.0
    steps[10, 60] = 5.0
    np.testing.assert_array_equal(without_checkerboard(steps, EVERYWHERE), steps)
    noisy = steps + np.random.default_rng(0).normal(0, 0.1, steps.shape).astype(np.float32)
    assert np.abs(without_checkerboard(noisy, EVERYWHERE) - noisy).max() < 0.05


def test_what_nothing_reached_stays_untouched() -> None:
    logit, observed = boards(0.3), EVERYWHERE.copy()
    observed[:, 70:] = False
    logit[:, 75:] = np.nan
    even = without_checkerboard(logit, observed)
    np.testing.assert_array_equal(even[:, 70:], logit[:, 70:])
    assert np.abs(even[4:-4, 4:52]).max() < 1e-4  # squares of which all was reached
    small = boards(0.3)[:20]
    assert without_checkerboard(small, EVERYWHERE[:20]) is small


def test_the_default_weights_say_sigma_without_the_pattern() -> None:
    """One point in a room: of six patterns, what is left has less than half of the amplitude."""
    sample = scenes.load("living_room")
    model = gbpn.load("default")
    if model.calibration is None:
        pytest.skip("needs calibrated default weights")
    sparse = torch.zeros_like(sample.target)[None]
    sparse[..., 120, 160] = sample.target[0, 120, 160]
    pipeline = model.pipeline(check_sigmas=False)
    with torch.inference_mode():
        encoding = pipeline.encode(sample.image[None], sample.intrinsics[None])
        answer = pipeline.answer(encoding, SparseDepth(depth=sparse))
    before, after = (one.confidence_logit[0, 0].numpy() for one in (answer, evenly_sure(answer)))
    for means in (lambda maps: maps, lambda maps: maps.reshape(120, 2, 160, 2).mean(axis=(1, 3))):
        found = zip(amplitudes(means(before)), amplitudes(means(after)), strict=True)
        assert all(np.abs(b).mean() < 0.5 * np.abs(a).mean() for a, b in found)
    assert torch.equal(evenly_sure(answer).mean, answer.mean)
