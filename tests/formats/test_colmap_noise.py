"""The noise that a reconstruction states of its points is that of triangulation."""

from __future__ import annotations

import numpy as np
import pytest

from gbpn.formats.colmap import Camera, Reconstruction, RegisteredImage, sparse_view
from gbpn.formats.colmap_noise import point_covariances

FOCAL, SIZE, PIXELS = 300.0, (240, 320), 0.8


def made_up(baseline: float, pictures: int = 2, seed: int = 0) -> tuple[Reconstruction, np.ndarray]:
    """A row of cameras that look ahead at points whose pixels are noisy; and where the points are."""
    rng = np.random.default_rng(seed)
    true = np.stack(
        [rng.uniform(-0.8, 0.8, 400), rng.uniform(-0.6, 0.6, 400), rng.uniform(2, 4, 400)], axis=1
    )
    centres = [np.array([baseline * k, 0, 0]) for k in range(pictures)]
    pixels = [
        FOCAL * (true - c)[:, :2] / (true - c)[:, 2:] + PIXELS * rng.normal(size=(400, 2)) for c in centres
    ]
    found = true.copy()
    for _ in range(10):  # least squares of the reprojection errors
        normal, right = np.zeros((400, 3, 3)), np.zeros((400, 3))
        for centre, seen in zip(centres, pixels, strict=True):
            x, y, z = (found - centre).T
            none = np.zeros_like(x)
            slope = (
                FOCAL
                / z[:, None, None]
                * np.stack([np.stack([none + 1, none, -x / z], 1), np.stack([none, none + 1, -y / z], 1)], 1)
            )
            error = seen - FOCAL * np.stack([x / z, y / z], 1)
            normal += slope.transpose(0, 2, 1) @ slope
            right += np.einsum("nij,ni->nj", slope, error)
        found += np.linalg.solve(normal, right[..., None])[..., 0]
    errors = np.mean(
        [
            np.linalg.norm(seen - FOCAL * (found - c)[:, :2] / (found - c)[:, 2:], axis=1)
            for c, seen in zip(centres, pixels, strict=True)
        ],
        axis=0,
    )
    numbers = np.arange(400)
    views = [
        RegisteredImage(name=f"{k}.png", camera=1, rotation=np.eye(3), translation=-c, points=numbers)
        for k, c in enumerate(centres)
    ]
    camera = Camera(model="PINHOLE", width=320, height=240, parameters=np.array([FOCAL, FOCAL, 160, 120]))
    points = {n: np.array([*found[n], errors[n]]) for n in range(400)}
    return Reconstruction(cameras={1: camera}, pictures=views, points=points), true


@pytest.mark.parametrize(("baseline", "pictures"), [(0.1, 2), (0.4, 2), (0.1, 5), (0.02, 12)])
def test_errors_of_triangulation_are_as_large_as_stated(baseline: float, pictures: int) -> None:
    model, true = made_up(baseline, pictures)
    covariance = point_covariances(model)
    error = np.array([model.points[n][2] for n in range(400)]) - true[:, 2]
    std = np.sqrt([covariance[n][2, 2] for n in range(400)])
    assert 0.8 < float(np.sqrt(np.mean((error / std) ** 2))) < 1.5
    near = std < np.median(std)
    assert np.abs(error[near]).mean() < np.abs(error[~near]).mean(), "what is stated tells points apart"


def test_noise_follows_the_unit_of_the_model() -> None:
    model, _ = made_up(0.3)
    one, other = (sparse_view(model, model.pictures[0], scale) for scale in (1.0, 2.5))
    np.testing.assert_allclose(other.std.numpy(), 2.5 * one.std.numpy(), rtol=1e-6)
    assert other.common == one.common > 0
    assert bool((one.std[one.sparse > 0] > 0).all())


def test_close_rays_are_less_sure_than_far_ones() -> None:
    shares = [sparse_view(model, model.pictures[0]).common for model, _ in map(made_up, (0.05, 0.2, 0.8))]
    assert shares[0] > shares[1] > shares[2]
