"""Commands that once ended in a traceback: each now says in one error what was wrong."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

import gbpn
from gbpn import cli
from gbpn.files.guard import LONGEST_MESSAGE
from gbpn.weights.files import save

Command = Callable[..., tuple[int, str]]


@pytest.fixture
def command(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Command:
    def run(*words: object) -> tuple[int, str]:
        monkeypatch.setattr("sys.argv", ["gbpn", *map(str, words)])
        with pytest.raises(SystemExit) as stopped:
            cli.main()
        printed = capsys.readouterr()
        assert "Traceback" not in printed.out + printed.err
        return int(stopped.value.code or 0), printed.out + printed.err

    return run


def refused(answer: tuple[int, str], *words: str) -> None:
    code, told = answer
    assert code == 2, told
    line = next(line for line in told.splitlines() if "error" in line)
    assert len(line) <= LONGEST_MESSAGE + 20
    for word in words:
        assert word in told


@pytest.fixture
def cloud(tmp_path: Path) -> Path:
    np.save(tmp_path / "cloud.npy", np.random.default_rng(0).uniform((-1, -1, 2), (1, 1, 4), (50, 3)))
    return tmp_path / "cloud.npy"


def test_a_size_that_no_memory_holds(command: Command, cloud: Path, tmp_path: Path) -> None:
    words = ["project", cloud, "--intrinsics", "500,500,320,240", "-o", tmp_path / "d.png"]
    refused(command(*words, "--size", "999999x999999"), "999999×999999", "GBPN_MAX_MEGAPIXELS")
    assert not (tmp_path / "d.png").exists()


@pytest.mark.parametrize("numbers", ["nan,500,320,240", "500,inf,320,240", "0,500,320,240", "10,10,320,240"])
def test_cameras_that_are_none(command: Command, cloud: Path, tmp_path: Path, numbers: str) -> None:
    words = ["project", cloud, "--intrinsics", numbers, "--size", "640x480", "-o", tmp_path / "d.png"]
    refused(command(*words), "intrinsics")


def test_projections_that_cannot_be_written(command: Command, cloud: Path, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    words = ["project", cloud, "--intrinsics", "500,500,320,240", "--size", "640x480", "-o"]
    refused(command(*words, tmp_path / "file" / "d.png"), "cannot be written")
    (tmp_path / "folder.npy").mkdir()
    refused(command(*words, tmp_path / "folder.npy"), "cannot be written")


def test_conversions_that_cannot_be_written(command: Command, tmp_path: Path) -> None:
    torch.manual_seed(0)
    weights = save(gbpn.build("small", width=0.25), tmp_path / "w.safetensors")
    (tmp_path / "file").write_text("")
    refused(command("convert", weights, tmp_path / "file" / "new.safetensors"), "cannot be written")
    (tmp_path / "folder.safetensors").mkdir()
    refused(command("convert", weights, tmp_path / "folder.safetensors"), "cannot be written")


def test_runs_that_cannot_be_written(command: Command, tmp_path: Path) -> None:
    pytest.importorskip("lightning_fabric", reason="training needs gbpn[train]")
    (tmp_path / "file").write_text("")
    words = ["train", "synthetic", "--accelerator", "cpu", "--workers", 0, "--no-progress", "-o"]
    refused(command(*words, tmp_path / "file" / "run"), "file")


@pytest.mark.parametrize("damage", ["image", "target"])
def test_an_evaluation_in_which_every_frame_fails(command: Command, tmp_path: Path, damage: str) -> None:
    """The reason stands in the error, not only in frames.jsonl."""
    for name in ("rgb", "sparse", "gt"):
        (tmp_path / name).mkdir()
    for frame in ("a", "b"):
        Image.fromarray(np.full((40, 48, 3), 9, np.uint8)).save(tmp_path / "rgb" / f"{frame}.png")
        for name in ("sparse", "gt"):
            np.save(tmp_path / name / f"{frame}.npy", np.full((40, 48), 2.0, np.float32))
        place = (
            tmp_path
            / ("rgb" if damage == "image" else "gt")
            / (f"{frame}.png" if damage == "image" else f"{frame}.npy")
        )
        place.write_bytes(place.read_bytes()[:60])
    (tmp_path / "intrinsics.txt").write_text("40 40 24 20")
    words = ["eval", "folder", "--data", tmp_path, "-o", tmp_path / "report", "--method", "nearest"]
    refused(command(*words), "no frame could be evaluated", "not a readable", "frames.jsonl")


def test_outliers_are_dropped_told_and_crossed_out_or_kept(command: Command, tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    Image.fromarray(rng.integers(90, 110, (96, 128, 3), dtype=np.uint8)).save(tmp_path / "i.png")
    depth = np.zeros((96, 128), np.float32)
    depth.reshape(-1)[rng.choice(depth.size, 300, replace=False)] = 2.0
    row, column = np.argwhere(depth > 0)[150]
    depth[row, column] = 6.0
    np.save(tmp_path / "d.npy", depth)
    words = ["complete", tmp_path / "i.png", tmp_path / "d.npy", "--device", "cpu"]
    code, told = command(*words, "-o", tmp_path / "drop")
    assert code == 0, told
    assert "1 measurement that the" in told
    assert "--outliers keep" in told
    assert json.loads((tmp_path / "drop" / "i.json").read_text())["dropped"] == [f"{column},{row},6"]
    code, told = command(*words, "-o", tmp_path / "keep", "--outliers", "keep")
    assert "--outliers" not in told
    answers = [np.load(tmp_path / name / "i_depth.npy")[row, column] for name in ("drop", "keep")]
    assert abs(answers[0] - 2) < abs(answers[1] - 2)
    refused(command(*words, "-o", tmp_path / "x", "--outliers", "some"), "keep", "drop")
