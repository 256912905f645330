"""Weighted least squares of scale and shift."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from gbpn.network.affine import affine_fit


def scene(points: int) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    torch.manual_seed(points)
    depth, weight = torch.rand(2, 1, 8, 9) + 0.5, torch.rand(2, 1, 8, 9) + 0.1
    measured = torch.zeros(2, 72)
    measured[:, torch.randperm(72)[:points]] = 1
    return depth, weight, measured.view(2, 1, 8, 9)


@given(scale=st.floats(0.5, 20), shift=st.floats(0, 5))
def test_an_affine_truth_is_found(scale: float, shift: float) -> None:
    depth, weight, measured = scene(20)
    a, b = affine_fit(depth, weight, (scale * depth + shift) * measured)
    wanted = scale * depth + shift
    assert float(((a * depth + b - wanted) / wanted).abs().max()) < 2e-2  # the pull towards a pure scale


def test_agrees_with_a_dense_solver() -> None:
    depth, weight, measured = (t.double() for t in scene(30))
    sparse = (torch.rand_like(depth) + 1) * measured
    a, b = affine_fit(depth, weight, sparse)
    for i in range(2):
        inside = measured[i] > 0
        root = weight[i][inside].sqrt()
        design = torch.stack((depth[i][inside], torch.ones_like(root)), 1) * root[:, None]
        solution = torch.linalg.lstsq(design, (sparse[i][inside] * root)[:, None]).solution
        got = torch.stack((a[i], b[i])).flatten()
        torch.testing.assert_close(got, solution.flatten(), rtol=2e-2, atol=2e-2)


def test_one_point_gives_a_pure_scale_and_none_gives_the_prediction() -> None:
    depth, weight, measured = scene(1)
    a, b = affine_fit(depth, weight, 7 * depth * measured)
    torch.testing.assert_close(a, torch.full_like(a, 7.0))
    torch.testing.assert_close(b, torch.zeros_like(b), rtol=0, atol=1e-5)
    a, b = affine_fit(depth, weight, torch.zeros_like(depth))
    assert a.flatten().tolist() == [1, 1]
    assert b.flatten().tolist() == [0, 0]


def test_gradient() -> None:
    depth, weight, measured = (t.double() for t in scene(6))
    sparse = (torch.rand_like(depth) + 1) * measured
    inputs = (depth.requires_grad_(), weight.requires_grad_())
    assert torch.autograd.gradcheck(lambda d, w: affine_fit(d, w, sparse), inputs)


@pytest.mark.parametrize("factor", [1e-3, 1e4])
def test_weights_count_only_relative_to_each_other(factor: float) -> None:
    depth, weight, measured = scene(12)
    sparse = (torch.rand_like(depth) + 1) * measured
    for got, wanted in zip(
        affine_fit(depth, weight * factor, sparse), affine_fit(depth, weight, sparse), strict=True
    ):
        torch.testing.assert_close(got, wanted, rtol=1e-4, atol=1e-5)
