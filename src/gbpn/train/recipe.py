"""Recipes: everything that decides what a run learns, as values that name only what differs."""

from __future__ import annotations

import ast
import dataclasses
import typing
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from gbpn.config import CONFIGS, PAPER_TEXT
from gbpn.errors import InputError
from gbpn.train.schedule import OneCycle

__all__ = ["FORMER_NAMES", "POOL", "RECIPES", "SMALL", "Recipe", "named"]


@dataclass(frozen=True, kw_only=True)
class Recipe:
    """One training run. Defaults are those of the authors' release for NYUv2."""

    model: str = "gbpn-2"
    """Named configuration to build."""
    model_options: Mapping[str, Any] = field(default_factory=dict)
    """Fields of the model's configuration that differ."""
    start_from: str = ""
    """Weights to start from (a name or path); empty: the model's own initialisation."""
    first_stage_from: str = ""
    """Weights whose first stage takes the place of that of `start_from`."""
    imagenet: bool = False
    """Start an EfficientNet-lite0 encoder from its published ImageNet weights."""

    dataset: str = "nyuv2"
    """Kind of dataset, as in `gbpn.datasets.open_dataset`."""
    dataset_options: Mapping[str, Any] = field(default_factory=lambda: {"holdout": 0.02})
    """Its options. `holdout` is the share of the training scenes kept for validation."""
    augmentation: str = "nyu"
    """Named augmentation and sampling of `gbpn.augmentation`."""
    augmentation_options: Mapping[str, Any] = field(default_factory=dict)
    """Its fields that differ."""
    validation_limit: int = 64
    """At most this many held-out frames are validated, evenly spaced."""
    validation_pattern: str = "points:500"
    """How a validation frame is measured where its dataset brings no sensor; see `gbpn.sensors.sampling`."""

    steps: int = 297_400
    """Optimizer steps of the whole run."""
    batch: int = 16
    """Global batch, over all processes."""
    loss: str = "model"
    """probability (the paper's), scale-free (errors relative to the frame's depth), l2 (ablation V1), shape
    (of the depth-like map alone, without any inference), or model: what the model's configuration says."""
    learns: tuple[str, ...] = ()
    """Parts that learn, by the first names of their tensors ("first.prior", "second"); empty: all of them."""
    first_stage: float = 0.0
    """Weight of the first stage's own loss; the paper supervises the last stage only."""
    prior: float = 0.0
    """Weight of the depth-like maps' own loss, for models that have them."""
    map_loss: str = "shape"
    """That loss: shape (log depth and its steps) or surface (with more weight on short steps, and the normals
    of surfaces)."""
    sizes: tuple[tuple[float, int, int], ...] = ()
    """Crops as (share of the run, rows, columns), each from that share on: small ones first, which teach as
    much in a quarter of the time; empty: the augmentation's own size."""
    teacher: str = ""
    """File of another network's feature maps, see `gbpn.train.teacher`; empty: none."""
    teacher_weight: float = 0.15
    """Weight of the share of these maps that the first stage's features do not explain."""
    freeze_first_stage: bool = False
    """Keep a trained first stage as it is and teach the second one only."""
    freeze_encoder_statistics: bool = False
    """Keep the running statistics of the encoder's batch norms: for encoders that come trained."""
    freeze_statistics: bool = False
    """Keep those of all batch norms: for the last part of a run, or for small and mixed batches."""
    alpha1: float = 1.0
    """Weight of |error| in the loss."""
    alpha2: float = 1.0
    """Weight of error² in the loss."""
    balance: float = 0.05
    """Relative error from which the scale-free loss counts an image less."""
    peak_rate: float = 2e-3
    """Largest learning rate of the one-cycle schedule."""
    end_rate: float = 0.25
    """Learning rate of the last step, as a share of the largest."""
    encoder_rate: float = 1.0
    """Learning rate of the encoder relative to the rest."""
    rate_noise: float = 0.1
    """Relative noise on the learning rate."""
    weight_decay: float = 0.05
    """AdamW's; none on 1-D tensors, biases and position-bias tables."""
    clip_norm: float = 1e-3
    """Largest L2 norm of the whole gradient."""
    skip_norm: float = 3.0
    """A step whose gradient norm exceeds this is not taken …"""
    skip_after: int = 30_000
    """… once this many steps have passed."""
    average_decay: float = 0.99996
    """Decay of the moving average of the weights."""
    average_from: int = 29_740
    """First step that enters the average."""

    validate_every: int = 2_974
    """Steps between validations."""
    checkpoint_every: int = 500
    """Steps between checkpoints."""
    bad_samples: int = 20
    """More unreadable samples than this end the run."""
    seed: int = 1
    """Of data order, augmentation and drop path."""

    def __post_init__(self) -> None:
        for name in ("steps", "batch", "validate_every", "checkpoint_every"):
            if getattr(self, name) < 1:
                raise InputError(f"recipe.{name} must be at least 1; got {getattr(self, name)}")

    @property
    def schedule(self) -> OneCycle:
        return OneCycle(
            steps=self.steps, peak=self.peak_rate, end_fraction=self.end_rate, noise=self.rate_noise
        )

    def scaled(self, dial: float) -> Recipe:
        """A shorter (or longer) run of the same shape: steps × dial, batch × √dial, the rest follows.

        The learning rate goes with the square root of the batch; the average keeps its share of the run.
        """
        if dial <= 0:
            raise InputError(f"the scale of a run must be above 0; got {dial}")
        steps = max(round(self.steps * dial), 2)
        batch = max(round(self.batch * dial**0.5), 1)
        ratio = steps / self.steps

        def share(count: int) -> int:
            return max(round(count * ratio), 1)

        return replace(
            self,
            steps=steps,
            batch=batch,
            peak_rate=self.peak_rate * (batch / self.batch) ** 0.5,
            average_decay=max(1 - (1 - self.average_decay) / ratio, 0.9),
            average_from=share(self.average_from),
            skip_after=share(self.skip_after),
            validate_every=share(self.validate_every),
            checkpoint_every=min(self.checkpoint_every, share(self.validate_every)),
        )

    def changed(self, settings: list[str]) -> Recipe:
        """With `key=value` settings applied; `model.KEY`, `dataset.KEY`, `augmentation.KEY` reach inside."""
        recipe = self
        for setting in settings:
            key, separator, text = setting.partition("=")
            if not separator:
                raise InputError(f"a setting must look like key=value; got {setting!r}")
            recipe = recipe._changed_one(key.strip(), text.strip())
        return recipe

    def _changed_one(self, key: str, text: str) -> Recipe:
        if key == "dataset.kind":
            key = "dataset"
        for prefix, name in (
            ("model.", "model_options"),
            ("dataset.", "dataset_options"),
            ("augmentation.", "augmentation_options"),
        ):
            if key.startswith(prefix):
                options = {**getattr(self, name), key.removeprefix(prefix): _literal(text)}
                return self._with(name, options)
        kinds = typing.get_type_hints(Recipe)
        if key not in kinds or key.endswith("_options"):
            names = ", ".join(f.name for f in dataclasses.fields(Recipe) if not f.name.endswith("_options"))
            raise InputError(
                f"no recipe setting {key!r}: known are {names}, model.KEY, dataset.KEY and augmentation.KEY"
            )
        try:
            value: Any = _typed(text, kinds[key])
        except (ValueError, SyntaxError, TypeError) as error:
            raise InputError(f"{key} must be {_called(kinds[key])}; got {text!r}") from error
        return self._with(key, value)

    def _with(self, key: str, value: Any) -> Recipe:
        changes: dict[str, Any] = {key: value}
        return replace(self, **changes)

    def as_dict(self) -> dict[str, Any]:
        return dataclasses.asdict(self)


