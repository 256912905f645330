"""The one rule for "is this pixel measured": a depth above 0. Zero, NaN and anything negative mean no."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, overload

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray
    from torch import Tensor

__all__ = ["measured"]


@overload
def measured(depth: Tensor) -> Tensor: ...


@overload
def measured(depth: NDArray[Any]) -> NDArray[np.bool_]: ...


def measured(depth: Any) -> Any:
    """Bool maps in the shape of `depth`, torch or NumPy; comparisons with NaN are false."""
    return depth > 0
