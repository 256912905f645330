"""The global-local unit: gated neighbourhood attention for reach, a residual block for detail."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from gbpn.network.attention import neighbourhood_attention
from gbpn.network.blocks import DropPath, ResidualBlock
from gbpn.network.convolution import ConvNorm, Convolution

__all__ = ["GatedAttention", "GlobalLocalUnit"]


class GatedAttention(nn.Module):
    """x + project(gate · attention(query of x, key and value of source)).

    One sigmoid gate per pixel and head. The projection starts at zero, so the unit starts as the identity.
    """

    def __init__(
        self,
        channels: int,
        source_channels: int,
        *,
        head_channels: int,
        window: int,
        dilation: int,
        drop_path: float,
    ) -> None:
        super().__init__()
        self.channels, self.heads = channels, channels // head_channels
        self.dilation, self.scale = dilation, head_channels**-0.5
        self.backend = "auto"
        self.query_gate = ConvNorm(channels, channels + self.heads, 1)
        self.key_value = ConvNorm(source_channels, 2 * channels, 1)
        self.bias = nn.Parameter(torch.zeros(self.heads, 2 * window - 1, 2 * window - 1))
        self.project = Convolution(channels, channels, 1, bias=False)
        self.drop_path = DropPath(drop_path)

    def initialise(self) -> None:
        nn.init.trunc_normal_(self.bias, std=0.02, a=-2.0, b=2.0)
        nn.init.zeros_(self.project.weight)

    def forward(self, x: Tensor, source: Tensor) -> Tensor:
        query, gate = torch.split(_at_least_single(self.query_gate(x)), [self.channels, self.heads], dim=1)
        key, value = _at_least_single(self.key_value(source)).chunk(2, dim=1)
        attended = neighbourhood_attention(
            query, key, value, self.bias, dilation=self.dilation, scale=self.scale, backend=self.backend
        )
        by_head = torch.unflatten(attended, 1, (self.heads, -1))  # [B, heads, size, H, W]
        gated = (by_head * gate.sigmoid().unsqueeze(2)).flatten(1, 2)
        if not self.training:
            alone: Tensor = self.project(gated, add=x)
            return alone
        out: Tensor = x + self.drop_path(self.project(gated))
        return out


def _at_least_single(maps: Tensor) -> Tensor:
    """Attention needs float32 or float64, also where convolutions run in bfloat16."""
    return maps.float() if maps.dtype == torch.bfloat16 and maps.device.type == "cpu" else maps


class GlobalLocalUnit(nn.Module):
    """Cross attention and block (second stage only), then self attention and block.

    `block` leaves out one half for the ablations: "convolution" keeps the residual blocks, "attention" the
    attention.
    """

    def __init__(
        self,
        channels: int,
        *,
        dilation: int,
        window: int,
        head_channels: int,
        drop_path: float = 0.0,
        block: str = "global-local",
        context_channels: int | None = None,
    ) -> None:
        super().__init__()

        def attention(source_channels: int) -> GatedAttention | None:
            if block == "convolution":
                return None
            return GatedAttention(
                channels,
                source_channels,
                head_channels=head_channels,
                window=window,
                dilation=dilation,
                drop_path=drop_path,
            )

        def residual() -> nn.Module:
            return nn.Identity() if block == "attention" else ResidualBlock(channels, drop_path)

        crossed = context_channels is not None and block != "convolution"
        self.cross_attention = attention(context_channels) if crossed and context_channels else None
        self.cross_block = residual() if crossed else nn.Identity()
        self.self_attention = attention(channels)
        self.self_block = residual()

    def forward(self, x: Tensor, context: Tensor | None = None) -> Tensor:
        if self.cross_attention is not None and context is not None:
            x = self.cross_block(self.cross_attention(x, context))
        if self.self_attention is not None:
            x = self.self_attention(x, x)
        out: Tensor = self.self_block(x)
        return out
