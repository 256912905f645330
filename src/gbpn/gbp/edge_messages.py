"""Learned edges with a message each: what a sender says without what it heard from the receiver (Eq. 5).

A sender is a place between four pixels. Each of these may itself listen, along its own learned edges, to
places of which the receiver is a part; that part of the messages it heard is not told to the receiver.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from gbpn.gaussian import Gaussian
from gbpn.gbp.reference import sample

__all__ = ["Returning", "nonlocal_step"]

_ROUNDING = 8.0
"""A sender of whose precision less is left than this many times the rounding error knew nothing else."""


@dataclass(frozen=True)
class Returning:
    """Which messages a receiver would hear again: few, as both ends must have chosen each other.

    Positions count through [B, K, H, W] without gaps.
    """

    receiver: Tensor
    """[N] edges that would hear some of their own receiver."""
    message: Tensor
    """[N] messages in which that is."""
    share: Tensor
    """[N] how much of these messages, in (0, 1]."""

    @classmethod
    def of(cls, offset: Tensor) -> Returning:
        """Along learned edges at `offset` [B, K, 2, H, W]: the same for all steps of an iteration."""
        parts = [_corner(offset, below, right) for below in (0, 1) for right in (0, 1)]
        receiver, message, share = (torch.cat(part) for part in zip(*parts, strict=True))
        return cls(receiver, message, share)

    def left_out(self, heard: Tensor, messages: Tensor) -> Tensor:
        """`heard` [B, K, H, W] without what returns of `messages` [B, K, H, W]."""
        returned = self.share * messages.reshape(-1)[self.message]
        return heard.reshape(-1).index_add(0, self.receiver, -returned).view_as(heard)


def _corner(offset: Tensor, below: int, right: int) -> tuple[Tensor, Tensor, Tensor]:
    """`Returning` by way of one of the four pixels around each place."""
    batch, count, _, height, width = offset.shape
    rows = torch.arange(height, device=offset.device, dtype=offset.dtype)[:, None]
    columns = torch.arange(width, device=offset.device, dtype=offset.dtype)
    y, x = rows + offset[:, :, 0], columns + offset[:, :, 1]  # [B, K, H, W]
    row, column = y.detach().floor() + below, x.detach().floor() + right
    valid = (row >= 0) & (row < height) & (column >= 0) & (column < width)
    pixel = (row.clamp(0, height - 1) * width + column.clamp(0, width - 1)).long()
    share = (1 - (y - row).abs()) * (1 - (x - column).abs())
    index = pixel.reshape(batch, 1, -1).expand(-1, 2 * count, -1)
    away = offset.reshape(batch, 2 * count, -1).gather(2, index).view(batch, count, 2, count, height, width)
    back_y = row[:, None] + away[:, :, 0] - rows  # [B, K', K, H, W]: from the receiver to what it is heard by
    back_x = column[:, None] + away[:, :, 1] - columns
    found = ((back_y.abs() < 1) & (back_x.abs() < 1) & (valid & (share > 0))[:, None]).nonzero(as_tuple=True)
    b, of, edge, at_row, at_column = found
    here = (b, edge, at_row, at_column)
    own = (1 - back_y[found].abs()) * (1 - back_x[found].abs())
    receiver = ((b * count + edge) * height + at_row) * width + at_column
    message = (b * count + of) * height * width + pixel[here]
    return receiver, message, own * share[here]


def nonlocal_step(
    base: Gaussian,
    messages: Gaussian,
    weight: Tensor,
    difference: Tensor,
    offset: Tensor,
    damping: Tensor,
    *,
    reweighting: float = 1.0,
    returning: Returning | None = None,
) -> Gaussian:
    """One parallel step along the learned edges; returns their new damped messages [B, K, H, W].

    base       [B, 1, H, W] unary × local part of the belief
    messages   [B, K, H, W] those of the step before
    returning  of these offsets, if already known; the rest as in `gbpn.gbp.reference.nonlocal_step`
    """
    returning = Returning.of(offset) if returning is None else returning

    def heard(own: Tensor, far: Tensor) -> tuple[Tensor, Tensor]:
        whole = sample(own + reweighting * far.sum(1, keepdim=True), offset)
        return whole, returning.left_out(whole, far)

    _, information = heard(base.information, messages.information)
    whole, precision = heard(base.precision, messages.precision)
    nothing = Gaussian.identity_like(precision)
    known = precision > _ROUNDING * torch.finfo(precision.dtype).eps * whole.detach()
    sender = Gaussian(information, precision).where(known, nothing)
    return sender.across(weight / reweighting, difference).where(known, nothing).damped(messages, damping)
