"""Sensors against geometry that can be written down, and against each other's promises."""

from __future__ import annotations

import json
import math
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

pytest.importorskip("embreex")
pytest.importorskip("numba")

from gbpn.datasets import MixedDataset
from gbpn.errors import InputError
from gbpn.worlds.scene import Light, Mesh, Surface, World, joined
from gbpn.worlds.sensing.laser import Laser
from gbpn.worlds.sensing.rig import SENSORS, measure, stored
from gbpn.worlds.sensing.sight import Sight
from gbpn.worlds.sensing.solid_state import SHAPES, solid_state
from gbpn.worlds.sensing.spinning import elevations, spinning
from gbpn.worlds.sensing.stereo import Matching, stereo
from gbpn.worlds.sensing.structured_light import filled, kinect, structured_light
from gbpn.worlds.sensing.time_of_flight import time_of_flight
from gbpn.worlds.sensing.zones import zones
from gbpn.worlds.shapes import quad, sphere
from gbpn.worlds.surfaces import Skin
from gbpn.worlds.tracing import Tracer
from gbpn.worlds.viewpoint import Viewpoint, looking

HEIGHT, WIDTH, FOCAL = 96, 128, 110.0
WALL, FLOOR = 4.0, 1.2
EXACT = Laser.exact()
PERFECT = Matching(step=0, noise=0, window=0)


def sight_of(*meshes: Mesh, materials: tuple[Surface, ...] = (Surface(),), textured: bool = True) -> Sight:
    """A camera at the origin that looks along +x with z up."""
    scene = World(
        mesh=joined(meshes),
        materials=materials,
        textures=(),
        lights=(Light.sky((1, 1, 1), (1, 1, 1), (0.3, 0.3, 0.3)),),
    )
    matrix = np.array([[FOCAL, 0, (WIDTH - 1) / 2], [0, FOCAL, (HEIGHT - 1) / 2], [0, 0, 1]])
    view = Viewpoint(intrinsics=matrix, pose=looking((0, 0, 0), 0.0), width=WIDTH, height=HEIGHT)
    rng = np.random.default_rng(1)
    image = rng.integers(0, 255, (HEIGHT, WIDTH, 3)) if textured else np.full((HEIGHT, WIDTH, 3), 99)
    return Sight(tracer=Tracer(scene), skin=Skin(scene), view=view, image=image.astype(np.uint8))


def wall(distance: float = WALL, half: float = 40.0, material: int = 0) -> Mesh:
    d, h = distance, half
    return quad((d, h, -h), (d, -h, -h), (d, -h, h), (d, h, h), material, "wall")


def floor() -> Mesh:
    z = -FLOOR
    return quad((-40, -40, z), (40, -40, z), (40, 40, z), (-40, 40, z), 0, "floor")


def post(material: int = 0) -> Mesh:
    """A board 2 m away, 30 cm to each side of the middle."""
    return quad((2, 0.3, -9), (2, -0.3, -9), (2, -0.3, 9), (2, 0.3, 9), material, "post")


def rng() -> np.random.Generator:
    return np.random.default_rng(7)


@pytest.mark.parametrize("lines", [8, 16, 32, 64, 128])
def test_a_lidar_measures_a_plane_to_a_tenth_of_a_millimetre(lines: int) -> None:
    place = (0.1, -0.25, -0.3)
    reading = spinning(sight_of(floor()), rng(), lines=lines, place=place, laser=EXACT)
    assert reading.points is not None
    assert len(reading.points) > 100
    near = reading.points[np.linalg.norm(reading.points, axis=1) < 30]
    assert len(near) > 100
    assert np.abs(near[:, 1] - FLOOR).max() < 1e-4  # y points down


def test_a_lidar_measures_a_sphere_to_a_tenth_of_a_millimetre() -> None:
    reading = spinning(
        sight_of(sphere((5, 0, 0), 1.0, 0, sides=900)), rng(), lines=128, place=(0.2, -0.3, 0), laser=EXACT
    )
    assert reading.points is not None
    assert len(reading.points) > 1000
    away = np.linalg.norm(reading.points - [0, 0, 5], axis=1)
    assert np.abs(away - 1).max() < 1e-4


@pytest.mark.parametrize("shape", SHAPES)
def test_solid_state_lidars_measure_a_plane(shape: str) -> None:
    reading = solid_state(sight_of(wall()), rng(), shape=shape, shots=900, laser=EXACT)
    assert reading.points is not None
    assert len(reading.points) >= 800
    assert np.abs(reading.points[:, 2] - WALL).max() < 1e-4


