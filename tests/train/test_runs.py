"""Whole runs: interrupted at any moment, on two processes, on bad data, and learning something."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image
from typer.testing import CliRunner

from gbpn import build
from gbpn.cli import app
from gbpn.datasets import open_dataset
from gbpn.errors import CheckpointError, InputError, TrainingError
from gbpn.files.atomic import PARTIAL
from gbpn.metrics import MetricTable
from gbpn.model.loading import load
from gbpn.sensors.sampling import sparsify
from gbpn.train.checkpoints import Checkpoints
from gbpn.train.loop import Machine, train
from gbpn.train.losses import scale_free_loss
from gbpn.train.progress import read_rows
from gbpn.train.recipe import RECIPES, Recipe, named
from gbpn.train.run_folder import RunFolder
from gbpn.train.starting_model import starting_model
from gbpn.weights.files import save

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


def opened(path: Path) -> Any:
    """Weights, without asking which kind of model they are."""
    return load(path)


def assert_same_weights(one: Path, other: Path, tolerance: float) -> None:
    first, second = final_state(one), final_state(other)
    assert first["step"] == second["step"]
    for group in ("model", "average"):
        a, b = first[group], second[group]
        a, b = (a["sums"], b["sums"]) if group == "average" else (a, b)
        for name, tensor in a.items():
            if tensor.is_floating_point():
                torch.testing.assert_close(
                    tensor, b[name], rtol=tolerance, atol=tolerance, msg=f"{name}: {{}}".format
                )


PATIENCE = 900
"""Seconds after which a run counts as hung: machines under load take minutes to start two processes."""
_started: list[subprocess.Popen] = []


@pytest.fixture(autouse=True)
def nobody_stays():
    """A test that fails leaves no run behind, nor its group."""
    yield
    while _started:
        process = _started.pop()
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
            process.communicate()


def start(out: Path, data: Path, *more: str, settings: list[str], workers: int = 0) -> subprocess.Popen:
    flags = [flag for setting in settings for flag in ("--set", setting)]
    command = [sys.executable, "-m", "gbpn.cli", "train", "small", "--data", str(data), "-o", str(out)]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    process = subprocess.Popen(
        [*command, "--accelerator", "cpu", "--workers", str(workers), "--no-progress", *flags, *more],
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,  # a group of its own, which can be sent a signal
    )
    _started.append(process)
    return process


def wait_for(condition, process: subprocess.Popen, seconds: float = PATIENCE) -> None:
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
    assert load(run / "best.safetensors").calibration is not None
    assert float(read_rows(run / "steps.csv")[0]["gradient/first.heads.weight"]) > 0
    with pytest.raises(TrainingError, match="--resume"):
        train(tiny(), pool, run, machine=MACHINE)
    with pytest.raises(TrainingError, match="batch"):
        train(tiny("batch=4"), pool, run, resume=True, machine=MACHINE)


def test_killed_anywhere_a_run_ends_with_the_same_weights(tmp_path, pool) -> None:
    """In double precision: Adam turns the rounding of a vanishing gradient into a full step."""
    settings, double = [*TINY, "steps=8", "validate_every=8"], ("--precision", "64-true")
    whole = start(tmp_path / "whole", pool, *double, settings=settings)
    output = whole.communicate(timeout=PATIENCE)[0]
    assert whole.returncode == 0, output

    run = tmp_path / "killed"
    process = start(run, pool, *double, settings=settings)
    wait_for(lambda: len(list((run / "checkpoints").glob("step-*.pt"))) >= 1, process)
    process.send_signal(signal.SIGKILL)
    process.communicate()
    # a kill in the middle of a write leaves half a file under a name that is not a checkpoint's
    latest = Checkpoints(run / "checkpoints").latest()
    assert latest is not None
    half = latest.with_name(f"{PARTIAL}7.pt")
    half.write_bytes(latest.read_bytes()[: latest.stat().st_size // 2])

    again = start(run, pool, "--resume", *double, settings=settings)
    output = again.communicate(timeout=PATIENCE)[0]
    assert again.returncode == 0, output
    assert not half.exists()
    assert_same_weights(tmp_path / "whole", run, tolerance=1e-6)


def test_asked_to_stop_a_run_saves_and_resumes(tmp_path, pool) -> None:
    settings = [*TINY, "steps=2000", "validate_every=2000", "checkpoint_every=2000"]
    run = tmp_path / "run"
    process = start(run, pool, settings=settings)
    wait_for(lambda: len(read_rows(run / "steps.csv")) >= 1, process)
    process.send_signal(signal.SIGTERM)
    output = process.communicate(timeout=PATIENCE)[0]
    assert process.returncode == 130, output
    assert "--resume" in output
    assert 1 <= final_state(run)["step"] < 2000


@pytest.mark.parametrize(
    ("processes", "workers", "number"),
    [(1, 2, signal.SIGTERM), (2, 1, signal.SIGTERM), (2, 1, signal.SIGINT)],
)
def test_asked_as_a_group_a_run_saves_and_leaves_nobody(
    tmp_path, pool, processes: int, workers: int, number: signal.Signals
) -> None:
    """As a terminal, systemd or a cluster asks: every process of the run hears it, loaders of data too."""
    settings = [*TINY, "steps=2000", "validate_every=2000", "checkpoint_every=2000"]
    run = tmp_path / "run"
    more = ("--processes", str(processes))
    process = start(run, pool, *more, settings=settings, workers=workers)
    wait_for(lambda: len(read_rows(run / "steps.csv")) >= 1, process)
    os.killpg(process.pid, number)
    output = process.communicate(timeout=PATIENCE)[0]  # ends when the last process has closed its output
    assert process.returncode == 130, output
    assert "Traceback" not in output
    assert "--resume" in output
    assert 1 <= final_state(run)["step"] < 2000


def test_two_processes_learn_what_one_learns(tmp_path, pool) -> None:
    """In double precision: Adam turns the rounding of a vanishing gradient into a full step."""
    settings = [*TINY, "batch=4", "steps=4", "validate_every=4", "checkpoint_every=4"]
    settings += ["freeze_encoder_statistics=no"]
    runs: list[Path] = []
    for processes in (1, 2):
        run = tmp_path / f"{processes}"
        more = ("--processes", str(processes), "--precision", "64-true")
        process = start(run, pool, *more, settings=settings)
        output = process.communicate(timeout=PATIENCE)[0]
        assert process.returncode == 0, output
        runs.append(run)
    one, two = runs
    assert_same_weights(one, two, tolerance=1e-7)


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


def test_learned_edges_that_lie_nowhere_are_told(tmp_path, pool, monkeypatch) -> None:
    """They once ended the process: torch's gradient at a place that is NaN does."""

    def spoilt(recipe):
        model = starting_model(recipe)
        torch.nn.init.constant_(model.first.heads.offset[-1].bias, torch.nan)
        return model

    monkeypatch.setattr("gbpn.train.loop.starting_model", spoilt)
    recipe = tiny("model.nonlocal_edges=2", "model.prior=True", "model.density=4")
    with pytest.raises(TrainingError, match=r"not finite at step 3.*gradient_norm nan"):
        train(recipe, pool, tmp_path / "run", machine=MACHINE)


