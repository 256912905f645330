"""Clouds that cannot lie: poses, depths and units of completed frames belong together, or it is said."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from gbpn import cli
from gbpn.errors import DatasetError, InputError
from gbpn.formats.point_clouds import read_points
from gbpn.formats.poses import poses_of
from gbpn.jobs.completed_folder import frames_of, read_frame, read_record
from gbpn.jobs.whereabouts import places_of, require_agreement

FOCAL, HEIGHT, WIDTH, WALL = 60.0, 48, 64, 3.0
NAMES = ("left/0.png", "left/1.png", "right/0.png", "right/1.png")
CENTRES = ((0.0, 0.0), (0.3, 0.0), (0.0, 0.3), (0.3, 0.3))
Command = Callable[..., tuple[int, str]]


@pytest.fixture
def command(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Command:
    def run(*words: object) -> tuple[int, str]:
        monkeypatch.setattr("sys.argv", ["gbpn", *map(str, words)])
        with pytest.raises(SystemExit) as stopped:
            cli.main()
        printed = capsys.readouterr()
        return int(stopped.value.code or 0), " ".join((printed.out + printed.err).split())

    return run


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A COLMAP project: four cameras in two folders look straight at a wall 3 units away."""
    root = tmp_path_factory.mktemp("project")
    rng = np.random.default_rng(0)
    wall = rng.integers(0, 256, (40, 50, 3), dtype=np.uint8)
    points = np.stack([rng.uniform(-1.2, 1.5, 80), rng.uniform(-1, 1.2, 80), np.full(80, WALL)], axis=1)
    lines = []
    for number, (name, (x, y)) in enumerate(zip(NAMES, CENTRES, strict=True)):
        path = root / "images" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        shift = (round(8 * x), round(8 * y))
        Image.fromarray(np.roll(wall, shift, (1, 0))).resize((WIDTH, HEIGHT)).save(path)
        seen = " ".join(f"1 1 {n}" for n in range(80))
        lines += [f"{number + 1} 1 0 0 0 {-x} {-y} 0 1 {name}", seen]
    model = root / "sparse" / "0"
    model.mkdir(parents=True)
    (model / "cameras.txt").write_text(
        f"1 PINHOLE {WIDTH} {HEIGHT} {FOCAL} {FOCAL} {WIDTH / 2} {HEIGHT / 2}\n"
    )
    (model / "images.txt").write_text("\n".join(lines) + "\n")
    rows = [f"{n} {x} {y} {z} 0 0 0 0.4 1 1 2 1" for n, (x, y, z) in enumerate(points)]
    (model / "points3D.txt").write_text("\n".join(rows) + "\n")
    return root


def test_a_project_with_subfolders_becomes_a_cloud_in_metres(
    command: Command, project: Path, tmp_path: Path
) -> None:
    out, cloud = tmp_path / "out", tmp_path / "world.ply"
    code, told = command(
        "complete", project, "--units", "0.5", "-o", out, "--merge", cloud, "--max-sigma", "50%"
    )
    assert code == 0, told
    assert "4 frames" in told
    points = read_points(cloud)
    assert abs(float(np.median(points[:, 2])) - 0.5 * WALL) < 0.05
    record = read_record(out, "left/1")
    assert record.metric
    assert record.pose is not None
    np.testing.assert_allclose(record.pose[:3, 3], (0.15, 0, 0))  # 0.3 units of half a metre
    code, told = command("merge", project, out, "-o", tmp_path / "again.ply", "--max-sigma", "50%")
    assert code == 0, told
    np.testing.assert_array_equal(read_points(tmp_path / "again.ply"), points)
    code, told = command(
        "merge", project, out, "--poses", project, "-o", tmp_path / "third.ply", "--max-sigma", "50%"
    )
    assert code == 0, told
    np.testing.assert_array_equal(read_points(tmp_path / "third.ply"), points)
    code, told = command("merge", project, out, "--units", "1", "-o", tmp_path / "lie.ply")
    assert code == 2
    assert "were completed with --units 0.5" in told
    assert not (tmp_path / "lie.ply").exists()


