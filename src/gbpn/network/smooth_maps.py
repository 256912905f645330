"""Maps at full resolution without a lattice: drawn at half of it, grown bilinearly, corrected by fine ones.

Where no gradient is wanted, planes [H, W] are written at once by matrix products over the channels of a
pixel: inference reads planes, and nothing is copied from one layout to the other.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional

from gbpn.network.blocks import doubled

__all__ = ["Fine", "grown"]

Fine = tuple[Tensor, nn.Conv2d]
"""Features [B, D, 2H, 2W], and the 1×1 convolution that reads them."""


def grown(x: Tensor, weight: Tensor, bias: Tensor, fine: Fine | None = None) -> Tensor:
    """[B, out, 2H, 2W] of features [B, C, H, W] by 1×1 weights [out, C, 1, 1]."""
    if torch.is_grad_enabled() or torch.compiler.is_compiling() or torch.jit.is_tracing():  # type: ignore[attr-defined, no-untyped-call]
        return _plain(x, weight, bias, fine)
    coarse = torch.baddbmm(bias.view(1, -1, 1), *_factors(x, weight))
    maps = doubled(torch.unflatten(coarse, 2, (x.shape[2], x.shape[3])))
    if fine is None:
        return maps
    features, last = fine
    assert last.bias is not None
    maps.flatten(2).baddbmm_(*_factors(features, last.weight))
    return maps.add_(last.bias.view(1, -1, 1, 1)) if bool(last.bias.any()) else maps


def _plain(x: Tensor, weight: Tensor, bias: Tensor, fine: Fine | None) -> Tensor:
    maps = doubled(functional.conv2d(x.to(weight.dtype), weight, bias))
    if fine is None:
        return maps
    corrected: Tensor = maps + fine[1](fine[0])
    return corrected


def _factors(x: Tensor, weight: Tensor) -> tuple[Tensor, Tensor]:
    """([B, out, C], [B, C, H·W]) whose product is the 1×1 convolution; no copy of channels-last features."""
    pixels = x.to(weight.dtype).permute(0, 2, 3, 1).flatten(1, 2)  # [B, H·W, C]
    return weight.flatten(1).expand(x.shape[0], -1, -1), pixels.transpose(1, 2)
