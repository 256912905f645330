"""The bricks made of convolutions: the residual block, drop path, and how they start."""

from __future__ import annotations

from torch import Tensor, nn
from torch.nn import functional

from gbpn.network.convolution import ConvNorm

__all__ = ["DropPath", "ResidualBlock", "doubled", "initialise"]


def doubled(x: Tensor) -> Tensor:
    """Twice the resolution, bilinear: every pixel from its four nearest, so that no lattice is left."""
    return functional.interpolate(x, scale_factor=2, mode="bilinear", align_corners=False)


class DropPath(nn.Module):
    """In training, leave a branch out for a random part of the batch and scale up the rest."""

    def __init__(self, rate: float) -> None:
        super().__init__()
        self.rate = rate

    def forward(self, branch: Tensor) -> Tensor:
        if not self.training or self.rate == 0:
            return branch
        keep = 1 - self.rate
        kept = branch.new_empty(branch.shape[0], 1, 1, 1).bernoulli_(keep)
        return branch * (kept / keep)


class ResidualBlock(nn.Module):
    """x + norm(conv(gelu(norm(conv(x))))); the branch starts at zero."""

    def __init__(self, channels: int, drop_path: float = 0.0) -> None:
        super().__init__()
        self.first = ConvNorm(channels, channels, activation=functional.gelu)
        self.second = ConvNorm(channels, channels)
        self.drop_path = DropPath(drop_path)
        assert isinstance(self.second.norm, nn.BatchNorm2d)
        nn.init.zeros_(self.second.norm.weight)

    def forward(self, x: Tensor) -> Tensor:
        out: Tensor
        if not self.training:
            out = self.second(self.first(x), add=x)
        else:
            out = x + self.drop_path(self.second(self.first(x)))
        return out


def initialise(module: nn.Module) -> None:
    """The released start of plain convolutions: normal with σ 0.02; transposed ones keep torch's default."""
    for part in module.modules():
        if isinstance(part, nn.Conv2d):
            nn.init.trunc_normal_(part.weight, std=0.02, a=-2.0, b=2.0)
            if part.bias is not None:
                nn.init.zeros_(part.bias)
