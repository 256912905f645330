"""Measurements that do not lie everywhere: near ones, one side, a corner, dark or textured places, few rows.

As `gbpn.sensors.patterns`: pure functions of depth or measurements [1, H, W] in metres and an explicit
generator; what is kept is what was there.
"""

from __future__ import annotations

import math

import numpy as np
import torch
from torch import Tensor

from gbpn.measurements.validity import measured
from gbpn.sensors.patterns import random_points

__all__ = ["dark_points", "nearest_share", "one_corner", "one_side", "rows", "textured_points"]

_CHOSEN = 0.2
"""Share of the pixels that count as dark, or as textured."""


def nearest_share(sparse: Tensor, share: float = 0.4) -> Tensor:
    """The nearest share of the measurements, as of a sensor whose reach ends in the scene."""
    known = measured(sparse)
    if not bool(known.any()):
        return sparse
    return sparse * (sparse <= torch.quantile(sparse[known].double(), min(share, 1.0)).to(sparse))


def one_side(sparse: Tensor, rng: np.random.Generator, share: float = 0.5) -> Tensor:
    """Those on one side of a line of any direction, with this share of the picture."""
    height, width = sparse.shape[-2:]
    angle = rng.uniform(0, 2 * math.pi)
    y, x = torch.meshgrid(torch.arange(height), torch.arange(width), indexing="ij")
    along = (x - (width - 1) / 2) * math.cos(angle) + (y - (height - 1) / 2) * math.sin(angle)
    return sparse * (along <= torch.quantile(along.double().flatten(), min(share, 1.0)))[None]


def one_corner(sparse: Tensor, rng: np.random.Generator, share: float = 0.5) -> Tensor:
    """Those in a corner of the picture: a rectangle with this share of both sides."""
    height, width = sparse.shape[-2:]
    tall, wide = max(1, round(share * height)), max(1, round(share * width))
    top, left = rng.choice([0, height - tall]), rng.choice([0, width - wide])
    out = torch.zeros_like(sparse)
    out[:, top : top + tall, left : left + wide] = sparse[:, top : top + tall, left : left + wide]
    return out


def dark_points(depth: Tensor, rng: np.random.Generator, image: Tensor, count: int = 500) -> Tensor:
    """Random pixels of the darkest fifth of the image [3, H, W]."""
    return _of_highest(depth, rng, -image.mean(dim=0, keepdim=True), count)


def textured_points(depth: Tensor, rng: np.random.Generator, image: Tensor, count: int = 500) -> Tensor:
    """Random pixels of the fifth of the image [3, H, W] that changes most from pixel to pixel."""
    grey = torch.nn.functional.pad(image.mean(dim=0, keepdim=True)[None], (1, 1, 1, 1), mode="replicate")[0]
    across = (grey[:, 1:-1, 2:] - grey[:, 1:-1, :-2]).abs()
    down = (grey[:, 2:, 1:-1] - grey[:, :-2, 1:-1]).abs()
    return _of_highest(depth, rng, across + down, count)


def rows(depth: Tensor, rng: np.random.Generator, count: int = 1) -> Tensor:
    """So many rows of pixels at equal distances, at a random height."""
    height = depth.shape[-2]
    count = min(max(count, 1), height)
    chosen = (np.arange(count) * height / count + rng.uniform(0, height / count)).astype(np.int64)
    out = torch.zeros_like(depth)
    out[:, chosen] = depth[:, chosen]
    return out


def _of_highest(depth: Tensor, rng: np.random.Generator, rank: Tensor, count: int) -> Tensor:
    """Random pixels among the share of highest rank [1, H, W]."""
    there = measured(depth)
    if not bool(there.any()):
        return torch.zeros_like(depth)
    limit = torch.quantile(rank[there].double(), 1 - _CHOSEN)
    return random_points(depth * (rank >= limit), rng, count)
