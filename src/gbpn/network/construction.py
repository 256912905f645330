"""A stage built from its configuration. A new encoder is a file of its own and a line of `ENCODERS`."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from gbpn.config import ModelConfig
from gbpn.errors import InputError
from gbpn.network.decoder import Decoder
from gbpn.network.density import DensityResponse
from gbpn.network.depth_prior import PriorDecoder, PriorHead
from gbpn.network.efficientnet import EfficientNetEncoder
from gbpn.network.encoder import Encoder
from gbpn.network.field_parameters import ChannelLayout
from gbpn.network.global_local import GlobalLocalEncoder
from gbpn.network.heads import Heads
from gbpn.network.iteration_corrections import IterationCorrections
from gbpn.network.network import GMCN

__all__ = ["ENCODERS", "build_encoder", "build_stage"]

ENCODERS: dict[str, Callable[[ModelConfig, int, Sequence[int] | None], Encoder]] = {
    "global-local": GlobalLocalEncoder,
    "efficientnet-lite0": lambda _, channels, __: EfficientNetEncoder(channels),
}
"""`ModelConfig.encoder` → what builds it from (configuration, input channels, context widths or None)."""


def build_encoder(
    config: ModelConfig, input_channels: int, context_widths: Sequence[int] | None = None
) -> Encoder:
    """The encoder that the configuration names."""
    if config.encoder not in ENCODERS:
        raise InputError(f"config encoder must be one of {', '.join(ENCODERS)}; got {config.encoder!r}")
    return ENCODERS[config.encoder](config, input_channels, context_widths)


def build_stage(config: ModelConfig, *, stage: int = 0, context_widths: Sequence[int] | None = None) -> GMCN:
    """The network of stage 0 or 1; `context_widths`: channels of the features it attends to."""
    layout = ChannelLayout.of(config, stage)
    encoder = build_encoder(config, 6 if stage == 0 else 7, context_widths)
    decoder = Decoder(
        encoder.widths,
        config.decoder_widths,
        activation=config.decoder_activation,
        smooth=config.upsampling == "smooth",
        blocks=config.decoder_blocks,
    )
    heads = Heads(config, decoder.widths[0], layout)
    prior: PriorDecoder | PriorHead | None = None
    if config.prior and config.prior_decoder == "shared":
        prior = PriorHead(decoder.widths[0], config.prior_head)
    elif config.prior:
        prior = PriorDecoder(encoder.widths, config.prior_widths)
    corrections = None
    if config.iteration_corrections:
        corrections = IterationCorrections(decoder.widths[1], config.iterations[stage], config.nonlocal_edges)
        corrections.start()
    response = None
    if config.prior or config.density:
        response = DensityResponse(config.density, config.start if stage == 0 else None)
    return GMCN(
        encoder=encoder,
        decoder=decoder,
        heads=heads,
        layout=layout,
        prior=prior,
        corrections=corrections,
        response=response,
        attended=config.attended,
    )
