"""One command that makes weights: stages by name, each a recipe that starts from the stage before.

    RUN/<stage>/            a run as `gbpn.train.loop.train` leaves it
    RUN/<chain>.safetensors what the last stage ended with, in 16 bits, with sigma and a card

A stage that is finished is not run again, and one that was interrupted goes on, so the same command starts,
continues and ends a chain. Weights that exist already are put into the folder of the stage they stand for, as
`last.safetensors` without a `recipe.json`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from gbpn.datasets import open_dataset
from gbpn.errors import InputError, TrainingError
from gbpn.model.loading import load
from gbpn.model.models import from_config
from gbpn.train.checkpoints import step_of
from gbpn.train.credits import write_credits
from gbpn.train.loop import Machine, TrainingResult, train
from gbpn.train.progress import read_rows
from gbpn.train.recipe import SMALL, Recipe
from gbpn.train.run_folder import RunFolder, environment
from gbpn.train.sigma_calibration import calibrate
from gbpn.weights.files import save

__all__ = ["CHAINS", "DEFAULT", "FREE", "Chain", "Stage", "describe", "given", "run"]


@dataclass(frozen=True, kw_only=True)
class Stage:
    """A part of a chain."""

    name: str
    recipe: Recipe
    """Without `start_from`, which is the stage before."""

    @property
    def samples(self) -> int:
        return self.recipe.steps * self.recipe.batch


@dataclass(frozen=True, kw_only=True)
class Chain:
    """Stages in their order, and what their weights are for."""

    name: str
    stages: tuple[Stage, ...]
    card: dict[str, Any]
    """Licence, training data and limits to note in the file."""
    finished_with: Mapping[str, Any] = field(default_factory=dict)
    """Fields of the configuration that are set behind the last stage, before sigmas are fitted."""

    def scaled(self, dial: float) -> Chain:
        """Every stage shorter (or longer) by the same dial."""
        stages = tuple(replace(stage, recipe=stage.recipe.scaled(dial)) for stage in self.stages)
        return replace(self, stages=stages)

    def changed(self, settings: list[str]) -> Chain:
        """With `key=value` settings for every stage, or `STAGE:key=value` for one."""
        names = [stage.name for stage in self.stages]
        for setting in settings:
            stage, colon, _ = setting.partition("=")[0].partition(":")
            if colon and stage not in names:
                raise InputError(f"no stage {stage!r} in {self.name}: choose one of {', '.join(names)}")
        return replace(self, stages=tuple(_changed(stage, settings) for stage in self.stages))


def _changed(stage: Stage, settings: list[str]) -> Stage:
    own = []
    for setting in settings:
        name, colon, rest = setting.partition(":")
        if not (colon and "=" not in name):
            own.append(setting)
        elif name == stage.name:
            own.append(rest)
    return replace(stage, recipe=stage.recipe.changed(own))


def run(chain: Chain, data: Path | None, out: Path, *, machine: Machine | None = None) -> TrainingResult:
    """Run or continue every stage, then write the weights; stops after a stage that was asked to stop."""
    before = ""
    outcome = None
    for stage in chain.stages:
        folder = RunFolder(out / stage.name)
        recipe = replace(stage.recipe, start_from=before) if before else stage.recipe
        if _is_done(folder, recipe):
            outcome = TrainingResult(step=recipe.steps, finished=True, best_rmse=None, folder=folder.path)
        elif not given(folder):
            resume = (folder.path / "recipe.json").is_file()
            outcome = train(recipe, data, folder.path, resume=resume, machine=machine)
            if not outcome.finished:
                return outcome
        before = str(folder.last)
    if outcome is None:
        raise TrainingError(f"nothing to train in {out}: every stage holds weights that were put there")
    _finish(chain, data, out)
    return replace(outcome, folder=out)


def given(folder: RunFolder) -> bool:
    """Whether the weights of this stage were put there, and not trained there."""
    return folder.last.is_file() and not (folder.path / "recipe.json").is_file()


def _is_done(folder: RunFolder, recipe: Recipe) -> bool:
    """Whether a stage has made all its steps, and its weights have their sigmas."""
    newest = folder.checkpoints.latest()
    if newest is None or step_of(newest) < recipe.steps or not folder.last.is_file():
        return False
    folder.open(recipe, resume=True)  # raises where the stage was another one
    return load(folder.last).calibration is not None


def _finish(chain: Chain, data: Path | None, out: Path) -> None:
    """The weights of the last stage as they ship: sigma fitted on all held-out frames, card inside."""
    last = chain.stages[-1]
    trained = load(out / last.name / "last.safetensors")
    model = from_config(trained.config.overridden(chain.finished_with))
    model.load_state_dict(trained.state_dict())
    options = {key: value for key, value in last.recipe.dataset_options.items() if key != "scenes"}
    frames = open_dataset(last.recipe.dataset, data or Path(), "validation", **options)
    model.calibration = calibrate(model, frames, len(frames))
    card = {**chain.card, "stages": [_told(stage, out) for stage in chain.stages], "made_with": environment()}
    if chain.finished_with:
        card["set_after_training"] = dict(chain.finished_with)
    card["made_with"].pop("command", None)
    card["trained_for"] = {"points": _points(last.recipe), **chain.card["trained_for"]}
    save(model, out / f"{chain.name}.safetensors", half=True, card=card)
    if data is not None:
        write_credits(data, out)


def _told(stage: Stage, out: Path) -> dict[str, Any]:
    """What the card says of a stage."""
    if given(RunFolder(out / stage.name)):
        return {"name": stage.name, "weights": "given"}
    told = {"name": stage.name, "steps": stage.recipe.steps, "batch": stage.recipe.batch}
    paces = [float(row["samples_per_s"]) for row in read_rows(out / stage.name / "steps.csv")]
    if not paces:
        return told
    # of recorded steps, which are evenly spaced; without loading and validation
    hours = stage.samples * sum(1 / pace for pace in paces) / len(paces) / 3600
    return told | {"hours": float(f"{hours:.2g}")}


def _points(recipe: Recipe) -> list[int]:
    from gbpn.sensors.sampling import ANY_NUMBER

    if recipe.augmentation_options.get("extremes"):
        return list(ANY_NUMBER)
    return list(recipe.augmentation_options.get("points", ANY_NUMBER))


def describe(chain: Chain) -> str:
    """A line for each stage."""
    lines = []
    for stage in chain.stages:
        learns = ", ".join(stage.recipe.learns) or ("second" if stage.recipe.freeze_first_stage else "all")
        lines.append(f"{stage.name}: {stage.recipe.steps} steps of {stage.recipe.batch}; learns {learns}")
    return "\n".join(lines)


_POOL = {"holdout": 0.05, "cache": True, "repeat": {"kitti": 2}}

_FIRST = replace(
    SMALL,
    model="small",
    model_options={"iterations": (3,)},
    alpha2=20.0,
    dataset_options=_POOL,
    augmentation_options={"points": (100, 5000), "others": 0.1, "corrupted": 0.0, "native": 0.5},
    steps=6_000,
    peak_rate=2e-3,
    end_rate=0.03,
    average_decay=0.995,
    average_from=2_400,
    validate_every=500,
)
"""One stage of network and inference, from ImageNet, with a narrow choice of sensors: variety costs."""

_SECOND = replace(
    _FIRST,
    imagenet=False,
    model_options={"iterations": (3, 4), "second_stage": "refine", "name": "small-2", "contrast": 1.4},
    freeze_first_stage=True,
    freeze_statistics=True,
    alpha2=30.0,
    augmentation_options={
        "points": (50, 5000),
        "others": 0.08,
        "corrupted": 0.05,
        "native": 1.0,
        "flip": 0.0,
    },
    steps=4_000,
    peak_rate=1.2e-3,
    end_rate=0.02,
    average_from=2_400,
    average_decay=0.99,
)
"""A second stage on top of it, on frames that are not mirrored: depth cameras err on one side of things."""

_PRIOR = replace(
    _SECOND,
    model_options={
        "prior": True,
        "density": 12,
        "start": {"share": 0.07, "share_of_few": 1.0, "trust_in_many": 2.8},
    },
    freeze_first_stage=False,
    freeze_statistics=False,
    learns=("first.prior",),
    loss="shape",
    augmentation_options={"points": (1, 10), "others": 0.0, "corrupted": 0.0, "native": 0.2},
    steps=3_000,
    peak_rate=3e-3,
    average_from=2_200,
    validate_every=1_500,
    checkpoint_every=100,
)
"""The depth-like map alone: no inference, so many frames in little time. Mirrored frames are as good here."""

_FIELD = replace(
    _SECOND,
    freeze_first_stage=False,
    model_options={},
    learns=("first.prior", "first.heads.prior", "first.response", "second"),
    first_stage=0.3,
    prior=0.1,
    augmentation_options={
        "points": (50, 5000),
        "extremes": 0.4,
        "others": 0.15,
        "corrupted": 0.05,
        "native": 0.7,
        "flip": 0.0,
    },
    steps=150,
    batch=4,
    peak_rate=1e-3,
    average_from=100,
    average_decay=0.98,
    validate_every=150,
    checkpoint_every=50,
)
"""How far the map and the density of the measurements change the field; the rest of the first stage stays."""

_WHOLE = replace(
    _FIELD,
    model_options={
        "name": "small-prior",
        "nonlocal_edges": 3,
        "nonlocal_steps": 2,
        "iteration_corrections": True,
        "refine_units": (0, 0, 1, 1),
        "start": {"learned": 0.005, "offset": 8.0},
    },
    learns=(),
    steps=1_100,
    peak_rate=7e-4,
    average_from=750,
    average_decay=0.99,
    validate_every=550,
)
"""Learned edges, parameters by iteration and attention in the second stage join; everything learns."""

_SETTLE = replace(
    _WHOLE,
    model_options={},
    augmentation_options={**_WHOLE.augmentation_options, "extremes": 0.3, "native": 0.85},
    steps=1_500,
    peak_rate=3e-4,
    average_from=900,
    average_decay=0.995,
    validate_every=750,
)
"""The same at a lower rate, on more frames as they are: what the new parts disturbed settles."""

_LARGER = replace(
    _SETTLE,
    model_options={"refine_units": (2, 1, 1, 1)},
    augmentation_options={**_SETTLE.augmentation_options, "extremes": 0.25},
    steps=2_600,
    peak_rate=4e-4,
    average_from=2_000,
    average_decay=0.997,
    validate_every=1_000,
)
"""More of the second stage where it is fine: most of the error lies at depth edges. Everything learns."""

DEFAULT = Chain(
    name="default",
    stages=(
        Stage(name="first", recipe=_FIRST),
        Stage(name="second", recipe=_SECOND),
        Stage(name="prior", recipe=_PRIOR),
        Stage(name="field", recipe=_FIELD),
        Stage(name="whole", recipe=_WHOLE),
        Stage(name="settle", recipe=_SETTLE),
        Stage(name="larger", recipe=_LARGER),
    ),
    card={
        "licence": "weights trained on research data: research and evaluation use; the code is MIT",
        "training_data": "the pool's scenes of role train, the last 5 % of each held out: NYUv2 labelled "
        "training split (research use, cite NYUv2), 7-Scenes redkitchen (non-commercial research), OSD "
        "tabletop (BSD), KITTI raw 2011_09_26 (CC BY-NC-SA 3.0); encoder started from EfficientNet-lite0 "
        "ImageNet weights (Apache-2.0)",
        "trained_for": {"depth": [0.3, 14.0], "focal": 260.0},
    },
    finished_with={"agreement_trust": 32.0},
)

_ROOMS = {"holdout": 0.03, "cache": True}

_MAP = replace(
    SMALL,
    model="small-smooth",
    model_options={"iterations": (3,)},
    loss="shape",
    map_loss="surface",
    learns=("first.encoder", "first.decoder", "first.prior"),
    dataset_options=_ROOMS,
    augmentation_options={"points": (1, 10), "others": 0.0, "corrupted": 0.0, "native": 0.3},
    sizes=((0.0, 128, 160), (0.75, 192, 256)),
    steps=4_000,
    batch=4,
    peak_rate=1.5e-3,
    encoder_rate=0.5,
    end_rate=0.02,
    average_decay=0.99,
    average_from=3_200,
    validate_every=1_000,
    checkpoint_every=100,
)
"""Encoder, decoder and the depth-like map, from ImageNet: exact depth, no measurements, no inference."""

_ROOM_SENSORS = {"points": (10, 2000), "extremes": 0.2, "others": 0.15, "corrupted": 0.05, "native": 0.5}

_MEASURED = replace(
    _MAP,
    model_options={},
    imagenet=False,
    loss="scale-free",
    prior=0.3,
    learns=(),
    augmentation_options=_ROOM_SENSORS,
    alpha2=20.0,
    peak_rate=1.2e-3,
    encoder_rate=0.3,
)
"""What the two stages with measurements have in common: any number of points, all sensors."""

_ROOM_FIELD = replace(
    _MEASURED,
    sizes=((0.0, 128, 160), (0.8, 192, 256)),
    steps=5_000,
    average_from=4_100,
)
"""Heads on the decoder that the map has taught: edges, learned edges and trust, with inference. The map goes
on learning surfaces, so that it stays one."""

_ROOM_SECOND = replace(
    _MEASURED,
    model_options={"iterations": (3, 4)},
    freeze_first_stage=True,
    freeze_statistics=False,
    prior=0.0,
    alpha2=30.0,
    augmentation_options={**_ROOM_SENSORS, "native": 0.8},
    sizes=((0.0, 128, 160), (0.8, 192, 256)),
    steps=2_000,
    peak_rate=1e-3,
    average_from=1_600,
)
"""A second stage that sees depth; the first one stays and is only computed forward."""

FREE = Chain(
    name="free",
    stages=(
        Stage(name="map", recipe=_MAP),
        Stage(name="field", recipe=_ROOM_FIELD),
        Stage(name="second", recipe=_ROOM_SECOND),
    ),
    card={
        "licence": "CC BY 4.0; trained on drawn rooms and streets only",
        "training_data": "rooms and streets of gbpn worlds, drawn from procedures and from models (CC0 and "
        "CC BY 3.0) that CREDITS.md beside the weights names; encoder started from EfficientNet-lite0 "
        "weights (Apache-2.0), whose own images were ImageNet's",
        "trained_for": {"depth": [0.3, 80.0], "focal": 260.0},
    },
)

CHAINS = {DEFAULT.name: DEFAULT, FREE.name: FREE}
"""By name, as `gbpn train NAME` takes them."""
