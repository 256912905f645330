"""Panoramas and fisheye lenses: pixels and directions are each other's inverse, views see all of it."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gbpn.camera.lens import Lens
from gbpn.camera.views import views_of
from gbpn.camera.wide import Fisheye, Panorama, WideCamera, inside
from gbpn.errors import InputError

FISHEYE = Fisheye(
    intrinsics=(20.0, 20.0, 31.5, 31.5),
    lens=Lens(kind="equidistant", parameters=(0.02, -0.004, 0.0, 0.0)),
    field=190.0,
)
CAMERAS: dict[str, tuple[WideCamera, tuple[int, int]]] = {
    "whole": (Panorama().seen(32, 64), (32, 64)),
    "odd": (Panorama(top=90, bottom=-90), (33, 65)),
    "scanner": (Panorama(top=15, bottom=-25), (16, 128)),
    "band": (Panorama().seen(32, 128), (32, 128)),
    "fisheye": (FISHEYE, (64, 64)),
}


@pytest.mark.parametrize("name", CAMERAS)
def test_pixels_and_directions_are_inverse(name: str) -> None:
    camera, size = CAMERAS[name]
    towards = camera.directions(*size)
    seen = np.isfinite(towards[..., 0])
    np.testing.assert_allclose(np.linalg.norm(towards[seen], axis=-1), 1, atol=1e-12)
    x, y = camera.pixels(3.5 * towards, *size)
    wanted_y, wanted_x = np.mgrid[: size[0], : size[1]]
    np.testing.assert_allclose(x[seen], wanted_x[seen], atol=1e-6)
    np.testing.assert_allclose(y[seen], wanted_y[seen], atol=1e-6)
    assert np.isnan(x[~seen]).all()


def test_a_panorama_looks_ahead_right_and_up_where_it_says() -> None:
    camera = Panorama().seen(90, 180)
    for towards, x, y in (((0, 0, 1), 89.5, 44.5), ((1, 0, 0), 134.5, 44.5), ((0, -1, 1), 89.5, 22.0)):
        np.testing.assert_allclose(camera.pixels(np.array(towards, float), 90, 180), (x, y), atol=1e-9)
    matrix = camera.matrix(90, 180)
    np.testing.assert_allclose(matrix @ (math.pi / 2, math.pi / 4, 1), (134.5, 67.0, 1), atol=1e-9)


def test_a_panorama_knows_its_edges() -> None:
    assert Panorama.of("panorama") == Panorama()
    assert Panorama.of("panorama,15,-25") == Panorama(top=15, bottom=-25)
    assert Panorama.of("photo.jpg") is None
    assert Panorama().seen(100, 400) == Panorama(top=45, bottom=-45)
    assert Panorama().seen(511, 1024) == Panorama(top=90, bottom=-90)
    with pytest.raises(InputError, match="twice as wide as high or wider; got 640×480"):
        Panorama().seen(480, 640)
    with pytest.raises(InputError, match="within −90° to 90°; got top -20"):
        Panorama.of("panorama,-20,20")


@pytest.mark.parametrize("name", CAMERAS)
def test_every_pixel_is_in_a_view(name: str) -> None:
    camera, size = CAMERAS[name]
    towards = camera.directions(*size)
    seen = np.zeros(size, bool)
    for view in views_of(camera, *size):
        assert min(view.size) >= 32
        x, y, _ = view.project(towards)
        seen |= inside(x, y, *view.size)
    np.testing.assert_array_equal(seen, np.isfinite(towards[..., 0]))


@given(st.integers(0, 11), st.integers(0, 1000))
def test_a_view_sees_a_point_where_a_pinhole_does(number: int, seed: int) -> None:
    view = views_of(Panorama().seen(32, 64), 32, 64)[number]
    np.testing.assert_allclose(view.axes @ view.axes.T, np.eye(3), atol=1e-12)
    assert np.linalg.det(view.axes) > 0
    point = np.random.default_rng(seed).normal(size=3)
    turned = view.intrinsics @ (view.axes @ point)
    x, y, _ = view.project(point / np.linalg.norm(point))
    if turned[2] > 0.01:
        np.testing.assert_allclose((x, y), turned[:2] / turned[2], atol=1e-5)
    rows, columns = view.size
    x, y, ahead = view.project(view.directions())
    np.testing.assert_allclose(x, np.broadcast_to(np.arange(columns), (rows, columns)), atol=1e-5)
    np.testing.assert_allclose(ahead, view.rays()[..., 2], atol=1e-12)


def test_views_of_a_turned_panorama_are_the_same() -> None:
    """So that a quarter turn of the panorama turns its answer."""
    views = views_of(Panorama().seen(32, 64), 32, 64)
    assert len(views) == 12
    assert len({(view.pitch, view.size, view.row, view.column) for view in views}) == 3


def test_a_lens_beyond_its_widest_angle_sees_nothing() -> None:
    lens = Lens(kind="equidistant", parameters=(-0.1, 0.0, 0.0, 0.0))  # folds back at 1.83
    assert lens.widest == pytest.approx(math.sqrt(1 / 0.3), abs=1e-3)
    angle = lens.angle(lens.radius(np.array([0.0, 1.0, 1.7])))
    np.testing.assert_allclose(angle, [0.0, 1.0, 1.7], atol=1e-8)
    assert np.isnan(lens.angle(np.array([1.5]))).all()


def test_other_lenses_are_no_wide_ones() -> None:
    with pytest.raises(InputError, match=r"is an equidistant one .* got 'radtan'"):
        Fisheye(intrinsics=(1, 1, 0, 0), lens=Lens(kind="radtan", parameters=(0.1,)), field=150)
    with pytest.raises(InputError, match="at most 360; got 400"):
        Fisheye(intrinsics=(1, 1, 0, 0), lens=FISHEYE.lens, field=400)
