"""How far neighbouring measurements agree, and so how far they can be trusted; for torch and NumPy alike.

A surface hardly changes its depth from one pixel to the next. Where most pairs of measured neighbours differ
by less than a per cent, the sensor has little noise, and its measurements deserve more weight than a network
gives them that has met noisy ones in training. Scattered points have no neighbours to contradict them; noise
of single points then matters less than what they say of their surroundings.

That holds for rooms. A scanner that reaches across a street stands beside the camera and sees past things in
front of it: some of its points are no part of the picture, and agree with their neighbours all the same. A
street is told by its depths, of which a few lie many times as far as the rest, and not by metres: the same
measurements in another unit are trusted as much.
"""

from __future__ import annotations

from typing import Any, TypeVar

import numpy as np

__all__ = ["agreement", "certainty", "trust"]

_Maps = TypeVar("_Maps")
"""A tensor or an array."""

_CLOSE = 1.01
"""Neighbours agree whose larger depth is less than this times the smaller one."""
_USUAL, _PAIRS = 1.0, 20.0
"""Agreement of measurements without neighbours, and how many pairs weigh as much as this assumption."""
_NOISY, _CLEAN = 0.35, 0.65
"""Agreement at which measurements are trusted as the network says, and as far as they ever are: pairs agree
to 0.76 and more in rooms and streets as sensors see them, to 0.6 with 1 % of noise and to 0.4 with 2 %."""
_FAR = 3.0
"""Mean depths from which on a measurement is far, as hardly any in a room is."""
_STREET, _ROOM = 0.97, 0.985
"""Shares of measurements that are not far at which they are trusted as the network says, and as far as ever:
0.958 to 0.969 of a street's sweep; 0.985 and more in 99 of 100 rooms."""


def agreement(depth: _Maps) -> _Maps:
    """[..., 1, 1] in [0, 1] of depth [..., H, W]: the share of measured neighbours that agree."""
    close, pairs = _USUAL * _PAIRS, _PAIRS
    for one, other in _neighbours(depth):
        larger, smaller = one.clip(other), one.clip(None, other)  # NaN, not measured, is neither
        close = close + _count(larger < _CLOSE * smaller)
        pairs = pairs + _count(smaller > 0)
    return close / pairs  # type: ignore[return-value]


def certainty(depth: _Maps) -> _Maps:
    """[..., 1, 1] in [0, 1] of depth [..., H, W]: 1 where neighbours agree and hardly any is far."""
    given: Any = depth
    known = (np.nan_to_num(given) if isinstance(given, np.ndarray) else given.nan_to_num()).clip(0)
    count = _count(known > 0).clip(1)
    near = _count((known > 0) & (known < _FAR * _count(known) / count)) / count
    found: _Maps = _between(agreement(depth), _NOISY, _CLEAN) * _between(near, _STREET, _ROOM)
    return found


def trust(sure: _Maps, most: float) -> _Maps:
    """Factor of a measurement's precision at this `certainty`, from 1 to `most`."""
    factor: _Maps = most**sure  # type: ignore[operator]
    return factor


def _between(value: Any, low: float, high: float) -> Any:
    """From 0 at `low` to 1 at `high`."""
    return ((value - low) / (high - low)).clip(0, 1)


def _neighbours(depth: Any) -> list[tuple[Any, Any]]:
    """Both ends of all edges to the right, down, and along the diagonals."""
    return [
        (depth[..., :, :-1], depth[..., :, 1:]),
        (depth[..., :-1, :], depth[..., 1:, :]),
        (depth[..., :-1, :-1], depth[..., 1:, 1:]),
        (depth[..., :-1, 1:], depth[..., 1:, :-1]),
    ]


def _count(there: Any) -> Any:
    return there.sum(axis=(-2, -1), keepdims=True)
