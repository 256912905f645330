"""What every baseline needs from a sample, and how it answers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from gbpn.camera.colour import luma
from gbpn.distribution import DepthDistribution
from gbpn.measurements.validity import measured
from gbpn.sample import Sample

__all__ = ["Array", "MeasuredPoints", "Method", "as_map", "luminance", "nothing"]

Array = NDArray[Any]


Method = Callable[[Sample], DepthDistribution]
"""Every compared method: reads image, sparse and intrinsics of a sample, never its target."""


@dataclass(frozen=True, kw_only=True)
class MeasuredPoints:
    """The measured pixels of a sample, as arrays."""

    rows: Array
    columns: Array
    depth: Array
    """[N] metres, float64."""
    shape: tuple[int, int]
    """(H, W)."""

    @classmethod
    def of(cls, sample: Sample) -> MeasuredPoints:
        sparse = sample.sparse[0].numpy().astype(np.float64)
        rows, columns = np.nonzero(measured(sparse))
        return cls(rows=rows, columns=columns, depth=sparse[rows, columns], shape=sparse.shape)

    def __len__(self) -> int:
        return len(self.depth)

    @property
    def places(self) -> Array:
        """[N, 2] (row, column), float64."""
        return np.stack([self.rows, self.columns], 1).astype(np.float64)

    @property
    def grid(self) -> Array:
        """[H·W, 2] (row, column) of every pixel, float64."""
        height, width = self.shape
        return np.indices((height, width)).reshape(2, -1).T.astype(np.float64)


def as_map(values: Array) -> Tensor:
    """[H, W] array to a float32 [1, 1, H, W] tensor."""
    return torch.from_numpy(np.ascontiguousarray(values, dtype=np.float32))[None, None]


def nothing(sample: Sample) -> DepthDistribution:
    """The answer to a frame without a single measurement: not observed anywhere."""
    return DepthDistribution.of_depth(torch.full_like(sample.sparse, torch.nan)[None])


def luminance(sample: Sample) -> Array:
    """[H, W] brightness in [0, 1], float64."""
    return luma(sample.image.double())[0].numpy()
