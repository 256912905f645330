"""What a model costs: parameters, and multiply-adds of its network at an image size."""

from __future__ import annotations

import copy
from typing import Any

import torch
from torch.utils.flop_counter import FlopCounterMode, register_flop_formula

from gbpn.config import ModelConfig
from gbpn.model.models import GBPN, Model
from gbpn.network import SecondStageInput
from gbpn.network.affine import AffineNetwork

__all__ = ["FLOPS_PER_MESSAGE", "messages", "multiply_adds", "parameters"]

FLOPS_PER_MESSAGE = 10
"""Cavity, division, mean and damping of one message, about."""


def parameters(model: torch.nn.Module) -> int:
    """Trainable numbers; buffers such as running statistics are not counted."""
    return sum(parameter.numel() for parameter in model.parameters())


def messages(config: ModelConfig, height: int, width: int) -> int:
    """Messages of belief propagation in all stages for one image: local ones by the four sweeps of every
    iteration, with eight neighbours three each (or one each of the vertical ones, where no edge is in two
    sets), and those along learned edges in every parallel step."""
    if config.solver != "gbp":
        return 0
    sweeps = config.neighbours if config.edge_sets == "disjoint" or config.neighbours == 4 else 12
    each = sweeps + config.nonlocal_edges * config.nonlocal_steps
    return sum(config.iterations) * each * height * width


def multiply_adds(model: Model, height: int, width: int) -> dict[str, int]:
    """Multiply-adds of each stage's network for one image, by torch's counter, without computing anything.

    Convolutions, transposed convolutions and attention (scores and weighted sum) count; norms, activations
    and belief propagation (a few operations per message) do not. Sides must be multiples of 32.
    """
    twin = copy.deepcopy(model).to("meta").eval()
    twin.use_backend("reference")
    image = torch.zeros(1, 3, height, width, device="meta")
    depth, intrinsics = image[:, :1], torch.zeros(1, 3, 3, device="meta")
    counts: dict[str, int] = {}
    with torch.no_grad():
        if not isinstance(twin, GBPN):
            assert isinstance(twin.network, AffineNetwork)
            with FlopCounterMode(display=False) as counter:
                twin.network(image, intrinsics)
            return {"stage 1": counter.get_total_flops() // 2}
        with FlopCounterMode(display=False) as counter:
            parameters = twin.first.draw(image, intrinsics)
        counts["stage 1"] = counter.get_total_flops() // 2
        if twin.second is not None:
            with FlopCounterMode(display=False) as counter:
                twin.second.redraw(SecondStageInput(image, intrinsics, depth, depth, depth), parameters)
            counts["stage 2"] = counter.get_total_flops() // 2
    return counts


@register_flop_formula(torch.ops.gbpn.upscale)  # here, because torch's counter loads triton
def _upscale_cost(x: list[int], weight: list[int], *_: Any, **__: Any) -> int:
    batch, channels, height, width = x
    return 2 * 4 * batch * channels * weight[1] * height * width
