"""`gbpn worlds`: the same bytes whoever draws them, kept when killed, read by the pool, refused clearly."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("embreex")
pytest.importorskip("numba")

from gbpn.datasets.mixed import MixedDataset
from gbpn.errors import BackendError, DatasetError, InputError
from gbpn.jobs.drawing_worlds import draw_worlds, opened
from gbpn.worlds.frame import Wanted, frames_of
from gbpn.worlds.pool_scene import PoolScene

FRAMES, VIEWS = 5, 2
SETTINGS = ("--kind", "streets", "--licence", "cc0", "--size", "48x32", "--views", str(VIEWS))
WANTED = Wanted(
    kind="streets", licence="cc0", size=(48, 32), views=VIEWS, sensors=("lidar_64", "stereo", "through")
)


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
    for _ in range(1200):
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
    assert contents(folder) == contents(scene.folder)


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


def test_poses_say_where_a_frame_was_taken(scene: PoolScene) -> None:
    """Two views of one street: its poses place both exact depths on the same surfaces."""
    first, second = frames_of(WANTED, 1, (2, 3), None)
    for frame in (first, second):
        kept = scene.camera(frame.number)
        assert kept["world"] == 1
        assert np.abs(np.array(kept["pose"]) - frame.view.pose).max() < 1e-8
        assert abs(np.linalg.det(np.array(kept["pose"])[:3, :3]) - 1) < 1e-7


def test_cc0_streets_have_nobody_else_in_them(scene: PoolScene) -> None:
    assert scene.credits() == []
    assert "no model or picture of others" in (scene.folder / "CREDITS.md").read_text()


def test_other_settings_and_other_folders_are_left_alone(scene: PoolScene, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"other settings \(seed 1 there, 2 here\)"):
        opened(scene.folder.parent, Wanted(**{**vars(WANTED), "seed": 2}), "train")
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
