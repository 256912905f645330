"""AdamW with the released parameter groups, driven by the one-cycle schedule."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import torch
from torch import Tensor, nn

from gbpn.train.recipe import Recipe
from gbpn.train.schedule import OneCycle

__all__ = ["build", "follow", "gradient_norms"]


def _parameter_groups(model: nn.Module, recipe: Recipe) -> list[dict[str, Any]]:
    """Four groups at most: encoder or rest, decayed or not. Each carries its relative `rate_scale`.

    1-D tensors, biases and relative-position tables are not decayed.
    """
    groups: dict[tuple[bool, bool], list[nn.Parameter]] = {}
    for name, parameter in model.named_parameters():
        if parameter.requires_grad:
            groups.setdefault((_in_encoder(name), _decays(name, parameter)), []).append(parameter)
    return [
        {
            "params": parameters,
            "weight_decay": recipe.weight_decay if decays else 0.0,
            "rate_scale": recipe.encoder_rate if encoder else 1.0,
        }
        for (encoder, decays), parameters in sorted(groups.items())
    ]


def build(model: nn.Module, recipe: Recipe) -> torch.optim.AdamW:
    momentum = recipe.schedule.momentum(0)
    return torch.optim.AdamW(
        _parameter_groups(model, recipe), lr=recipe.schedule.rate(0), betas=(momentum, 0.999)
    )


def follow(optimiser: torch.optim.Optimizer, schedule: OneCycle, step: int) -> float:
    """Set rate and momentum of 0-based `step`; returns the rate."""
    rate, momentum = schedule.rate(step), schedule.momentum(step)
    for group in optimiser.param_groups:
        group["lr"] = rate * group["rate_scale"]
        group["betas"] = (momentum, group["betas"][1])
    return rate


def gradient_norms(named: Iterable[tuple[str, Tensor]]) -> dict[str, float]:
    """L2 norm of the gradient of each part of the network, for diagnosis; one number per part name."""
    squares: dict[str, Tensor] = {}
    for name, parameter in named:
        if parameter.grad is not None:
            part = _part(name)
            square = parameter.grad.detach().float().square().sum()
            squares[part] = squares[part] + square if part in squares else square
    return {part: float(square.sqrt()) for part, square in squares.items()}


def _in_encoder(name: str) -> bool:
    return ".encoder." in f".{name}"


def _decays(name: str, parameter: Tensor) -> bool:
    return parameter.dim() > 1 and not name.endswith("bias") and "position_bias" not in name


def _part(name: str) -> str:
    """`stages.0.heads.weight.…` → `stages.0.heads.weight`; elsewhere the first three names."""
    pieces = name.split(".")
    if "heads" in pieces:
        return ".".join(pieces[: pieces.index("heads") + 2])
    return ".".join(pieces[: min(3, len(pieces) - 1)])
