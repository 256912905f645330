"""The paper's ablation, V1 to V9, at one reduced width and one budget: one command trains all nine.

    RUN/<name>/               a run as `gbpn.train.loop.train` leaves it
    RUN/weights/<name>.safetensors    what `gbpn eval --suite ablation --weights RUN/weights` reads

Runs are independent of each other: the same frames in the same order, the same steps, each with the loss that
its configuration names (V1 alone learns by squared errors). A finished run is not run again. `rows=v3,v4`
trains these alone, and runs with another seed stand beside the first ones as `v3-seed2`: the table takes
their mean. V9 is GBPN-1; `rows=gbpn-2` trains the two-stage model at the same width and budget.
"""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

from gbpn.config import named
from gbpn.errors import InputError
from gbpn.train.loop import Machine, TrainingResult, train
from gbpn.train.recipe import POOL, Recipe
from gbpn.train.run_folder import RunFolder

__all__ = ["NAMES", "WIDTH", "recipes", "run"]

NAMES = tuple(f"v{number}" for number in range(1, 10))
_FURTHER = ("gbpn-2",)
"""Trained where asked for; no row of the paper's table."""
WIDTH = 0.25
"""Of every layer, against the published networks."""

_RECIPE = replace(
    POOL,
    model_options={"width": WIDTH},
    dataset_options={"holdout": 0.05, "cache": True, "scenes": ("nyuv2/train",)},
    augmentation_options={"pattern": "points:500", "grey": 0.0},
    validation_limit=40,
    steps=1_500,
    batch=4,
    peak_rate=2e-3,
    end_rate=0.02,
    rate_noise=0.0,
    clip_norm=0.1,
    skip_norm=50.0,
    skip_after=500,
    average_decay=0.99,
    average_from=1_000,
    validate_every=750,
    checkpoint_every=100,
)
"""The paper's loss, optimiser and clipping with 500 points; a schedule for processors."""


def recipes(settings: list[str], dial: float = 1.0) -> dict[str, Recipe]:
    """One recipe by name; they differ in the model, and so in its loss, only.

    Besides a recipe's own settings there is `rows=v3,v4`: only these.
    """
    chosen = [text for setting in settings for key, _, text in [setting.partition("=")] if key == "rows"]
    rows = [row.strip() for row in chosen[-1].split(",")] if chosen else list(NAMES)
    if unknown := [row for row in rows if row not in (*NAMES, *_FURTHER)]:
        known = ", ".join((*NAMES, *_FURTHER))
        raise InputError(f"no row {unknown[0]!r} in the ablation: choose from {known}")
    own = [setting for setting in settings if setting.partition("=")[0] != "rows"]
    base = _RECIPE.scaled(dial).changed(own)
    again = "" if base.seed == _RECIPE.seed else f"-seed{base.seed}"
    return {f"{row}{again}": replace(base, model=row, loss=named(row).loss) for row in rows}


def run(
    chosen: dict[str, Recipe], data: Path | None, out: Path, *, machine: Machine | None = None
) -> TrainingResult:
    """Train or continue each in turn; the outcome is that of the last, or of the one that was stopped."""
    outcome = None
    for name, recipe in chosen.items():
        folder = RunFolder(out / name)
        resume = (folder.path / "recipe.json").is_file()
        outcome = train(recipe, data, folder.path, resume=resume, machine=machine)
        if not outcome.finished:
            return outcome
        (out / "weights").mkdir(parents=True, exist_ok=True)
        shutil.copyfile(folder.last, out / "weights" / f"{name}.safetensors")
    assert outcome is not None
    return replace(outcome, folder=out)
