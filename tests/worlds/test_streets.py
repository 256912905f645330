"""Streets: the same from their number, sound triangles, honest depth, and shapes that measure what they
say."""

from __future__ import annotations

import hashlib
import math
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("embreex")
pytest.importorskip("numba")

from gbpn.errors import DatasetError
from gbpn.worlds.assembly import Assembly
from gbpn.worlds.painting import SIZE
from gbpn.worlds.scene import Mesh, SceneBuilder
from gbpn.worlds.sensing.rig import measure
from gbpn.worlds.sensing.sight import Sight
from gbpn.worlds.streets.cars import KINDS, car
from gbpn.worlds.streets.course import Course
from gbpn.worlds.streets.daylight import WEATHERS, daylight, hazed
from gbpn.worlds.streets.figures import cyclist, person
from gbpn.worlds.streets.furniture import FENCES, fence
from gbpn.worlds.streets.houses import build as build_house
from gbpn.worlds.streets.houses import drawn
from gbpn.worlds.streets.palette import Palette
from gbpn.worlds.streets.plants import tree
from gbpn.worlds.streets.street import Street, build
from gbpn.worlds.streets.textures import COUNTS, TILES, pictures
from gbpn.worlds.streets.viewing import car_intrinsics, viewpoint
from gbpn.worlds.surfaces import Skin
from gbpn.worlds.tracing import Tracer


def digest(street: Street) -> str:
    mesh = street.scene.mesh
    sums = hashlib.sha256()
    arrays: tuple[np.ndarray, ...] = (mesh.corners, mesh.normals, mesh.coordinates, mesh.material, mesh.thing)
    for values in (*arrays, *street.scene.textures):
        sums.update(values.tobytes())
    sums.update(repr((street.scene.materials, street.scene.lights, mesh.names)).encode())
    return sums.hexdigest()


@pytest.fixture(scope="module")
def streets() -> list[Street]:
    return [build(5, number) for number in range(4)]


def test_a_street_depends_on_its_seed_and_number_only(streets: list[Street]) -> None:
    """Also in another process, where strings hash otherwise."""
    code = "from test_streets import build, digest; print(digest(build(5, 2)))"
    here = Path(__file__).parent
    other = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=here, check=True)
    assert other.stdout.strip() == digest(streets[2])
    assert len({digest(street) for street in streets}) == len(streets)
    assert digest(build(6, 2)) != digest(streets[2])


def test_triangles_are_sound(streets: list[Street]) -> None:
    for street in streets:
        mesh = street.scene.mesh
        assert np.isfinite(mesh.corners).all()
        assert np.isfinite(mesh.coordinates).all()
        length = np.linalg.norm(mesh.normals, axis=2)
        assert np.abs(length - 1).max() < 1e-3
        assert mesh.material.min() >= 0
        assert mesh.material.max() < len(street.scene.materials)
        assert mesh.thing.max() < len(mesh.names) == len(mesh.credits)
        used = {street.scene.materials[m].texture for m in np.unique(mesh.material)} - {None}
        assert all(number < len(street.scene.textures) for number in used if number is not None)
        assert {"road", "house", "car"} <= set(mesh.names)


def test_depth_is_exact_reaches_far_and_the_sky_has_none(streets: list[Street]) -> None:
    farthest, sky = 0.0, 0
    for number, street in enumerate(streets):
        tracer = Tracer(street.scene)
        view = viewpoint(street, tracer, np.random.default_rng(number), 160, 64)
        hits = tracer.cast(*view.rays())
        assert hits.found.mean() > 0.4
        farthest = max(farthest, float(hits.distance[hits.found].max()))
        sky += int((~hits.found).sum())
        down = tracer.cast(view.pose[None, :3, 3].astype(np.float32), np.array([[0, 0, -1]], np.float32))
        assert 0.9 < down.distance[0] < 1.9  # eyes of a driver or of somebody on foot
    assert farthest > 80
    assert sky > 0


def test_a_level_road_is_a_plane_to_a_tenth_of_a_millimetre() -> None:
    """The course of a street without bends and hills, its depth against the camera's height."""
    from gbpn.worlds.streets.ground import ribbon
    from gbpn.worlds.viewpoint import Viewpoint, looking

    builder, into = SceneBuilder(), Assembly()
    course = Course(np.random.default_rng(0), bend=0.0, hill=0.0)
    grey = Palette(builder, np.random.default_rng(0)).paint((0.2, 0.2, 0.2))
    ribbon(into, course, (-10, 200), (-30, 30), (0, 0), grey)
    builder.add(into.mesh())
    height, focal = 1.65, 300.0
    matrix = np.array([[focal, 0, 79.5], [0, focal, 31.5], [0, 0, 1]])
    view = Viewpoint(intrinsics=matrix, pose=looking((0, 0, height), 0.0), width=160, height=64)
    distance = Tracer(builder.build()).cast(*view.rays()).distance.reshape(64, 160)
    rows = np.arange(48, 64)
    wanted = height * focal / (rows - 31.5)
    assert np.abs(distance[rows] - wanted[:, None]).max() < 1e-4


