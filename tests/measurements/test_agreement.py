"""Measurements are trusted as far as neighbouring ones agree; by one rule for torch and NumPy."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

import gbpn
from gbpn.errors import InputError
from gbpn.measurements.agreement import agreement, certainty, trust
from gbpn.model.pipeline import Pipeline, SparseDepth

MOST = 16.0


def wall(share: float, noise: float, seed: int = 0, size: tuple[int, int] = (64, 96)) -> Tensor:
    """[1, 1, H, W] metres: a slanted wall of which a share of the pixels is measured."""
    rng = np.random.default_rng(seed)
    depth = np.linspace(2, 2.3, size[1])[None] * (1 + noise * rng.standard_normal(size))
    sparse = np.where(rng.random(size) < share, depth, 0.0)
    return torch.from_numpy(sparse.astype(np.float32))[None, None]


def factor(sparse: Tensor) -> float:
    return float(trust(certainty(sparse), MOST))


@pytest.mark.parametrize("share", [0.003, 0.05, 0.3, 1.0])
def test_measurements_without_noise_are_trusted_as_far_as_any(share: float) -> None:
    assert factor(wall(share, 0.0)) == MOST


@pytest.mark.parametrize("share", [0.3, 1.0])
def test_noisy_measurements_are_trusted_as_the_network_says(share: float) -> None:
    assert factor(wall(share, 0.05)) == 1.0
    factors = [factor(wall(share, noise)) for noise in (0.0, 0.01, 0.015, 0.02, 0.05)]
    assert factors == sorted(factors, reverse=True)
    assert 1.0 < factors[2] < MOST


def test_scattered_points_have_no_neighbours_to_contradict_them() -> None:
    lonely = torch.zeros(1, 1, 40, 40)
    lonely[..., ::4, ::4] = torch.rand(10, 10, generator=torch.manual_seed(0)) + 0.5
    assert float(agreement(lonely)) == 1.0
    assert factor(lonely) == MOST


def test_every_pair_of_neighbours_counts_once() -> None:
    """A 2×2 square has six pairs; its upper right corner lies off, so three of them disagree."""
    square = torch.zeros(1, 1, 9, 9)
    square[0, 0, 3:5, 3:5] = torch.tensor([[2.0, 3.0], [2.0, 2.0]])
    assert float(agreement(square)) == pytest.approx((20 + 3) / (20 + 6))
    for turned in (square.flip(-1), square.flip(-2), square.transpose(-1, -2)):
        assert float(agreement(turned)) == pytest.approx(23 / 26)
    close = torch.where(square == 3.0, 2.0199, square)
    assert float(agreement(close)) == 1.0
    assert float(agreement(torch.where(square == 3.0, 2.0201, square))) == pytest.approx(23 / 26)


@given(
    share=st.floats(0.02, 1),
    noise=st.floats(0, 0.06),
    seed=st.integers(0, 99),
    size=st.sampled_from([(1, 1), (1, 7), (7, 1), (33, 65)]),
)
def test_torch_and_numpy_agree(share: float, noise: float, seed: int, size: tuple[int, int]) -> None:
    sparse = wall(share, noise, seed, size)
    unknown = torch.where(sparse > 0, sparse, torch.nan)
    expected = agreement(sparse.numpy())
    assert expected.shape == (1, 1, 1, 1)
    np.testing.assert_allclose(agreement(sparse), expected, rtol=1e-6)
    np.testing.assert_allclose(agreement(unknown), expected, rtol=1e-6)
    np.testing.assert_allclose(agreement(unknown.numpy()), expected, rtol=1e-6)
    np.testing.assert_allclose(certainty(unknown), certainty(sparse.numpy()), atol=1e-6)
    np.testing.assert_allclose(
        trust(certainty(sparse), MOST), trust(certainty(sparse.numpy()), MOST), rtol=1e-5
    )


def street(near: int) -> Tensor:
    """[1, 1, H, W]: `near` walls, and one ten times as far."""
    return torch.cat([wall(0.5, 0.0)] * near + [10 * wall(0.5, 0.0)], dim=-1)


@given(
    scale=st.sampled_from([1e-3, 0.25, 3.0, 64.0, 1e3]),
    noise=st.floats(0, 0.05),
    near=st.sampled_from([1, 40, 45, 50, 80]),
)
def test_it_does_not_matter_in_which_unit_depth_is_counted(scale: float, noise: float, near: int) -> None:
    sparse = torch.cat((street(near), wall(0.5, noise)), dim=-1)
    assert float(certainty(sparse * scale)) == pytest.approx(float(certainty(sparse)), abs=1e-6)
    assert factor(wall(0.5, 0.0) * scale) == MOST


def test_a_street_is_measured_past_what_the_camera_sees() -> None:
    """Where a few measurements in a hundred lie many times as far as the rest, the network's word holds."""
    assert factor(street(5)) == 1.0
    assert factor(street(30)) == 1.0
    assert 1.0 < factor(street(45)) < MOST
    assert factor(street(80)) == MOST


def test_no_measurement_is_no_trouble() -> None:
    assert factor(torch.zeros(1, 1, 8, 8)) == 1.0


def test_every_image_of_a_batch_is_judged_by_itself() -> None:
    both = torch.cat((wall(0.5, 0.0), wall(0.5, 0.05)))
    assert trust(certainty(both), MOST).flatten().tolist() == [MOST, 1.0]


def weights(most: float, sparse: SparseDepth) -> Tensor:
    """Precisions of the measurements in the first field of an untrained model."""
    with torch.random.fork_rng():
        torch.manual_seed(0)
        model = gbpn.build("small", width=0.25, agreement_trust=most).eval()
    assert isinstance(model, gbpn.GBPN)
    pipeline: Pipeline = model.pipeline()
    encoding = pipeline.encode(torch.full((1, 3, 64, 96), 0.5))
    with torch.no_grad():
        return pipeline.first_stage(encoding, sparse).field.weight


def test_the_field_multiplies_what_the_network_says_and_leaves_stated_noise_alone() -> None:
    clean, noisy = SparseDepth(depth=wall(0.5, 0.0)), SparseDepth(depth=wall(0.5, 0.05))
    torch.testing.assert_close(weights(MOST, clean), MOST * weights(1, clean))
    torch.testing.assert_close(weights(MOST, noisy), weights(1, noisy))
    stated = replace(clean, std=torch.full_like(clean.depth, 0.2))
    there = clean.depth > 0
    variance = (0.2 / clean.depth[there]) ** 2  # of log depth
    expected = 1 / (1 / weights(MOST, clean)[there] + variance)
    torch.testing.assert_close(weights(MOST, stated)[there], expected, rtol=1e-4, atol=0)


@pytest.mark.parametrize("scale", [0.5, 2.0, 8.0, 64.0])
def test_a_field_does_not_know_how_large_the_scene_is(scale: float) -> None:
    """The same picture and the same measurements times a factor: the same field, so the same σ / depth."""
    scene = street(80)[..., :96]
    scene[..., 90:] = 3.0
    known = SparseDepth(depth=scene)
    torch.testing.assert_close(weights(MOST, SparseDepth(depth=scale * scene)), weights(MOST, known))


def test_measurements_cannot_be_trusted_less_than_the_network_says() -> None:
    with pytest.raises(InputError, match="agreement_trust must be a number, 1 or more"):
        gbpn.build("small", agreement_trust=0.5)