def test_a_gradient_that_is_not_finite_costs_its_step_only(tmp_path, pool, monkeypatch, capsys) -> None:
    """Here the second step's; the run goes on, and the weights stay finite."""
    seen = []

    def spoilt(distribution, target, **options):
        loss = scale_free_loss(distribution, target, **options)
        seen.append(loss)
        if len(seen) == 2:
            loss.register_hook(lambda gradient: gradient * torch.nan)
        return loss

    monkeypatch.setattr("gbpn.train.learner.scale_free_loss", spoilt)
    outcome = train(tiny("steps=4"), pool, tmp_path / "run", machine=MACHINE)
    assert outcome.finished
    assert "skipped: step 1, no finite gradient" in capsys.readouterr().out
    assert all(tensor.isfinite().all() for tensor in final_state(tmp_path / "run")["model"].values())


def test_one_trained_stage_becomes_the_first_of_two(tmp_path, pool) -> None:
    train(tiny("steps=2"), pool, tmp_path / "one", machine=MACHINE)
    best = tmp_path / "one" / "best.safetensors"
    settings = ["steps=1", f"start_from={best}", "model.width=1", "peak_rate=1e-12"]
    settings += ["model.iterations=(2, 2)", "model.second_stage=refine"]
    train(tiny(*settings), pool, tmp_path / "two", machine=MACHINE)
    one, two = opened(best), opened(tmp_path / "two" / "last.safetensors")
    assert two.config.stages == 2
    for name, tensor in one.first.named_parameters():
        torch.testing.assert_close(two.first.get_parameter(name), tensor, rtol=0, atol=1e-5)


