"""The answer of a completion method, and what every baseline needs from a sample."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from gbpn.errors import InputError
from gbpn.sample import Sample

Array = NDArray[Any]


@dataclass(frozen=True, kw_only=True)
class Completion:
    """A dense depth map [1, H, W] in metres and whatever the method knows of its errors."""

    mean: Tensor
    """NaN where nothing is known."""
    confidence: Tensor | None = None
    """Larger is better; only the order of pixels within one frame means anything."""
    std: Tensor | None = None
    """Standard deviation of the error, metres."""

    def __post_init__(self) -> None:
        for name in ("mean", "confidence", "std"):
            tensor = getattr(self, name)
            if tensor is not None and (
                tensor.dim() != 3 or tensor.shape != self.mean.shape or len(tensor) != 1
            ):
                raise InputError(f"{name} of a completion must be [1, H, W]; got {list(tensor.shape)}")


Method = Callable[[Sample], Completion]
"""Every compared method: reads image, sparse and intrinsics of a sample, never its target."""


@dataclass(frozen=True, kw_only=True)
class Measurements:
    """The measured pixels of a sample, as arrays."""

    rows: Array
    columns: Array
    depth: Array
    """[N] metres, float64."""
    shape: tuple[int, int]
    """(H, W)."""

    @classmethod
    def of(cls, sample: Sample) -> Measurements:
        sparse = sample.sparse[0].numpy().astype(np.float64)
        rows, columns = np.nonzero(sparse > 0)
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
    """[H, W] array to a float32 [1, H, W] tensor."""
    return torch.from_numpy(np.ascontiguousarray(values, dtype=np.float32))[None]


def nothing(sample: Sample) -> Completion:
    """The answer to a frame without a single measurement: not observed anywhere."""
    return Completion(mean=torch.full_like(sample.sparse, torch.nan))


def luminance(sample: Sample) -> Array:
    """[H, W] brightness in [0, 1], float64 (ITU-R BT.601 weights)."""
    weights = np.array([0.299, 0.587, 0.114])
    return np.tensordot(weights, sample.image.numpy().astype(np.float64), 1)
