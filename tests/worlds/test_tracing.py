"""Depth against analytic answers, the camera against the loaders' convention, glass and mirrors with both
depths."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from numpy.testing import assert_allclose

pytest.importorskip("embreex")
pytest.importorskip("numba")

import itertools

from gbpn.camera import pinhole
from gbpn.errors import InputError
from gbpn.worlds import shapes
from gbpn.worlds.denoising import without_sparks
from gbpn.worlds.scene import Light, Mesh, SceneBuilder, Surface
from gbpn.worlds.shading import Drawing, Shader
from gbpn.worlds.tracing import Tracer
from gbpn.worlds.viewpoint import Viewpoint, drawn_intrinsics, handheld, looking

WIDTH, HEIGHT = 64, 48


def viewpoint(pose: np.ndarray, focal: float = 50.0) -> Viewpoint:
    matrix = np.array([[focal, 0, 30.0], [0, focal + 2, 22.5], [0, 0, 1]])
    return Viewpoint(intrinsics=matrix, pose=pose, width=WIDTH, height=HEIGHT)


def drawn(*meshes: Mesh, builder: SceneBuilder, view: Viewpoint) -> Drawing:
    builder.add(*meshes)
    builder.lights.append(Light.area((-1, -1, 3), (0, 1, 0), (1, 0, 0), (9, 9, 9)))
    return Shader(Tracer(builder.build())).draw(view, seed=1)


def test_a_plane_has_its_depth() -> None:
    """A tilted plane n · p = c: planar depth c' / (n' · ray) with n', c' in camera coordinates."""
    builder = SceneBuilder()
    material = builder.material(Surface())
    floor = shapes.quad((-50, -50, 0), (50, -50, 0), (50, 50, 0), (-50, 50, 0), material)
    view = viewpoint(looking((1, 2, 1.5), yaw=0.7, pitch=-0.8, roll=0.2))
    picture = drawn(floor, builder=builder, view=view)
    rays = pinhole.rays(torch.from_numpy(view.intrinsics)[None], HEIGHT, WIDTH)[0].numpy()  # [3, H, W]
    upright = view.pose[:3, :3].T @ [0, 0, 1]
    assert_allclose(picture.depth, -1.5 / np.einsum("k,khw->hw", upright, rays), atol=1e-4)
    assert (picture.thing == 0).all()


def test_a_sphere_has_its_depth() -> None:
    builder = SceneBuilder()
    material = builder.material(Surface())
    centre, radius = np.array([3.0, 0.4, 1.2]), 0.7
    ball = shapes.sphere(centre, radius, material, sides=2000)
    view = viewpoint(looking((0, 0, 1), yaw=0.1, roll=-0.3))
    picture = drawn(ball, builder=builder, view=view)
    rays = pinhole.rays(torch.from_numpy(view.intrinsics)[None], HEIGHT, WIDTH)[0].numpy().reshape(3, -1)
    middle = view.pose[:3, :3].T @ (centre - view.pose[:3, 3])
    along, square = middle @ rays, (rays * rays).sum(axis=0)
    root = along**2 - square * (middle @ middle - radius**2)
    analytic = np.where(root > 0, (along - np.sqrt(np.maximum(root, 0))) / square, 0).reshape(HEIGHT, WIDTH)
    inside = root.reshape(HEIGHT, WIDTH) > 0.02
    assert inside.sum() > 200
    assert_allclose(picture.depth[inside], analytic[inside], atol=1e-4)
    outside = root.reshape(HEIGHT, WIDTH) < -0.02
    assert (picture.depth[outside] == 0).all()
    assert (picture.thing[outside] == -1).all()


def test_pictures_lie_as_loaders_think() -> None:
    """A small box at a known place is seen where pinhole projection says, x to the right and y down."""
    view = viewpoint(looking((0, 0, 1), yaw=0.0))
    for place in ((4.0, -1.0, 1.0), (4.0, 0.0, 1.8), (4.0, 1.2, 0.3)):
        builder = SceneBuilder()
        mark = shapes.box(place, (0.3, 0.3, 0.3), builder.material())
        picture = drawn(mark, builder=builder, view=view)
        y, x = (axis.mean() for axis in np.nonzero(picture.depth))
        seen = np.linalg.inv(view.pose) @ [*place, 1]
        expected = view.intrinsics @ (seen[:3] / seen[2])
        assert_allclose((x, y), expected[:2], atol=1.0)
    back = pinhole.points(
        torch.from_numpy(picture.depth)[None, None].double(), torch.from_numpy(view.intrinsics)[None]
    )
    places = back[0].numpy().reshape(3, -1)[:, picture.depth.ravel() > 0]
    world = view.pose[:3, :3] @ places + view.pose[:3, 3:]
    assert abs(world[0] - 4.0).max() < 0.16
    assert abs(world[1] - 1.2).max() < 0.16


def test_the_left_of_the_world_is_left_in_the_picture() -> None:
    pose = looking((0, 0, 0), yaw=0.0)
    assert_allclose(pose[:3, 0], [0, -1, 0], atol=1e-12)
    assert_allclose(pose[:3, 1], [0, 0, -1], atol=1e-12)
    assert_allclose(np.linalg.det(looking((1, 2, 3), 0.4, -0.2, 0.1)[:3, :3]), 1)


def wall_and(material: Surface) -> tuple[SceneBuilder, list[Mesh]]:
    """A wall 3 m ahead, and a rectangle of `material` 2 m ahead that covers the view's middle."""
    builder = SceneBuilder()
    wall, own = builder.material(Surface()), builder.material(material)
    return builder, [
        shapes.quad((3, 9, -9), (3, -9, -9), (3, -9, 9), (3, 9, 9), wall, "wall"),
        shapes.quad((-1, -9, -9), (-1, 9, -9), (-1, 9, 9), (-1, -9, 9), wall, "behind"),
        shapes.quad((2, 0.4, -0.4), (2, -0.4, -0.4), (2, -0.4, 0.4), (2, 0.4, 0.4), own, "pane"),
    ]


