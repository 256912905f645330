"""Images larger than a model should see at once: completed at a reduced size, answered at full size."""

from __future__ import annotations

from dataclasses import replace

import torch
from torch import Tensor
from torch.nn import functional

from gbpn.camera import scaled, shifted
from gbpn.distribution import DepthDistribution
from gbpn.sensors.projection import points_to_sparse

__all__ = ["MOST_PIXELS", "enlarge", "reduce", "reduction"]

MOST_PIXELS = 1024 * 2048
"""Larger images are reduced to this many pixels."""


def reduction(height: int, width: int) -> float:
    """Factor ≤ 1 on both sides."""
    return min(1.0, float((MOST_PIXELS / (height * width)) ** 0.5))


def reduce(image: Tensor, sparse: Tensor, intrinsics: Tensor, factor: float) -> tuple[Tensor, Tensor, Tensor]:
    """Image [3, H, W] filtered, measurements [1, H, W] each to its pixel (the nearer wins), camera along."""
    _, height, width = image.shape
    # by size, not by factor: image, measurements and answer then share one exact ratio
    size = int(height * factor), int(width * factor)
    small = functional.interpolate(image[None], size=size, mode="bilinear", antialias=True)[0]
    rows, columns = small.shape[1] / height, small.shape[2] / width
    y, x = torch.nonzero(sparse[0] > 0, as_tuple=True)
    # centres: (x + ½)·s − ½ in the smaller grid
    column = ((x + 0.5) * columns - 0.5).clamp(0, small.shape[2] - 1)
    row = ((y + 0.5) * rows - 0.5).clamp(0, small.shape[1] - 1)
    points = torch.stack([column, row, sparse[0, y, x]], dim=1)
    camera = shifted(scaled(shifted(intrinsics, 0.5, 0.5), columns, rows), -0.5, -0.5)
    return small, points_to_sparse(points, *small.shape[1:]), camera


def enlarge(answer: DepthDistribution, height: int, width: int) -> DepthDistribution:
    """Maps at full size: bilinear where all neighbours are observed, unobserved stays unobserved."""

    def resize(maps: Tensor) -> Tensor:
        return functional.interpolate(maps, size=(height, width), mode="bilinear")

    dropped = None
    if answer.dropped is not None:  # a measurement went to the pixel that its centre lies in
        dropped = (
            functional.interpolate(answer.dropped.float(), size=(height, width), mode="nearest-exact") > 0
        )
    return replace(
        answer,
        dropped=dropped,
        mean=resize(answer.mean),
        confidence_logit=resize(answer.confidence_logit),
        belief_precision=resize(answer.belief_precision) * torch.isfinite(resize(answer.mean)),
    )
