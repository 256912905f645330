"""Repair of depth maps that are known to be damaged."""

from __future__ import annotations

import torch
from torch import Tensor

__all__ = ["drop_speckles"]


def drop_speckles(
    depth: Tensor, *, neighbours: int = 4, tolerance: float = 0.05, nearest: float = 0.4
) -> Tensor:
    """0 where fewer than `neighbours` of the eight agree within `tolerance`, or nearer than `nearest` metres.

    For renders whose depth was resampled with wrap-around: along edges they hold random values.
    """
    height, width = depth.shape[-2:]
    padded = torch.nn.functional.pad(depth, (1, 1, 1, 1))
    agreeing = torch.zeros_like(depth, dtype=torch.int32)
    for row in range(3):
        for column in range(3):
            if (row, column) != (1, 1):
                other = padded[:, row : row + height, column : column + width]
                close = (other - depth).abs() <= tolerance * torch.minimum(other, depth)
                agreeing += close & (other > 0)
    return depth * ((agreeing >= neighbours) & (depth >= nearest))
