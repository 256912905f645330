"""Weight files: what is written comes back, and what is wrong is named."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
import torch
from safetensors import safe_open
from safetensors.torch import save_file
from typer.testing import CliRunner

import gbpn
from gbpn.cli import app
from gbpn.config import CONFIGS, ModelConfig, named
from gbpn.distribution import SigmaCalibration
from gbpn.errors import CheckpointError, InputError
from gbpn.files import atomic as atomic_files
from gbpn.model.loading import load
from gbpn.weights import hub
from gbpn.weights.files import CHECKSUM, save
from gbpn.weights.released import to_released

TINY = {"width": 0.125, "dilations": ((1,),) * 5}
CARD = {"licence": "MIT", "training_data": "made up", "numbers": {"rmse": 0.1}}


@pytest.fixture
def model() -> gbpn.GBPN:
    torch.manual_seed(0)
    model = gbpn.build("narrow", **TINY, iterations=(2,))
    for parameter in model.parameters():
        torch.nn.init.normal_(parameter, std=0.05)
    model.card = CARD
    model.calibration = SigmaCalibration(knots=(-1.0, 2.0), log_std=(0.5, -1.0), relative=True)
    return model.eval()


def same_state(a: torch.nn.Module, b: torch.nn.Module, **tolerance: float) -> None:
    wanted, got = a.state_dict(), b.state_dict()
    assert wanted.keys() == got.keys()
    for name, tensor in wanted.items():
        torch.testing.assert_close(got[name], tensor, **(tolerance or {"rtol": 0, "atol": 0}))


@pytest.mark.parametrize("name", CONFIGS)
def test_every_configuration_survives_json(name: str) -> None:
    config = named(name)
    assert ModelConfig.from_dict(json.loads(json.dumps(config.as_dict()))) == config


def test_a_file_carries_everything(model: gbpn.GBPN, tmp_path: Path) -> None:
    path = save(model, tmp_path / "new" / "tiny.safetensors")
    loaded = gbpn.load(path)
    same_state(model, loaded)
    assert loaded.config == model.config
    assert loaded.card == CARD
    assert loaded.calibration == model.calibration
    assert not loaded.training
    assert list(path.parent.iterdir()) == [path]  # no temporary file is left


def test_half_storage_keeps_statistics_and_halves_the_size(model: gbpn.GBPN, tmp_path: Path) -> None:
    full = save(model, tmp_path / "full.safetensors")
    half = save(model, tmp_path / "half.safetensors", half=True)
    assert half.stat().st_size < 0.75 * full.stat().st_size
    loaded = gbpn.load(half)
    same_state(model, loaded, rtol=1e-3, atol=1e-6)
    assert {t.dtype for t in loaded.state_dict().values()} == {torch.float32, torch.int64}
    with safe_open(half, "pt") as file:
        assert file.get_tensor("first.encoder.stem.0.norm.running_var").dtype == torch.float32


def test_overrides_reach_any_field(model: gbpn.GBPN, tmp_path: Path) -> None:
    path = save(model, tmp_path / "tiny.safetensors")
    loaded = gbpn.load(path, image_mean=(0, 0, 0), image_std=(1, 1, 1), backend="reference")
    assert loaded.config.image_mean == (0, 0, 0)
    assert loaded.backend == "reference"
    with pytest.raises(CheckpointError, match="unknown config field 'colour'"):
        gbpn.load(path, colour="red")
    with pytest.raises(CheckpointError, match=r"does not fit .* of another shape \(first: first\.heads"):
        gbpn.load(path, neighbours=4)


def test_a_folder_by_the_hubs_conventions(model: gbpn.GBPN, tmp_path: Path) -> None:
    folder = model.save_pretrained(tmp_path / "folder")
    assert {f.name for f in folder.iterdir()} == {"config.json", "model.safetensors", "README.md"}
    assert ModelConfig.from_dict(json.loads((folder / "config.json").read_text())) == model.config
    assert "license: mit" in (folder / "README.md").read_text()
    same_state(model, gbpn.load(folder))


def test_the_model_card_is_one_that_the_hub_reads(tmp_path: Path) -> None:
    """Of the embedded weights: licence, data and numbers, through the hub's own reader."""
    hub_library = pytest.importorskip("huggingface_hub", reason="needs pip install gbpn[hub]")
    model = gbpn.load("default")
    card = hub_library.ModelCard.load(model.save_pretrained(tmp_path / "folder") / "README.md")
    assert card.data.license == "other"
    assert card.data.library_name == "gbpn"
    assert card.data.pipeline_tag == "depth-estimation"
    assert card.data.datasets
    assert card.data.metrics
    results = {result.metric_type: result.metric_value for result in card.data.eval_results}
    assert results["rmse"] == model.card["numbers"]["rmse"]
    for heading in ("## Use", "## Licence", "## Training data", "## Numbers", "## Limits"):
        assert heading in card.text
    assert model.card["licence"] in card.text