def test_rings_are_the_lines_of_the_scanner() -> None:
    """Every point of a ring has its line's elevation, seen from the scanner."""
    place = np.array([0.1, -0.25, -0.3])
    sight = sight_of(wall(), floor())
    reading = spinning(sight, rng(), place=(0.1, -0.25, -0.3), laser=EXACT, jitter=0)
    assert reading.ring is not None
    assert np.array_equal(reading.ring > 0, reading.depth > 0)
    row, column = np.nonzero(reading.ring)
    depth = reading.depth[row, column].astype(float)
    points = np.stack([column, row, np.ones(len(row))], 1) @ np.linalg.inv(sight.view.intrinsics).T
    seen = points * depth[:, None] - place
    angle = np.arctan2(-seen[:, 1], np.hypot(seen[:, 0], seen[:, 2]))
    half_a_pixel = 0.75 / FOCAL
    assert np.abs(angle - elevations(64)[reading.ring[row, column] - 1]).max() < half_a_pixel * 1.3


def test_points_lie_on_the_exact_depth_except_where_the_scanner_sees_past_an_edge() -> None:
    sight = sight_of(wall(), post())
    shifted = spinning(sight, rng(), place=(0.3, 0, 0), laser=EXACT)
    there = shifted.depth > 0
    off = there & (np.abs(shifted.depth - sight.depth) > 1e-3)
    assert off.any()
    # From the right it sees the wall behind the board's right edge: these pixels show the board.
    assert np.allclose(sight.depth[off], 2, atol=1e-4)
    assert np.allclose(shifted.depth[off], WALL, atol=1e-3)
    columns = np.nonzero(off)[1]
    edge = (WIDTH - 1) / 2 + FOCAL * 0.3 / 2
    assert columns.min() > (WIDTH - 1) / 2
    assert columns.max() <= edge + 1
    centred = spinning(sight, rng(), place=(0, 0, 0), laser=EXACT)
    there = centred.depth > 0
    both = np.isclose(sight.depth[there], centred.depth[there], atol=1e-3)
    assert both.mean() > 0.98  # half a pixel beside an edge may round to the other side


def missing(reading_depth: np.ndarray, sight: Sight) -> np.ndarray:
    """Columns of the wall without depth in the middle row."""
    row = HEIGHT // 2
    return np.flatnonzero((reading_depth[row] == 0) & (sight.depth[row] > 3))


@pytest.mark.parametrize("side", [1.0, -1.0])
def test_the_shadow_of_stereo_lies_away_from_the_second_camera(side: float) -> None:
    sight = sight_of(wall(), post())
    reading = stereo(sight, rng(), baseline=0.12 * side, matching=PERFECT, texture=0)
    left_edge, right_edge = (WIDTH - 1) / 2 - FOCAL * 0.15, (WIDTH - 1) / 2 + FOCAL * 0.15
    gone = missing(reading.depth, sight)
    gone = gone[(gone > 8) & (gone < WIDTH - 8)]  # the picture's edge has no partner
    width = FOCAL * 0.12 * (1 / 2 - 1 / WALL)
    if side > 0:
        assert gone.min() >= left_edge - width - 2
        assert gone.max() <= left_edge + 1
    else:
        assert gone.max() <= right_edge + width + 2
        assert gone.min() >= right_edge - 1
    assert abs(len(gone) - width) <= 2
    there = reading.depth > 0
    assert np.abs(reading.depth - sight.depth)[there].max() < 1e-4


def test_stereo_needs_contrast() -> None:
    reading = stereo(sight_of(wall(), textured=False), rng())
    assert not reading.depth.any()


def test_structured_light_shadows_on_the_side_away_from_the_projector() -> None:
    sight = sight_of(wall(), post())
    reading = structured_light(sight, rng(), projector=-0.2, camera=0.0, matching=PERFECT)
    gone = missing(reading.depth, sight)
    gone = gone[(gone > 8) & (gone < WIDTH - 8)]
    right_edge = (WIDTH - 1) / 2 + FOCAL * 0.15
    width = FOCAL * 0.2 * (1 / 2 - 1 / WALL)
    near = gone[np.abs(gone - right_edge) < width + 3]
    assert abs(len(near) - width) <= 3
    left_edge = (WIDTH - 1) / 2 - FOCAL * 0.15
    assert len(gone[np.abs(gone - left_edge) < width]) <= 2


