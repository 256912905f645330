"""The heads: from half-resolution features to the maps of the field at full resolution."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional

from gbpn.config import ModelConfig
from gbpn.gmcn.blocks import ConvNorm, ResidualBlock, initialise
from gbpn.gmcn.drawing import ChannelLayout, HeadMaps
from gbpn.gmcn.upscale import Upscale


class Heads(nn.Module):
    """Four heads on D1: weight, difference, damping and, with learned edges, offset."""

    def __init__(self, config: ModelConfig, channels: int, layout: ChannelLayout) -> None:
        super().__init__()
        width = config.head_width
        self.trunk: nn.Module = nn.Identity()
        if config.heads == "trunk":
            self.trunk = nn.Sequential(
                ConvNorm(channels, width, activation=functional.gelu), ResidualBlock(width)
            )

        def head(out: int) -> nn.Sequential:
            if config.heads == "released":
                return nn.Sequential(ResidualBlock(channels), ResidualBlock(channels), Upscale(channels, out))
            if config.heads == "light":
                gelu = functional.gelu
                return nn.Sequential(
                    ConvNorm(channels, width, activation=gelu),
                    ConvNorm(width, width, activation=gelu),
                    Upscale(width, out),
                )
            return nn.Sequential(Upscale(width, out))

        counts = layout.channels
        self.weight = head(counts["weight"])
        self.difference = head(counts["difference"])
        self.damping = head(counts["damping"])
        self.offset = head(counts["offset"]) if "offset" in counts else None
        initialise(self)
        self._start_at(layout.biases(config.start))

    @torch.no_grad()
    def _start_at(self, biases: dict[str, Tensor]) -> None:
        """Last layers say the same everywhere before training."""
        for name, bias in biases.items():
            last = getattr(self, name)[-1]
            last.weight.zero_()
            last.bias.copy_(bias)

    def forward(self, features: Tensor) -> HeadMaps:
        x = self.trunk(features)
        offset = self.offset(x) if self.offset is not None else None
        return HeadMaps(self.weight(x), self.difference(x), self.damping(x), offset)
