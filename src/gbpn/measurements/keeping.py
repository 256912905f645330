"""Measured pixels given back as they were: for holes in depth that is good where it is.

The change that this makes at the edge of a hole is led into it and fades within a few pixels, so that no step
appears where none was.
"""

from __future__ import annotations

from dataclasses import replace

import torch
from torch import Tensor
from torch.nn import functional

from gbpn.distribution import DepthDistribution
from gbpn.measurements.areas import AreaGrid, agreeing
from gbpn.measurements.validity import measured

__all__ = ["change_at_measurements", "kept"]

_REACH = 3
"""Pixels into a hole within which a change fades."""


def kept(
    answer: DepthDistribution, sparse: Tensor, areas: tuple[int, int] | None = None
) -> DepthDistribution:
    """The answer with `sparse` [1, H, W] at its measurements, those that were dropped as outliers excepted.

    areas  (h, w): the measurements are means over areas, which then are exact
    """
    used = sparse[None].to(answer.mean)
    if answer.dropped is not None:
        used = torch.where(answer.dropped, 0.0, used)
    if areas is not None:
        size = (sparse.shape[1], sparse.shape[2])
        return agreeing(AreaGrid.of(areas, size), used, answer, exact=True)
    there = measured(used)
    change = torch.where(there & torch.isfinite(answer.mean), used - answer.mean, 0.0)
    mean = torch.where(there, used, answer.mean + _faded(change, there))
    return replace(
        answer,
        mean=mean,
        belief_precision=torch.where(there, answer.belief_precision.clamp_min(1e-6), answer.belief_precision),
    )


def change_at_measurements(mean: Tensor, sparse: Tensor) -> Tensor:
    """[N] metres: how far an answer [1, H, W] is from each measurement that it gives a depth for."""
    there = measured(sparse) & torch.isfinite(mean)
    return (mean - sparse)[there].abs()


def _faded(change: Tensor, there: Tensor) -> Tensor:
    """[B, 1, H, W]: the changes around each pixel, by Gaussian weights of their distance, fading to 0."""
    reach = torch.arange(-2 * _REACH, 2 * _REACH + 1, dtype=change.dtype, device=change.device)
    bell = torch.exp(-0.5 * (reach / _REACH).square())

    def blurred(maps: Tensor) -> Tensor:
        along = functional.conv2d(maps, bell.view(1, 1, 1, -1), padding=(0, 2 * _REACH))
        return functional.conv2d(along, bell.view(1, 1, -1, 1), padding=(2 * _REACH, 0))

    share = blurred(there.to(change))
    # half of the full weight lies on one side of a straight edge
    return blurred(change) / share.clamp_min(1e-6) * (2 * share / bell.sum().square()).clamp(max=1.0)
