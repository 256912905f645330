"""Whole runs: interrupted at any moment, on two processes, on bad data, and learning something."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

from gbpn.errors import TrainingError
from gbpn.train.checkpoints import Checkpoints
from gbpn.train.folder import RunFolder
from gbpn.train.loop import Machine, train
from gbpn.train.recipe import RECIPES, Recipe, named
from gbpn.train.watch import read_rows

pytest.importorskip("lightning_fabric", reason="training needs gbpn[train]")

TINY = [
    "model.width=0.25",
    "imagenet=no",
    "batch=2",
    "steps=6",
    "validate_every=3",
    "validation_limit=2",
    "checkpoint_every=2",
    "average_from=2",
    "augmentation.height=64",
    "augmentation.width=64",
]
MACHINE = Machine(accelerator="cpu", workers=0, progress=False)


def tiny(*settings: str, name: str = "small") -> Recipe:
    return named(name).changed([*TINY, *settings])


@pytest.fixture(scope="session")
def pool(tmp_path_factory) -> Path:
    """A pool of eight small synthetic frames in the true format."""
    scene = tmp_path_factory.mktemp("pool") / "made" / "room"
    (scene / "color").mkdir(parents=True)
    (scene / "depth").mkdir()
    rng = np.random.default_rng(0)
    for frame in range(8):
        y, x = np.mgrid[:72, :96]
        near = (x - 20 - 6 * frame) ** 2 + (y - 40) ** 2 < 300
        depth = np.where(near, 1.2, 2.5 + 0.01 * y)
        shade = np.where(near, 200, 90) + rng.normal(0, 5, depth.shape)
        colour = np.stack([shade, shade * 0.8, 255 - shade], 2).clip(0, 255).astype(np.uint8)
        Image.fromarray(colour).save(scene / "color" / f"{frame:04d}.jpg", quality=95)
        Image.fromarray((depth * 1000).astype(np.uint16)).save(scene / "depth" / f"{frame:04d}.png")
    camera = [[80.0, 0, 47.5], [0, 80.0, 35.5], [0, 0, 1]]
    meta = {"dataset": "made", "K": camera, "depth_scale": 1000.0, "role": "train"}
    (scene / "meta.json").write_text(json.dumps(meta))
    return scene.parents[1]


def final_state(run: Path) -> dict:
    folder = RunFolder(run).checkpoints
    latest = folder.latest()
    assert latest is not None
    return folder.read(latest)


def assert_same_weights(one: Path, other: Path, tolerance: float) -> None:
    first, second = final_state(one), final_state(other)
    assert first["step"] == second["step"]
    for group in ("model", "average"):
        a, b = first[group], second[group]
        a, b = (a["sums"], b["sums"]) if group == "average" else (a, b)
        for name, tensor in a.items():
            if tensor.is_floating_point():
                torch.testing.assert_close(
                    tensor, b[name], rtol=tolerance, atol=tolerance, msg=lambda text, n=name: f"{n}: {text}"
                )


def start(out: Path, data: Path, *more: str, settings: list[str]) -> subprocess.Popen:
    flags = [flag for setting in settings for flag in ("--set", setting)]
    command = [sys.executable, "-m", "gbpn.cli", "train", "small", "--data", str(data), "-o", str(out)]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    return subprocess.Popen(
        [*command, "--accelerator", "cpu", "--workers", "0", "--no-progress", *flags, *more],
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def wait_for(condition, process: subprocess.Popen, seconds: float = 120) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert process.poll() is None, process.communicate()[0]
        assert time.monotonic() < deadline, "the run did not get there in time"
        time.sleep(0.02)


def test_a_run_writes_what_a_person_wants(tmp_path, pool) -> None:
    outcome = train(tiny(), pool, tmp_path / "run", machine=MACHINE)
    assert outcome.finished
    run = tmp_path / "run"
    for name in ("recipe.json", "environment.json", "best.safetensors", "last.safetensors", "summary.html"):
        assert (run / name).stat().st_size > 0
    assert [row["step"] for row in read_rows(run / "validation.csv")] == ["3", "6"]
    assert len(list((run / "pictures").glob("*.png"))) == 2
    assert float(read_rows(run / "steps.csv")[0]["gradient/first.heads.weight"]) > 0
    with pytest.raises(TrainingError, match="--resume"):
        train(tiny(), pool, run, machine=MACHINE)
    with pytest.raises(TrainingError, match="batch"):
        train(tiny("batch=4"), pool, run, resume=True, machine=MACHINE)


def test_killed_anywhere_a_run_ends_with_the_same_weights(tmp_path, pool) -> None:
    settings = [*TINY, "steps=8", "validate_every=8"]
    train(named("small").changed(settings), pool, tmp_path / "whole", machine=MACHINE)

    run = tmp_path / "killed"
    process = start(run, pool, settings=settings)
    wait_for(lambda: len(list((run / "checkpoints").glob("step-*.pt"))) >= 1, process)
    process.send_signal(signal.SIGKILL)
    process.communicate()
    # a kill in the middle of a write leaves half a file under a name that is not a checkpoint's
    latest = Checkpoints(run / "checkpoints").latest()
    assert latest is not None
    half = latest.with_name("step-00000007.pt.partial")
    half.write_bytes(latest.read_bytes()[: latest.stat().st_size // 2])

    again = start(run, pool, "--resume", settings=settings)
    output = again.communicate(timeout=300)[0]
    assert again.returncode == 0, output
    assert not half.exists()
    assert_same_weights(tmp_path / "whole", run, tolerance=1e-6)


def test_asked_to_stop_a_run_saves_and_resumes(tmp_path, pool) -> None:
    settings = [*TINY, "steps=2000", "validate_every=2000", "checkpoint_every=2000"]
    run = tmp_path / "run"
    process = start(run, pool, settings=settings)
    wait_for(lambda: len(read_rows(run / "steps.csv")) >= 1, process)
    process.send_signal(signal.SIGTERM)
    output = process.communicate(timeout=120)[0]
    assert process.returncode == 130, output
    assert "--resume" in output
    assert 1 <= final_state(run)["step"] < 2000


def test_two_processes_learn_what_one_learns(tmp_path, pool) -> None:
    """In double precision: Adam turns the rounding of a vanishing gradient into a full step."""
    settings = [*TINY, "batch=4", "steps=4", "validate_every=4", "checkpoint_every=4"]
    settings += ["freeze_encoder_statistics=no"]
    runs = []
    for processes in (1, 2):
        run = tmp_path / f"{processes}"
        more = ("--processes", str(processes), "--precision", "64-true")
        process = start(run, pool, *more, settings=settings)
        output = process.communicate(timeout=300)[0]
        assert process.returncode == 0, output
        runs.append(run)
    assert_same_weights(*runs, tolerance=1e-7)


def test_a_bad_sample_is_reported_and_many_end_the_run(tmp_path, pool, capsys) -> None:
    import shutil

    broken = tmp_path / "pool"
    shutil.copytree(pool, broken)
    files = sorted(broken.glob("*/*/depth/*.png"))
    files[1].write_bytes(files[1].read_bytes()[:40])
    outcome = train(tiny("steps=5"), broken, tmp_path / "one", machine=MACHINE)
    assert outcome.finished
    assert files[1].name in capsys.readouterr().out
    with pytest.raises(TrainingError, match="bad_samples"):
        train(tiny("steps=20", "bad_samples=0"), broken, tmp_path / "none", machine=MACHINE)


def test_missing_data_is_said(tmp_path) -> None:
    from gbpn.errors import DatasetError

    with pytest.raises(DatasetError, match="nowhere"):
        train(tiny(), tmp_path / "nowhere", tmp_path / "run", machine=MACHINE)


def test_a_run_that_diverges_stops_with_its_checkpoint(tmp_path, pool) -> None:
    run = tmp_path / "run"
    recipe = tiny("steps=200", "peak_rate=1e30", "clip_norm=1e30", "weight_decay=0", "validate_every=500")
    with pytest.raises(TrainingError, match=r"not finite at step \d+.*frames made/room"):
        train(recipe, pool, run, machine=MACHINE)


@pytest.mark.parametrize("name", [name for name in RECIPES if name in ("small", "pool")])
def test_recipes_run_end_to_end(tmp_path, pool, name: str) -> None:
    outcome = train(tiny("steps=2", "model.width=0.125", name=name), pool, tmp_path / "run", machine=MACHINE)
    assert outcome.finished
