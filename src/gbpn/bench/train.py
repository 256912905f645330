"""Where the time of a training step goes: data, network, belief propagation, optimizer."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch.profiler import ProfilerActivity, profile

from gbpn.augmentation.augmentations import AUGMENTATIONS as AUGMENTATIONS
from gbpn.datasets import open_dataset
from gbpn.datasets.training_view import TrainingView, collate
from gbpn.model.models import build
from gbpn.train import optimiser as optimisation
from gbpn.train.learner import Learner
from gbpn.train.recipe import named

__all__ = ["SIZE", "Split", "measure", "report"]

SIZE = (228, 304)
_FORWARD, _BACKWARD = ("gbpn::infer",), ("gbpn::infer_adjoint",)
"""Operators of belief propagation, by pass."""


@dataclass(frozen=True, kw_only=True)
class Split:
    """Seconds of one step, the least of several."""

    data: float
    forward: float
    backward: float
    optimizer: float
    gbp_forward: float
    gbp_backward: float
    batch: int

    @property
    def total(self) -> float:
        return self.data + self.forward + self.backward + self.optimizer

    def as_dict(self) -> dict[str, float]:
        network = self.forward + self.backward - self.gbp_forward - self.gbp_backward
        return {
            "samples_per_s": self.batch / self.total,
            "step_ms": 1e3 * self.total,
            "data_share": self.data / self.total,
            "network_share": network / self.total,
            "gbp_forward_share": self.gbp_forward / self.total,
            "gbp_backward_share": self.gbp_backward / self.total,
            "optimizer_share": self.optimizer / self.total,
        }


def measure(model: str, *, data: Path | None, batch: int, repeats: int) -> Split:
    """Train `model` for `repeats` + 1 steps at 228×304; the first one only warms up."""
    recipe = named("small").changed([f"model={model}", "imagenet=no"])
    kind, root = ("pool", data) if data is not None else ("synthetic", Path())
    augmentation = AUGMENTATIONS["varied"](height=SIZE[0], width=SIZE[1])
    view = TrainingView(open_dataset(kind, root, "train"), augmentation, seed=0)
    learner = Learner(build(model), recipe).train()
    optimiser = optimisation.build(learner.model, recipe)
    steps = [
        _step(learner, optimiser, view, first, batch) for first in _starts(len(view), batch, repeats + 1)
    ]
    return min(steps[1:], key=lambda split: split.total)


def _starts(length: int, batch: int, count: int) -> Iterator[int]:
    for step in range(count):
        yield (step * batch) % max(length - batch, 1)


def _step(
    learner: Learner, optimiser: torch.optim.Optimizer, view: TrainingView, first: int, batch: int
) -> Split:
    begin = time.perf_counter()
    samples = collate([view[first + i] for i in range(batch)])
    data = time.perf_counter() - begin
    with profile(activities=[ProfilerActivity.CPU]) as recorded:
        start = time.perf_counter()
        loss = learner(samples.image, samples.sparse, samples.intrinsics, samples.target)["loss"]
        middle = time.perf_counter()
        loss.backward()
        end = time.perf_counter()
    begin = time.perf_counter()
    optimiser.step()
    optimiser.zero_grad(set_to_none=True)
    optimizer = time.perf_counter() - begin
    seconds = {event.key: event.cpu_time_total / 1e6 for event in recorded.key_averages()}
    return Split(
        data=data,
        forward=middle - start,
        backward=end - middle,
        optimizer=optimizer,
        gbp_forward=sum(seconds.get(name, 0.0) for name in _FORWARD),
        gbp_backward=sum(seconds.get(name, 0.0) for name in _BACKWARD),
        batch=batch,
    )


def report(models: list[str], *, data: Path | None, batch: int, repeats: int) -> dict[str, Any]:
    """One object: threads, and the split of each model."""
    return {
        "threads": torch.get_num_threads(),
        "batch": batch,
        "size": f"{SIZE[0]}x{SIZE[1]}",
        "models": {name: measure(name, data=data, batch=batch, repeats=repeats).as_dict() for name in models},
    }