def test_lidar_points_lie_on_the_exact_depth_except_behind_edges(streets: list[Street]) -> None:
    street = streets[0]
    tracer = Tracer(street.scene)
    view = viewpoint(street, tracer, np.random.default_rng(0), 310, 94)
    sight = Sight(tracer=tracer, skin=Skin(street.scene), view=view)
    reading = measure(sight, ["lidar_64"], 0, 0)["lidar_64"]
    assert reading.ring is not None
    there = (reading.depth > 0) & (sight.depth > 0)
    assert there.sum() > 1500
    off = np.abs(reading.depth - sight.depth) / np.maximum(sight.depth, 1)
    assert (off[there] < 0.05).mean() > 0.85
    # Those that are off lie beside an edge: some pixel around has about their depth.
    far = np.argwhere(there & (off > 0.3))
    explained = 0
    for row, column in far:
        around = sight.depth[max(row - 4, 0) : row + 5, max(column - 6, 0) : column + 7]
        explained += bool(
            (np.abs(around - reading.depth[row, column]) < 0.15 * reading.depth[row, column]).any()
        )
    assert explained >= 0.6 * len(far)


def area(mesh: Mesh) -> float:
    edges = mesh.corners[:, 1:] - mesh.corners[:, :1]
    return float(np.linalg.norm(np.cross(edges[:, 0], edges[:, 1]), axis=1).sum() / 2)


def test_shapes_have_their_areas() -> None:
    def made(call: Callable[[Assembly], None]) -> float:
        into = Assembly()
        call(into)
        return area(into.mesh())

    box = made(lambda a: a.boxes([[1, 2, 3]], [[0.5, 1, 1.5]], 0, turn=0.7))
    assert math.isclose(box, 2 * (1 * 2 + 2 * 3 + 1 * 3), rel_tol=1e-5)
    tube = made(lambda a: a.tubes(np.array([[[0, 0, 0], [0, 3, 4.0]]]), 0.2, 0, sides=64))
    assert math.isclose(tube, 2 * math.pi * 0.2 * 5, rel_tol=2e-3)
    disc = made(lambda a: a.discs(np.zeros((1, 3)), (0, 1, 0), 2.0, 0, sides=128))
    assert math.isclose(disc, math.pi * 4, rel_tol=2e-3)
    ball = made(lambda a: a.ellipsoids([[0, 0, 0]], [[1, 1, 1]], 0, detail=48))
    assert math.isclose(ball, 4 * math.pi, rel_tol=5e-3)


def test_a_copy_is_moved_turned_scaled_and_recoloured() -> None:
    part, into = Assembly(), Assembly()
    part.boxes([[1, 0, 0]], [[0.5, 0.1, 0.2]], 3)
    into.next_thing("copy")
    into.add(part, (10, 20, 30), math.pi / 2, 2.0, recolour={3: 5})
    mesh = into.mesh()
    centre = (mesh.corners.reshape(-1, 3).min(0) + mesh.corners.reshape(-1, 3).max(0)) / 2
    assert np.allclose(centre, [10, 22, 30], atol=1e-4)
    assert set(mesh.material) == {5}
    assert set(mesh.thing) == {1}
    assert mesh.names == ("street", "copy")


def test_places_on_a_course_are_as_far_apart_as_their_numbers() -> None:
    course = Course(np.random.default_rng(3), bend=0.006, hill=0.0)
    s = np.arange(0, 100, 1.0)
    along = np.linalg.norm(np.diff(course.place(s, 0.0), axis=0), axis=1)
    assert np.abs(along - 1).max() < 0.01
    across = course.place(s, 3.0) - course.place(s, -3.0)
    assert np.abs(np.linalg.norm(across, axis=1) - 6).max() < 1e-6
    near, apart = course.nearest(*course.place(np.array([40.0]), 2.0)[:, :2].T)
    assert abs(near[0] - 40) <= 4
    assert apart[0] < 4


def fresh() -> tuple[Palette, np.random.Generator]:
    rng = np.random.default_rng(2)
    return Palette(SceneBuilder(), rng), rng


def extent(part: Assembly) -> np.ndarray:
    corners = part.mesh().corners.reshape(-1, 3)
    return np.asarray(corners.max(axis=0) - corners.min(axis=0))


@pytest.mark.parametrize("kind", KINDS)
def test_cars_have_the_size_of_their_make(kind: str) -> None:
    palette, rng = fresh()
    part = car(palette, rng, kind)
    length, width, height = extent(part)
    body = KINDS[kind]
    assert body.length[0] <= length <= body.length[1] + 0.15
    assert body.width[0] <= width <= body.width[1] + 0.4  # with its mirrors
    assert body.height[0] - 0.02 <= height <= body.height[1] + 0.05
    assert part.mesh().corners[..., 2].min() > -0.05  # on its wheels