def _typed(text: str, kind: Any) -> Any:
    """A recipe setting from its text."""
    if kind is bool:
        return text.lower() in ("1", "true", "yes")
    if typing.get_origin(kind) is tuple and typing.get_args(kind)[0] is not str:
        sizes = tuple(tuple(part) for part in ast.literal_eval(text))
        if not all(len(part) == 3 for part in sizes):
            raise ValueError(text)
        return sizes
    if typing.get_origin(kind) is tuple:
        return tuple(part.strip() for part in text.split(",") if part.strip())
    return kind(text)


def _called(kind: Any) -> str:
    return "(share, rows, columns), …" if typing.get_origin(kind) is tuple else str(kind.__name__)


def _literal(text: str) -> Any:
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError):
        return text


_RELEASED = Recipe()
"""NYUv2 as the authors' release trains it; what `Recipe` does not say otherwise."""

_RELEASED_KITTI = replace(
    _RELEASED,
    model="gbpn-2-kitti",
    dataset="kitti",
    augmentation="kitti",
    steps=322_110,
    batch=8,
    alpha1=0.1,
    peak_rate=1e-3,
    skip_norm=100.0,
    average_from=32_211,
    validate_every=10_737,
)
"""KITTI as released: its own colour statistics, crops of 288×1216."""

