"""The depth-like maps of weights by themselves, held against exact depth: no measurement takes part."""

from __future__ import annotations

import math
from typing import Any

import torch

from gbpn.errors import InputError
from gbpn.evaluate.run import Plan
from gbpn.metrics.surfaces import map_errors
from gbpn.model.loading import load
from gbpn.model.models import GBPN

__all__ = ["depth_maps"]

_TITLES = {"rel": "REL", "correlation": "correlation", "normal_degrees": "normals [°]"}


@torch.inference_mode()
def depth_maps(plan: Plan) -> list[dict[str, Any]]:
    """A line for each of the weights that draw such a map: means over the frames of the first setting."""
    dataset, out = plan.open(), []
    for entry in plan.entries:
        model = load(entry.spec).merged() if entry.kind == "weights" else None
        if not isinstance(model, GBPN) or not model.config.prior:
            continue
        found: dict[str, list[float]] = {name: [] for name in _TITLES}
        for index in plan.frames(dataset):
            sample = dataset.load(index)
            if sample.target is None:
                raise InputError(f"{sample.name}: no ground truth to compare with")
            drawn = model.depth_map(sample.image[None], sample.intrinsics[None])
            for name, value in map_errors(drawn, sample.target[None], sample.intrinsics[None]).items():
                if not math.isnan(float(value)):
                    found[name].append(float(value))
        means = {title: _mean(found[name]) for name, title in _TITLES.items()}
        out.append({"method": entry.name, "frames": len(plan.frames(dataset)), **means})
    return out


def _mean(values: list[float]) -> str:
    return f"{math.fsum(values) / len(values):.3f}" if values else "–"
