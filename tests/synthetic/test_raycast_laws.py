"""Laws of ray casting: bounds never cut a solid, hits lie on surfaces, normals and faces belong together."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gbpn.synthetic.raycast import NEAR, DepthBuffer, View, turn

MATERIALS = (10, 11, 12, 13, 14, 15)


def view_of(rng: np.random.Generator) -> View:
    return View(
        intrinsics=np.array([[rng.uniform(15, 60), 0, 19.5], [0, rng.uniform(15, 60), 14.5], [0, 0, 1]]),
        rotation=turn(*rng.uniform(-0.6, 0.6, 3)),
        position=rng.uniform(-1, 1, 3),
        height=30,
        width=40,
    )


class Unbounded(DepthBuffer):
    """Looks for a solid in every pixel."""

    def _window(self, corners: np.ndarray) -> tuple[slice, slice]:
        return np.s_[:, :]


def solids(buffer: DepthBuffer, seed: int) -> None:
    rng = np.random.default_rng(seed)
    for _ in range(3):
        away = buffer.view.position + buffer.view.rotation @ np.array(
            [rng.uniform(-3, 3), rng.uniform(-2, 2), rng.uniform(-1, 6)]
        )
        buffer.box(away, rng.uniform(0.05, 1.2, 3), rng.uniform(-3, 3), MATERIALS)
        buffer.sphere(away + rng.normal(0, 1, 3), rng.uniform(0.05, 1.0), 1)
        buffer.cylinder(away + rng.normal(0, 1, 3), rng.uniform(0.05, 0.6), rng.uniform(0.1, 2), 2)


@given(st.integers(0, 10_000))
@settings(max_examples=40, deadline=None)
def test_bounds_never_cut_a_solid(seed: int) -> None:
    view = view_of(np.random.default_rng(seed))
    bounded, unbounded = DepthBuffer(view), Unbounded(view)
    for buffer in (bounded, unbounded):
        solids(buffer, seed)
    for name in ("depth", "place", "normal", "material"):
        np.testing.assert_array_equal(getattr(bounded, name), getattr(unbounded, name), err_msg=name)


def test_bounds_are_tight() -> None:
    """A small ball is looked for in a few pixels around it, and nothing behind or beside the view in any."""
    view = View(
        intrinsics=np.array([[30.0, 0, 19.5], [0, 30.0, 14.5], [0, 0, 1]]),
        rotation=turn(),
        position=np.zeros(3),
        height=30,
        width=40,
    )
    buffer = DepthBuffer(view)
    corners = np.array([[x, y, 3.0] for x in (-0.1, 0.1) for y in (-0.2, 0.2)])  # 18.5 … 20.5, 12.5 … 16.5
    assert buffer._window(corners) == (slice(12, 18), slice(18, 22))
    assert buffer._window(corners - [0, 0, 6]) is None
    assert buffer._window(corners + np.array([9, 0, 0])) is None
    assert buffer._window(corners - [9, 0, 0]) is None
    assert buffer._window(corners + np.array([0, 9, 0])) is None
    assert buffer._window(corners - [0, 9, 0]) is None
    around = np.concatenate((corners, corners - [0, 0, 6]))
    assert buffer._window(around) == (slice(None), slice(None))


def hits(buffer: DepthBuffer) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """World points [N, 3], normals [N, 3], places [N, 2] and materials [N] where something is seen."""
    seen = np.isfinite(buffer.depth)
    points = buffer.view.position[:, None] + buffer.depth[seen] * buffer.direction[:, seen]
    towards = (buffer.normal[:, seen] * buffer.direction[:, seen]).sum(0)
    assert (buffer.depth[seen] > NEAR).all()
    assert (towards <= 1e-6).all(), "normals point at the camera"
    assert np.allclose(np.linalg.norm(buffer.normal[:, seen], axis=0), 1, atol=1e-4)
    assert (buffer.material[~seen] == -1).all()
    return points.T, buffer.normal[:, seen].T, buffer.place[:, seen].T, buffer.material[seen]


@pytest.mark.parametrize("seed", range(6))
def test_hits_lie_on_balls_and_poles(seed: int) -> None:
    rng = np.random.default_rng(seed)
    view = view_of(rng)
    centre = view.position + view.rotation @ np.array([0.2, -0.1, 3.0])
    ball = DepthBuffer(view)
    ball.sphere(centre, 0.7, 4)
    points, normals, places, materials = hits(ball)
    assert len(points) > 20
    assert np.allclose(points - centre, 0.7 * normals, atol=1e-3)
    assert (materials == 4).all()
    longitude, latitude = places.T / 0.7
    back = np.stack(
        [np.sin(longitude) * np.cos(latitude), np.sin(latitude), np.cos(longitude) * np.cos(latitude)], 1
    )
    assert np.allclose(back, normals, atol=2e-3)
    pole = DepthBuffer(view)
    pole.cylinder(centre, 0.4, 0.9, 5)
    points, normals, places, _ = hits(pole)
    assert len(points) > 20
    assert np.allclose((points - centre)[:, [0, 2]], 0.4 * normals[:, [0, 2]], atol=1e-3)
    assert np.abs((points - centre)[:, 1]).max() <= 0.9 + 1e-4
    assert np.abs((points - centre)[:, 1]).max() > 0.7
    assert np.allclose(places[:, 1], (points - centre)[:, 1], atol=1e-4)
    assert np.allclose(places[:, 0], 0.4 * np.arctan2(normals[:, 0], normals[:, 2]), atol=1e-4)


@pytest.mark.parametrize("inside", [False, True])
@pytest.mark.parametrize("seed", range(6))
def test_hits_lie_on_faces_of_boxes(seed: int, inside: bool) -> None:
    """The face that is hit gives material, normal and the two coordinates on it."""
    rng = np.random.default_rng(seed)
    view = view_of(rng)
    half, yaw = rng.uniform(0.5, 1.2, 3), rng.uniform(-3, 3)
    ahead = np.zeros(3) if inside else view.rotation @ np.array([0, 0, 3.0])
    centre = view.position + ahead
    buffer = DepthBuffer(view)
    buffer.box(centre, half, yaw, MATERIALS, inside=inside)
    points, normals, places, materials = hits(buffer)
    assert len(points) == 1200 if inside else len(points) > 50
    local, facing = (points - centre) @ turn(yaw), normals @ turn(yaw)
    axis = np.abs(facing).argmax(1)
    count = np.arange(len(axis))
    assert (np.abs(local) <= half + 1e-3).all()
    side = np.sign(local[count, axis])
    assert np.allclose(np.abs(local[count, axis]), half[axis], atol=1e-3)
    assert np.allclose(facing[count, axis], -side if inside else side, atol=1e-4)
    assert (materials == 10 + 2 * axis + (side > 0)).all()
    others = np.array([[2, 1], [0, 2], [0, 1]])[axis]
    assert np.allclose(places, local[count[:, None], others], atol=1e-3)


@pytest.mark.parametrize("level", [1.2, -0.8])
def test_the_ground_is_level_and_ends_at_its_reach(level: float) -> None:
    view = View(
        intrinsics=np.array([[30.0, 0, 19.5], [0, 30.0, 14.5], [0, 0, 1]]),
        rotation=turn(0.2, 0.05, 0.1),
        position=np.array([0.5, 0.1, -2.0]),
        height=30,
        width=40,
    )
    buffer = DepthBuffer(view)
    buffer.ground(level, 7, reach=6.0)
    points, normals, places, materials = hits(buffer)
    assert np.allclose(points[:, 1], level, atol=1e-4)
    assert np.allclose(normals, [0, -1 if level > 0.1 else 1, 0])
    assert np.allclose(places, points[:, [0, 2]], atol=1e-4)
    assert (materials == 7).all()
    assert 5 < buffer.depth[np.isfinite(buffer.depth)].max() < 6
    far = DepthBuffer(view)
    far.ground(level, 7, reach=1e9)
    assert np.isfinite(far.depth).sum() > len(points)


def test_turns_are_those_they_are_called() -> None:
    """Yaw looks right, pitch up (y points down), roll clockwise: the camera's right goes down."""
    angle = 0.3
    ahead, right = np.array([0, 0, 1.0]), np.array([1.0, 0, 0])
    np.testing.assert_allclose(turn(yaw=angle) @ ahead, [math.sin(angle), 0, math.cos(angle)])
    np.testing.assert_allclose(turn(pitch=angle) @ ahead, [0, -math.sin(angle), math.cos(angle)])
    np.testing.assert_allclose(turn(roll=angle) @ right, [math.cos(angle), math.sin(angle), 0])
    both = turn(0.4, -0.2, 0.7)
    np.testing.assert_allclose(both @ both.T, np.eye(3), atol=1e-12)
    np.testing.assert_allclose(both, turn(yaw=0.4) @ turn(pitch=-0.2) @ turn(roll=0.7))


