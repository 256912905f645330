"""Rooms: the same from their number, sound triangles, honest depth, credits of their models."""

from __future__ import annotations

import hashlib
import math
import subprocess
import sys
import zipfile
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("embreex")
pytest.importorskip("numba")

from gbpn.errors import DatasetError
from gbpn.worlds.assets import Stock
from gbpn.worlds.rooms import carpentry, upholstery
from gbpn.worlds.rooms.furnishing import KINDS
from gbpn.worlds.rooms.interior import Interior
from gbpn.worlds.rooms.layout import Layout
from gbpn.worlds.rooms.models import Models
from gbpn.worlds.rooms.room import Room, build
from gbpn.worlds.rooms.textures import COUNTS, TILES, picture
from gbpn.worlds.rooms.things import plant
from gbpn.worlds.rooms.viewing import viewpoint
from gbpn.worlds.scene import SceneBuilder
from gbpn.worlds.shading import Shader
from gbpn.worlds.tracing import Tracer

CUBE = """mtllib {0}.mtl
v 0 0 0\nv 1 0 0\nv 1 1 0\nv 0 1 0\nv 0 0 1\nv 1 0 1\nv 1 1 1\nv 0 1 1
usemtl wood
f 1 4 3 2\nf 5 6 7 8\nf 1 2 6 5
usemtl fabric
f 3 4 8 7\nf 2 3 7 6\nf 1 5 8 4
"""


def library(folder: Path, name: str, licence: str, entries: tuple[tuple[str, str, str], ...]) -> None:
    """A furniture library of cubes: (name, category, "width depth height" in centimetres) each."""
    lines = []
    with zipfile.ZipFile(folder / f"{name}.sh3f", "w") as file:
        file.writestr("LICENSE.TXT", licence)
        for number, (title, category, size) in enumerate(entries, 1):
            width, depth, high = size.split()
            file.writestr(f"m/{number}.obj", CUBE.format(number))
            file.writestr(f"m/{number}.mtl", "newmtl wood\nKd 0.5 0.3 0.2\nnewmtl fabric\nKd 0.3 0.4 0.5\n")
            lines += [
                f"name#{number}={title}",
                f"category#{number}={category}",
                f"model#{number}=/m/{number}.obj",
                f"width#{number}={width}",
                f"depth#{number}={depth}",
                f"height#{number}={high}",
                f"creator#{number}=Somebody {number}",
            ]
        file.writestr("PluginFurnitureCatalog.properties", "\n".join(lines))


