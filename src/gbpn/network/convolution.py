"""Convolutions as layers: plain modules and, once folded and on CPUs, one pass over memory with what follows.

oneDNN, which computes torch's convolutions on CPUs, can apply an activation to a result, or add another map
to it, before it leaves the registers, and it computes bfloat16 at twice the speed where the processor knows
it. Torch offers this to its compiler; here the same operators are called directly. Wherever they cannot be
(training, tracing, another device or dtype, another torch), the plain modules serve, with the same result up
to rounding.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal, NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.nn.utils.fusion import fuse_conv_bn_weights

__all__ = [
    "PRECISIONS",
    "ConvNorm",
    "Convolution",
    "Layer",
    "PackedWeights",
    "has_bfloat16",
    "in_one_pass",
    "prepared",
]

PRECISIONS = {"float32": torch.float32, "bfloat16": torch.bfloat16}
"""In which the convolutions between input and heads can be computed."""
_ACTIVATIONS: dict[Any, tuple[str, list[float], str]] = {
    None: ("none", [], ""),
    functional.gelu: ("gelu", [], "none"),
    functional.relu6: ("hardtanh", [0.0, 6.0], ""),
}
"""How oneDNN calls them: name, numbers, variant."""


_SIZES_KEPT = 4
"""Of the input, for which a layer's weights are kept as oneDNN wants them; the oldest leaves."""


class PackedWeights:
    """A layer's weights by size of its input, as oneDNN wants them there; not copied with a model."""

    def __init__(self) -> None:
        self._by_size: dict[tuple[int, ...], Tensor] = {}

    def of(self, layer: Layer, size: torch.Size) -> Tensor:
        """The weights for an input of this size; as they are where this torch does not lay them out."""
        packed = self._by_size.get(size)
        if packed is None:
            packed = _packed(layer, size)
            kept = list(self._by_size.items())[1 - _SIZES_KEPT :]
            self._by_size = {**dict(kept), size: packed}  # at once: other threads may be reading
        return packed

    def __reduce__(self) -> tuple[type[PackedWeights], tuple[()]]:
        return PackedWeights, ()


class Layer(NamedTuple):
    """A convolution as it is computed; its result has the weight's dtype and is channels-last."""

    weight: Tensor
    bias: Tensor | None
    padding: tuple[int, ...]
    stride: tuple[int, ...]
    dilation: tuple[int, ...]
    groups: int
    replicated: int = 0
    """Pixels around the input that repeat its border."""
    margins: tuple[int, int, int, int] | None = None
    """Zeros around the input, where they differ from side to side."""
    transposed: bool = False
    packed: PackedWeights | None = None


def prepared(
    conv: nn.Conv2d | nn.ConvTranspose2d,
    dtype: torch.dtype,
    *,
    margins: tuple[int, int, int, int] | None = None,
    unshuffled: int = 1,
) -> Layer:
    """The layer of a module whose weights stay as they are from now on.

    margins     zeros around the input, left, right, top, bottom, beyond the module's own padding
    unshuffled  the module sees `pixel_unshuffle(x, unshuffled)`, the layer x itself
    """
    weight = conv.weight.detach()
    padding, stride = tuple(map(int, conv.padding)), tuple(conv.stride)
    replicated = padding[0] if conv.padding_mode == "replicate" else 0
    depthwise = conv.groups == conv.in_channels > 1
    if margins is not None and depthwise and margins[1] == margins[0] + 1:
        # a further row and column of zeros in front of the kernel: the same sums with equal margins
        weight, padding, margins = functional.pad(weight, (1, 0, 1, 0)), (margins[1], margins[1]), None
    if unshuffled > 1:
        out, channels, rows, columns = weight.shape
        inner = weight.view(out, -1, unshuffled, unshuffled, rows, columns)
        weight = inner.permute(0, 1, 4, 2, 5, 3).reshape(
            out, channels // unshuffled**2, unshuffled * rows, unshuffled * columns
        )
        padding, stride = tuple(unshuffled * p for p in padding), tuple(unshuffled * s for s in stride)
    return Layer(
        weight=weight.to(dtype, memory_format=torch.channels_last),
        bias=None if conv.bias is None else conv.bias.detach().to(dtype),
        padding=(0, 0) if replicated else padding,
        stride=stride,
        dilation=tuple(conv.dilation),
        groups=conv.groups,
        replicated=replicated,
        margins=margins,
        transposed=isinstance(conv, nn.ConvTranspose2d),
        packed=PackedWeights(),
    )