def test_what_is_wrong_with_a_file_is_named(model: gbpn.GBPN, tmp_path: Path) -> None:
    good = save(model, tmp_path / "good.safetensors")
    with safe_open(good, "pt") as file:
        metadata = {key: value for key, value in file.metadata().items() if key != CHECKSUM}
    state = model.state_dict()

    cut = tmp_path / "cut.safetensors"
    cut.write_bytes(good.read_bytes()[:-1000])
    with pytest.raises(CheckpointError, match="truncated"):
        gbpn.load(cut)
    not_torch = tmp_path / "cut.pth"
    not_torch.write_bytes(b"PK\x03\x04 nothing")
    with pytest.raises(CheckpointError, match="truncated"):
        gbpn.load(not_torch)

    gone = "first.decoder.levels.0.up.conv.weight"
    save_file({n: t for n, t in state.items() if n != gone}, tmp_path / "gone.safetensors", metadata)
    with pytest.raises(CheckpointError, match=rf"1 missing \(first: {gone}\)"):
        gbpn.load(tmp_path / "gone.safetensors")
    save_file({**state, "more": torch.zeros(1)}, tmp_path / "more.safetensors", metadata)
    with pytest.raises(CheckpointError, match=r"1 unknown \(first: more\)"):
        gbpn.load(tmp_path / "more.safetensors")
    save_file(state, tmp_path / "old.safetensors", {**metadata, "version": "99"})
    with pytest.raises(CheckpointError, match="version '99'"):
        gbpn.load(tmp_path / "old.safetensors")
    save_file(state, tmp_path / "bare.safetensors")
    with pytest.raises(CheckpointError, match="no configuration inside"):
        gbpn.load(tmp_path / "bare.safetensors")
    torch.save([1, 2], tmp_path / "list.pth")
    with pytest.raises(CheckpointError, match="tensors by name"):
        gbpn.load(tmp_path / "list.pth")
    with pytest.raises(CheckpointError, match="no weights 'nowhere"):
        gbpn.load("nowhere.pth")
    with pytest.raises(CheckpointError, match="not a hub id"):
        gbpn.load("nowhere")


def test_a_mistyped_folder_is_not_looked_up_on_the_hub(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "runs").mkdir()
    with pytest.raises(CheckpointError, match="no weights 'runs/lost'"):
        gbpn.load("runs/lost")


def test_a_fused_model_is_not_saved(model: gbpn.GBPN, tmp_path: Path) -> None:
    with pytest.raises(CheckpointError, match="fused"):
        save(model.merged(), tmp_path / "fused.safetensors")


def test_an_unfinished_write_leaves_the_old_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = atomic_files.write_bytes(tmp_path / "file", b"old")

    def full_disk(*_: object) -> None:
        raise OSError("no space left")

    monkeypatch.setattr(os, "replace", full_disk)
    with pytest.raises(OSError, match="no space"):
        atomic_files.write_bytes(path, b"new")
    assert path.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [path]


def test_which_file_of_a_hub_repository() -> None:
    theirs = ["README.md", "GBPN_NYU/result_ema.pth", "GBPN_KITTI/result_ema.pth", "GBPN_NYU/result.pth"]
    assert hub.choose(theirs, "GBPN_NYU", "a/b/GBPN_NYU") == "GBPN_NYU/result_ema.pth"
    assert hub.choose(["config.json", "model.safetensors"], "", "a/b") == "model.safetensors"
    assert hub.choose(theirs[:2], "", "a/b") == "GBPN_NYU/result_ema.pth"
    with pytest.raises(CheckpointError, match="name one: a/b/GBPN_KITTI, a/b/GBPN_NYU"):
        hub.choose(theirs, "", "a/b")
    with pytest.raises(CheckpointError, match="neither"):
        hub.choose(["README.md"], "", "a/b")


def test_a_released_file_with_missing_tensors_is_refused(tmp_path: Path) -> None:
    model = gbpn.build("gbpn-2", width=0.125)
    state = to_released(model.state_dict())
    gone = state.pop("unets.1.dist")
    path = tmp_path / "released.pth"
    torch.save({"net": state, "epoch": 1, "best_metric": 0.1}, path)
    with pytest.raises(CheckpointError, match=r"1 missing, 0 unknown; unets\.1\.dist is missing"):
        gbpn.load(path, width=0.125)
    torch.save({"net": {**state, "unets.1.dist": gone}, "epoch": 1, "best_metric": 0.1}, path)
    same_state(model, gbpn.load(path, width=0.125))


def test_convert_and_info(released_file: Path, tmp_path: Path) -> None:
    """A released file of full width, from the command line."""
    run, target = CliRunner().invoke, tmp_path / "out.safetensors"
    result = run(app, ["convert", str(released_file), str(target), "--half", "--config", "gbpn-2-kitti"])
    assert result.exit_code == 0, result.output
    assert "gbpn-2-kitti, 1182 tensors" in result.output
    result = run(app, ["info", str(target), "--json"])
    assert result.exit_code == 0, result.output
    facts = json.loads(result.output)
    assert facts["parameters"] == 40_112_462
    assert facts["licence"] == "MIT"
    assert facts["config"]["name"] == "gbpn-2-kitti"
    with safe_open(target, "pt") as file:
        assert file.get_tensor("first.distance").item() == 0.984375  # read from the file, not assumed
    with pytest.raises(InputError, match="must end in"):
        run(app, ["convert", str(released_file), str(tmp_path / "out.bin")], catch_exceptions=False)


def test_info_lists_configurations_and_backends() -> None:
    result = CliRunner().invoke(app, ["info"])
    assert result.exit_code == 0, result.output
    for name in (*CONFIGS, "reference", "cpu", "triton"):
        assert name in result.output
    result = CliRunner().invoke(app, ["info", "small"])
    assert "untrained" in result.output


def test_convert_takes_a_card(tmp_path: Path) -> None:
    runner = CliRunner()
    source, target, card = tmp_path / "in.safetensors", tmp_path / "out.safetensors", tmp_path / "card.json"
    save(gbpn.build("narrow", **TINY), source)
    card.write_text('{"licence": "MIT", "numbers": {"rmse": 0.1}}')
    assert runner.invoke(app, ["convert", str(source), str(target), "--card", str(card)]).exit_code == 0
    assert load(target).card == {"licence": "MIT", "numbers": {"rmse": 0.1}}
    card.write_text("not json")
    with pytest.raises(InputError, match=r"card\.json: not a readable JSON file"):
        runner.invoke(app, ["convert", str(source), str(target), "--card", str(card)], catch_exceptions=False)