def test_the_first_stage_of_other_weights(tmp_path, pool) -> None:
    for name, seed in (("one", 1), ("two", 2)):
        train(tiny("steps=2", f"seed={seed}", "peak_rate=0.1"), pool, tmp_path / name, machine=MACHINE)
    one, other = (tmp_path / name / "last.safetensors" for name in ("one", "two"))
    settings = ["steps=1", f"start_from={one}", f"first_stage_from={other}", "model.width=1"]
    settings += ["peak_rate=1e-12", "model.iterations=(2, 2)", "model.second_stage=refine"]
    train(tiny(*settings), pool, tmp_path / "both", machine=MACHINE)
    both = opened(tmp_path / "both" / "last.safetensors")
    for name, tensor in opened(other).first.named_parameters():
        torch.testing.assert_close(both.first.get_parameter(name), tensor, rtol=0, atol=1e-5)
    save(build("v1", width=0.25), tmp_path / "affine.safetensors")
    settings = [f"start_from={one}", f"first_stage_from={tmp_path / 'affine.safetensors'}", "model.width=1"]
    with pytest.raises(CheckpointError, match="has no first stage to take"):
        train(tiny(*settings), pool, tmp_path / "affine", machine=MACHINE)
    with pytest.raises(InputError, match="got no start_from"):
        train(tiny(f"first_stage_from={other}"), pool, tmp_path / "none", machine=MACHINE)


def test_a_frozen_first_stage_stays_as_it_is(tmp_path, pool) -> None:
    train(tiny("steps=2"), pool, tmp_path / "one", machine=MACHINE)
    best = tmp_path / "one" / "best.safetensors"
    settings = [f"start_from={best}", "model.width=1", "freeze_first_stage=yes", "peak_rate=0.1"]
    settings += ["model.iterations=(2, 2)", "model.second_stage=refine"]
    train(tiny(*settings), pool, tmp_path / "two", machine=MACHINE)
    one, two = opened(best), opened(tmp_path / "two" / "last.safetensors")
    for name, tensor in one.first.state_dict().items():
        torch.testing.assert_close(two.first.state_dict()[name], tensor, rtol=1e-6, atol=1e-7)
    assert bool(two.second.last.weight.any())
    with pytest.raises(InputError, match="freeze_first_stage needs a model of two stages"):
        train(tiny("freeze_first_stage=yes"), pool, tmp_path / "three", machine=MACHINE)


def test_convert_fits_sigma_to_any_weights(tmp_path, pool) -> None:
    source, target = tmp_path / "in.safetensors", tmp_path / "out.safetensors"
    torch.manual_seed(0)
    save(build("small", width=0.25), source)
    command = ["convert", str(source), str(target), "--calibrate", str(pool), "--holdout", "0.5"]
    result = CliRunner().invoke(app, command)
    assert result.exit_code == 0, result.output
    assert "sigma is fitted on" in result.output
    assert load(source).calibration is None
    assert load(target).calibration is not None


def test_convert_changes_what_needs_no_training(tmp_path) -> None:
    source, target = tmp_path / "in.safetensors", tmp_path / "out.safetensors"
    torch.manual_seed(0)
    save(build("small", width=0.25), source)
    command = ["convert", str(source), str(target), "--set"]
    result = CliRunner().invoke(app, [*command, "contrast=1.5", "--set", "iterations=(6,)"])
    assert result.exit_code == 0, result.output
    one, two = load(source), load(target)
    assert (two.config.contrast, two.config.iterations) == (1.5, (6,))
    for name, tensor in one.state_dict().items():
        assert torch.equal(two.state_dict()[name], tensor)
    result = CliRunner().invoke(app, [*command, "detail=0"])
    assert result.exit_code != 0
    assert "asks for another network" in str(result.exception) + result.output


def test_weights_that_do_not_fit_say_so(tmp_path, pool) -> None:
    train(tiny("steps=1"), pool, tmp_path / "one", machine=MACHINE)
    best = tmp_path / "one" / "best.safetensors"
    with pytest.raises(CheckpointError, match="does not fit the model asked for"):
        train(tiny(f"start_from={best}", "model.head_width=20"), pool, tmp_path / "two", machine=MACHINE)
    settings = [f"start_from={best}", "model.width=1", "model.detail=0"]
    with pytest.raises(CheckpointError, match="which the model asked for has not"):
        train(tiny(*settings), pool, tmp_path / "three", machine=MACHINE)


