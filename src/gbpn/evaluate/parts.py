"""What each part of trained weights brings: the same weights without it, nothing learned anew."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from copy import deepcopy
from typing import Any

import torch
from torch import Tensor, nn

from gbpn.errors import InputError
from gbpn.evaluate import runtime
from gbpn.evaluate.run import Plan
from gbpn.kernels.backends import fastest_device
from gbpn.measurements.validity import measured
from gbpn.model.loading import load
from gbpn.model.models import GBPN, from_config
from gbpn.network.density import DensityResponse, Response
from gbpn.network.network import GMCN
from gbpn.network.refiner import Refiner
from gbpn.network.unit import GatedAttention

__all__ = ["WITHOUT", "tables"]

_NOWHERE = -100.0
"""Logit of a share that is none."""


class _Passed(nn.Module):
    """In the place of an attention: its first input as it came."""

    def forward(self, x: Tensor, source: Tensor) -> Tensor:
        return x


def _without_learned_edges(model: GBPN) -> GBPN | None:
    return _configured(model, nonlocal_steps=0) if model.config.nonlocal_edges else None


def _without_iterations_of_their_own(model: GBPN) -> GBPN | None:
    if not model.config.iteration_corrections:
        return None
    other = deepcopy(model)
    for part in other.modules():
        if isinstance(part, GMCN | Refiner):
            part.corrections = None
    return other


@torch.no_grad()
def _without_map(model: GBPN) -> GBPN | None:
    other = deepcopy(model)
    responses = [part for part in other.modules() if isinstance(part, DensityResponse)]
    if not (model.config.prior and responses):
        return None
    share = Response._fields.index("share")
    for number, part in enumerate(responses):  # their sum is what counts
        part.constant[share] = 0.0 if number else _NOWHERE
        if part.function is not None:
            last = part.function[-1]
            assert isinstance(last, nn.Conv2d)
            assert last.bias is not None
            last.weight[share], last.bias[share] = 0.0, 0.0
    return other


def _without_density(model: GBPN) -> GBPN | None:
    if not model.config.density:
        return None
    other = deepcopy(model)
    for part in other.modules():
        if isinstance(part, DensityResponse):
            part.function = None
    return other


def _without_attention(model: GBPN) -> GBPN | None:
    other = deepcopy(model)
    holders = [
        (part, name)
        for part in other.modules()
        for name, child in part.named_children()
        if isinstance(child, GatedAttention)
    ]
    for part, name in holders:
        setattr(part, name, _Passed())
    return other if holders else None


def _without_second_stage(model: GBPN) -> GBPN | None:
    if model.config.stages < 2:
        return None
    return _configured(model, iterations=model.config.iterations[:1])


WITHOUT: dict[str, Callable[[GBPN], GBPN | None]] = {
    "learned edges": _without_learned_edges,
    "parameters by iteration": _without_iterations_of_their_own,
    "depth-like map": _without_map,
    "density of the measurements": _without_density,
    "attention": _without_attention,
    "second stage": _without_second_stage,
}
"""Parts by name; None where a model has no such part."""


def _configured(model: GBPN, **changes: Any) -> GBPN:
    """The same weights under a configuration that uses fewer of them."""
    other = from_config(model.config.overridden(changes))
    assert isinstance(other, GBPN)
    wanted = other.state_dict()
    other.load_state_dict({name: tensor for name, tensor in model.state_dict().items() if name in wanted})
    return other.eval()


def tables(plan: Plan) -> dict[str, Any]:
    """One table for each of the weights that are a GBPN: a row for each part and number of points."""
    found = {}
    for entry in plan.entries:
        model = load(entry.spec) if entry.kind == "weights" else None
        if isinstance(model, GBPN):
            found[f"parts, {entry.name}"] = list(_rows(plan, model))
    return found


@torch.no_grad()
def _rows(plan: Plan, model: GBPN) -> Iterator[dict[str, Any]]:
    device = fastest_device()
    shorn = {"nothing": model} | {name: without(model) for name, without in WITHOUT.items()}
    ready = {name: other.prepared("float32", device) for name, other in shorn.items() if other is not None}
    for setting in plan.settings:
        dataset, sample = plan.open(setting), None
        errors: dict[str, list[float]] = {name: [] for name in ready}
        for index in plan.frames(dataset, setting):
            sample = setting.measure(dataset.load(index), 0)
            if sample.target is None:
                raise InputError(f"{sample.name}: no ground truth to compare with")
            there = measured(sample.target)
            for name, other in ready.items():
                maps = (sample.image, sample.sparse, sample.intrinsics)
                answer = other.complete(*(x[None].to(device) for x in maps), sigmas=False)
                off = (answer.mean[0].cpu() - sample.target)[there]
                errors[name].append(float(off.square().mean().sqrt()))
        assert sample is not None
        whole = math.fsum(errors["nothing"])
        for name, other in ready.items():
            spent = runtime.spent(other, sample, other.config.iterations)
            yield {
                "without": name,
                **setting.describe(),
                "frames": len(errors[name]),
                "RMSE [m]": f"{math.fsum(errors[name]) / len(errors[name]):.4f}",
                "change": f"{100 * (math.fsum(errors[name]) / whole - 1):+.1f} %",
                "milliseconds": spent["milliseconds"],
            }