def test_glass_is_seen_at_its_surface_and_through() -> None:
    builder, meshes = wall_and(Surface(clear=0.9))
    picture = drawn(*meshes, builder=builder, view=viewpoint(looking((0, 0, 0), 0)))
    assert_allclose(picture.depth[22, 30], 2, atol=1e-5)
    assert_allclose(picture.through[22, 30], 3, atol=1e-5)
    assert_allclose(picture.depth[0, 0], picture.through[0, 0])


def test_a_mirror_throws_a_sensor_s_light_on() -> None:
    builder, meshes = wall_and(Surface(mirror=0.9, roughness=0.0))
    picture = drawn(*meshes, builder=builder, view=viewpoint(looking((0, 0, 0), 0)))
    assert_allclose(picture.depth[22, 30], 2, atol=1e-5)
    assert_allclose(picture.through[22, 30], 2 + 3, atol=0.01)  # to the mirror, and on to the wall behind


def test_glass_blocks_no_light_and_walls_do() -> None:
    for material, blocked in ((Surface(clear=0.9), False), (Surface(), True)):
        builder, meshes = wall_and(material)
        builder.add(*meshes)
        tracer = Tracer(builder.build())
        origins, directions = np.zeros((1, 3), np.float32), np.array([[1, 0, 0]], np.float32)
        assert tracer.blocked(origins, directions, 2.5).tolist() == [blocked]
        assert tracer.blocked(origins, directions, 1.5).tolist() == [False]
        assert tracer.cast(origins, directions).distance == pytest.approx(2)


def test_light_falls_off_and_shadows_are_dark() -> None:
    """Below a lamp the floor's light is the rectangle's form factor; under a table there is hardly any."""
    builder = SceneBuilder()
    white = builder.material(Surface(colour=(0.5, 0.5, 0.5)))
    builder.add(shapes.quad((-30, -30, 0), (30, -30, 0), (30, 30, 0), (-30, 30, 0), white))
    builder.add(shapes.box((0.9, 0, 0.5), (0.5, 0.5, 0.02), white))
    # A square of 0.2 m with radiance 50, 2 m up: E/π ≈ 50 · 0.04 / (π · 4).
    builder.lights.append(Light.area((-0.1, -0.1, 2), (0, 0.2, 0), (0.2, 0, 0), (50, 50, 50)))
    matrix = np.array([[200.0, 0, 160], [0, 200, 120], [0, 0, 1]])
    view = Viewpoint(
        intrinsics=matrix, pose=looking((1.2, -2.5, 1.2), np.pi / 2, -0.4), width=320, height=240
    )
    picture = Shader(Tracer(builder.build())).draw(view, seed=3)

    def at(place: tuple[float, float, float]) -> float:
        seen = np.linalg.inv(view.pose) @ [*place, 1]
        x, y = np.rint((view.intrinsics @ (seen[:3] / seen[2]))[:2]).astype(int)
        return float(picture.radiance[y, x].mean())

    assert at((0, 0, 0)) == pytest.approx(0.5 * 50 * 0.04 / (np.pi * 4), rel=0.08)
    assert at((1.2, 0, 0)) < 0.25 * at((1.2, 0.9, 0))


