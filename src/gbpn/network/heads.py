"""The heads: from half-resolution features to the maps of the field at full resolution."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional

from gbpn.config import ModelConfig
from gbpn.network import head_planes, smooth_maps
from gbpn.network.blocks import ResidualBlock, doubled, initialise
from gbpn.network.convolution import ConvNorm, Convolution
from gbpn.network.field_parameters import ChannelLayout, HeadMaps
from gbpn.network.upscale import Upscale

__all__ = ["Detail", "Heads"]


class Detail(nn.Module):
    """What half resolution cannot place: a correction of every map from the image's own pixels.

    Its last layer starts at zero: a trained network can get one and loses nothing.
    """

    def __init__(
        self,
        channels: int,
        width: int,
        counts: tuple[int, ...],
        *,
        smooth: bool = False,
        seen: int = 3,
        mixes: bool = True,
    ) -> None:
        """`smooth` as the configuration's `upsampling`; `seen`: channels at full resolution; `mixes`: whether
        what they say together with the features is convolved once more."""
        super().__init__()
        self.counts, self.smooth = counts, smooth
        self.up = ConvNorm(channels, width, 1) if smooth else ConvNorm(channels, width, 2, transposed=True)
        self.look = ConvNorm(seen, width)
        self.mix = ConvNorm(width, width, activation=functional.gelu) if mixes else nn.Identity()
        self.last = Convolution(width, sum(counts), 1 if smooth else 3, wide=True)

    def forward(self, features: Tensor, image: Tensor) -> tuple[Tensor, ...]:
        """features [B, C, H/2, W/2], image [B, 3, H, W] → one correction per map."""
        return torch.split(self.last(self.mixed(features, image)), list(self.counts), dim=1)

    def mixed(self, features: Tensor, image: Tensor) -> Tensor:
        """[B, width, H, W]: what the last layer reads."""
        up = self.up(features)
        mixed: Tensor = self.mix(functional.gelu(self.look(image, add=doubled(up) if self.smooth else up)))
        return mixed


class Heads(nn.Module):
    """Heads on D1: weight, difference, damping; with learned edges, offset; perhaps contrast and prior."""

    def __init__(self, config: ModelConfig, channels: int, layout: ChannelLayout) -> None:
        super().__init__()
        width = config.head_width
        self.smooth = smooth = config.upsampling == "smooth"
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
            if smooth:
                return nn.Sequential(Convolution(width, out, 1, wide=True))
            return nn.Sequential(Upscale(width, out))

        self.counts = counts = layout.channels
        self.weight = head(counts["weight"])
        self.difference = head(counts["difference"])
        self.damping = head(counts["damping"])
        self.offset = head(counts["offset"]) if "offset" in counts else None
        self.contrast = head(counts["contrast"]) if "contrast" in counts else None
        self.prior = head(counts["prior"]) if "prior" in counts else None
        self.detail = None
        if config.detail:
            trunk_width = width if config.heads == "trunk" else channels
            self.detail = Detail(trunk_width, config.detail, tuple(counts.values()), smooth=smooth)
        self.last_layers: head_planes.LastLayers | None = None
        self.backend = "auto"
        initialise(self)
        if self.detail is not None:
            nn.init.zeros_(self.detail.last.weight)
        self._start_at(layout.biases(config.start))

    @torch.no_grad()
    def _start_at(self, biases: dict[str, Tensor]) -> None:
        """Last layers say the same everywhere before training."""
        for name, bias in biases.items():
            last = getattr(self, name)[-1]
            last.weight.zero_()
            last.bias.copy_(bias)

    def prepare(self, dtype: torch.dtype) -> None:
        """From now on weights stay as they are: draw all maps at once where heads share their features."""
        heads = [getattr(self, name) for name in self.counts]
        if not self.smooth and all(len(head) == 1 for head in heads):
            fine = None if self.detail is None else self.detail.last
            self.last_layers = head_planes.last_layers([head[0] for head in heads], fine, dtype)

    def forward(self, features: Tensor, image: Tensor) -> HeadMaps:
        """`features` [B, C, H/2, W/2] and the normalised image [B, 3, H, W]."""
        x = self.trunk(features)
        if (layers := self.last_layers) is not None and head_planes.fit(layers, self.backend, x, image):
            fine = None if self.detail is None else self.detail.mixed(x, image)
            planes = head_planes.drawn(layers, x, fine)
            parts = torch.split(planes, list(self.counts.values()), dim=1)
            return HeadMaps(**dict(zip(self.counts, parts, strict=True)))
        if self.smooth:
            return self._grown_smoothly(x, image)
        maps = {name: getattr(self, name)(x) for name in self.counts}
        if self.detail is not None:
            for name, fine in zip(self.counts, self.detail(x, image), strict=True):
                maps[name] = maps[name] + fine
        return HeadMaps(**maps)

    def _grown_smoothly(self, x: Tensor, image: Tensor) -> HeadMaps:
        """All heads as one 1×1 convolution at half the resolution, grown bilinearly, and corrected from the
        image's own pixels."""
        lasts = [getattr(self, name)[-1] for name in self.counts]
        weight, bias = (torch.cat([getattr(last, part) for last in lasts]) for part in ("weight", "bias"))
        fine = None if self.detail is None else (self.detail.mixed(x, image), self.detail.last)
        maps = smooth_maps.grown(x, weight, bias, fine)
        return HeadMaps(
            **dict(zip(self.counts, torch.split(maps, list(self.counts.values()), 1), strict=True))
        )
