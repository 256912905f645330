"""Learning rate and momentum as pure functions of the step: nothing to store, nothing to restore."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch

__all__ = ["OneCycle"]


@dataclass(frozen=True, kw_only=True)
class OneCycle:
    """Cosine up from `peak / start_divisor` to `peak`, cosine down to `end_fraction · peak`."""

    steps: int
    """Length of the whole cycle."""
    peak: float
    """Largest learning rate."""
    warmup: float = 0.1
    """Share of the steps that go up."""
    start_divisor: float = 40.0
    """peak / learning rate of the first step."""
    end_fraction: float = 0.25
    """Learning rate of the last step / peak."""
    momentum_high: float = 0.90
    """AdamW's first beta at both ends."""
    momentum_low: float = 0.85
    """AdamW's first beta at the peak."""
    noise: float = 0.1
    """Each step's rate is multiplied by 1 + noise · u, u uniform in (−1, 1)."""

    def rate(self, step: int) -> float:
        """Learning rate of 0-based `step`."""
        smooth = self._between(step, self.peak / self.start_divisor, self.peak, self.end_fraction * self.peak)
        if not self.noise:
            return smooth
        draw = torch.rand((), generator=torch.Generator().manual_seed(step)).item()
        return smooth * (1 + self.noise * (2 * draw - 1))

    def momentum(self, step: int) -> float:
        """First beta of 0-based `step`."""
        return self._between(step, self.momentum_high, self.momentum_low, self.momentum_high)

    def _between(self, step: int, start: float, middle: float, end: float) -> float:
        top = max(self.warmup * self.steps - 1, 0.0)
        last = self.steps - 1
        if step <= top:
            return _cosine(start, middle, step / top if top else 1.0)
        return _cosine(middle, end, min((step - top) / (last - top), 1.0))


def _cosine(start: float, end: float, share: float) -> float:
    return end + (start - end) * (1 + math.cos(math.pi * share)) / 2
