"""Depths that no sensor measured: the largest number of a format, a renderer's sky, infinity.

They are dropped with a notice before a model sees them. Whether the rest contradicts each other is a question
for the model; here only the range counts.
"""

from __future__ import annotations

from dataclasses import replace

import torch
from torch import Tensor

from gbpn.distribution import DepthDistribution
from gbpn.errors import InputError
from gbpn.measurements.scales import FARTHEST_PLAUSIBLE, KITTI_SCALE, MILLIMETRES, NEAREST_PLAUSIBLE
from gbpn.measurements.validity import measured

__all__ = ["kept_promises", "without_implausible"]

_LARGEST_INTEGER, _LARGEST_HALF = 65535.0, 65504.0
"""The largest numbers of 16 bits: integers, and floating point."""
_REACH = 1000.0
"""Measurements lie within this factor of their median."""
_MIDDLE = (1e-4, 1e6)
"""Medians outside of this are refused: float32 would not carry the arithmetic."""
_NEAREST_METRES, _FARTHEST_METRES = 1e-3, 1e3
"""What sensors reach, used where the median says that the depths are metres."""


def without_implausible(sparse: Tensor, scale: float | None = None) -> tuple[Tensor, str | None]:
    """`sparse` without values that cannot be measurements, and a notice of what was dropped or None.

    sparse  [1, H, W] metres, 0 where not measured; +infinity counts as a saturated sensor
    scale   what stored numbers were divided by
    """
    known = measured(sparse)
    if not bool(known.any()):
        return sparse, None
    saturated = known & _saturated(sparse, scale)
    rest = sparse[known & ~saturated]
    if not rest.numel():
        raise InputError(
            f"all {int(known.sum())} measurements are {float(sparse[known].min()):g} m: the largest number "
            "of the sensor or infinity, which means that nothing was measured"
        )
    middle = float(rest.median())
    if not _MIDDLE[0] <= middle <= _MIDDLE[1]:
        raise InputError(
            f"depths must be metres; got a median of {middle:.3g}, outside {_MIDDLE[0]:g} to {_MIDDLE[1]:g}: "
            "give --scale (in Python scale=), by which they are divided"
        )
    low, high = middle / _REACH, middle * _REACH
    if NEAREST_PLAUSIBLE <= middle <= FARTHEST_PLAUSIBLE:
        low, high = max(low, _NEAREST_METRES), min(high, _FARTHEST_METRES)
    outside = known & ~saturated & ((sparse < low) | (sparse > high))
    dropped = saturated | outside
    if not bool(dropped.any()):
        return sparse, None
    values = sparse[dropped]
    return torch.where(dropped, 0.0, sparse), (
        f"{int(dropped.sum())} of {int(known.sum())} measurements are dropped, {float(values.min()):g} to "
        f"{float(values.max()):g} m: a saturated sensor, or outside {low:g} to {high:g} m"
    )


def kept_promises(answer: DepthDistribution, sparse: Tensor, reach: float) -> DepthDistribution:
    """The answer with depths that are not finite, or out of reach, marked as not observed.

    sparse  [1, H, W] metres that the answer rests on
    reach   answers lie between the nearest measurement divided by this and the farthest multiplied by it
    """
    known = sparse[measured(sparse)]
    low, high = float(known.min()) / reach, float(known.max()) * reach
    mean = answer.mean
    broken = answer.observed & ~((mean >= low) & (mean <= high))
    if not bool(broken.any()):
        return answer
    return replace(
        answer,
        mean=torch.where(broken, torch.nan, mean),
        belief_precision=torch.where(broken, 0.0, answer.belief_precision),
    )


def _saturated(sparse: Tensor, scale: float | None) -> Tensor:
    """Where a value is infinite or the largest number of a 16-bit format."""
    found = torch.isinf(sparse)
    given = () if scale is None else (float(scale),)
    codes = [_LARGEST_INTEGER / divisor for divisor in (1.0, MILLIMETRES, KITTI_SCALE, *given)]
    for code in (_LARGEST_HALF, *codes):
        found |= (sparse - code).abs() <= 1e-6 * code
    return found
