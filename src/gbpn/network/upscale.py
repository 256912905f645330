"""The last layer of a head: every pixel becomes 2×2, and every channel a plane of its own.

The network runs on channels-last memory, inference reads planes [H, W]. A plain transposed convolution would
leave channels-last maps that are then copied; the compiled form writes the planes at once.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from gbpn.kernels import memory as kept_memory
from gbpn.kernels.backends import COMPILED, native
from gbpn.kernels.torch_operators import operator
from gbpn.network import head_planes

__all__ = ["Upscale"]


class Upscale(nn.ConvTranspose2d):
    """A 2×2 transposed convolution of stride 2; planes where no gradient is wanted."""

    def __init__(self, channels: int, out: int) -> None:
        super().__init__(channels, out, 2, stride=2)
        self.backend = "auto"
        self.pairs: head_planes.LastLayers | None = None

    def prepare(self, dtype: torch.dtype) -> None:
        """From now on weights stay as they are; maps in bfloat16 are multiplied as such where it is fast."""
        layers = head_planes.last_layers([self], None, dtype)
        self.pairs = layers if layers is not None and layers.pairs else None

    def forward(self, x: Tensor, output_size: list[int] | None = None) -> Tensor:
        if self.pairs is not None and head_planes.fit(self.pairs, self.backend, x):
            return head_planes.drawn(self.pairs, x)
        if x.dtype == torch.bfloat16 and self.weight.dtype == torch.float32:
            x = x.float()  # where pairs of bfloat16 are not multiplied
        trains = torch.is_grad_enabled() and (x.requires_grad or self.weight.requires_grad)
        fast = COMPILED and x.device.type == "cpu" and x.dtype in (torch.float32, torch.float64)
        if trains or not fast or torch.compiler.is_compiling() or self.backend not in ("auto", "cpu"):
            return super().forward(x, output_size)
        assert self.bias is not None
        planes: Tensor = _upscale(x, self.weight, self.bias)
        return planes


@operator("upscale", device="cpu")
def _upscale(x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    """x [B, C, H, W], weight [C, out, 2, 2] → [B, out, 2H, 2W], contiguous."""
    batch, _, height, width = x.shape
    planes = kept_memory.empty((batch, weight.shape[1], 2 * height, 2 * width), like=x)
    by_channel = weight.detach().transpose(0, 1).contiguous()  # [out, C, 2, 2]
    native().upscale(
        inputs={"x": x.detach(), "weight": by_channel, "bias": bias.detach().contiguous()},
        outputs={"planes": planes},
        threads=torch.get_num_threads(),
    )
    return planes


@_upscale.register_fake
def _shape(x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    batch, _, height, width = x.shape
    return x.new_empty(batch, weight.shape[1], 2 * height, 2 * width)
