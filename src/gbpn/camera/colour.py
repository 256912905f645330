"""Arithmetic of colours."""

from __future__ import annotations

from torch import Tensor

__all__ = ["luma"]


def luma(image: Tensor) -> Tensor:
    """Brightness [1, H, W] of RGB [3, H, W], with the weights of ITU-R BT.601."""
    return (0.299 * image[0] + 0.587 * image[1] + 0.114 * image[2])[None]
