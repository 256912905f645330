"""`gbpn worlds`: the same bytes whoever draws them, kept when killed, read by the pool, refused clearly."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
import zipfile
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

pytest.importorskip("embreex")
pytest.importorskip("numba")

from gbpn.datasets.mixed import MixedDataset
from gbpn.errors import BackendError, DatasetError, InputError
from gbpn.jobs.drawing_worlds import draw_worlds, opened
from gbpn.jobs.worlds_page import write_page
from gbpn.worlds.assets import Stock
from gbpn.worlds.frame import Wanted, frames_of, stock_for
from gbpn.worlds.kinds import KINDS
from gbpn.worlds.pool_scene import PoolScene
from gbpn.worlds.statistics import numbers_of
from gbpn.worlds.viewpoint import Viewpoint, handheld, looking

FRAMES, VIEWS = 5, 2
SETTINGS = ("--kind", "streets", "--licence", "cc0", "--size", "48x32", "--views", str(VIEWS))
WANTED = Wanted(
    kind="streets", licence="cc0", size=(48, 32), views=VIEWS, sensors=("lidar_64", "stereo", "through")
)

TRIANGLES = "v -1 0 -1\nv 1 0 -1\nv 0 0 1\nv 0 2 0\nf 1 3 2\nf 1 2 4\nf 2 3 4\nf 3 1 4\n"
PEOPLE = (("Female", "Ada"), ("Male", "Charles"), ("Girl", "Ada"))


def libraries(folder: Path) -> Path:
    """Three models of four triangles: two may be used with credits, one without."""
    for name, licence, entries in (
        ("with", "http://creativecommons.org/licenses/by/3.0/", PEOPLE[:2]),
        ("without", "Creative Commons Zero", PEOPLE[2:]),
    ):
        lines = []
        with zipfile.ZipFile(folder / f"{name}.sh3f", "w") as file:
            for k, (model, creator) in enumerate(entries, 1):
                file.writestr(f"models/{model}.obj", TRIANGLES)
                facts = {"name": model, "category": "Characters", "model": f"/models/{model}.obj"}
                facts |= {"creator": creator, "width": "50", "depth": "30", "height": "175"}
                lines += [f"{key}#{k}={value}" for key, value in facts.items()]
            file.writestr("PluginFurnitureCatalog.properties", "\n".join(lines))
            file.writestr("LICENSE.TXT", licence)
    return folder


def command(out: Path, *more: str) -> list[str]:
    return [sys.executable, "-m", "gbpn", "worlds", "--out", str(out), *SETTINGS, *more]


def run(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "gbpn", "worlds", *arguments],
        capture_output=True,
        text=True,
        env={**os.environ, **environment},
    )


def contents(folder: Path) -> dict[str, bytes]:
    """What every file holds, by its name below the folder."""
    return {str(p.relative_to(folder)): p.read_bytes() for p in sorted(folder.rglob("*")) if p.is_file()}


@pytest.fixture(scope="module")
def scene(tmp_path_factory: pytest.TempPathFactory) -> PoolScene:
    """Five frames of three worlds by two processes."""
    made = opened(tmp_path_factory.mktemp("worlds"), WANTED, "train")
    progress = draw_worlds(made, FRAMES, processes=2)
    assert (progress.drawn, progress.before, progress.failures) == (FRAMES, 0, [])
    return made


def test_one_process_writes_the_same_bytes(scene: PoolScene, tmp_path: Path) -> None:
    other = opened(tmp_path, WANTED, "train")
    for world in range(3):
        for frame in frames_of(WANTED, world, range(2 * world, min(2 * world + 2, FRAMES)), None):
            other.add(frame)
    other.write_credits()
    assert contents(other.folder) == contents(scene.folder)
    pictures = {data for name, data in contents(other.folder).items() if name.startswith("color")}
    assert len(pictures) == FRAMES


def test_a_killed_run_goes_on_where_it_was(scene: PoolScene, tmp_path: Path) -> None:
    """And more frames may be asked for then."""
    sensors = "lidar_64,stereo,through"
    fewer = command(tmp_path, "--frames", str(FRAMES - 1), "--processes", "1", "--sensors", sensors)
    process = subprocess.Popen(fewer, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    folder = tmp_path / "streets"
    for _ in range(6000):
        if list(folder.glob("color/*.jpg")) or process.poll() is not None:
            break
        time.sleep(0.05)
    process.send_signal(signal.SIGKILL)
    process.wait()
    time.sleep(1)  # its drawing process ends with it
    kept = {path: path.stat().st_mtime_ns for path in folder.glob("color/*.jpg")}
    assert 0 < len(kept) < FRAMES - 1
    again = command(tmp_path, "--frames", str(FRAMES), "--processes", "1", "--sensors", sensors)
    result = subprocess.run(again, capture_output=True, text=True)
    assert result.returncode == 0, result.stderr
    assert f"{len(kept)} were there" in result.stdout
    assert all(path.stat().st_mtime_ns == when for path, when in kept.items())
    drawn = contents(folder)
    assert drawn.pop("index.html")
    assert drawn.pop("sheet.jpg")
    assert drawn == contents(scene.folder)


def test_the_pool_reads_back_what_was_drawn(scene: PoolScene) -> None:
    data = MixedDataset(scene.folder.parent, "all", sensors=("lidar_raw", "stereo"), lines=16)
    assert len(data) == FRAMES
    frames = list(frames_of(WANTED, 1, (2, 3), None))
    for frame in frames:
        sample = data.load(frame.number)
        assert sample.target is not None
        exact = np.where(frame.depth * 256 < 65535.5, frame.depth, 0)
        assert np.abs(sample.target[0].numpy() - exact).max() <= 0.5 / 256 + 1e-5
        assert np.abs(sample.intrinsics.numpy() - frame.view.intrinsics).max() < 1e-4
        assert sample.image.shape == (3, 32, 48)
        pixels = sample.image.permute(1, 2, 0).numpy() * 255
        assert np.abs(pixels - frame.image).mean() < 12  # what JPEG takes of small pictures
        assert int((sample.sparse > 0).sum()) > 0
    assert not np.array_equal(frames[0].view.intrinsics, frames[1].view.intrinsics)
    assert len(MixedDataset(scene.folder.parent, "train", holdout=0.2)) == FRAMES - 1
    through = MixedDataset(scene.folder, "all", target="through").frame(0).target
    assert through is not None
    assert (through > 0).any()


def test_views_of_a_world_see_the_same_surfaces_from_their_poses() -> None:
    """A hand-held sequence: the second frame's exact depth, moved by the poses, lies on the first one's."""
    wanted = Wanted(kind="streets", licence="cc0", size=(96, 64), views=3, handheld=True, sensors=())
    first, last = frames_of(wanted, 0, (0, 2), None)
    assert np.array_equal(first.view.intrinsics, last.view.intrinsics)
    moved = np.linalg.inv(first.view.pose) @ last.view.pose
    assert 0 < np.linalg.norm(moved[:3, 3]) < 0.3
    origins, directions = last.view.rays()
    points = origins + directions * last.depth.reshape(-1, 1)
    seen = (points - first.view.pose[:3, 3]) @ first.view.pose[:3, :3]
    pixels = seen @ first.view.intrinsics.T
    column, row = np.rint(pixels[:, :2] / np.maximum(pixels[:, 2:], 1e-6)).astype(int).T
    inside = (last.depth.ravel() > 0) & (seen[:, 2] > 0)
    inside &= (column >= 0) & (column < 96) & (row >= 0) & (row < 64)
    ratio = seen[inside, 2] / np.maximum(first.depth[row[inside], column[inside]], 1e-6)
    assert np.median(np.abs(ratio - 1)) < 0.01
    assert (np.abs(ratio - 1) < 0.05).mean() > 0.8


def test_a_held_camera_stays_where_it_is_free_to_go() -> None:
    start = Viewpoint(intrinsics=np.eye(3), pose=looking((0, 0, 1.5), 0.3), width=4, height=3)

    def free(place: np.ndarray, step: np.ndarray) -> bool:
        return bool((place + step)[0] < 0.05)

    path = handheld(start, np.random.default_rng(3), 200, free=free)
    assert len(path) == 200
    assert max(view.pose[0, 3] for view in path) < 0.05
    assert np.ptp([view.pose[1, 3] for view in path]) > 0.1
    assert max(view.pose[0, 3] for view in handheld(start, np.random.default_rng(3), 200)) > 0.05


def test_credits_name_every_model_and_its_licence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GBPN_FURNITURE", str(libraries(tmp_path)))
    monkeypatch.setenv("GBPN_CACHE", str(tmp_path / "cache"))
    wanted = Wanted(kind="streets", size=(32, 24), views=1, sensors=()).checked()
    stock = stock_for(wanted)
    made = PoolScene(tmp_path / "streets", wanted, "train", stock)
    made.begin()
    used: set[str] = set()
    for world in range(3):
        street = KINDS["streets"].build(wanted.seed, world, stock)
        used |= {credit.name for credit in street.scene.credits()}
        for frame in frames_of(wanted, world, (world,), stock):
            made.add(frame)
    told = made.write_credits().read_text()
    assert used
    assert {credit.name for credit, _ in made.credits()} == used
    for name in used:
        row = next(line for line in told.splitlines() if name in line)
        assert f"| {dict(PEOPLE)[name.split()[0]]} |" in row
        assert ("CC0 1.0" if "without/" in name else "CC BY 3.0") in row
    assert [asset.name for asset in Stock(licence="cc0").assets] == ["Girl"]
    (tmp_path / "without.sh3f").unlink()
    with pytest.raises(InputError, match="libraries"):  # frames of other models are not mixed in
        PoolScene(made.folder, wanted, "train", stock_for(wanted)).begin()


def test_the_page_shows_frames_sensors_and_numbers(scene: PoolScene, tmp_path: Path) -> None:
    shutil.copytree(scene.folder, tmp_path / "streets")
    copy = PoolScene(tmp_path / "streets", WANTED, "train", None)
    text = write_page(copy, beside=[scene.folder], rate=1234).read_text(encoding="utf-8")
    assert "1,234 frames an hour" in text
    for name in ("lidar_raw", "stereo", "through", "road", "No model or picture of others"):
        assert name in text
    assert "http" not in text  # readable offline
    assert text.count(f"{FRAMES:,}") >= 2
    with Image.open(tmp_path / "streets" / "sheet.jpg") as sheet:
        assert sheet.width > 5 * 200


def test_numbers_of_known_scenes(tmp_path: Path) -> None:
    """A slanted plane is interpolated exactly and has no edges; a step has an edge on each row."""
    y, x = np.mgrid[0:48, 0:64]
    depths = {"plane": 2 + 0.004 * x + 0.003 * y, "step": np.where(x < 32, 2.0, 4.0)}
    for name, depth in depths.items():
        (tmp_path / name / "depth").mkdir(parents=True)
        (tmp_path / name / "kinect").mkdir()
        (tmp_path / name / "meta.json").write_text(json.dumps({"depth_scale": 10000.0}))
        stored = np.rint(depth * 10000).astype(np.uint16)
        Image.fromarray(stored).save(tmp_path / name / "depth" / "0.png")
        half = np.where(y < 24, stored + 100, 0).astype(np.uint16)
        Image.fromarray(half).save(tmp_path / name / "kinect" / "0.png")
    plane, step = (numbers_of(tmp_path / name) for name in depths)
    assert plane.linear < 1e-4
    assert plane.edges == 0
    assert step.linear > 0.05
    assert step.edges == pytest.approx(1 / 64)
    assert step.quantiles[0] == pytest.approx(2)
    assert step.quantiles[-1] == pytest.approx(4)
    assert sum(step.histogram) == pytest.approx(1)
    (kinect,) = step.sensors
    assert kinect.measured == pytest.approx(0.5)
    assert kinect.error == pytest.approx(0.01, abs=1e-4)
    assert kinect.apart == 0
    (tmp_path / "none").mkdir()
    (tmp_path / "none" / "meta.json").write_text("{}")
    with pytest.raises(DatasetError, match=r"no depth/\*\.png"):
        numbers_of(tmp_path / "none")


def test_cc0_streets_have_nobody_else_in_them(scene: PoolScene) -> None:
    assert scene.credits() == []
    assert "no model or picture of others" in (scene.folder / "CREDITS.md").read_text()


def test_other_settings_and_other_folders_are_left_alone(scene: PoolScene, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"other settings \(seed 1 there, 2 here\)"):
        opened(scene.folder.parent, Wanted(**{**vars(WANTED), "seed": 2}), "train")
    older = json.loads((scene.folder / "meta.json").read_text())
    older["drawn"]["generator"] = "of last year"
    (tmp_path / "old" / "streets").mkdir(parents=True)
    (tmp_path / "old" / "streets" / "meta.json").write_text(json.dumps(older))
    with pytest.raises(InputError, match="generator of last year there"):
        opened(tmp_path / "old", WANTED, "train")
    (tmp_path / "streets").mkdir()
    (tmp_path / "streets" / "diary.txt").write_text("mine")
    with pytest.raises(InputError, match="not empty"):
        opened(tmp_path, WANTED, "train")


def test_missing_models_are_told_with_what_to_install(tmp_path: Path) -> None:
    result = run(
        "--out", str(tmp_path / "new"), "--frames", "1", "--kind", "streets", GBPN_FURNITURE=str(tmp_path)
    )
    assert result.returncode == 2
    assert "apt-get install sweethome3d-furniture" in result.stderr
    assert not (tmp_path / "new").exists()


def test_missing_packages_are_told_with_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "embreex", None)
    with pytest.raises(BackendError, match=r"embreex cannot be imported: pip install 'gbpn\[worlds\]'"):
        opened(tmp_path, WANTED, "train")


@pytest.mark.parametrize(
    ("options", "told"),
    [
        (("--frames", "0"), "--frames must be 1 or more"),
        (("--kind", "castles"), "rooms, streets or both"),
        (("--size", "wide"), "320x240"),
        (("--size", "8x8"), "16 to 4096 pixels"),
        (("--views", "0"), "views must be 1"),
        (("--seed", "-1"), "seed must be 0"),
        (("--licence", "mine"), "any, cc0"),
        (("--sensors", "sonar"), "unknown sensor 'sonar'"),
        (("--role", "play"), "train, evaluation"),
        (("--processes", "0"), "--processes must be 1"),
    ],
)
def test_what_cannot_be_drawn_is_refused_before_torch_is_loaded(
    options: tuple[str, ...], told: str, tmp_path: Path
) -> None:
    given = {"--out": str(tmp_path / "out"), "--frames": "1", "--kind": "streets", "--licence": "cc0"}
    given[options[0]] = options[1]
    arguments = [word for pair in given.items() for word in pair]
    code = (
        "import sys\nfrom gbpn.cli import main\n"
        f"sys.argv = ['gbpn', 'worlds', *{arguments!r}]\n"
        "try:\n    main()\nfinally:\n    assert 'torch' not in sys.modules"
    )
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert result.returncode == 2, result.stderr
    assert told in " ".join(result.stderr.split())
    assert not (tmp_path / "out").exists()


def test_a_damaged_camera_file_is_named(scene: PoolScene, tmp_path: Path) -> None:
    shutil.copytree(scene.folder, tmp_path / "streets")
    damaged = tmp_path / "streets" / "camera" / "000000.json"
    damaged.write_text(json.dumps({"K": "lost"}))
    with pytest.raises(DatasetError, match=r"000000\.json"):
        MixedDataset(tmp_path, "all").frame(0)
