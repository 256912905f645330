"""GMCN, the graphical model construction network: one stage, from input maps to the parameters of a field."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import torch
from torch import Tensor, nn

from gbpn.network.decoder import Decoder
from gbpn.network.density import DensityResponse
from gbpn.network.depth_prior import PriorDecoder, PriorHead
from gbpn.network.encoder import Encoder
from gbpn.network.field_parameters import ChannelLayout, FieldParameters
from gbpn.network.heads import Heads
from gbpn.network.iteration_corrections import IterationCorrections
from gbpn.network.stage_inputs import SecondStageInput, first_stage_input, second_stage_input

__all__ = ["GMCN", "MULTIPLE"]

MULTIPLE = 32
"""Height and width that a U-Net of five halvings can take."""


class GMCN(nn.Module):
    """A U-Net and four heads. The second stage also attends to features of the first."""

    distance: Tensor

    def __init__(
        self,
        *,
        encoder: Encoder,
        decoder: Decoder,
        heads: Heads,
        layout: ChannelLayout,
        prior: PriorDecoder | PriorHead | None = None,
        corrections: IterationCorrections | None = None,
        response: DensityResponse | None = None,
        attended: str = "decoder",
    ) -> None:
        """`attended`: whose features a second stage attends to, as in the configuration."""
        super().__init__()
        self.layout, self.attended = layout, attended
        self.register_buffer("distance", torch.ones(1, 1, 1, 1))
        self.encoder = encoder
        self.decoder = decoder
        self.heads = heads
        self.prior = prior
        self.corrections = corrections
        self.response = response

    def draw(self, image: Tensor, intrinsics: Tensor) -> FieldParameters:
        """The first stage: a field from the normalised image [B, 3, H, W] alone."""
        drawn: FieldParameters = self(first_stage_input(image, intrinsics, self.distance))
        return drawn

    def draw_prior(self, image: Tensor, intrinsics: Tensor) -> Tensor:
        """[B, 1, H, W]: the depth-like map alone, without what the heads add to it."""
        encoded = self.encoder(first_stage_input(image, intrinsics, self.distance))
        return self._prior(encoded, self.decoder(encoded) if isinstance(self.prior, PriorHead) else ())

    def _prior(self, encoded: Sequence[Tensor], decoded: Sequence[Tensor]) -> Tensor:
        """The map from what it is read off: the encoder's features, or the decoder's where that is shared."""
        assert self.prior is not None
        prior: Tensor = self.prior(decoded[0] if isinstance(self.prior, PriorHead) else encoded)
        return prior

    def redraw(self, seen: SecondStageInput, before: FieldParameters) -> FieldParameters:
        """The second stage: a field from image, depth and confidence; as published, not from measurements."""
        drawn: FieldParameters = self(second_stage_input(seen), before.features)
        return replace(drawn, responses=before.responses + drawn.responses)

    def forward(self, maps: Tensor, context: Sequence[Tensor] | None = None) -> FieldParameters:
        """maps [B, 6 or 7, H, W], H and W multiples of `MULTIPLE`."""
        encoded = self.encoder(maps, context)
        features = self.decoder(encoded)
        image = maps[:, :3]
        drawn = self.heads(features[0], image)
        if self.prior is not None:
            drawn = drawn._replace(prior=drawn.prior + self._prior(encoded, features))
        attended = encoded if self.attended == "encoder" else features
        parameters = self.layout.read(drawn, image).with_features(tuple(attended))
        if self.corrections is not None:
            parameters = parameters.corrected(self.corrections, features[1])
        if self.response is None:
            return parameters
        return replace(parameters, responses=(self.response,))