@pytest.fixture(scope="module")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three models under two licences."""
    folder = tmp_path_factory.mktemp("furniture")
    library(
        folder,
        "Free",
        "Creative Commons Zero",
        (("Sofa", "Living room", "190 90 80"), ("Chair", "Living room", "45 45 90")),
    )
    library(
        folder,
        "Credited",
        "http://creativecommons.org/licenses/by/3.0/",
        (("Bookcase", "Living room", "90 30 180"),),
    )
    return folder


@pytest.fixture(autouse=True)
def own_cache(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GBPN_CACHE", str(tmp_path_factory.getbasetemp() / "cache"))


def digest(room: Room) -> str:
    mesh = room.scene.mesh
    sums = hashlib.sha256()
    arrays: tuple[np.ndarray, ...] = (
        mesh.corners,
        mesh.normals,
        mesh.coordinates,
        mesh.material,
        mesh.thing,
    )
    for values in (*arrays, *room.scene.textures):
        sums.update(np.ascontiguousarray(values).tobytes())
    sums.update(repr((room.scene.materials, room.scene.lights, mesh.names, room.kind)).encode())
    return sums.hexdigest()


@pytest.fixture(scope="module")
def rooms() -> list[Room]:
    """Furnished by ours alone."""
    return [build(5, number) for number in range(4)]


def test_a_room_depends_on_its_seed_and_number_only(rooms: list[Room], tiny: Path) -> None:
    """Also in another process, where strings hash otherwise, and with a stock of models."""
    code = (
        "from test_rooms import build, digest, Stock; "
        f"print(digest(build(5, 2)), digest(build(5, 3, Stock({str(tiny)!r}))))"
    )
    here = Path(__file__).parent
    other = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=here, check=True)
    assert other.stdout.split() == [digest(rooms[2]), digest(build(5, 3, Stock(tiny)))]
    assert len({digest(room) for room in rooms}) == len(rooms)
    assert digest(build(6, 2)) != digest(rooms[2])


def test_triangles_are_sound(rooms: list[Room]) -> None:
    for room in rooms:
        mesh = room.scene.mesh
        assert len(mesh) < 300_000
        assert np.isfinite(mesh.corners).all()
        assert np.isfinite(mesh.coordinates).all()
        assert np.abs(np.linalg.norm(mesh.normals, axis=2) - 1).max() < 1e-3
        assert mesh.material.min() >= 0
        assert mesh.material.max() < len(room.scene.materials)
        assert mesh.thing.max() < len(mesh.names) == len(mesh.credits)
        assert {"floor", "ceiling", "wall"} <= set(mesh.names)
        assert room.kind in KINDS


def test_pictures_have_light_and_exact_depth(rooms: list[Room]) -> None:
    """From each room's viewpoint something is lit, most has depth, and the floor lies where the pose says."""
    for number, room in enumerate(rooms):
        tracer = Tracer(room.scene)
        view = viewpoint(room, tracer, np.random.default_rng(number), 80, 60)
        x, y, z = view.pose[:3, 3]
        assert abs(x) < room.half[0]
        assert abs(y) < room.half[1]
        assert 0.8 <= z <= 1.9
        drawing = Shader(tracer).draw(view, number)
        assert np.isfinite(drawing.radiance).all()
        assert np.quantile(drawing.radiance, 0.9) > 0.01
        assert (drawing.depth > 0).mean() > 0.6
        names = np.array(tracer.scene.mesh.names)
        floor = np.where(drawing.thing >= 0, names[drawing.thing] == "floor", False)
        rays = view.rays()[1].reshape(60, 80, 3)
        seen = z + rays[floor][:, 2] * drawing.depth[floor]
        assert np.abs(seen).max(initial=0) < 1e-4


def test_walls_are_closed_but_for_windows(rooms: list[Room]) -> None:
    """From the middle of a room no ray leaves it except through a window or past an open door."""
    for room in rooms:
        tracer = Tracer(room.scene)
        rng = np.random.default_rng(0)
        directions = rng.normal(size=(4000, 3)).astype(np.float32)
        directions /= np.linalg.norm(directions, axis=1, keepdims=True)
        origins = np.broadcast_to(np.array([0, 0, 0.8 * room.height], np.float32), directions.shape)
        hits = tracer.cast(np.ascontiguousarray(origins), directions)
        assert hits.found.all()
        mesh = room.scene.mesh
        outdoors = {"pane", "next room", "outside", "house", "tree", "railing", "window", "stairs"}
        names = np.array([name in outdoors for name in mesh.names])[mesh.thing[hits.triangle]]
        place = origins + hits.distance[:, None] * directions
        inside = (np.abs(place[:, 0]) < room.half[0] + 0.4) & (np.abs(place[:, 1]) < room.half[1] + 0.4)
        assert (inside | names).all()


def test_credits_name_each_model_and_its_licence(tiny: Path) -> None:
    credits = {credit for number in range(7) for credit in build(5, number, Stock(tiny)).scene.credits()}
    assert {credit.licence for credit in credits} == {"CC0 1.0", "CC BY 3.0"}
    assert all(credit.creator.startswith("Somebody") for credit in credits)
    free = {
        credit.licence
        for number in range(7)
        for credit in build(5, number, Stock(tiny, licence="cc0")).scene.credits()
    }
    assert free == {"CC0 1.0"}
    assert not build(5, 3).scene.credits()


def fresh() -> tuple[Interior, np.random.Generator]:
    rng = np.random.default_rng(3)
    return Interior(SceneBuilder(), rng), rng