def miniature(kind: str, root: Path) -> Path | None:
    """The smallest tree in the true format of a recipe's dataset."""
    rng = np.random.default_rng(1)

    def picture(path: Path, height: int, width: int) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(rng.integers(0, 255, (height, width, 3), dtype=np.uint8)).save(path)

    def depth16(path: Path, height: int, width: int) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        measured = rng.random((height, width)) < 0.05
        Image.fromarray((measured * rng.uniform(3, 60, (height, width)) * 256).astype(np.uint16)).save(path)

    if kind == "nyuv2":
        h5py = pytest.importorskip("h5py")
        for scene in ("attic", "den"):
            (root / "train" / scene).mkdir(parents=True)
            with h5py.File(root / "train" / scene / "00001.h5", "w") as file:
                file["rgb"] = rng.integers(0, 255, (3, 480, 640), dtype=np.uint8)
                file["depth"] = rng.uniform(1, 4, (480, 640)).astype(np.float32)
    if kind == "kitti":
        for number in (1, 2):
            drive = root / "train" / f"2011_09_26_drive_000{number}_sync"
            name = "image_02/0000000005.png"
            picture(drive / "image_02/data/0000000005.png", 320, 1224)
            depth16(drive / "proj_depth/velodyne_raw" / name, 320, 1224)
            depth16(drive / "proj_depth/groundtruth" / name, 320, 1224)
            line = "P_rect_02: 721 0 609 44 0 721 172 0.2 0 0 1 0.003"
            (drive / "calib_cam_to_cam.txt").write_text(line + "\n")
    if kind == "folder":
        for number in (1, 2):
            picture(root / f"rgb/{number}.png", 80, 120)
            (root / "gt").mkdir(exist_ok=True)
            np.save(root / f"gt/{number}.npy", rng.uniform(1, 4, (80, 120)).astype(np.float32))
        (root / "intrinsics.txt").write_text("100 100 59.5 39.5")
    return root if kind in ("nyuv2", "kitti", "folder") else None


@pytest.mark.parametrize("name", RECIPES)
def test_every_recipe_runs_two_epochs(tmp_path, pool, name: str) -> None:
    """At the smallest width and crop, on a few frames in the true format."""
    kind = named(name).dataset
    data = pool if kind == "pool" else miniature(kind, tmp_path / "data")
    settings = ["imagenet=no", "batch=1", "validate_every=2", "validation_limit=1", "checkpoint_every=2"]
    settings += ["average_from=0", *(["model.width=0.125"] if not named(name).start_from else [])]
    settings += ["augmentation.height=64", "augmentation.width=96"]
    settings += ["batch=4", "steps=4"] if kind == "pool" else ["steps=2"]  # two epochs: of 7 frames, or of 1
    if kind == "synthetic":
        settings += ["dataset.count=1", "dataset.height=72", "dataset.width=96"]
    if kind == "kitti":
        settings += ["dataset.height=64", "dataset.width=96"]
    outcome = train(named(name).changed(settings), data, tmp_path / "run", machine=MACHINE)
    assert outcome.finished
    assert outcome.best_rmse is not None


def test_small_overfits_eight_synthetic_scenes(tmp_path) -> None:
    """From 60 measurements each, on its own eight rooms, below the stated relative error."""
    options = {"count": 8, "height": 64, "width": 96, "kinds": ("room",)}
    settings = ["imagenet=no", "freeze_encoder_statistics=no", "steps=60", "batch=4", "validate_every=60"]
    settings += ["average_from=50", "average_decay=0.8", "validation_limit=1", "checkpoint_every=60"]
    settings += [f"dataset.{key}={value!r}" for key, value in options.items()]
    settings += ["augmentation.height=64", "augmentation.width=96", "augmentation.pattern=points:60"]
    settings += ["augmentation.zoom=1.0", "augmentation.degrees=0", "augmentation.jitter=0"]
    settings += ["augmentation.depth_variation=0", "peak_rate=1e-2", "encoder_rate=1.0", "clip_norm=10"]
    settings += ["model.encoder='global-local'", "model.block='convolution'", "model.width=0.25"]
    settings += ["model.contrast=0"]  # which would know these rooms without any training
    recipe = named("synthetic").changed(settings)
    train(recipe, None, tmp_path / "run", machine=MACHINE)
    torch.manual_seed(recipe.seed)
    rooms = open_dataset("synthetic", "", "train", **options)
    before = relative_error(build(recipe.model, **recipe.model_options), rooms)
    after = relative_error(load(tmp_path / "run" / "last.safetensors"), rooms)
    print(f"relative error {before:.4f} before, {after:.4f} after")
    assert after < OVERFIT_ERROR < before


OVERFIT_ERROR = 0.1
"""Mean |error| / depth that an overfitted model must get below, and an untrained one does not."""


def relative_error(model: torch.nn.Module, frames) -> float:
    model.eval()
    table = MetricTable()
    for index in range(len(frames)):
        sample = sparsify(frames.load(index), "points:60", np.random.default_rng(index))
        with torch.inference_mode():
            answer = model(sample.image[None], sample.sparse[None], sample.intrinsics[None])
        table.update(answer.mean, sample.target[None], names=[sample.name])
    return table.averages()["rel"]
