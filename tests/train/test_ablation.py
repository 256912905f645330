"""All nine rows of the ablation, trained by one command."""

from __future__ import annotations

import pytest
from test_runs import MACHINE, pool

from gbpn.errors import InputError
from gbpn.model.loading import load
from gbpn.train import ablation
from gbpn.train.progress import read_rows

__all__ = ["pool"]

MINIATURE = [
    "batch=1",
    "steps=1",
    "validate_every=1",
    "validation_limit=1",
    "checkpoint_every=1",
    "average_from=0",
    "model.width=0.125",
    "augmentation.height=64",
    "augmentation.width=64",
    "dataset.scenes=None",
]


def test_rows_differ_in_the_model_and_its_loss_only() -> None:
    chosen = ablation.recipes([])
    assert list(chosen) == [f"v{n}" for n in range(1, 10)]
    assert [name for name, recipe in chosen.items() if recipe.loss == "l2"] == ["v1"]
    assert {recipe.loss for name, recipe in chosen.items() if name != "v1"} == {"probability"}
    alike = {str({**recipe.as_dict(), "model": "", "loss": ""}) for recipe in chosen.values()}
    assert len(alike) == 1


def test_some_rows_with_another_seed() -> None:
    chosen = ablation.recipes(["rows=v3, v4", "seed=2", "steps=600"])
    assert list(chosen) == ["v3-seed2", "v4-seed2"]
    assert [recipe.model for recipe in chosen.values()] == ["v3", "v4"]
    assert {(recipe.seed, recipe.steps) for recipe in chosen.values()} == {(2, 600)}
    (two_stages,) = ablation.recipes(["rows=gbpn-2"]).values()
    assert (two_stages.model, two_stages.loss) == ("gbpn-2", "probability")
    with pytest.raises(InputError, match="no row 'v0'"):
        ablation.recipes(["rows=v0"])


def test_one_command_trains_them_all(tmp_path, pool) -> None:
    chosen = {
        name: recipe for name, recipe in ablation.recipes(MINIATURE).items() if name in ("v1", "v2", "v9")
    }
    assert ablation.run(chosen, pool, tmp_path, machine=MACHINE).finished
    files = sorted(path.name for path in (tmp_path / "weights").iterdir())
    assert files == ["v1.safetensors", "v2.safetensors", "v9.safetensors"]
    losses = {name: load(tmp_path / "weights" / f"{name}.safetensors").config.loss for name in chosen}
    assert losses == {"v1": "l2", "v2": "probability", "v9": "probability"}
    one, two = (float(read_rows(tmp_path / name / "steps.csv")[0]["loss"]) for name in ("v1", "v2"))
    assert one != pytest.approx(two)  # the same start and frames: another loss
    again = ablation.run(chosen, pool, tmp_path, machine=MACHINE)
    assert again.finished
