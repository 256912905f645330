"""What a depth-like map learns by: a plane is known by its normal, and a scene has no size."""

from __future__ import annotations

import math

import pytest
import torch
from torch import Tensor

from gbpn.train.map_loss import NORMAL_DISTANCES, normals_loss, shape_loss, surface_loss

CAMERA = torch.tensor([[[30.0, 0, 15.0], [0, 33.0, 11.0], [0, 0, 1]]], dtype=torch.float64)
HEIGHT, WIDTH = 24, 32


def plane(normal: tuple[float, float, float]) -> Tensor:
    """[1, 1, H, W] depth of the plane n · p = 2 · n_z, seen by `CAMERA`."""
    n = torch.tensor(normal, dtype=torch.float64)
    x = (torch.arange(WIDTH) - CAMERA[0, 0, 2]) / CAMERA[0, 0, 0]
    y = (torch.arange(HEIGHT) - CAMERA[0, 1, 2]) / CAMERA[0, 1, 1]
    return (2 * n[2] / (n[0] * x[None, :] + n[1] * y[:, None] + n[2]))[None, None]


WALLS = [(0.0, 0.0, 1.0), (0.4, 0.0, 1.0), (0.0, -0.5, 1.0), (0.3, 0.2, 1.0)]


@pytest.mark.parametrize("wall", WALLS)
def test_the_right_surface_of_any_size_costs_nothing(wall: tuple[float, float, float]) -> None:
    target = plane(wall)
    for factor in (1.0, 7.0):
        for loss in (normals_loss, surface_loss):
            assert float(loss((factor * target).log(), target, CAMERA)) == pytest.approx(0, abs=1e-6)


@pytest.mark.parametrize("wall", WALLS[1:])
def test_the_normals_loss_is_the_angle_between_two_planes(wall: tuple[float, float, float]) -> None:
    """The distance of two unit normals, less what rounds the loss near nought."""
    a, b = torch.tensor(WALLS[0]), torch.tensor(wall)
    angle = torch.acos((a * b).sum() / (a.norm() * b.norm()))
    found = float(normals_loss(plane(WALLS[0]).log(), plane(wall), CAMERA))
    apart = 2 * math.sin(float(angle) / 2)
    assert found == pytest.approx(math.hypot(apart, 1e-3**0.5) - 1e-3**0.5, rel=0.02)


def test_an_edge_has_no_normal() -> None:
    target = plane(WALLS[1])
    target[..., WIDTH // 2 :] *= 3
    lifted = target.log()
    lifted[..., WIDTH // 2 :] += 0.5  # the far wall in the wrong place: not the business of normals
    assert float(normals_loss(lifted, target, CAMERA)) == pytest.approx(0, abs=1e-6)
    assert float(surface_loss(lifted, target, CAMERA)) > 0.1


def test_unknown_pixels_teach_nothing() -> None:
    target = plane(WALLS[2])
    target[..., 16:] = 0
    prior = torch.randn(1, 1, HEIGHT, WIDTH, dtype=torch.float64, requires_grad=True)
    (gradient,) = torch.autograd.grad(surface_loss(prior, target, CAMERA), prior)
    assert not gradient[..., 16:].any()
    assert gradient[..., :16].any()
    assert gradient.isfinite().all()
    assert float(surface_loss(prior.detach(), torch.zeros_like(target), CAMERA)) == 0


def test_the_surface_loss_has_the_gradient_of_its_value() -> None:
    draw = torch.Generator().manual_seed(3)
    side = 2 * max(NORMAL_DISTANCES) + 3
    target = plane(WALLS[3])[..., :side, :side]
    prior = torch.randn(1, 1, side, side, generator=draw, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(lambda x: surface_loss(x, target, CAMERA), (prior,))


def test_short_steps_count_more_than_in_the_shape_loss() -> None:
    target = plane(WALLS[0])
    ripple = target.log() + 0.01 * torch.sin(torch.arange(WIDTH) * (math.pi / 2))
    assert surface_loss(ripple, target, CAMERA) > 3 * shape_loss(ripple, target)