def test_people_and_trees_have_their_sizes() -> None:
    palette, rng = fresh()
    assert 1.45 < extent(person(palette, rng, pose="stand"))[2] < 2.1
    assert 1.6 < extent(cyclist(palette, rng))[2] < 2.0
    for season in ("summer", "autumn", "winter"):
        assert 4 < extent(tree(palette, rng, season=season))[2] < 18


@pytest.mark.parametrize("kind", FENCES)
def test_fences_are_as_long_as_wanted(kind: str) -> None:
    palette, rng = fresh()
    assert abs(extent(fence(kind, 7.0, palette, rng))[0] - 7) < 0.4


@pytest.mark.parametrize("style", ["terrace", "suburb", "village", "avenue", "works"])
def test_houses_stand_behind_their_front_and_are_closed_to_the_street(style: str) -> None:
    """Every ray towards the façade meets the house: openings are filled."""
    palette, rng = fresh()
    house = drawn(rng, style, 9.0)
    builder = palette.builder
    builder.add(build_house(house, palette, rng).mesh())
    tracer = Tracer(builder.build())
    x, z = np.meshgrid(np.linspace(-4.4, 4.4, 60), np.linspace(0.1, house.height - 0.1, 60))
    origins = np.stack([x.ravel(), np.full(x.size, -30.0), z.ravel()], 1).astype(np.float32)
    directions = np.broadcast_to(np.array([0, 1, 0], np.float32), origins.shape)
    hits = tracer.cast(origins, np.ascontiguousarray(directions))
    assert hits.found.all()
    assert hits.distance.max() < 30.6


@pytest.mark.parametrize("weather", WEATHERS)
def test_the_sky_is_brightest_where_the_sun_stands(weather: str) -> None:
    day = daylight(np.random.default_rng(4), weather)
    height, width = day.panorama.shape[:2]
    upper = day.panorama[: height // 2].astype(float).mean()
    assert upper > day.panorama[height // 2 + 8 :].astype(float).mean()  # the ground is duller
    assert (day.sun is None) == (weather == "overcast") or weather == "dusk"
    if weather == "sun" and day.sun is not None:
        x, y, z = day.sun.direction
        row = int((0.5 - math.asin(z) / math.pi) * height)
        column = int(math.atan2(y, x) / (2 * math.pi) % 1 * width)
        assert day.panorama[row, column].mean() > day.panorama[: height // 2].mean() + 40


def test_haze_takes_the_far_and_leaves_the_sky() -> None:
    day = daylight(np.random.default_rng(1), "overcast")
    radiance = np.zeros((1, 3, 3), np.float32)
    depth = np.array([[1.0, 1e6, 0.0]], np.float32)
    out = hazed(radiance, depth, day)
    assert out[0, 0].max() < 0.01
    assert np.allclose(out[0, 1], day.haze_colour, rtol=1e-4)
    assert not out[0, 2].any()


def test_every_texture_is_there_and_walls_repeat_without_a_seam() -> None:
    painted, places = pictures()
    assert painted.shape == (sum(COUNTS.values()), SIZE, SIZE, 3)
    assert set(TILES) <= set(places) == set(COUNTS)
    for kind in ("asphalt", "plaster", "grass", "concrete", "leaves"):
        for number in places[kind]:
            picture = painted[number].astype(float)
            inside = np.abs(np.diff(picture, axis=1)).mean()
            seam = np.abs(picture[:, 0] - picture[:, -1]).mean()
            assert seam < 2 * inside + 2


def test_a_cars_camera_is_that_of_the_recordings() -> None:
    matrix = car_intrinsics(1242, 375)
    assert np.allclose(matrix, [[721.5, 0, 609.6], [0, 721.5, 172.9], [0, 0, 1]], atol=1.0)


def test_people_are_models_of_the_stock_with_their_credits() -> None:
    """Where the furniture libraries are installed; restricted to CC0 there is nobody, and figures of ours."""
    from gbpn.worlds.assets import Stock
    from gbpn.worlds.streets.figures import modelled, standing_people

    try:
        stock = Stock()
    except DatasetError:
        pytest.skip("sweethome3d-furniture is not installed")
    people = standing_people(stock)
    assert people
    mesh = modelled(people[0], SceneBuilder())
    across, deep, tall = np.ptp(mesh.corners.reshape(-1, 3), axis=0)
    assert 1.4 < tall < 2.0
    assert max(across, deep) < 1.0
    assert not standing_people(Stock(licence="cc0"))
    scene = build(5, 3, stock).scene
    assert {credit.licence for credit in scene.credits()} == {"CC BY 3.0 US"}
    assert not build(5, 3).scene.credits()