def in_one_pass(
    layer: Layer | None,
    x: Tensor,
    activation: Callable[[Tensor], Tensor] | None = None,
    add: Tensor | None = None,
) -> Tensor | None:
    """activation(layer(x)), or layer(x) + add; None where the plain modules must serve, as without layer."""
    if layer is None or not _fits(x, activation) or (operators := _operators()) is None:
        return None
    if add is not None and (activation is not None or layer.transposed):
        raise ValueError("a sum goes together with a plain convolution only, without an activation")
    dtype = layer.weight.dtype
    x = x.to(dtype)
    if layer.replicated:
        x = functional.pad(x, (layer.replicated,) * 4, mode="replicate")
    if layer.margins is not None:
        x = functional.pad(x, layer.margins)
    plan = layer.padding, layer.stride, layer.dilation, layer.groups
    weight = layer.weight if layer.packed is None else layer.packed.of(layer, x.shape)
    plain, transposed = operators
    if layer.transposed:
        none = (0, 0)
        plan = layer.padding, none, *plan[1:]  # type: ignore[assignment]
        up: Tensor = transposed.default(x, weight, layer.bias, *plan, *_ACTIVATIONS[activation])
        return up
    if add is None:
        result: Tensor = plain.default(x, weight, layer.bias, *plan, *_ACTIVATIONS[activation])
        return result
    added = add.to(dtype)
    summed: Tensor = plain.binary(x, added, weight, layer.bias, *plan, "add", 1.0, None, [], None)
    return summed


def _packed(layer: Layer, size: torch.Size) -> Tensor:
    """The layer's weights as oneDNN lays them out for an input of this size, or as they are."""
    name = "_reorder_convolution_transpose_weight" if layer.transposed else "_reorder_convolution_weight"
    pack = getattr(torch.ops.mkldnn, name, None)  # private: may leave with any release
    if pack is None or not hasattr(pack, "default"):
        return layer.weight
    output_padding = ((0, 0),) if layer.transposed else ()
    plan = layer.padding, *output_padding, layer.stride, layer.dilation, layer.groups
    try:
        packed: Tensor = pack.default(layer.weight, *plan, list(size))
    except RuntimeError:  # a dtype that this processor does not compute itself
        return layer.weight
    return packed


def _fits(x: Tensor, activation: Callable[[Tensor], Tensor] | None) -> bool:
    """Whether oneDNN takes this input, and nobody wants its gradient or writes it down."""
    return (
        activation in _ACTIVATIONS
        and x.device.type == "cpu"
        and x.dtype in (torch.float32, torch.bfloat16)
        and not (torch.is_grad_enabled() and x.requires_grad)
        and not torch.compiler.is_compiling()
        and not torch.jit.is_tracing()  # type: ignore[attr-defined, no-untyped-call]
    )


def has_bfloat16() -> bool:
    """Whether this processor computes bfloat16 itself; others imitate it slowly."""
    asked = (getattr(torch.cpu, f"_is_{name}_supported", None) for name in ("avx512_bf16", "amx_tile"))
    return _operators() is not None and any(ask is not None and ask() for ask in asked)


def _operators() -> tuple[Any, Any] | None:
    """Torch's own operators, plain and transposed; None where this torch has no such thing."""
    if not torch.backends.mkldnn.is_available():  # type: ignore[no-untyped-call]
        return None
    # private: may leave with any release
    plain = getattr(torch.ops.mkldnn, "_convolution_pointwise", None)
    transposed = getattr(torch.ops.mkldnn, "_convolution_transpose_pointwise", None)
    both = hasattr(plain, "default") and hasattr(plain, "binary") and hasattr(transposed, "default")
    return (plain, transposed) if both else None


class Convolution(nn.Conv2d):
    """A convolution without a norm, whose result may be added to another map.

    `wide`: a last layer, in float32 also where the network is computed in bfloat16.
    """

    def __init__(
        self, channels: int, out: int, kernel: int, *, bias: bool = True, wide: bool = False
    ) -> None:
        super().__init__(channels, out, kernel, padding=kernel // 2, bias=bias)
        self.wide = wide
        self.layer: Layer | None = None

    def prepare(self, dtype: torch.dtype) -> None:
        """From now on weights stay as they are: compute in `dtype`."""
        self.layer = prepared(self, torch.float32 if self.wide else dtype)

    def forward(self, x: Tensor, add: Tensor | None = None) -> Tensor:
        """`add`: a map to add to the result."""
        if (done := in_one_pass(self.layer, x, add=add)) is not None:
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
        self.layer: Layer | None = None
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
        if (done := in_one_pass(self.layer, x, self.activation, add)) is not None:
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
            self.layer = prepared(self.conv, dtype, margins=self.margins, unshuffled=self.unshuffled)


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
