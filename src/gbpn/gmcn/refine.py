"""A narrow second stage: it looks at the depth found so far and corrects what the first stage drew.

Its last layer starts at zero, so before training the second stage repeats the first stage's field and the
two-stage model is the one-stage model with more iterations. A trained first stage is thus never lost.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional

from gbpn.config import ModelConfig
from gbpn.errors import InputError
from gbpn.gmcn.blocks import ConvNorm, ResidualBlock, initialise
from gbpn.gmcn.drawing import ChannelLayout, Drawing, HeadMaps
from gbpn.gmcn.position import second_stage_input
from gbpn.gmcn.upscale import Upscale


class Refiner(nn.Module):
    """A small U-Net at half resolution on image, depth, confidence and the first stage's finest feature."""

    def __init__(self, config: ModelConfig, *, context_channels: int) -> None:
        super().__init__()
        self.layout = ChannelLayout.of(config, 1)
        if self.layout.channels != ChannelLayout.of(config, 0).channels:
            raise InputError(
                "second_stage 'refine' corrects the first stage's maps, so both need the same channels; "
                f"got iterations {config.iterations} with dynamic={config.dynamic}: use dynamic=False"
            )
        first, *rest = config.refine_widths
        gelu = functional.gelu
        self.inputs = ConvNorm(4 * 7, first, activation=gelu)
        self.adapter = nn.Conv2d(context_channels, first, 1)
        self.down = nn.ModuleList()
        self.up = nn.ModuleList()
        self.fuse = nn.ModuleList()
        for above, below in zip(config.refine_widths, rest, strict=False):
            self.down.append(
                nn.Sequential(ConvNorm(above, below, stride=2, activation=gelu), ResidualBlock(below))
            )
            self.up.append(ConvNorm(below, above, 2, transposed=True))
            self.fuse.append(ConvNorm(2 * above, above, activation=gelu))
        self.block = ResidualBlock(first)
        self.last = Upscale(first, sum(self.layout.channels.values()))
        initialise(self)
        for start_at_zero in (self.adapter, self.last):
            nn.init.zeros_(start_at_zero.weight)
            assert start_at_zero.bias is not None
            nn.init.zeros_(start_at_zero.bias)

    def redraw(
        self, image: Tensor, intrinsics: Tensor, depth: Tensor, confidence: Tensor, before: Drawing
    ) -> Drawing:
        """The first stage's drawing, corrected with what its depth and confidence [B, 1, H, W] show."""
        assert before.maps is not None
        maps = second_stage_input(image, intrinsics, depth, confidence)
        x = self.inputs(functional.pixel_unshuffle(maps, 2)) + self.adapter(before.features[0])
        skips = []
        for down in self.down:
            skips.append(x)
            x = down(x)
        for up, fuse, skip in zip(reversed(self.up), reversed(self.fuse), reversed(skips), strict=True):
            x = fuse(torch.cat((up(x), skip), dim=1))
        corrections = self.last(self.block(x)).split(tuple(self.layout.channels.values()), dim=1)
        drawn = before.maps.by_name().items()
        corrected = {name: old + new for (name, old), new in zip(drawn, corrections, strict=True)}
        redrawn = self.layout.read(HeadMaps(**corrected), image)
        return redrawn.with_features(before.features)
