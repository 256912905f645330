"""What goes wrong with measurements. Pure, seeded, and composable with the patterns.

Each takes and returns sparse depth [1, H, W] in metres; 0 = not measured.
"""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from gbpn.measurements.validity import measured

__all__ = ["misalignment", "missing", "outliers", "relative_noise"]


def relative_noise(sparse: Tensor, rng: np.random.Generator, theta: float) -> Tensor:
    """Each measurement times 1 + u, u uniform in [−theta, theta]."""
    factor = 1 + rng.uniform(-theta, theta, size=tuple(sparse.shape))
    return sparse * torch.from_numpy(factor.astype(np.float32))


def outliers(
    sparse: Tensor, rng: np.random.Generator, share: float, factors: tuple[float, float] = (0.3, 3.0)
) -> Tensor:
    """A share of the measurements is replaced by itself times a log-uniform factor."""
    flat = np.flatnonzero(measured(sparse.numpy()))
    chosen = flat[rng.random(flat.size) < share]
    factor = np.exp(rng.uniform(np.log(factors[0]), np.log(factors[1]), size=chosen.size))
    out = sparse.clone()
    out.view(-1)[torch.from_numpy(chosen)] *= torch.from_numpy(factor.astype(np.float32))
    return out


def misalignment(sparse: Tensor, rows: int, columns: int) -> Tensor:
    """All measurements moved down and right against the image, as by a wrong calibration."""
    height, width = sparse.shape[-2:]
    out = torch.zeros_like(sparse)
    if abs(rows) < height and abs(columns) < width:
        to_rows, from_rows = _overlap(rows, height)
        to_columns, from_columns = _overlap(columns, width)
        out[:, to_rows, to_columns] = sparse[:, from_rows, from_columns]
    return out


def missing(sparse: Tensor, rng: np.random.Generator, share: float) -> Tensor:
    """A share of the measurements is lost, each independently."""
    return sparse * torch.from_numpy(rng.random(tuple(sparse.shape)) >= share)


def _overlap(shift: int, length: int) -> tuple[slice, slice]:
    """(where to, where from) along one axis for a move by `shift`."""
    if shift >= 0:
        return slice(shift, length), slice(0, length - shift)
    return slice(0, length + shift), slice(-shift, length)
