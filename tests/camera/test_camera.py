"""Intrinsics follow the image: each change of the picture has its law for the rays."""

from __future__ import annotations

import math

import torch

from gbpn.camera import pinhole as camera


def example(batch: int = 2) -> torch.Tensor:
    K = torch.tensor([[310.0, 0.0, 17.3], [0.0, 290.0, 9.1], [0.0, 0.0, 1.0]], dtype=torch.float64)
    return K.expand(batch, 3, 3).clone()


def test_the_default_camera_sees_its_field_of_view_from_border_to_border() -> None:
    for height, width in ((240, 320), (320, 240)):
        K = camera.default_intrinsics(height, width)
        longer = max(height, width)
        assert math.isclose(2 * math.atan(longer / 2 / float(K[0, 0])), math.radians(60), rel_tol=1e-6)
        assert K[0, 0] == K[1, 1]
        assert (float(K[0, 2]), float(K[1, 2])) == ((width - 1) / 2, (height - 1) / 2)


def test_a_ray_is_where_its_pixel_projects_from() -> None:
    K, (height, width) = example(), (5, 7)
    rays = camera.rays(K, height, width)
    assert rays.shape == (2, 3, height, width)
    pixels = torch.einsum("bij,bjyx->biyx", K, rays)
    y, x = torch.meshgrid(torch.arange(5.0).double(), torch.arange(7.0).double(), indexing="ij")
    torch.testing.assert_close(pixels[:, 0], x.expand(2, -1, -1), rtol=0, atol=1e-12)
    torch.testing.assert_close(pixels[:, 1], y.expand(2, -1, -1), rtol=0, atol=1e-12)
    torch.testing.assert_close(pixels[:, 2], torch.ones(2, 5, 7).double(), rtol=0, atol=0)


def test_halving_the_image_keeps_the_rays_of_every_second_pixel() -> None:
    K = example()
    full, half = camera.rays(K, 6, 8), camera.rays(camera.scaled(K, 0.5, 0.5), 3, 4)
    torch.testing.assert_close(half, full[..., ::2, ::2], rtol=0, atol=1e-12)


def test_scaling_twice_is_scaling_by_the_product() -> None:
    K = example()
    twice = camera.scaled(camera.scaled(K, 0.5, 0.25), 3.0, 5.0)
    torch.testing.assert_close(twice, camera.scaled(K, 1.5, 1.25), rtol=1e-12, atol=0)


def test_cropping_keeps_the_rays_of_what_is_left_and_padding_undoes_it() -> None:
    K = example()
    cropped = camera.shifted(K, -3, -2)
    torch.testing.assert_close(
        camera.rays(cropped, 4, 5), camera.rays(K, 6, 8)[..., 2:, 3:], rtol=0, atol=1e-12
    )
    torch.testing.assert_close(camera.shifted(cropped, 3, 2), K, rtol=0, atol=1e-12)


def test_flipping_mirrors_the_rays_and_flipping_again_restores_the_camera() -> None:
    K = example()
    mirrored = camera.rays(camera.flipped(K, 8), 6, 8)
    sign = torch.tensor([-1.0, 1.0, 1.0]).double().view(3, 1, 1)
    torch.testing.assert_close(mirrored, sign * camera.rays(K, 6, 8).flip(-1), rtol=0, atol=1e-12)
    torch.testing.assert_close(camera.flipped(camera.flipped(K, 8), 8), K, rtol=0, atol=1e-12)


def test_points_lie_at_their_depth_on_their_ray() -> None:
    K = example(1)
    depth = torch.rand(1, 1, 4, 5, generator=torch.Generator().manual_seed(0)).double() + 1
    points = camera.points(depth, K)
    torch.testing.assert_close(points[:, 2:], depth, rtol=0, atol=0)
    torch.testing.assert_close(points / points[:, 2:], camera.rays(K, 4, 5), rtol=1e-12, atol=0)


def test_the_input_is_left_untouched() -> None:
    K = example()
    kept = K.clone()
    camera.scaled(K, 2, 2), camera.shifted(K, 1, 1), camera.flipped(K, 9)
    assert torch.equal(K, kept)