def test_the_nearest_wins_in_any_order() -> None:
    rng = np.random.default_rng(1)
    view = view_of(rng)
    near, far = (view.position + view.rotation @ np.array([0, 0, z]) for z in (2.0, 4.0))
    one, other = DepthBuffer(view), DepthBuffer(view)
    one.sphere(near, 0.5, 1)
    one.sphere(far, 1.5, 2)
    other.sphere(far, 1.5, 2)
    other.sphere(near, 0.5, 1)
    np.testing.assert_array_equal(one.depth, other.depth)
    np.testing.assert_array_equal(one.material, other.material)
    assert {1, 2} <= set(np.unique(one.material))


def test_of_two_surfaces_at_one_depth_the_first_stays() -> None:
    view = view_of(np.random.default_rng(3))
    buffer, alone = DepthBuffer(view), DepthBuffer(view)
    for which in (buffer, alone):
        which.ground(1.5, 1, 40.0)
        which.sphere(view.position + view.rotation @ np.array([0.0, 0.0, 3.0]), 0.6, 2)
    buffer.ground(1.5, 7, 40.0)
    buffer.sphere(view.position + view.rotation @ np.array([0.0, 0.0, 3.0]), 0.6, 8)
    assert {1, 2} <= set(np.unique(alone.material))
    np.testing.assert_array_equal(buffer.material, alone.material)
