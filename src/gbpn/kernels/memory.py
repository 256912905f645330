"""Memory for the results of compiled operators that is used again.

What is freed goes back to the system, and comes again as pages that must be cleared first: with some hundred
maps a frame that costs more than filling them. Maps made here keep their memory when they are gone, up to
96 MB a process, for the next ones of about their size.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import cache

import torch
from torch import Tensor

from gbpn.kernels.backends import COMPILED, native

__all__ = ["empty"]

_WORTH = 1 << 14
"""Numbers; less is not worth keeping."""


@cache
def _kept() -> Callable[[int], Tensor] | None:
    """The compiled function; None where it is not there: the module of a checkout may be older than its
    sources."""
    return getattr(native(), "kept_floats", None) if COMPILED else None


def empty(shape: Sequence[int], like: Tensor) -> Tensor:
    """Contiguous numbers of any value, in the dtype and on the device of `like`."""
    count = math.prod(shape)
    plain = like.dtype != torch.float32 or like.device.type != "cpu" or count < _WORTH
    if plain or torch.compiler.is_compiling() or (kept := _kept()) is None:
        return like.new_empty(shape)
    return kept(count).view(*shape)
