"""Parameters of their own for every iteration, at little cost: corrections of the shared maps.

As published, a dynamic network draws every map once per iteration at full resolution. Here maps are drawn
once; at a quarter of the resolution each iteration says how much of the old messages is kept and how much
stiffer learned edges are. The last layer starts at zero: before training, all iterations are alike.

Local edges stay shared: one set of them for every iteration would cost a quarter of the whole frame.
"""

from __future__ import annotations

from dataclasses import replace

import torch
from torch import Tensor, nn
from torch.nn import functional

from gbpn.mrf import LocalEdges, NonLocalEdges, SymmetricEdges
from gbpn.network.convolution import Convolution
from gbpn.network.density import redamped

__all__ = ["FARTHEST", "IterationCorrections", "corrected_far", "corrected_local"]

_REDUCTION = 4
"""Pixels of a side of what shares one correction."""
FARTHEST = 3.0
"""No precision is changed by more than exp of this."""


class IterationCorrections(nn.Module):
    """Features [B, C, H/4, W/4] → per iteration the change of the damping, and with K learned edges the
    change of their damping and K log factors of their precisions."""

    def __init__(self, channels: int, iterations: int, nonlocal_edges: int) -> None:
        super().__init__()
        self.iterations, self.nonlocal_edges = iterations, nonlocal_edges
        self.each = 1 + (1 + nonlocal_edges if nonlocal_edges else 0)
        self.last = Convolution(channels, iterations * self.each, 3, wide=True)

    def start(self) -> None:
        nn.init.zeros_(self.last.weight)
        assert self.last.bias is not None
        nn.init.zeros_(self.last.bias)

    def forward(self, features: Tensor) -> Tensor:
        """[B, T, 1 or 2 + K, H, W], limited to ± `FARTHEST`."""
        return self.enlarged(self.coarse(features))

    def coarse(self, features: Tensor) -> Tensor:
        """[B, T·(1 or 2 + K), H/4, W/4]: the same before it is enlarged."""
        return FARTHEST * torch.tanh(self.last(features) / FARTHEST)

    def enlarged(self, coarse: Tensor) -> Tensor:
        full = functional.interpolate(coarse, scale_factor=_REDUCTION, mode="bilinear", align_corners=False)
        return torch.unflatten(full.contiguous(), 1, (self.iterations, self.each))


def corrected_local(local: LocalEdges | SymmetricEdges, corrections: Tensor) -> LocalEdges | SymmetricEdges:
    """Edges with one damping per iteration; weights and differences stay shared."""
    return replace(local, damping=redamped(local.damping, corrections[:, :, 0]))


def corrected_far(far: NonLocalEdges, corrections: Tensor) -> NonLocalEdges:
    """Learned edges with one set of weights and damping per iteration; places and differences stay shared."""
    return replace(
        far,
        weight=far.weight * corrections[:, :, 2:].exp(),
        damping=redamped(far.damping, corrections[:, :, 1]),
    )
