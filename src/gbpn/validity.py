"""The one rule for "is this pixel measured": a depth above 0. Zero, NaN and anything negative mean no."""

from __future__ import annotations

from typing import Any, TypeVar

__all__ = ["measured"]

Maps = TypeVar("Maps", bound=Any)


def measured(depth: Maps) -> Maps:
    """Bool maps in the shape of `depth`, torch or NumPy; comparisons with NaN are false."""
    return depth > 0
