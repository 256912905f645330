"""Chains: stages that start from each other, continue, and end in one file."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
import torch
from test_runs import MACHINE, pool
from typer.testing import CliRunner

from gbpn.cli import app
from gbpn.errors import InputError, TrainingError
from gbpn.model.loading import load
from gbpn.train import chain
from gbpn.train.run_folder import RunFolder
from gbpn.train.starting_model import starting_model

__all__ = ["pool"]

MINIATURE = [
    "first:model.width=0.25",
    "imagenet=no",
    "batch=2",
    "steps=2",
    "validate_every=2",
    "validation_limit=1",
    "checkpoint_every=1",
    "average_from=1",
    "augmentation.height=64",
    "augmentation.width=64",
    "dataset.cache=False",
]


@pytest.fixture(scope="module")
def made(tmp_path_factory, pool) -> Path:
    """The whole chain of the default weights in miniature."""
    out = tmp_path_factory.mktemp("chain")
    outcome = chain.run(chain.DEFAULT.changed(MINIATURE), pool, out, machine=MACHINE)
    assert outcome.finished
    return out


def test_the_chain_ends_in_weights_that_say_what_they_are(made) -> None:
    model = load(made / "default.safetensors")
    config = model.config
    assert (config.name, config.loss, config.stages) == ("small-prior", "scale-free", 2)
    assert config.nonlocal_edges == 3
    assert config.iteration_corrections
    assert config.prior
    assert config.density
    assert config.refine_units == (2, 1, 1, 1)
    assert config.agreement_trust == 32
    assert load(made / "larger" / "last.safetensors").config.agreement_trust == 1
    assert model.card["set_after_training"] == {"agreement_trust": 32}
    assert model.calibration is not None
    names = [stage["name"] for stage in model.card["stages"]]
    assert names == ["first", "second", "prior", "field", "whole", "settle", "larger"]
    assert model.card["trained_for"] == {"points": [1, 20000], "depth": [0.3, 14.0], "focal": 260.0}
    assert all(stage["hours"] > 0 for stage in model.card["stages"])
    assert "cores" in model.card["made_with"]["machine"]
    assert "command" not in model.card["made_with"]  # which would tell where things lay
    assert str(made) not in json.dumps(model.card)
    image, sparse = torch.rand(1, 3, 64, 64), torch.zeros(1, 1, 64, 64)
    sparse[..., 20, 30] = 2.0
    with torch.inference_mode():
        assert model(image, sparse).mean.isfinite().all()


def test_stages_keep_what_they_do_not_teach(made) -> None:
    second, prior, field = (load(made / name / "last.safetensors") for name in ("second", "prior", "field"))
    for name, tensor in second.first.encoder.named_parameters():
        assert torch.equal(prior.first.encoder.get_parameter(name), tensor)
        assert torch.equal(field.first.encoder.get_parameter(name), tensor)
    assert prior.first.prior.last.weight.any()
    assert not torch.equal(field.first.prior.last.weight, prior.first.prior.last.weight)
    assert field.second.response.constant.any()


def test_a_finished_chain_is_not_run_again(made, pool) -> None:
    def touched() -> dict[str, int]:
        return {str(file): file.stat().st_mtime_ns for file in made.glob("*/*.*")}

    before = touched()
    assert chain.run(chain.DEFAULT.changed(MINIATURE), pool, made, machine=MACHINE).finished
    assert touched() == before
    with pytest.raises(TrainingError, match="another recipe: seed differ"):
        chain.run(chain.DEFAULT.changed([*MINIATURE, "seed=9"]), pool, made, machine=MACHINE)


ROOMS = [*MINIATURE[1:], "map:model.width=0.25", "sizes=((0.0, 64, 64), (0.5, 64, 96))"]


@pytest.fixture(scope="module")
def free(tmp_path_factory, pool) -> Path:
    """The whole chain of the free weights in miniature."""
    out = tmp_path_factory.mktemp("free")
    outcome = chain.run(chain.FREE.changed(ROOMS), pool, out, machine=MACHINE)
    assert outcome.finished
    return out


def test_three_stages_from_nothing_make_the_free_weights(free) -> None:
    model = load(free / "free.safetensors")
    config = model.config
    assert (config.name, config.loss, config.stages) == ("small-smooth", "scale-free", 2)
    assert (config.upsampling, config.prior_decoder, config.nonlocal_edges) == ("smooth", "shared", 3)
    assert [stage["name"] for stage in model.card["stages"]] == ["map", "field", "second"]
    assert "research" not in model.card["licence"]
    assert "ImageNet" in model.card["training_data"]
    assert model.calibration is not None


def test_the_map_is_judged_as_a_map_and_learns_without_the_heads(free) -> None:
    head = (free / "map" / "validation.csv").read_text().splitlines()[0]
    assert head == "step,rmse,rel,correlation,normal_degrees"
    torch.manual_seed(1)  # as the run
    fresh = starting_model(chain.FREE.changed(ROOMS).stages[0].recipe).state_dict()
    trained = load(free / "map" / "last.safetensors").state_dict()
    moved = {
        name.split(".")[1]
        for name in trained
        if not torch.allclose(trained[name], fresh[name], rtol=1e-3, atol=1e-6)
    }
    assert {"encoder", "decoder", "prior"} <= moved
    assert "heads" not in moved


def test_the_second_stage_leaves_the_first_as_it_is(free) -> None:
    field, second = (load(free / name / "last.safetensors").state_dict() for name in ("field", "second"))
    for name, tensor in field.items():
        torch.testing.assert_close(second[name], tensor, msg=name)
    assert any(name.startswith("second.") for name in second)


def test_weights_that_exist_stand_for_their_stage(made, pool, tmp_path) -> None:
    (tmp_path / "field").mkdir()
    shutil.copy(made / "field" / "last.safetensors", tmp_path / "field")
    for name in ("first", "second", "prior"):
        (tmp_path / name).mkdir()
        shutil.copy(made / name / "last.safetensors", tmp_path / name)
    assert chain.given(RunFolder(tmp_path / "field"))
    assert chain.run(chain.DEFAULT.changed(MINIATURE), pool, tmp_path, machine=MACHINE).finished
    one, other = (load(root / "whole" / "last.safetensors") for root in (made, tmp_path))
    for name, tensor in one.named_parameters():
        torch.testing.assert_close(other.get_parameter(name), tensor, rtol=1e-4, atol=1e-5)
    assert load(tmp_path / "default.safetensors").card["stages"][3]["weights"] == "given"
    only = chain.Chain(name="default", stages=chain.DEFAULT.stages[:4], card=chain.DEFAULT.card)
    with pytest.raises(TrainingError, match="nothing to train"):
        chain.run(only.changed(MINIATURE), pool, tmp_path, machine=MACHINE)


def test_settings_reach_one_stage_or_all() -> None:
    changed = chain.DEFAULT.changed(["steps=7", "prior:batch=3"])
    assert {stage.recipe.steps for stage in changed.stages} == {7}
    assert [stage.recipe.batch == 3 for stage in changed.stages] == [False] * 2 + [True] + [False] * 4
    with pytest.raises(InputError, match="no stage 'frist'"):
        chain.DEFAULT.changed(["frist:steps=7"])
    assert chain.DEFAULT.scaled(0.5).stages[0].recipe.steps == 3000


def test_the_command_names_the_stages(tmp_path, pool) -> None:
    settings = [flag for setting in MINIATURE for flag in ("--set", setting)]
    words = ["train", "default", "--data", str(pool / "nothing"), "-o", str(tmp_path / "run"), *settings]
    result = CliRunner().invoke(app, [*words, "--workers", "0", "--no-progress"])
    assert "prior: 2 steps of 2; learns first.prior" in result.output
    assert result.exit_code != 0