def test_dark_glancing_and_mirroring_surfaces_are_holes() -> None:
    dark, mirror = Surface(colour=(0.004, 0.004, 0.004)), Surface(mirror=0.9, roughness=0.05)
    for make in (structured_light, time_of_flight):
        assert (make(sight_of(wall()), rng()).depth > 0).mean() > 0.9
        for bad in (dark, mirror):
            assert (make(sight_of(wall(), materials=(bad,)), rng()).depth > 0).mean() < 0.1
    far_floor = structured_light(sight_of(floor()), rng()).depth
    glancing = sight_of(floor()).surfaces.cosine.reshape(HEIGHT, WIDTH) < 0.06
    assert glancing.any()
    assert not far_floor[glancing].any()


def test_a_dark_wall_returns_fewer_shots_the_farther_it_is() -> None:
    dark = (Surface(colour=(0.1, 0.1, 0.1)),)
    readings = [spinning(sight_of(wall(d, 200), materials=dark), rng()) for d in (10, 55, 100)]
    seen = [reading.points for reading in readings if reading.points is not None]
    shots = [int((np.abs(points[:, :2]) < 0.1 * points[:, 2:]).all(axis=1).sum()) for points in seen]
    assert abs(shots[1] / shots[0] - 0.5) < 0.1
    assert shots[2] < 0.5 * shots[1]


def test_a_mirror_shows_what_it_reflects_behind_itself() -> None:
    behind = quad((-3, -40, -40), (-3, 40, -40), (-3, 40, 40), (-3, -40, 40), 1, "behind")
    sight = sight_of(wall(), behind, materials=(Surface(mirror=1.0), Surface()))
    reading = spinning(sight, rng(), lines=16, place=(0, 0, 0), laser=EXACT)
    assert reading.points is not None
    assert len(reading.points)
    assert np.allclose(reading.points[:, 2], WALL + WALL + 3, atol=4e-3)


def test_kinect_is_structured_light_with_every_hole_filled_from_its_neighbours() -> None:
    sight = sight_of(wall(), post(), textured=False)
    raw = structured_light(sight, rng())
    full = kinect(sight, rng())
    assert (raw.depth == 0).any()
    assert (full.depth > 0).all()
    kept = raw.depth > 0
    assert np.array_equal(full.depth[kept], raw.depth[kept])
    assert full.depth[~kept].min() >= raw.depth[kept].min() - 1e-4
    assert full.depth[~kept].max() <= raw.depth[kept].max() + 1e-4


def test_filling_follows_colour_and_leaves_what_is_known() -> None:
    """Left half dark and 1 m away, right half light and 3 m: a hole across both is split at the colour."""
    depth = np.where(np.arange(40) < 20, 1.0, 3.0)[None].repeat(30, 0).astype(np.float32)
    image = np.where(np.arange(40) < 20, 20, 220).astype(np.uint8)[None, :, None].repeat(30, 0).repeat(3, 2)
    holed = depth.copy()
    holed[10:20, 12:28] = 0
    assert np.abs(filled(holed, image) - depth).max() < 0.1
    nothing = np.zeros_like(depth)
    assert np.array_equal(filled(nothing, image), nothing)
    assert np.array_equal(filled(depth, image), depth)


def test_disparities_come_in_steps_that_grow_with_the_square_of_the_depth() -> None:
    sight = sight_of(floor())
    steps = Matching(step=1 / 8, noise=0, window=0)
    depth = stereo(sight, rng(), baseline=0.1, matching=steps, texture=0).depth
    there = depth > 0
    multiples = FOCAL * 0.1 / depth[there] * 8
    assert np.abs(multiples - np.rint(multiples)).max() < 1e-3
    error = np.abs(depth - sight.depth)[there]
    assert (error <= sight.depth[there] ** 2 / (FOCAL * 0.1) / 16 * 1.3 + 1e-4).all()
    assert error.max() > 0.05


