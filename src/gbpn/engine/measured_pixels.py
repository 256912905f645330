"""Single measured pixels, as a session is told of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from torch import Tensor

from gbpn.errors import InputError

__all__ = ["Measurement", "Numbers", "read_pixels", "read_places"]

Numbers = float | Sequence[float] | np.ndarray | Tensor


@dataclass(frozen=True, kw_only=True)
class Measurement:
    """One measured pixel."""

    x: int
    y: int
    depth: float
    """Metres."""
    std: float = 0.0
    """Metres of noise beyond what the network expects of a measurement."""


def read_pixels(
    x: Numbers, y: Numbers, depth: Numbers, std: Numbers | None, size: tuple[int, int]
) -> list[Measurement]:
    """One or many measurements inside an image of `size` (H, W), each checked."""
    columns, rows, metres = _whole(x), _whole(y), _list(depth)
    noise = [0.0] * len(metres) if std is None else _list(std)
    noise = noise * len(metres) if len(noise) == 1 else noise
    if not len(columns) == len(rows) == len(metres) == len(noise):
        raise InputError(
            f"x, y, depth and std must be of one length; got {len(columns)}, {len(rows)}, {len(metres)}, "
            f"{len(noise)}"
        )
    height, width = size
    for one in zip(columns, rows, metres, noise, strict=True):
        inside = 0 <= one[0] < width and 0 <= one[1] < height
        if not (inside and 0 < one[2] < float("inf") and 0 <= one[3] < float("inf")):
            raise InputError(
                f"a measurement is x, y inside {width}×{height}, depth above 0, std at least 0; got {one}"
            )
    return [
        Measurement(x=c, y=r, depth=d, std=s) for c, r, d, s in zip(columns, rows, metres, noise, strict=True)
    ]


def read_places(x: Numbers, y: Numbers) -> list[tuple[int, int]]:
    """Pixels x, y, one or many."""
    columns, rows = _whole(x), _whole(y)
    if len(columns) != len(rows):
        raise InputError(f"x and y must be of one length; got {len(columns)}, {len(rows)}")
    return list(zip(columns, rows, strict=True))


def _whole(values: Numbers) -> list[int]:
    """Coordinates, rounded."""
    numbers = np.asarray(values, dtype=np.float64).reshape(-1)
    if not np.isfinite(numbers).all():
        raise InputError(f"x and y must be finite; got {numbers}")
    return [int(value) for value in np.rint(numbers)]


def _list(values: Numbers) -> list[float]:
    return [float(value) for value in np.asarray(values, dtype=np.float64).reshape(-1)]
