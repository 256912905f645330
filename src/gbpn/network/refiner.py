"""A narrow second stage: it looks at the depth found so far and corrects what the first stage drew.

Its last layer starts at zero, so before training the second stage repeats the first stage's field and the
two-stage model is the one-stage model with more iterations. A trained first stage is thus never lost.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise

import torch
from torch import Tensor, nn
from torch.nn import functional

from gbpn.config import ModelConfig
from gbpn.errors import InputError
from gbpn.mrf import SYMMETRIC_RING, shift
from gbpn.network import fused_maps, head_planes, smooth_maps
from gbpn.network.blocks import ResidualBlock, doubled, initialise
from gbpn.network.convolution import ConvNorm, Convolution
from gbpn.network.density import DensityResponse
from gbpn.network.field_parameters import ChannelLayout, FieldParameters, HeadMaps
from gbpn.network.heads import Detail
from gbpn.network.iteration_corrections import IterationCorrections
from gbpn.network.stage_inputs import SecondStageInput, second_stage_input
from gbpn.network.unit import GatedAttention, GlobalLocalUnit
from gbpn.network.upscale import Upscale

__all__ = ["CUES", "STEP", "Refiner", "cues"]

STEP = 0.05
"""Relative difference of two depths that the second stage sees as half of the largest."""
_ATTENTION_FROM = 2
"""Level (0 is 1/2) from which on units attend: where a window sees much of the image for little."""
_ATTENTION_HEAD = 16
"""Channels of one attention head of those units, or of as many as divide a narrower level."""
CUES = 7 + 2 + len(SYMMETRIC_RING)
"""Channels of `cues`."""


class Refiner(nn.Module):
    """A small U-Net at half resolution on image, depth, measurements and the first stage's features."""

    def __init__(self, config: ModelConfig, *, context_widths: Sequence[int]) -> None:
        super().__init__()
        self.layout = ChannelLayout.of(config, 1)
        if self.layout.channels != ChannelLayout.of(config, 0).channels:
            raise InputError(
                "second_stage 'refine' corrects the first stage's maps, so both need the same channels; "
                f"got iterations {config.iterations} with dynamic={config.dynamic}: use dynamic=False"
            )
        widths, self.smooth = config.refine_widths, config.upsampling == "smooth"
        gelu = functional.gelu
        self.inputs = ConvNorm(CUES, widths[0], activation=gelu, unshuffled=2)
        self.adapters = nn.ModuleList(
            Convolution(context, width, 1) for context, width in zip(context_widths, widths, strict=False)
        )
        self.down = nn.ModuleList()
        self.up = nn.ModuleList()
        self.fuse = nn.ModuleList()
        for above, below in pairwise(widths):
            self.down.append(
                nn.Sequential(ConvNorm(above, below, stride=2, activation=gelu), ResidualBlock(below))
            )
            self.up.append(
                ConvNorm(below, above, 1) if self.smooth else ConvNorm(below, above, 2, transposed=True)
            )
            self.fuse.append(ConvNorm(2 * above, above, activation=gelu))
        self.units = _units(config, context_widths)
        self.block = ResidualBlock(widths[0])
        counts = tuple(self.layout.channels.values())
        self.last: Convolution | Upscale
        self.detail: Detail | None = None
        if self.smooth:
            self.last = Convolution(widths[0], sum(counts), 1, wide=True)
            if config.detail:
                self.detail = Detail(widths[0], config.detail, counts, smooth=True, seen=CUES, mixes=False)
        else:
            self.last = Upscale(widths[0], sum(counts))
        self.last_layers: head_planes.LastLayers | None = None
        self.backend = "auto"
        self.corrections: IterationCorrections | None = None
        if config.iteration_corrections:
            self.corrections = IterationCorrections(widths[1], config.iterations[1], config.nonlocal_edges)
        initialise(self)
        for part in self.modules():
            if isinstance(part, GatedAttention):
                part.initialise()
        if self.corrections is not None:
            self.corrections.start()
        self.response = DensityResponse(config.density) if config.prior or config.density else None
        for last in (self.last,) if self.detail is None else (self.last, self.detail.last):
            nn.init.zeros_(last.weight)
            assert last.bias is not None
            nn.init.zeros_(last.bias)

    def redraw(self, seen: SecondStageInput, before: FieldParameters) -> FieldParameters:
        """The first stage's parameters, corrected with what its depth shows."""
        assert before.maps is not None
        known = list(zip(self.adapters, before.features, strict=False))
        adapt, features = known[0]
        shown = cues(seen)
        x = adapt(features, add=self.inputs(shown))
        skips = []
        for down, (adapt, features) in zip(self.down, known[1:], strict=True):
            skips.append(x)
            x = adapt(features, add=down(x))
        quarter = x
        x = self._attend(len(self.up), x, before.features)
        for level in reversed(range(len(self.up))):
            quarter = x
            up = self.up[level](x)
            x = self.fuse[level](torch.cat((doubled(up) if self.smooth else up, skips[level]), dim=1))
            x = self._attend(level, x, before.features)
        redrawn = self.layout.read(self._corrected(before.maps, self.block(x), shown), seen.image)
        if self.corrections is not None:
            redrawn = redrawn.corrected(self.corrections, quarter)
        own = () if self.response is None else (self.response,)
        return replace(redrawn, features=before.features, responses=before.responses + own)

    def prepare(self, dtype: torch.dtype) -> None:
        """From now on weights stay as they are: correct all maps at once."""
        if isinstance(self.last, Upscale):
            self.last_layers = head_planes.last_layers([self.last], None, dtype)

    def _corrected(self, drawn: HeadMaps, x: Tensor, shown: Tensor) -> HeadMaps:
        """The first stage's maps, with what the last layer makes of features [B, C, H/2, W/2] added, and a
        branch at full resolution, where there is one, of the cues `shown`."""
        counts, old = list(self.layout.channels.values()), drawn.by_name()
        layers = self.last_layers
        if layers is not None and head_planes.fit(layers, self.backend, x, *old.values()):
            parts = torch.split(head_planes.drawn(layers, x, add=tuple(old.values())), counts, dim=1)
            return HeadMaps(**dict(zip(old, parts, strict=True)))
        parts = torch.split(self._new(x, shown), counts, dim=1)
        return HeadMaps(**{name: maps + new for (name, maps), new in zip(old.items(), parts, strict=True)})

    def _new(self, x: Tensor, shown: Tensor) -> Tensor:
        """What is added to the maps of the first stage."""
        if not self.smooth:
            taps: Tensor = self.last(x)
            return taps
        assert self.last.bias is not None
        fine = None if self.detail is None else (self.detail.mixed(x, shown), self.detail.last)
        return smooth_maps.grown(x, self.last.weight, self.last.bias, fine)

    def _attend(self, level: int, x: Tensor, context: Sequence[Tensor]) -> Tensor:
        """What the units of a level make of its map; as it came where there are none."""
        if level >= len(self.units):
            return x
        units = self.units[level]
        assert isinstance(units, nn.ModuleList)
        for unit in units:
            x = unit(x, context[level])
        return x


