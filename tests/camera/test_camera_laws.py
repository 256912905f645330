"""Normals, the z-buffer and cameras that do not fit their picture: laws of what they give."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from gbpn.camera import pinhole as camera
from gbpn.errors import InputError

HEIGHT, WIDTH = 9, 13
MATRIX = torch.tensor([[[20.0, 0.0, 5.5], [0.0, 18.0, 4.2], [0.0, 0.0, 1.0]]], dtype=torch.float64)


def plane(normal: tuple[float, float, float], distance: float) -> np.ndarray:
    """[H, W, 3]: where the rays of all pixels meet the plane of points p with normal · p = distance."""
    rays = camera.rays(MATRIX, HEIGHT, WIDTH)[0].permute(1, 2, 0).numpy()
    return rays * (distance / (rays @ np.array(normal)))[..., None]


@given(st.floats(-0.5, 0.5), st.floats(-0.5, 0.5), st.floats(0.5, 9.0), st.booleans())
def test_a_plane_has_its_own_normal_at_every_pixel_towards_the_camera(
    x: float, y: float, distance: float, turned: bool
) -> None:
    normal = np.array([x, y, -1.0]) / math.sqrt(x * x + y * y + 1)
    places = plane(tuple(normal), -distance)
    found = camera.normals(places)
    np.testing.assert_allclose(found, np.broadcast_to(normal, found.shape), atol=1e-4)
    if turned:  # the picture mirrored: whatever the order of pixels, a normal looks at the camera
        mirrored = camera.normals(places[:, ::-1] * np.array([-1.0, 1.0, 1.0]))
        np.testing.assert_allclose(mirrored, found[:, ::-1] * np.array([-1.0, 1.0, 1.0]), atol=1e-4)


@pytest.mark.parametrize("axis", [0, 1])
def test_normals_stay_sharp_at_a_step(axis: int) -> None:
    near, far = plane((0.2, 0.1, -1.0), -1.0), plane((-0.3, 0.1, -1.0), -5.0)
    first = np.arange((HEIGHT, WIDTH)[axis]) < 4
    first = first[:, None] if axis == 0 else first[None]
    found = camera.normals(np.where(first[..., None], near, far))
    for places, inside in ((near, first), (far, ~first)):
        inside = np.broadcast_to(inside, (HEIGHT, WIDTH))
        np.testing.assert_allclose(found[inside], camera.normals(places)[inside], atol=1e-4)


def test_a_pixel_without_neighbours_looks_at_the_camera() -> None:
    places = np.full((5, 5, 3), np.nan)
    places[2, 2] = (1.0, -2.0, 2.0)
    np.testing.assert_allclose(camera.normals(places)[2, 2], (-1 / 3, 2 / 3, -2 / 3), atol=1e-6)
    np.testing.assert_allclose(camera.normals(places[2:3, 2:3])[0, 0], (-1 / 3, 2 / 3, -2 / 3), atol=1e-6)


@given(seed=st.integers(0, 1000))
def test_the_nearest_point_of_each_pixel_wins(seed: int) -> None:
    rng = np.random.default_rng(seed)
    x, y = rng.uniform(-1.4, WIDTH + 0.4, 300), rng.uniform(-1.4, HEIGHT + 0.4, 300)
    depth = rng.uniform(0.1, 9.0, 300)
    wanted = np.zeros((HEIGHT, WIDTH), np.float32)
    for column, row, z in zip(x, y, depth, strict=True):
        at = round(row), round(column)
        if 0 <= at[0] < HEIGHT and 0 <= at[1] < WIDTH and (wanted[at] == 0 or z < wanted[at]):
            wanted[at] = z
    np.testing.assert_array_equal(camera.nearest_wins(x, y, depth, HEIGHT, WIDTH), wanted)


@given(st.floats(0.3, 3.0), st.floats(0.3, 3.0), st.floats(-0.5, 1.5), st.floats(-0.5, 1.5))
def test_normalised_intrinsics_count_in_shares_of_the_picture(
    fx: float, fy: float, cx: float, cy: float
) -> None:
    """Share 0 is the left edge of the first pixel, share 1 the right edge of the last; rows alike."""
    height, width = 480, 640
    shares = torch.tensor([[fx, 0.0, cx], [0.0, fy, cy], [0.0, 0.0, 1.0]], dtype=torch.float64)
    pixels, notice = camera.fitted_intrinsics(shares, height, width)
    assert notice is not None
    assert "converted" in notice
    ray = torch.tensor([0.3, -0.2, 1.0], dtype=torch.float64)
    share, pixel = shares @ ray, pixels @ ray
    assert float(pixel[0]) + 0.5 == pytest.approx(float(share[0]) * width, abs=1e-6)
    assert float(pixel[1]) + 0.5 == pytest.approx(float(share[1]) * height, abs=1e-6)


def fitted(fx: float, fy: float, cx: float, cy: float, size: tuple[int, int]) -> str | None:
    matrix = torch.tensor([[fx, 0.0, cx], [0.0, fy, cy], [0.0, 0.0, 1.0]], dtype=torch.float64)
    found, notice = camera.fitted_intrinsics(matrix, *size)
    assert torch.equal(found, matrix)
    return notice


@pytest.mark.parametrize("size", [(480, 640), (640, 480)])
def test_a_camera_is_judged_by_both_axes_and_the_longer_side(size: tuple[int, int]) -> None:
    height, width = size
    assert fitted(500, 500, 300, 200, size) is None
    least, most = camera.USUAL_FOCAL
    for focal in (least * 640 * 1.01, most * 640 * 0.99):
        assert fitted(focal, focal, 300, 200, size) is None
    for focal in (least * 640 * 0.99, most * 640 * 1.01):
        for pair in ((focal, 500.0), (500.0, focal)):
            notice = fitted(*pair, 300, 200, size)
            assert notice is not None
            assert "unusual" in notice
    for focal in (0.05 * 640 * 0.99, 1e4 * 640 * 1.01):
        for pair in ((focal, 500.0), (500.0, focal)):
            with pytest.raises(InputError, match="not possible"):
                fitted(*pair, 300, 200, size)
    for centre in (10 * width - 1, 1 - 10 * width):
        assert fitted(500, 500, centre, 200, size) is None
    for centre in (10 * height - 1, 1 - 10 * height):
        assert fitted(500, 500, 300, centre, size) is None
    for cx, cy in (
        (10 * width + 1, 200),
        (-10 * width - 1, 200),
        (300, 10 * height + 1),
        (300, -10 * height - 1),
    ):
        with pytest.raises(InputError, match="principal point"):
            fitted(500, 500, cx, cy, size)


@pytest.mark.parametrize(
    ("row", "column", "value"),
    [(0, 0, 0.0), (1, 1, -3.0), (0, 2, math.nan), (1, 2, 1e39), (2, 0, 0.1), (2, 1, 0.1), (2, 2, 2.0)],
)
def test_a_matrix_that_is_no_camera_is_refused(row: int, column: int, value: float) -> None:
    matrix = MATRIX[0].numpy().copy()
    camera.require_camera(matrix)
    matrix[row, column] = value
    with pytest.raises(InputError, match="positive focal lengths"):
        camera.require_camera(matrix)
