"""The paper's encoder: six scales, global-local units from half resolution down."""

from __future__ import annotations

from collections.abc import Sequence

from torch import Tensor, nn
from torch.nn import functional

from gbpn.config import ModelConfig
from gbpn.network.blocks import ResidualBlock, initialise
from gbpn.network.convolution import ConvNorm
from gbpn.network.encoder import Encoder
from gbpn.network.unit import GatedAttention, GlobalLocalUnit

__all__ = ["GlobalLocalEncoder"]


class _Level(nn.Module):
    """Half the resolution, then units; all units of a level hear the same context."""

    def __init__(self, channels: int, out: int, units: Sequence[GlobalLocalUnit]) -> None:
        super().__init__()
        self.down = ConvNorm(channels, out, stride=2)
        self.units = nn.ModuleList(units)

    def forward(self, x: Tensor, context: Tensor | None) -> Tensor:
        x = self.down(x)
        for unit in self.units:
            x = unit(x, context)
        return x


class GlobalLocalEncoder(Encoder):
    """[B, C, H, W] → features E1 … E5 at 1/2 … 1/32."""

    def __init__(
        self, config: ModelConfig, input_channels: int, context_widths: Sequence[int] | None = None
    ) -> None:
        """`context_widths`: channels at each level of the stage before, to attend to; None without one."""
        super().__init__()
        widths = config.widths
        self.widths = widths[1:]
        self.stem = nn.Sequential(
            ConvNorm(input_channels, widths[0], activation=functional.gelu), ResidualBlock(widths[0])
        )
        count = sum(len(level) for level in config.dilations)
        rates = iter([config.drop_path * u / max(count - 1, 1) for u in range(count)])
        self.levels = nn.ModuleList()
        for index, dilations in enumerate(config.dilations):
            units = [
                GlobalLocalUnit(
                    widths[index + 1],
                    dilation=dilation,
                    window=config.window,
                    head_channels=config.head_channels,
                    drop_path=next(rates),
                    block=config.block,
                    context_channels=context_widths[index] if context_widths else None,
                )
                for dilation in dilations
            ]
            self.levels.append(_Level(widths[index], widths[index + 1], units))
        initialise(self)
        for part in self.modules():
            if isinstance(part, GatedAttention):
                part.initialise()

    def forward(self, x: Tensor, context: Sequence[Tensor] | None = None) -> list[Tensor]:
        x = self.stem(x)
        features = []
        for index, level in enumerate(self.levels):
            x = level(x, context[index] if context is not None else None)
            features.append(x)
        return features
