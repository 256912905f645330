"""Which pixels a pixel attends to: the same rule on both axes, written once.

On an axis of length L with dilation d the positions fall into d classes, p mod d, of about L/d members each.
A pixel sees the `kernel` consecutive members of its own class that are centred on it; near a border that
window moves inwards, so it always holds `kernel` keys and never leaves the image.

Where the axis is too short for kernel · d positions, the dilation shrinks to the largest that fits; where it
is shorter than one window, every pixel of the axis sees the whole axis.
"""

from __future__ import annotations

import torch
from torch import Tensor

from gbpn.errors import InputError

__all__ = ["fitting_dilation", "kernel_of", "neighbours"]


def fitting_dilation(length: int, kernel: int, dilation: int) -> int:
    """The largest dilation up to `dilation` with which a window fits an axis; 1 where not even that fits."""
    return max(1, min(dilation, length // kernel))


def neighbours(
    length: int, kernel: int, dilation: int, device: torch.device | None = None
) -> tuple[Tensor, Tensor]:
    """Key positions, and their indices into an axis of the bias table, of every pixel of an axis.

    Both are [length, min(kernel, length)]; the bias index is (key − query) / dilation + kernel − 1.
    """
    dilation = fitting_dilation(length, kernel, dilation)
    position = torch.arange(length, device=device)
    residue, own = position % dilation, position // dilation  # class, and index within the class
    members = (length - residue + dilation - 1) // dilation
    window = min(kernel, length)
    first = (own - kernel // 2).clamp(min=0).minimum((members - window).clamp(min=0))
    member = first[:, None] + torch.arange(window, device=device)  # [length, window]
    return member * dilation + residue[:, None], member - own[:, None] + kernel - 1


def kernel_of(bias: Tensor) -> int:
    """The window's side, from a table [heads, 2·kernel − 1, 2·kernel − 1] of relative position biases."""
    if bias.dim() != 3 or bias.shape[1] != bias.shape[2] or bias.shape[1] % 4 != 1:
        raise InputError(
            f"bias must be [heads, 2·kernel − 1, 2·kernel − 1] with an odd kernel; got {list(bias.shape)}"
        )
    return (bias.shape[1] + 1) // 2
