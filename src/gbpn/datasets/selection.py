"""Which frames take part: a validation part cut out of the training frames, or a few for a look.

Nothing is ever selected on test frames.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

from gbpn.errors import InputError

__all__ = ["Item", "evenly_spaced", "part"]

Item = TypeVar("Item")


def part(items: Sequence[Item], split: str, holdout: float, group: Callable[[Item], str]) -> list[Item]:
    """The `train` or `validation` items: about every (1/holdout)-th group (scene, drive) is held out whole.

    With a single group the last `holdout` of its items are held out; with holdout 0, none.
    """
    if not 0 <= holdout < 1:
        raise InputError(f"holdout must be a share in [0, 1); got {holdout}")
    if split == "validation" and holdout == 0:
        raise InputError("the validation split is a part of the training frames: give a holdout above 0")
    if holdout == 0:
        return list(items)
    groups = sorted({group(item) for item in items})
    if len(groups) == 1:
        kept = len(items) - max(round(len(items) * holdout), 1)
        return list(items[:kept] if split == "train" else items[kept:])
    period = max(min(round(1 / holdout), len(groups)), 2)
    held_out = set(groups[period - 1 :: period])
    return [item for item in items if (group(item) in held_out) == (split == "validation")]


def evenly_spaced(length: int, count: int) -> list[int]:
    """At most `count` of range(length), evenly spaced, the first among them."""
    count = min(count, length)
    return [i * length // count for i in range(count)]