_PAPER = replace(
    _RELEASED,
    model="gbpn-2-paper",
    steps=300_000,
    clip_norm=0.1,
    rate_noise=0.0,
    skip_after=300_000,
    average_from=30_000,
    validate_every=3_000,
)
"""NYUv2 as the paper's text says: its heads, edge sets, messages and attention, gradients clipped at 0.1,
about 300,000 steps, no step is left out and the rate has no noise. What the text leaves open (augmentation,
average) is as released."""

_PAPER_KITTI = replace(
    _PAPER,
    model_options={name: getattr(CONFIGS["gbpn-2-kitti"], name) for name in ("image_mean", "image_std")},
    dataset="kitti",
    augmentation="kitti",
    augmentation_options={"height": 256},
    batch=8,
    alpha1=0.1,
    peak_rate=1e-3,
    validate_every=10_000,
)
"""KITTI as the paper says: crops of 256×1216."""

_PAPER_ABLATION = replace(
    _PAPER,
    model="v9",
    model_options=PAPER_TEXT,
    steps=150_000,
    skip_after=150_000,
    average_from=15_000,
)
"""A row of the paper's ablation: half the schedule; `--set model=v1` … `v9`."""

SMALL = Recipe(
    model="small",
    imagenet=True,
    freeze_encoder_statistics=True,
    loss="scale-free",
    alpha2=10.0,
    first_stage=0.5,
    dataset="pool",
    dataset_options={"holdout": 0.05},
    augmentation="varied",
    steps=12_000,
    batch=8,
    peak_rate=2.5e-3,
    end_rate=0.01,
    encoder_rate=0.3,
    rate_noise=0.0,
    clip_norm=1.0,
    skip_norm=50.0,
    skip_after=500,
    average_decay=0.999,
    average_from=2_000,
    validate_every=1_000,
    checkpoint_every=250,
)

POOL = replace(_RELEASED, dataset="pool", augmentation="varied")

_SYNTHETIC = replace(SMALL, dataset="synthetic", dataset_options={}, steps=4_000, validate_every=500)

_FOLDER = replace(
    SMALL,
    start_from="default",
    imagenet=False,
    freeze_statistics=True,
    loss="model",
    dataset="folder",
    dataset_options={"holdout": 0.1},
    augmentation_options={"native": 0.7},
    steps=2_000,
    batch=4,
    peak_rate=2e-4,
    average_from=500,
    validate_every=250,
)
"""From the default weights to a folder of one's own: short, with a small rate, norms as they are."""

RECIPES = {
    "paper": _PAPER,
    "paper-kitti": _PAPER_KITTI,
    "paper-ablation": _PAPER_ABLATION,
    "released": _RELEASED,
    "released-kitti": _RELEASED_KITTI,
    "pool": POOL,
    "small": SMALL,
    "synthetic": _SYNTHETIC,
    "folder": _FOLDER,
}
"""By name, as `gbpn train NAME` takes them."""

FORMER_NAMES = {"nyuv2": "released", "kitti": "released-kitti"}
"""What recipes were called before the paper's and the released ones were told apart."""


def named(name: str) -> Recipe:
    """A recipe by name, also by a former one, or an error that lists them."""
    name = FORMER_NAMES.get(name, name)
    if name not in RECIPES:
        raise InputError(f"no recipe {name!r}: choose one of {', '.join(RECIPES)}")
    return RECIPES[name]
