"""Maps at full resolution without a lattice: drawn at half of it, grown bilinearly, corrected by fine ones.

Planes [H, W] are written at once by matrix products over the channels of a pixel: inference reads planes, and
nothing is copied from one layout to the other.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from gbpn.kernels.backends import COMPILED, native
from gbpn.network.blocks import doubled

__all__ = ["Fine", "doubled_adjoint", "grown"]

Fine = tuple[Tensor, nn.Conv2d]
"""Features [B, D, 2H, 2W], and the 1×1 convolution that reads them."""


def grown(x: Tensor, weight: Tensor, bias: Tensor, fine: Fine | None = None) -> Tensor:
    """[B, out, 2H, 2W] of features [B, C, H, W] by 1×1 weights [out, C, 1, 1]."""
    traced = torch.compiler.is_compiling() or torch.jit.is_tracing()  # type: ignore[attr-defined, no-untyped-call]
    if traced or x.is_meta:
        return _plain(x, weight, bias, fine)
    features, last = fine or (None, None)
    own = (None, None) if last is None else (last.weight, last.bias)
    given = (x.to(weight.dtype), weight, bias, None if features is None else features.to(weight.dtype), *own)
    with torch.autocast(x.device.type, enabled=False):  # last layers are computed as they are kept
        if not torch.is_grad_enabled():
            return _planes(*given)
        planes: Tensor = _Grown.apply(*given)  # type: ignore[no-untyped-call]
        return planes


def _plain(x: Tensor, weight: Tensor, bias: Tensor, fine: Fine | None) -> Tensor:
    maps = doubled(functional.conv2d(x.to(weight.dtype), weight, bias))
    if fine is None:
        return maps
    corrected: Tensor = maps + fine[1](fine[0])
    return corrected


def _planes(
    x: Tensor,
    weight: Tensor,
    bias: Tensor,
    features: Tensor | None = None,
    fine_weight: Tensor | None = None,
    fine_bias: Tensor | None = None,
) -> Tensor:
    coarse = torch.baddbmm(bias.view(1, -1, 1), *_factors(x, weight))
    maps = doubled(torch.unflatten(coarse, 2, (x.shape[2], x.shape[3])))
    if features is None or fine_weight is None:
        return maps
    maps.flatten(2).baddbmm_(*_factors(features, fine_weight))
    return maps.add_(fine_bias.view(1, -1, 1, 1)) if fine_bias is not None and bool(fine_bias.any()) else maps


class _Grown(torch.autograd.Function):
    """`_planes` with its gradients, which are products over the channels of a pixel as well."""

    @staticmethod
    def forward(ctx: Any, *given: Tensor | None) -> Tensor:
        ctx.save_for_backward(given[0], given[1], given[3], given[4])
        return _planes(*given)  # type: ignore[arg-type]

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
        x, weight, features, fine_weight = ctx.saved_tensors
        maps = grads[0].contiguous()
        coarse = _gradients(doubled_adjoint(maps), x, weight)
        if features is None:
            return (*coarse, None, None, None)
        return (*coarse, *_gradients(maps, features, fine_weight))


def doubled_adjoint(maps: Tensor) -> Tensor:
    """The adjoint of `doubled` for planes: [B, C, 2H, 2W] → [B, C, H, W].

    Torch adds every pixel to four of the smaller planes, one by one. The module of a checkout may be older
    than its sources.
    """
    batch, channels, height, width = maps.shape
    shape = (batch, channels, height // 2, width // 2)
    fast = COMPILED and maps.device.type == "cpu" and maps.dtype in (torch.float32, torch.float64)
    if not fast or not hasattr(native(), "doubled_adjoint"):
        plain: Tensor = torch.ops.aten.upsample_bilinear2d_backward(
            maps, [height, width], [*shape], False, 2.0, 2.0
        )
        return plain
    fine, result = maps.detach().contiguous(), maps.new_empty(shape)
    native().doubled_adjoint(
        inputs={"fine": fine.flatten(0, 1)},
        outputs={"result": result.flatten(0, 1)},
        threads=torch.get_num_threads(),
    )
    return result


def _gradients(maps: Tensor, x: Tensor, weight: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Of features (channels-last), weight and bias, from the cotangent of the planes [B, out, H, W]."""
    by_pixel, flat = maps.flatten(2).transpose(1, 2), maps.flatten(2)
    pixels = torch.bmm(by_pixel, weight.flatten(1).expand(x.shape[0], -1, -1))  # [B, H·W, C]
    learned = torch.bmm(flat, _factors(x, weight)[1].transpose(1, 2)).sum(0).view_as(weight)
    features = torch.unflatten(pixels, 1, (x.shape[2], x.shape[3])).permute(0, 3, 1, 2)
    return features, learned, flat.sum((0, 2))


def _factors(x: Tensor, weight: Tensor) -> tuple[Tensor, Tensor]:
    """([B, out, C], [B, C, H·W]) whose product is the 1×1 convolution; no copy of channels-last features."""
    pixels = x.to(weight.dtype).permute(0, 2, 3, 1).flatten(1, 2)  # [B, H·W, C]
    return weight.flatten(1).expand(x.shape[0], -1, -1), pixels.transpose(1, 2)
