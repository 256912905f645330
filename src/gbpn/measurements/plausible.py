"""The gates of `gbpn.measurements.range_gates` for tensors and answers."""

from __future__ import annotations

from dataclasses import replace

import torch
from torch import Tensor

from gbpn.distribution import DepthDistribution
from gbpn.measurements.range_gates import out_of_reach, plausible

__all__ = ["kept_promises", "without_implausible"]


def without_implausible(sparse: Tensor, scale: float | None = None) -> tuple[Tensor, str | None]:
    """`range_gates.plausible` of `sparse` [1, H, W] metres."""
    kept, notice = plausible(sparse.numpy(), scale)
    return (sparse, None) if notice is None else (torch.from_numpy(kept), notice)


def kept_promises(answer: DepthDistribution, sparse: Tensor, reach: float) -> DepthDistribution:
    """The answer with depths that are not finite, or out of reach, marked as not observed.

    sparse  [1, H, W] metres that the answer rests on
    reach   answers lie between the nearest measurement divided by this and the farthest multiplied by it
    """
    broken = answer.observed & out_of_reach(answer.mean, sparse, reach)
    if not bool(broken.any()):
        return answer
    return replace(
        answer,
        mean=torch.where(broken, torch.nan, answer.mean),
        belief_precision=torch.where(broken, 0.0, answer.belief_precision),
    )