def test_own_furniture_has_the_size_that_it_says() -> None:
    palette, rng = fresh()
    for _ in range(7):
        pieces = (
            carpentry.table(palette, rng, 1.4, 0.8, 0.74),
            carpentry.chair(palette, rng),
            carpentry.shelves(palette, rng, 1.2, 0.3, 1.8),
            carpentry.cupboard(palette, rng, 1.0, 0.45, 0.9),
            upholstery.bed(palette, rng, 1.4),
            upholstery.sofa(palette, rng, 2.0),
            upholstery.floor_lamp(palette, rng),
            upholstery.radiator(palette, rng, 1.0),
            upholstery.clothes_rail(palette, rng),
            plant(palette, rng, 1.0),
        )
        for piece in pieces:
            corners = piece.mesh.corners.reshape(-1, 3)
            low, high = corners.min(axis=0), corners.max(axis=0)
            assert low[2] > -0.02, piece.name
            assert high[2] < piece.size[2] + 0.12, piece.name
            loose = 1.2 if piece.name in ("plant", "bed") else 0.12
            assert (np.ptp(corners, axis=0)[:2] < np.array(piece.size[:2]) + loose).all(), piece.name
            for x0, x1, y0, y1, z, clear in piece.tops:
                assert x0 < x1
                assert y0 < y1
                assert clear > 0
                assert 0 < z < piece.size[2] + 0.05


def test_pieces_at_walls_show_their_front_to_the_room() -> None:
    palette, rng = fresh()
    layout = Layout(palette.builder, rng, 5.0, 4.0, 2.5)
    piece = carpentry.cupboard(palette, rng, 1.0, 0.4, 1.0)
    for wall in range(4):
        placed = layout.along_wall(piece, wall)
        assert placed is not None
        front = placed.at(0.0, -1.0) - placed.at(0.0, 0.0)
        assert np.allclose(front, layout.walls[wall].inward, atol=1e-9)
        back = placed.at(0.0, 0.2) - layout.walls[wall].corner
        assert math.isclose(float(back @ layout.walls[wall].inward), 0.02, abs_tol=1e-6)


def test_what_stands_on_the_floor_does_not_overlap_at_walls() -> None:
    palette, rng = fresh()
    layout = Layout(palette.builder, rng, 4.0, 3.5, 2.5)
    for _ in range(30):
        layout.along_wall(carpentry.cupboard(palette, rng, 0.8, 0.4, 1.0))
    boxes = np.array(layout.taken)
    assert len(boxes) > 8
    for k, (x, y, hx, hy, _) in enumerate(boxes):
        others = np.delete(boxes, k, axis=0)
        across = np.abs(others[:, 0] - x) - hx - others[:, 2]
        along = np.abs(others[:, 1] - y) - hy - others[:, 3]
        assert (np.maximum(across, along) > -0.03).all()


def test_every_picture_is_painted_and_walls_repeat_without_a_seam() -> None:
    for kind in COUNTS:
        painted = picture(kind, 1)
        assert painted.shape == (256, 256, 3)
        assert painted is picture(kind, 1)
        assert not np.array_equal(painted, picture(kind, 0))
    assert set(TILES) <= set(COUNTS)
    for kind in ("plaster", "carpet", "concrete"):
        for number in range(2):
            values = picture(kind, number).astype(float)
            inside = np.abs(np.diff(values, axis=1)).mean()
            assert np.abs(values[:, 0] - values[:, -1]).mean() < 2 * inside + 2


def test_models_of_the_real_libraries_play_their_parts() -> None:
    """Where they are installed: every part is played, and under CC0 most are."""
    try:
        stock = Stock()
    except DatasetError:
        pytest.skip("sweethome3d-furniture is not installed")
    palette, rng = fresh()
    models = Models(stock, palette, rng)
    for role, low, high in (("sofa", 1.2, 3.4), ("bed", 0.8, 2.4), ("chair", 0.3, 1.0), ("fridge", 0.5, 1.0)):
        piece = models.piece(role)
        assert piece is not None
        assert low < piece.size[0] < high
        assert np.abs(np.ptp(piece.mesh.corners.reshape(-1, 3), axis=0) - piece.size).max() < 0.03
