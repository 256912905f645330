"""The ablations' baseline (V1, V2): a predicted depth, bent onto the measurements by one scale and shift."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional

from gbpn.config import ModelConfig
from gbpn.measurements.validity import measured
from gbpn.network.blocks import ResidualBlock, initialise
from gbpn.network.construction import build_encoder
from gbpn.network.decoder import Decoder
from gbpn.network.stage_inputs import first_stage_input
from gbpn.network.upscale import Upscale

__all__ = ["AffineMaps", "AffineNetwork", "affine_fit"]

_RIDGE = 1e-4
"""Pull towards a pure scale, in mean square depths: decides where one point leaves two unknowns."""


class AffineMaps(NamedTuple):
    """[B, 1, H, W] each."""

    depth: Tensor
    """Predicted depth up to scale and shift, above 0."""
    weight: Tensor
    """Trust in a measurement at this pixel, above 0."""
    confidence_logit: Tensor


class AffineNetwork(nn.Module):
    """The same U-Net, with depth, weight and confidence instead of a field."""

    distance: Tensor

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.register_buffer("distance", torch.ones(1, 1, 1, 1))
        self.encoder = build_encoder(config, 6)
        self.decoder = Decoder(
            self.encoder.widths, config.decoder_widths, activation=config.decoder_activation
        )
        channels = self.decoder.widths[0]
        self.head = nn.Sequential(ResidualBlock(channels), ResidualBlock(channels), Upscale(channels, 3))
        initialise(self.head)

    def forward(self, image: Tensor, intrinsics: Tensor) -> AffineMaps:
        features = self.decoder(self.encoder(first_stage_input(image, intrinsics, self.distance)))
        depth, weight, logit = self.head(features[0]).chunk(3, dim=1)
        return AffineMaps(functional.softplus(depth), functional.softplus(weight), logit)


def affine_fit(depth: Tensor, weight: Tensor, sparse: Tensor) -> tuple[Tensor, Tensor]:
    """(scale, shift), each [B, 1, 1, 1], minimising Σ weight · (scale · depth + shift − sparse)².

    Computed around the weighted centre in double precision. With a single measurement the shift is 0.
    Images without any get scale 1 and shift 0.
    """
    dims = (1, 2, 3)
    d, s = depth.double(), sparse.double()
    w = torch.where(measured(sparse), weight.double(), torch.zeros_like(d))
    total = w.sum(dims, keepdim=True)
    some = total > 0
    w = w / torch.where(some, total, torch.ones_like(total))
    mean_d, mean_s = (w * d).sum(dims, keepdim=True), (w * s).sum(dims, keepdim=True)
    mean_dd = (w * d * d).sum(dims, keepdim=True)
    pure = (w * d * s).sum(dims, keepdim=True) / torch.where(some, mean_dd, torch.ones_like(mean_dd))
    variance = (w * (d - mean_d) ** 2).sum(dims, keepdim=True)
    covariance = (w * (d - mean_d) * (s - mean_s)).sum(dims, keepdim=True)
    ridge = _RIDGE * torch.where(some, mean_dd, torch.ones_like(mean_dd))
    scale = torch.where(some, (covariance + ridge * pure) / (variance + ridge), torch.ones_like(pure))
    shift = torch.where(some, mean_s - scale * mean_d, torch.zeros_like(pure))
    return scale.to(depth.dtype), shift.to(depth.dtype)
