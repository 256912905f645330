"""The bricks: a convolution with its batch norm, the residual block, and drop path."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.nn.utils.fusion import fuse_conv_bn_weights

from gbpn.network import fused_convolution

__all__ = ["ConvNorm", "Convolution", "DropPath", "ResidualBlock", "doubled", "initialise"]


def doubled(x: Tensor) -> Tensor:
    """Twice the resolution, bilinear: every pixel from its four nearest, so that no lattice is left."""
    return functional.interpolate(x, scale_factor=2, mode="bilinear", align_corners=False)


def _pointwise(x: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor | None:
    """A 1×1 convolution [out, C, 1, 1] as one matrix product, while a gradient is wanted; None where x is not
    channels-last. Torch computes the gradients of narrow 1×1 convolutions by a slow path of its own."""
    if weight.shape[2:] != (1, 1) or not torch.is_grad_enabled() or torch.compiler.is_compiling():
        return None
    if x.device.type != "cpu" or not x.is_contiguous(memory_format=torch.channels_last):
        return None
    pixels = functional.linear(x.permute(0, 2, 3, 1), weight.flatten(1), bias)
    return pixels.permute(0, 3, 1, 2)


def _plain(conv: nn.Conv2d) -> bool:
    """Whether a 1×1 kernel is all there is to it."""
    return conv.kernel_size == (1, 1) and conv.stride == (1, 1) and conv.groups == 1


class Convolution(nn.Conv2d):
    """A convolution without a norm, whose result may be added to another map.

    `wide`: a last layer, in float32 also where the network is computed in bfloat16.
    """

    def __init__(
        self, channels: int, out: int, kernel: int, *, bias: bool = True, wide: bool = False
    ) -> None:
        super().__init__(channels, out, kernel, padding=kernel // 2, bias=bias)
        self.wide = wide
        self.layer: fused_convolution.Layer | None = None

    def prepare(self, dtype: torch.dtype) -> None:
        """From now on weights stay as they are: compute in `dtype`."""
        self.layer = fused_convolution.prepared(self, torch.float32 if self.wide else dtype)

    def forward(self, x: Tensor, add: Tensor | None = None) -> Tensor:
        """`add`: a map to add to the result."""
        if (done := fused_convolution.convolution(self.layer, x, add=add)) is not None:
            return done
        product = _pointwise(x, self.weight, self.bias) if _plain(self) else None
        x = super().forward(x) if product is None else product
        return x if add is None else add + x


class ConvNorm(nn.Module):
    """Convolution, batch norm, and perhaps an activation. `fold` merges the norm into the convolution."""

    def __init__(
        self,
        channels: int,
        out: int,
        kernel: int = 3,
        *,
        stride: int = 1,
        groups: int = 1,
        padding: str = "zeros",
        activation: Callable[[Tensor], Tensor] | None = None,
        transposed: bool = False,
        unshuffled: int = 1,
        epsilon: float = 1e-5,
    ) -> None:
        """`transposed`: stride = kernel, no padding.

        `unshuffled`: the convolution sees the input after `pixel_unshuffle`; `channels` are those before it.

        `padding`: "zeros" or "replicate", (kernel − 1)/2 pixels on each side; "same", as in TensorFlow: with
        stride 2 and an even size, one pixel less in front than behind.
        """
        super().__init__()
        self.activation, self.unshuffled = activation, unshuffled
        channels *= unshuffled**2
        self.layer: fused_convolution.Layer | None = None
        self.margins: tuple[int, int, int, int] | None = None
        if transposed:
            self.conv: nn.Conv2d | nn.ConvTranspose2d = nn.ConvTranspose2d(
                channels, out, kernel, stride=kernel, bias=False
            )
        else:
            around = kernel // 2
            if padding == "same" and stride == 2:
                self.margins, around = (around - 1, around, around - 1, around), 0
            mode: Literal["replicate", "zeros"] = "replicate" if padding == "replicate" else "zeros"
            self.conv = nn.Conv2d(
                channels, out, kernel, stride, around, groups=groups, bias=False, padding_mode=mode
            )
        self.norm: nn.Module = nn.BatchNorm2d(out, eps=epsilon)

    def forward(self, x: Tensor, add: Tensor | None = None) -> Tensor:
        """`add`: a map to add to the result."""
        if (done := fused_convolution.convolution(self.layer, x, self.activation, add)) is not None:
            return done
        if self.margins is not None:
            x = functional.pad(x, self.margins)
        if self.unshuffled > 1:
            x = functional.pixel_unshuffle(x, self.unshuffled)
        x = self._merged(x) if self._frozen else self.norm(self._convolved(x))
        x = x if self.activation is None else self.activation(x)
        return x if add is None else add + x

    def _convolved(self, x: Tensor) -> Tensor:
        conv = self.conv
        product = None
        if isinstance(conv, nn.Conv2d) and _plain(conv):
            product = _pointwise(x, conv.weight, conv.bias)
        out: Tensor = conv(x) if product is None else product
        return out

    @property
    def _frozen(self) -> bool:
        """Whether the convolution learns under a norm whose statistics are kept, as in trained encoders."""
        return torch.is_grad_enabled() and not self.norm.training and isinstance(self.norm, nn.BatchNorm2d)

    def _merged(self, x: Tensor) -> Tensor:
        """norm(conv(x)) with the norm's scale on the weights: one pass over the maps less, both ways."""
        norm, conv = self.norm, self.conv
        assert isinstance(norm, nn.BatchNorm2d)
        assert norm.running_mean is not None
        assert norm.running_var is not None
        scale = norm.weight * (norm.running_var + norm.eps).rsqrt()
        bias = norm.bias - norm.running_mean * scale
        if isinstance(conv, nn.ConvTranspose2d):
            weight = conv.weight * scale.view(1, -1, 1, 1)
            return functional.conv_transpose2d(x, weight, bias, conv.stride)
        weight = conv.weight * scale.view(-1, 1, 1, 1)
        if _plain(conv) and (product := _pointwise(x, weight, bias)) is not None:
            return product
        padding = conv.padding
        if conv.padding_mode == "replicate":
            around = conv.kernel_size[0] // 2
            x, padding = functional.pad(x, (around,) * 4, mode="replicate"), (0, 0)
        return functional.conv2d(x, weight, bias, conv.stride, padding, conv.dilation, conv.groups)

    @property
    def folded(self) -> bool:
        """Whether the norm is merged into the convolution."""
        return isinstance(self.norm, nn.Identity)

    @torch.no_grad()
    def fold(self) -> None:
        """Merge the norm's running statistics into the convolution: the same function in evaluation."""
        norm = self.norm
        if not isinstance(norm, nn.BatchNorm2d):
            return
        assert norm.running_mean is not None
        assert norm.running_var is not None
        weight, bias = fuse_conv_bn_weights(
            self.conv.weight,
            None,
            norm.running_mean,
            norm.running_var,
            norm.eps,
            norm.weight,
            norm.bias,
            transpose=isinstance(self.conv, nn.ConvTranspose2d),
        )
        self.conv.weight, self.conv.bias = weight, bias
        self.norm = nn.Identity()

    def prepare(self, dtype: torch.dtype) -> None:
        """Once folded: weights stay as they are from now on, compute in `dtype`."""
        if self.folded:
            self.layer = fused_convolution.prepared(
                self.conv, dtype, margins=self.margins, unshuffled=self.unshuffled
            )


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
