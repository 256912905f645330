"""Depths that no sensor measured: the largest number of a format, a renderer's sky, infinity.

They are dropped with a notice before a model sees them, and answers out of reach are not observed. Whether
measurements contradict each other is a question for the model; here only the range counts.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from gbpn.errors import InputError
from gbpn.measurements.scales import FARTHEST_PLAUSIBLE, KITTI_SCALE, MILLIMETRES, NEAREST_PLAUSIBLE
from gbpn.measurements.validity import measured

__all__ = ["out_of_reach", "plausible"]

_LARGEST_INTEGER, _LARGEST_HALF = 65535.0, 65504.0
"""The largest numbers of 16 bits: integers, and floating point."""
_REACH = 1000.0
"""Measurements lie within this factor of their median."""
_MIDDLE = (1e-4, 1e6)
"""Medians outside of this are refused: float32 would not carry the arithmetic."""
_NEAREST_METRES, _FARTHEST_METRES = 1e-3, 1e3
"""What sensors reach, used where the median says that the depths are metres."""


def plausible(
    sparse: NDArray[np.float32], scale: float | None = None
) -> tuple[NDArray[np.float32], str | None]:
    """`sparse` without values that cannot be measurements, and a notice of what was dropped or None.

    sparse  metres, 0 where not measured; +infinity counts as a saturated sensor
    scale   what stored numbers were divided by
    """
    known = measured(sparse)
    if not known.any():
        return sparse, None
    saturated = known & _saturated(sparse, scale)
    rest = sparse[known & ~saturated]
    if not rest.size:
        raise InputError(
            f"all {int(known.sum())} measurements are {float(sparse[known].min()):g} m: the largest number "
            "of the sensor or infinity, which means that nothing was measured"
        )
    half = (rest.size - 1) // 2
    middle = float(np.partition(rest, half)[half])
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
    if not dropped.any():
        return sparse, None
    values = sparse[dropped]
    return np.where(dropped, np.float32(0), sparse), (
        f"{int(dropped.sum())} of {int(known.sum())} measurements are dropped, {float(values.min()):g} to "
        f"{float(values.max()):g} m: a saturated sensor, or outside {low:g} to {high:g} m"
    )


def out_of_reach(mean: Any, sparse: Any, reach: float) -> Any:
    """Where depths are not finite, nearer than the nearest measurement over `reach`, or farther than the
    farthest times `reach`; torch or NumPy."""
    known = sparse[measured(sparse)]
    low, high = float(known.min()) / reach, float(known.max()) * reach
    return ~((mean >= low) & (mean <= high))


def _saturated(sparse: NDArray[np.float32], scale: float | None) -> NDArray[np.bool_]:
    """Where a value is infinite or the largest number of a 16-bit format."""
    found = np.isinf(sparse)
    given = () if scale is None else (float(scale),)
    codes = [_LARGEST_INTEGER / divisor for divisor in (1.0, MILLIMETRES, KITTI_SCALE, *given)]
    for code in (_LARGEST_HALF, *codes):
        found |= np.abs(sparse - np.float32(code)) <= np.float32(1e-6 * code)
    return found