def test_without_units_nothing_is_said_in_metres(command: Command, project: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    code, told = command("complete", project, "-o", out, "--merge", tmp_path / "w.glb", "--max-sigma", "50%")
    assert code == 0, told
    assert "depths have no unit" in told
    assert "units of the model" in told
    assert "the cloud has no unit" in told
    assert "trained for" not in told
    assert not read_record(out, "left/0").metric
    code, told = command("merge", project, out, "--units", "0.5", "-o", tmp_path / "lie.ply")
    assert code == 2
    assert "complete the frames again with --units 0.5" in told


def records(folder: Path, units: float | None, depth: float = WALL, pose: bool = True) -> dict[str, Path]:
    """Completed frames of the cameras above, as files."""
    found = {}
    for name, (x, y) in zip(NAMES, CENTRES, strict=True):
        stem = folder / "out" / name.removesuffix(".png")
        image = folder / "in" / name
        for path in (stem, image):
            path.parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(np.zeros((HEIGHT, WIDTH, 3), np.uint8)).save(image)
        ramp = np.linspace(1, 1.5, WIDTH, dtype=np.float32)[None].repeat(HEIGHT, 0)
        ray = (np.arange(WIDTH) - WIDTH / 2 + 0.5) / FOCAL
        slanted = (1 + 0.3 * x) / (1 - 0.3 * ray)  # the wall z = 1 + 0.3 x, seen from (x, y, 0)
        np.save(f"{stem}_depth.npy", depth * slanted[None].repeat(HEIGHT, 0).astype(np.float32) + 0 * ramp)
        at = np.eye(4)
        at[:2, 3] = x, y
        place = {"place": {"pose": at.tolist(), "metres_per_unit": units}} if pose else {}
        camera = [[FOCAL, 0, WIDTH / 2 - 0.5], [0, FOCAL, HEIGHT / 2 - 0.5], [0, 0, 1]]
        Path(f"{stem}.json").write_text(json.dumps({"intrinsics": camera, **place}))
        found[name.removesuffix(".png")] = image
    return found


def matrices(folder: Path, factor: float) -> Path:
    """The cameras above as transforms.json, `factor` times as far from each other."""
    turned = np.diag([1.0, -1, -1, 1])
    frames = []
    for name, (x, y) in zip(NAMES, CENTRES, strict=True):
        at = np.eye(4)
        at[:2, 3] = factor * x, factor * y
        frames.append({"file_path": name, "transform_matrix": (at @ turned).tolist()})
    (folder / "transforms.json").write_text(json.dumps({"frames": frames}))
    return folder / "transforms.json"


def test_poses_in_another_unit_than_the_records_are_an_error_that_names_it(tmp_path: Path) -> None:
    found = records(tmp_path, units=None)
    assert frames_of(tmp_path / "in", tmp_path / "out") == found
    same = places_of(found, tmp_path / "out", matrices(tmp_path, 1.0), None)
    for name, place in places_of(found, tmp_path / "out", None, None).items():
        np.testing.assert_allclose(same[name], place)
    with pytest.raises(InputError, match=r"moves 0.25 times as far .* --units 0.25"):
        places_of(found, tmp_path / "out", matrices(tmp_path, 0.25), None)


def test_units_of_several_runs_do_not_mix(tmp_path: Path) -> None:
    found = records(tmp_path, units=0.5)
    record = tmp_path / "out" / "left" / "0.json"
    record.write_text(record.read_text().replace("0.5", "2.0"))
    with pytest.raises(InputError, match=r"different units \(--units 0.5, 2\)"):
        places_of(found, tmp_path / "out", None, None)


@pytest.mark.parametrize("factor", [4.0, 10.0])
def test_depths_tell_the_unit_of_poses_where_records_do_not(tmp_path: Path, factor: float) -> None:
    found = records(tmp_path, units=None, depth=1.0, pose=False)
    with pytest.raises(InputError, match="give --poses"):
        places_of(found, tmp_path / "out", None, None)

    def placed(scale: float) -> list:
        places = places_of(found, tmp_path / "out", matrices(tmp_path, scale), None)
        return [read_frame(tmp_path / "out", name, found[name], places[name]) for name in found]

    require_agreement(placed(1.0))
    with pytest.raises(InputError, match=r"different units") as told:
        require_agreement(placed(factor))
    named = float(str(told.value).split("--units ")[1].rstrip(")"))
    assert named * factor == pytest.approx(1.0, rel=0.6)


def test_frames_of_one_name_do_not_share_a_pose(tmp_path: Path) -> None:
    records(tmp_path, units=1.0)
    (tmp_path / "flat.json").write_text(
        json.dumps({"frames": [{"file_path": "0.png", "transform_matrix": np.eye(4).tolist()}]})
    )
    with pytest.raises(DatasetError, match="none of the 2 frames has a pose"):
        poses_of(tmp_path / "flat.json", ["left/0", "right/0"])


def test_what_was_not_completed_is_said_as_it_is(tmp_path: Path) -> None:
    records(tmp_path, units=1.0)
    shutil.rmtree(tmp_path / "in")
    (tmp_path / "in").mkdir()
    Image.fromarray(np.zeros((4, 4, 3), np.uint8)).save(tmp_path / "in" / "9.png")
    with pytest.raises(DatasetError, match=r"there is \w+/\d_depth.npy"):
        frames_of(tmp_path / "in", tmp_path / "out")


def test_merging_without_poses_is_refused_before_the_work(command: Command, tmp_path: Path) -> None:
    Image.fromarray(np.zeros((40, 40, 3), np.uint8)).save(tmp_path / "a.png")
    words = ["complete", tmp_path / "a.png", "--points", "1,2,3", "-o", tmp_path / "out", "--merge"]
    code, told = command(*words, tmp_path / "w.ply")
    assert code == 2
    assert "where the camera was" in told
    code, told = command(*words, tmp_path / "w.obj")
    assert "--merge writes .ply or .glb" in told
    assert not (tmp_path / "out").exists()
