"""The decoder: from 1/32 back to half resolution, one skip connection per level."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn
from torch.nn import functional

from gbpn.network.blocks import ResidualBlock, doubled, initialise
from gbpn.network.convolution import ConvNorm, Convolution

__all__ = ["Decoder", "UpLevel"]


class UpLevel(nn.Module):
    """Twice the resolution, joined with the encoder's feature of that level."""

    def __init__(
        self, channels: int, skip: int, out: int, activation: bool, *, smooth: bool = False, blocks: int = 0
    ) -> None:
        """`smooth`: a 1×1 convolution, then bilinear, instead of taps of 2×2."""
        super().__init__()
        self.smooth = smooth
        self.up = ConvNorm(channels, out, 1) if smooth else ConvNorm(channels, out, 2, transposed=True)
        self.fuse = ConvNorm(
            out + skip,
            out,
            padding="zeros" if smooth else "replicate",
            activation=functional.gelu if activation else None,
        )
        self.blocks = nn.Sequential(*(ResidualBlock(out) for _ in range(blocks)))

    def forward(self, x: Tensor, skip: Tensor) -> Tensor:
        x = self.up(x)
        joined: Tensor = self.fuse(torch.cat((doubled(x) if self.smooth else x, skip), dim=1))
        refined: Tensor = self.blocks(joined)
        return refined


class Decoder(nn.Module):
    """Features E1 … E5 → D1 … D5, with D5 = E5."""

    def __init__(
        self,
        encoder_widths: Sequence[int],
        widths: Sequence[int],
        *,
        activation: bool = False,
        smooth: bool = False,
        blocks: Sequence[int] = (),
    ) -> None:
        """`widths`: channels of D1 … D4; `smooth`, `blocks`: as the configuration's `upsampling` and
        `decoder_blocks`. A smooth decoder also adds what the mean of the coarsest features says."""
        super().__init__()
        below = [*widths[1:], encoder_widths[-1]]
        counts = [*blocks, *[0] * len(widths)]
        self.levels = nn.ModuleList(
            UpLevel(
                below[level],
                encoder_widths[level],
                widths[level],
                activation,
                smooth=smooth,
                blocks=counts[level],
            )
            for level in range(len(widths))
        )
        self.overview = Convolution(below[-1], below[-1], 1) if smooth else None
        self.widths = (*widths, encoder_widths[-1])
        initialise(self)

    def forward(self, features: Sequence[Tensor]) -> list[Tensor]:
        coarsest = features[-1]
        if self.overview is not None:  # what kind of place it is
            coarsest = coarsest + self.overview(coarsest.mean(dim=(2, 3), keepdim=True))
        decoded = [coarsest]
        for level, skip in zip(reversed(self.levels), reversed(features[:-1]), strict=True):
            decoded.insert(0, level(decoded[0], skip))
        return decoded