def _units(config: ModelConfig, context_widths: Sequence[int]) -> nn.ModuleList:
    """Further units by level. They start as the identity: a trained stage can get them and loses nothing."""
    levels = nn.ModuleList()
    for level, count in enumerate(config.refine_units):
        coarse = level >= _ATTENTION_FROM
        levels.append(
            nn.ModuleList(
                GlobalLocalUnit(
                    config.refine_widths[level],
                    dilation=1,
                    window=config.window,
                    head_channels=math.gcd(config.refine_widths[level], _ATTENTION_HEAD),
                    block="global-local" if coarse else "convolution",
                    context_channels=context_widths[level] if coarse else None,
                )
                for _ in range(count)
            )
        )
    return levels


def cues(seen: SecondStageInput) -> Tensor:
    """[B, CUES, H, W]: the paper's seven maps, where there are measurements and how far they lie off, and the
    steps of depth to half of the neighbours; steps as x / (`STEP` + |x|) of relative differences x.
    """
    if (fused := fused_maps.cues(seen, CUES, STEP)) is not None:
        return fused
    there = seen.measured > 0
    safe = seen.depth.clamp(min=1e-6)
    off = torch.where(there, seen.measured / safe - 1, torch.zeros_like(safe))
    steps = [shift(seen.depth, row, column) / safe - 1 for row, column in SYMMETRIC_RING]
    steep = torch.cat((off, *steps), dim=1)
    return torch.cat((second_stage_input(seen), there.to(steep), steep / (STEP + steep.abs())), dim=1)
