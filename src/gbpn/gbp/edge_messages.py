"""Learned edges with a message each: what a sender says without what it heard from the receiver (Eq. 5).

A sender is a place between four pixels. Each of these may itself listen, along its own learned edges, to
places of which the receiver is a part; that part of the messages it heard is not told to the receiver.
"""

from __future__ import annotations

import torch
from torch import Tensor

from gbpn.gaussian import Gaussian

__all__ = ["nonlocal_step"]

_ROUNDING = 8.0
"""A sender of whose precision less is left than this many times the rounding error knew nothing else."""


def nonlocal_step(
    base: Gaussian,
    messages: Gaussian,
    weight: Tensor,
    difference: Tensor,
    offset: Tensor,
    damping: Tensor,
    *,
    reweighting: float = 1.0,
) -> Gaussian:
    """One parallel step along the learned edges; returns their new damped messages [B, K, H, W].

    base [B, 1, H, W] unary × local part of the belief; messages [B, K, H, W] those of the step before; the
    rest as in `gbpn.gbp.reference.nonlocal_step`.
    """
    total = Gaussian(
        base.information + reweighting * messages.information.sum(1, keepdim=True),
        base.precision + reweighting * messages.precision.sum(1, keepdim=True),
    )
    heard = _Senders(offset).say(total, messages)  # [B, K, H, W]
    message = heard.across(weight / reweighting, difference)
    nothing = Gaussian.identity_like(heard.precision)
    return message.where(heard.informed, nothing).damped(messages, damping)


class _Senders:
    """The places at `offset` [B, K, 2, H, W] from each pixel, as shares of the four pixels around them."""

    def __init__(self, offset: Tensor) -> None:
        batch, count, _, height, width = offset.shape
        self.offset, self.shape = offset, (batch, count, height, width)
        self.rows = torch.arange(height, device=offset.device, dtype=offset.dtype)[:, None].expand(
            height, width
        )
        self.columns = torch.arange(width, device=offset.device, dtype=offset.dtype).expand(height, width)
        self.y, self.x = self.rows + offset[:, :, 0], self.columns + offset[:, :, 1]  # [B, K, H, W]

    def say(self, total: Gaussian, messages: Gaussian) -> Gaussian:
        """What each receiver would hear of beliefs `total` [B, 1, H, W], its own part left out."""
        information = precision = torch.zeros_like(self.y)
        whole = torch.zeros_like(self.y)
        for below in (0, 1):
            for right in (0, 1):
                row, column = self.y.detach().floor() + below, self.x.detach().floor() + right
                share = (1 - (self.y - row).abs()) * (1 - (self.x - column).abs())
                _, _, height, width = self.shape
                valid = (row >= 0) & (row < height) & (column >= 0) & (column < width)
                share = torch.where(valid, share, torch.zeros_like(share))
                pixel = (row.clamp(0, height - 1) * width + column.clamp(0, width - 1)).long()
                own = self._own_share(pixel, row, column)  # [B, K, K', H, W]
                information = information + share * self._rest(
                    total.information, messages.information, pixel, own
                )
                precision = precision + share * self._rest(total.precision, messages.precision, pixel, own)
                whole = whole + share * self._read(total.precision, pixel)[:, :, 0]
        nothing = torch.zeros_like(precision)
        least = _ROUNDING * torch.finfo(precision.dtype).eps * whole.detach()
        return Gaussian(information, precision).where(precision > least, Gaussian(nothing, nothing))

    def _own_share(self, pixel: Tensor, row: Tensor, column: Tensor) -> Tensor:
        """How far the pixels listen to the receivers themselves, along each of their learned edges."""
        away = self._read(self.offset.flatten(1, 2), pixel)  # [B, K, 2·K', H, W]
        y = row[:, :, None] + away[:, :, 0::2] - self.rows
        x = column[:, :, None] + away[:, :, 1::2] - self.columns
        return (1 - y.abs()).clamp(min=0) * (1 - x.abs()).clamp(min=0)

    def _rest(self, total: Tensor, messages: Tensor, pixel: Tensor, own: Tensor) -> Tensor:
        return self._read(total, pixel)[:, :, 0] - (own * self._read(messages, pixel)).sum(2)

    def _read(self, maps: Tensor, pixel: Tensor) -> Tensor:
        """maps [B, C, H, W] at pixels [B, K, H, W], counted row by row → [B, K, C, H, W]."""
        batch, count, height, width = self.shape
        channels = maps.shape[1]
        index = pixel.reshape(batch, 1, -1).expand(-1, channels, -1)
        found = maps.reshape(batch, channels, -1).gather(2, index)
        return found.reshape(batch, channels, count, height, width).transpose(1, 2)
