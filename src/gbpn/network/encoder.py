"""What an encoder is: the exchangeable part of the network."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence

from torch import Tensor, nn

__all__ = ["Encoder"]


class Encoder(nn.Module, ABC):
    """[B, input channels, H, W] → features E1 … E5 at 1/2 … 1/32."""

    widths: Sequence[int]
    """Channels of E1 … E5."""

    @abstractmethod
    def forward(self, x: Tensor, context: Sequence[Tensor] | None = None) -> list[Tensor]:
        """`context`: the features of the stage before, for encoders that attend to them."""
