"""Laws that every completion without learning obeys, and what each one promises on its own."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from gbpn import Sample
from gbpn.baselines import METHODS
from gbpn.baselines.colourisation import MEASUREMENT_WEIGHT, ring_average
from gbpn.baselines.measured_points import luminance
from gbpn.baselines.smoothing import _smooth_lines
from gbpn.distribution import DepthDistribution
from gbpn.errors import InputError

HEIGHT, WIDTH = 21, 30
EXACT = ("nearest", "linear", "natural_neighbour", "thin_plate")
"""Methods that pass through their measurements."""


def sample(seed: int, points: int = 40, depth: torch.Tensor | None = None) -> Sample:
    generator = torch.Generator().manual_seed(seed)
    image = torch.rand(3, HEIGHT, WIDTH, generator=generator)
    depth = depth if depth is not None else 1 + 4 * torch.rand(1, HEIGHT, WIDTH, generator=generator)
    keep = torch.randperm(HEIGHT * WIDTH, generator=generator)[:points]
    sparse = torch.zeros(HEIGHT * WIDTH)
    sparse[keep] = depth.flatten()[keep]
    return Sample(
        image=image,
        sparse=sparse.reshape(1, HEIGHT, WIDTH),
        intrinsics=torch.eye(3),
        target=depth,
        name=f"seed {seed}",
    )


def plane() -> torch.Tensor:
    y, x = torch.meshgrid(torch.arange(HEIGHT), torch.arange(WIDTH), indexing="ij")
    return (2 + 0.05 * x + 0.1 * y)[None]


@pytest.mark.parametrize("name", METHODS)
@pytest.mark.parametrize("points", [1, 2, 3, 40, HEIGHT * WIDTH])
def test_every_pixel_gets_a_depth(name, points) -> None:
    given_ = sample(points, points)
    answer = METHODS[name](given_)
    assert answer.mean.shape == (1, 1, HEIGHT, WIDTH)
    assert answer.mean.dtype == torch.float32
    assert bool(torch.isfinite(answer.mean).all())
    assert answer.ranked
    assert bool(torch.isfinite(answer.confidence_logit).all())


@pytest.mark.parametrize("name", METHODS)
def test_no_measurement_means_no_depth(name) -> None:
    assert bool(METHODS[name](sample(0, 0)).mean.isnan().all())


@pytest.mark.parametrize("name", METHODS)
def test_a_constant_scene_stays_constant(name) -> None:
    given_ = sample(1, 25, torch.full((1, HEIGHT, WIDTH), 2.5))
    assert torch.allclose(METHODS[name](given_).mean, torch.tensor(2.5), atol=1e-5)


@pytest.mark.parametrize("name", METHODS)
@given(seed=st.integers(0, 10_000), scale=st.sampled_from([0.25, 2.0, 8.0]))
@settings(max_examples=5, deadline=None)
def test_depth_has_no_preferred_unit(name, seed, scale) -> None:
    given_ = sample(seed)
    scaled = replace(given_, sparse=given_.sparse * scale)
    assert torch.allclose(METHODS[name](scaled).mean, scale * METHODS[name](given_).mean, rtol=1e-4)


@pytest.mark.parametrize("name", METHODS)
def test_the_target_is_never_read(name) -> None:
    given_ = sample(3)
    blind = replace(given_, target=None)
    assert torch.equal(METHODS[name](given_).mean, METHODS[name](blind).mean)


@pytest.mark.parametrize("name", METHODS)
def test_points_on_a_line_are_no_problem(name) -> None:
    given_ = sample(4)
    sparse = torch.zeros_like(given_.sparse)
    sparse[0, 7, ::5] = 3.0
    assert torch.allclose(METHODS[name](replace(given_, sparse=sparse)).mean, torch.tensor(3.0), atol=1e-4)


@pytest.mark.parametrize("name", EXACT)
def test_interpolation_passes_through_its_measurements(name) -> None:
    given_ = sample(5, 60)
    known = given_.sparse > 0
    assert torch.allclose(METHODS[name](given_).mean[0][known], given_.sparse[known], atol=1e-4)


@pytest.mark.parametrize("name", ["linear", "thin_plate"])
def test_a_plane_is_reproduced(name) -> None:
    given_ = sample(6, 60, plane())
    corners = torch.zeros(1, HEIGHT, WIDTH, dtype=torch.bool)
    corners[:, :: HEIGHT - 1, :: WIDTH - 1] = True
    given_ = replace(given_, sparse=torch.where(corners, plane(), given_.sparse))
    assert torch.allclose(METHODS[name](given_).mean, plane(), atol=1e-4)


@given(seed=st.integers(0, 10_000))
@settings(max_examples=10, deadline=None)
def test_nearest_by_brute_force(seed) -> None:
    given_ = sample(seed, 12)
    rows, columns = np.nonzero(given_.sparse[0].numpy())
    y, x = np.mgrid[:HEIGHT, :WIDTH]
    squared = (y[..., None] - rows) ** 2 + (x[..., None] - columns) ** 2
    confidence = METHODS["nearest"](given_).confidence_logit[0]
    assert np.allclose(confidence[0], 1 / (1 + np.sqrt(squared.min(-1))))
    depth = given_.sparse[0].numpy()[rows, columns]
    tied = squared == squared.min(-1, keepdims=True)  # any of the equally near is right
    assert bool((tied & np.isclose(depth, METHODS["nearest"](given_).mean[0, 0][..., None])).any(-1).all())


def test_natural_neighbour_by_brute_force() -> None:
    given_ = sample(8, 6)
    near = METHODS["nearest"](given_)
    radius = 1 / near.confidence_logit[0, 0].double().numpy() - 1
    y, x = np.mgrid[:HEIGHT, :WIDTH]
    distance = np.hypot(y[..., None, None] - y, x[..., None, None] - x)  # [H, W, H, W]
    covers = (distance < radius - 1e-5) | (distance == 0)
    wanted = (covers * near.mean[0, 0].double().numpy()).sum((2, 3)) / covers.sum((2, 3))
    assert np.allclose(METHODS["natural_neighbour"](given_).mean[0, 0], wanted, atol=1e-5)


def test_ring_average_is_an_average_that_prefers_like_pixels() -> None:
    image = np.zeros((4, 6))
    image[:, 3:] = 1.0
    matrix = ring_average(image + np.random.default_rng(0).normal(0, 0.01, image.shape))
    assert np.allclose(matrix.sum(1), 1)
    assert matrix.min() >= 0
    across = matrix.toarray()[1 * 6 + 2, [6 + 3, 6 + 1]]  # over the edge, and within the region
    assert across[0] < 1e-2 * across[1]


def test_colourisation_solves_its_equation() -> None:
    given_ = sample(9)
    depth = METHODS["colourisation"](given_).mean[0, 0].double().numpy()
    known = given_.sparse[0].numpy() > 0
    average = (ring_average(luminance(given_)) @ depth.ravel()).reshape(depth.shape)
    pull = MEASUREMENT_WEIGHT * known * (given_.sparse[0].numpy() - depth)
    assert np.abs(average - depth + pull).max() < 1e-4


@pytest.mark.parametrize("axis", [0, 1])
def test_line_smoothing_equals_a_dense_solve(axis) -> None:
    rng = np.random.default_rng(1)
    field, ties = rng.random((5, 7)), rng.random((5, 7)) * 3
    ties[(slice(None), -1) if axis else (-1, slice(None))] = 0
    (got,) = _smooth_lines([field], ties, axis)
    lines = zip(field if axis else field.T, ties if axis else ties.T, got if axis else got.T, strict=True)
    for f, tie, u in lines:
        matrix = np.eye(len(f))
        for i in range(len(f) - 1):
            matrix[i, i] += tie[i]
            matrix[i + 1, i + 1] += tie[i]
            matrix[i, i + 1] = matrix[i + 1, i] = -tie[i]
        assert np.allclose(u, np.linalg.solve(matrix, f))


@pytest.mark.parametrize("name", ["nearest", "natural_neighbour", "thin_plate", "ip_basic", "fast_global"])
def test_depth_stays_within_what_was_measured(name) -> None:
    given_ = sample(10)
    known = given_.sparse[given_.sparse > 0]
    mean = METHODS[name](given_).mean
    assert float(mean.min()) >= float(known.min()) - 1e-4
    assert float(mean.max()) <= float(known.max()) + 1e-4


def test_a_completion_checks_its_shapes() -> None:
    with pytest.raises(InputError, match=r"std must be \[B, 1, H, W\] like the mean"):
        DepthDistribution.of_depth(torch.ones(1, 1, 4, 5), std=torch.ones(4, 5))
