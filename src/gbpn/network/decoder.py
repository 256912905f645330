"""The decoder: from 1/32 back to half resolution, one skip connection per level."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn
from torch.nn import functional

from gbpn.network.blocks import ConvNorm, initialise

__all__ = ["Decoder", "UpLevel"]


class UpLevel(nn.Module):
    """Twice the resolution, joined with the encoder's feature of that level."""

    def __init__(self, channels: int, skip: int, out: int, activation: bool) -> None:
        super().__init__()
        self.up = ConvNorm(channels, out, 2, transposed=True)
        self.fuse = ConvNorm(
            out + skip, out, padding="replicate", activation=functional.gelu if activation else None
        )

    def forward(self, x: Tensor, skip: Tensor) -> Tensor:
        joined: Tensor = self.fuse(torch.cat((self.up(x), skip), dim=1))
        return joined


class Decoder(nn.Module):
    """Features E1 … E5 → D1 … D5, with D5 = E5."""

    def __init__(
        self, encoder_widths: Sequence[int], widths: Sequence[int], *, activation: bool = False
    ) -> None:
        """`widths`: channels of D1 … D4."""
        super().__init__()
        below = [*widths[1:], encoder_widths[-1]]
        self.levels = nn.ModuleList(
            UpLevel(below[level], encoder_widths[level], widths[level], activation)
            for level in range(len(widths))
        )
        self.widths = (*widths, encoder_widths[-1])
        initialise(self)

    def forward(self, features: Sequence[Tensor]) -> list[Tensor]:
        decoded = [features[-1]]
        for level, skip in zip(reversed(self.levels), reversed(features[:-1]), strict=True):
            decoded.insert(0, level(decoded[0], skip))
        return decoded