def test_a_wire_far_overhead_darkens_the_ground_a_little() -> None:
    """It hides a part of the sun's disc at most: a soft line, not dots of night."""
    builder = SceneBuilder()
    white = builder.material(Surface(colour=(0.5, 0.5, 0.5)))
    builder.add(shapes.quad((-60, -60, 0), (60, -60, 0), (60, 60, 0), (-60, 60, 0), white))
    builder.add(shapes.box((0, 0, 8.0), (0.02, 80.0, 0.02), white))
    # From 8 m the disc of half angle 0.006 is 0.096 m wide; 2 cm in its middle hide 26 % of it.
    builder.lights.append(Light.sun((0, 0, 1), (4, 4, 4), spread=0.006))
    view = viewpoint(looking((0, 0, 1.5), 0.0, -np.pi / 2), focal=400.0)
    picture = Shader(Tracer(builder.build())).draw(view, seed=3).radiance[:, :, 1]
    share = picture / (0.5 * 4 / np.pi)
    share = share if share.mean(axis=0).std() > share.mean(axis=1).std() else share.T
    along = share.mean(axis=0)  # across the wire's shadow
    assert along.max() == pytest.approx(1, rel=0.02)
    assert along.min() == pytest.approx(0.74, rel=0.12)
    assert share[:, along < 0.8].std() < 0.2  # one ray to a pixel alone: above 0.3


def test_sparks_go_and_lights_stay() -> None:
    light = np.full((8 * 9, 3), 0.1, np.float32)
    light[20] = 8.0  # alone
    light[[49, 50, 58, 59]] = 5.0  # a lamp of 2 x 2 pixels
    kept = light.copy()
    kept[20] = 0.1
    without_sparks(light, np.arange(8 * 9), 8, 9)
    assert_allclose(light, kept, rtol=1e-6)


def test_equal_seeds_give_equal_pictures() -> None:
    builder, meshes = wall_and(Surface(mirror=0.3, roughness=0.4))
    view = viewpoint(looking((0, 0, 0), 0.1))
    first = drawn(*meshes, builder=builder, view=view)
    shader = Shader(Tracer(builder.build()))
    second, other = shader.draw(view, seed=1), shader.draw(view, seed=2)
    assert (first.depth == second.depth).all()
    again = shader.draw(view, seed=1)
    assert (second.radiance == again.radiance).all()
    assert not (second.radiance == other.radiance).all()


def test_rays_of_unlike_shapes_are_refused() -> None:
    builder, meshes = wall_and(Surface())
    builder.add(*meshes)
    with pytest.raises(InputError, match=r"\[R, 3\]"):
        Tracer(builder.build()).cast(np.zeros((2, 3), np.float32), np.zeros((1, 3), np.float32))


def test_cameras_are_those_of_phones_and_nyuv2() -> None:
    rng = np.random.default_rng(0)
    focal = np.array([drawn_intrinsics(rng, 320, 240)[0, 0] for _ in range(300)])
    assert 60 < (abs(focal - 259.43) < 0.1).sum() < 140
    assert focal.min() > 155
    assert focal.max() < 350


def test_a_hand_held_sequence_moves_little() -> None:
    start = viewpoint(looking((1, 2, 1.5), 0.3))
    path = handheld(start, np.random.default_rng(0), 10)
    steps = [np.linalg.norm(b.pose[:3, 3] - a.pose[:3, 3]) for a, b in itertools.pairwise(path)]
    assert len(path) == 10
    assert 0 < max(steps) < 0.15
    for view in path:
        assert_allclose(view.pose[:3, :3] @ view.pose[:3, :3].T, np.eye(3), atol=1e-9)
