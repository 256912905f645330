"""Exponential moving average of the weights, with bias correction."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

__all__ = ["WeightAverage"]


class WeightAverage:
    """Starts from zero, so `weights()` divides by 1 − decayⁿ: no early weights linger in the average.

    Parameters and floating-point buffers are averaged; integer buffers are taken as they are.
    """

    def __init__(self, model: nn.Module, decay: float) -> None:
        self.decay = decay
        self.updates = 0
        self._sums = {name: torch.zeros_like(tensor) for name, tensor in _floating(model).items()}

    @torch.no_grad()
    def update(self, model: nn.Module) -> None:
        current = _floating(model)
        _follow(list(self._sums.values()), [current[name] for name in self._sums], self.decay)
        self.updates += 1

    def weights(self, model: nn.Module) -> dict[str, Tensor]:
        """A state dict for `model`: the average, or its present weights before the first update."""
        state = {name: tensor.detach().clone() for name, tensor in model.state_dict().items()}
        if self.updates:
            correction = 1 - self.decay**self.updates
            state |= {name: total / correction for name, total in self._sums.items()}
        return state

    def state_dict(self) -> dict[str, object]:
        return {"updates": self.updates, "sums": self._sums}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.updates = state["updates"]
        for name, total in self._sums.items():
            total.copy_(state["sums"][name])


def _follow(sums: list[Tensor], current: list[Tensor], decay: float) -> None:
    """sums ← decay · sums + (1 − decay) · current, in few launches where torch can take a whole list."""
    if hasattr(torch, "_foreach_mul_") and hasattr(torch, "_foreach_add_"):  # private: may leave
        torch._foreach_mul_(sums, decay)
        torch._foreach_add_(sums, current, alpha=1 - decay)
        return
    for total, new in zip(sums, current, strict=True):
        total.mul_(decay).add_(new, alpha=1 - decay)


def _floating(model: nn.Module) -> dict[str, Tensor]:
    return {name: t.detach() for name, t in model.state_dict().items() if t.is_floating_point()}
