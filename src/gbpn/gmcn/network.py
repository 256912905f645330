"""GMCN, the graphical model construction network: one stage, from input maps to a drawn field."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import torch
from torch import Tensor, nn

from gbpn.config import ModelConfig
from gbpn.gmcn.decoder import Decoder
from gbpn.gmcn.density import DensityResponse
from gbpn.gmcn.depth_prior import PriorDecoder
from gbpn.gmcn.drawing import ChannelLayout, Drawing
from gbpn.gmcn.encoder import GlobalLocalEncoder
from gbpn.gmcn.heads import Heads
from gbpn.gmcn.iteration_corrections import IterationCorrections
from gbpn.gmcn.lite import LiteEncoder
from gbpn.gmcn.position import Seen, first_stage_input, second_stage_input

MULTIPLE = 32
"""Height and width that a U-Net of five halvings can take."""


def build_encoder(
    config: ModelConfig, input_channels: int, context_widths: Sequence[int] | None = None
) -> GlobalLocalEncoder | LiteEncoder:
    """The exchangeable part: [B, input_channels, H, W] → features at 1/2 … 1/32."""
    if config.encoder == "efficientnet-lite0":
        return LiteEncoder(input_channels)
    return GlobalLocalEncoder(config, input_channels, context_widths)


class GMCN(nn.Module):
    """A U-Net and four heads. The second stage also attends to the decoder features of the first."""

    distance: Tensor

    def __init__(self, config: ModelConfig, *, stage: int = 0, context_widths: Sequence[int] | None = None):
        super().__init__()
        self.stage = stage
        self.layout = ChannelLayout.of(config, stage)
        self.register_buffer("distance", torch.ones(1, 1, 1, 1))
        self.encoder = build_encoder(config, 6 if stage == 0 else 7, context_widths)
        self.decoder = Decoder(
            self.encoder.widths, config.decoder_widths, activation=config.decoder_activation
        )
        self.heads = Heads(config, self.decoder.widths[0], self.layout)
        self.prior = PriorDecoder(self.encoder.widths, config.prior_widths) if config.prior else None
        self.corrections: IterationCorrections | None = None
        if config.iteration_corrections:
            self.corrections = IterationCorrections(
                self.decoder.widths[1], config.iterations[stage], config.nonlocal_edges
            )
            self.corrections.start()
        self.response: DensityResponse | None = None
        if config.prior or config.density:
            self.response = DensityResponse(config.density, config.start if stage == 0 else None)

    def draw(self, image: Tensor, intrinsics: Tensor) -> Drawing:
        """The first stage: a field from the normalised image [B, 3, H, W] alone."""
        return self(first_stage_input(image, intrinsics, self.distance))

    def draw_prior(self, image: Tensor, intrinsics: Tensor) -> Tensor:
        """[B, 1, H, W]: the depth-like map alone, without what the heads add to it."""
        assert self.prior is not None
        prior: Tensor = self.prior(self.encoder(first_stage_input(image, intrinsics, self.distance)))
        return prior

    def redraw(self, seen: Seen, before: Drawing) -> Drawing:
        """The second stage: a field from image, depth and confidence; as published, not from measurements."""
        drawing: Drawing = self(second_stage_input(seen), before.features)
        return replace(drawing, responses=before.responses + drawing.responses)

    def forward(self, maps: Tensor, context: Sequence[Tensor] | None = None) -> Drawing:
        """maps [B, 6 or 7, H, W], H and W multiples of `MULTIPLE`."""
        encoded = self.encoder(maps, context)
        features = self.decoder(encoded)
        image = maps[:, :3]
        drawn = self.heads(features[0], image)
        if self.prior is not None:
            drawn = drawn._replace(prior=drawn.prior + self.prior(encoded))
        drawing = self.layout.read(drawn, image).with_features(tuple(features))
        if self.corrections is not None:
            drawing = drawing.corrected(self.corrections(features[1]))
        return drawing if self.response is None else replace(drawing, responses=(self.response,))