def test_a_zone_answers_with_the_strongest_of_its_targets() -> None:
    reading = zones(sight_of(wall(3.0)), rng(), noise=0)
    assert reading.points is not None
    assert len(reading.points) == 64
    assert np.abs(reading.points[:, 2] - 3).max() < 1e-4
    split = zones(sight_of(wall(3.0), post()), rng(), noise=0)
    assert split.points is not None
    # One of the two, never between.
    assert (np.isclose(split.points[:, 2], 2) | np.isclose(split.points[:, 2], 3)).all()
    assert not len(zones(sight_of(wall(9.0)), rng()).points)


def test_pixels_fly_between_two_depths_at_edges_only() -> None:
    sight = sight_of(wall(), post())
    depth = time_of_flight(sight, rng(), noise=0).depth
    between = (depth > 2.2) & (depth < WALL - 0.2)
    columns = np.unique(np.nonzero(between)[1])
    edges = (WIDTH - 1) / 2 + np.array([-1, 1]) * FOCAL * 0.15
    assert len(columns)
    assert np.abs(columns[:, None] - edges).min(axis=1).max() < 2


@pytest.mark.parametrize("name", SENSORS)
def test_a_reading_depends_on_seed_frame_and_name_only(name: str) -> None:
    sight = sight_of(wall(3.0), floor(), post())
    alone = measure(sight, [name], 3, 11)[name]
    among = measure(sight_of(wall(3.0), floor(), post()), ["zones", name], 3, 11)[name]
    assert alone.depth.any()
    assert np.array_equal(alone.depth, among.depth)
    assert not np.array_equal(alone.depth, measure(sight, [name], 3, 12)[name].depth)
    assert not np.array_equal(alone.depth, measure(sight, [name], 4, 11)[name].depth)
    for folder, picture in stored({name: alone}, 256.0).items():
        if folder != "ring":
            assert np.abs(picture / 256 - alone.depth).max() <= 0.5 / 256 + 1e-6


def test_unknown_sensors_are_refused() -> None:
    with pytest.raises(InputError, match="choose from lidar_64"):
        measure(sight_of(wall()), ["sonar"], 0, 0)
    with pytest.raises(InputError, match="1 to 128"):
        elevations(200)
    with pytest.raises(InputError, match="rosette"):
        solid_state(sight_of(wall()), rng(), shape="spiral")


def test_a_scanner_spins_over_the_whole_picture() -> None:
    reading = spinning(sight_of(wall()), rng(), laser=EXACT, place=(0, 0, 0))
    columns = np.unique(np.nonzero(reading.depth)[1])
    assert len(columns) == WIDTH
    assert math.isclose(float(reading.depth.max()), WALL, abs_tol=1e-3)


def test_every_sensor_is_read_back_by_the_pool(tmp_path: Path) -> None:
    """What is stored beside the exact depth comes back as the measurements of a sample, to half a step."""
    sight = sight_of(wall(3.0), floor(), post())
    readings = measure(sight, list(SENSORS), 1, 0)
    scene = tmp_path / "own" / "scene"
    pictures: dict[str, np.ndarray] = {"depth": np.rint(sight.depth * 256).astype(np.uint16)}
    pictures |= stored(readings, 256.0)
    for folder, values in pictures.items():
        (scene / folder).mkdir(parents=True)
        Image.fromarray(values).save(scene / folder / "0000.png")
    (scene / "color").mkdir()
    assert sight.image is not None
    Image.fromarray(sight.image).save(scene / "color" / "0000.jpg")
    meta = {"K": sight.view.intrinsics.tolist(), "depth_scale": 256.0, "role": "train"}
    (scene / "meta.json").write_text(json.dumps(meta))
    for name, reading in readings.items():
        folder = "lidar_raw" if name == "lidar_64" else name
        sample = MixedDataset(tmp_path, "all", sensors=folder).frame(0)
        assert np.abs(sample.sparse[0].numpy() - reading.depth).max() <= 0.5 / 256 + 1e-5
        assert sample.target is not None
        assert np.abs(sample.target[0].numpy() - sight.depth).max() <= 0.5 / 256 + 1e-5
    rings = readings["lidar_64"].ring
    assert rings is not None
    eight = MixedDataset(tmp_path, "all", sensors="lidar_raw", lines=8).frame(0).sparse[0].numpy() > 0
    assert np.array_equal(eight, (rings > 0) & ((rings - 1) % 8 == 0))
    kinect = MixedDataset(tmp_path, "all", target="kinect").frame(0)
    assert kinect.target is not None
    assert np.abs(kinect.target[0].numpy() - readings["kinect"].depth).max() <= 0.5 / 256 + 1e-5
