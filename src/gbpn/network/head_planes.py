"""All maps that the heads draw in one pass over memory, compiled: for fused models on CPUs.

Every head ends in an `Upscale`, a branch at full resolution corrects all maps, and a second stage adds to
those of the first. One after the other these write and read every map up to four times; here a row of all
maps is summed in registers and written once. Where that does not `fit`, the plain layers serve.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import NamedTuple

import torch
from torch import Tensor, nn

from gbpn.kernels.backends import COMPILED, native

__all__ = ["LastLayers", "drawn", "fit", "last_layers"]


class LastLayers(NamedTuple):
    """The weights of all heads together, as the compiled form reads them."""

    weight: Tensor
    """[out, C, 2, 2]; in bfloat16 two channels of 16 bits lie in one float32, [out, C/2, 2, 2]."""
    bias: Tensor
    """[out] float32."""
    fine_weight: Tensor | None
    """[out, D, 3, 3], or of pairs as `weight`."""
    pairs: bool
    """Whether two channels of bfloat16 are multiplied at once."""


def last_layers(
    heads: Sequence[nn.ConvTranspose2d], fine: nn.Conv2d | None, dtype: torch.dtype
) -> LastLayers | None:
    """Of the last layers of all heads, and of the correction at full resolution; None: nothing is compiled.

    dtype  of the maps that the layers will read
    """
    if not _built() or any(head.bias is None for head in heads) or heads[0].weight.dtype != torch.float32:
        return None
    weight = torch.cat([head.weight.detach() for head in heads], dim=1).transpose(0, 1)  # [out, C, 2, 2]
    bias = torch.cat([head.bias.detach() for head in heads if head.bias is not None])
    fine_weight = None if fine is None else fine.weight.detach()
    if fine is not None and fine.bias is not None:
        bias = bias + fine.bias.detach()
    given = [weight] if fine_weight is None else [weight, fine_weight]
    pairs = dtype == torch.bfloat16 and native().has_pairs() and all(w.shape[1] % 2 == 0 for w in given)
    laid = [_paired(w) if pairs else w.contiguous() for w in given]
    return LastLayers(laid[0], bias, laid[1] if fine is not None else None, pairs)


def fit(layers: LastLayers, backend: str, x: Tensor, *others: Tensor) -> bool:
    """Whether `layers` read x, the compiled form is wanted and takes all maps, and nobody asks for gradients
    or writes them down."""
    maps = (x, *others)
    trains = torch.is_grad_enabled() and any(x.requires_grad for x in maps)
    return (
        not trains
        and backend in ("auto", "cpu")
        and (x.dtype == torch.bfloat16 or not layers.pairs)  # what came in float32 is not rounded
        and all(x.device.type == "cpu" and x.dtype in (torch.float32, torch.bfloat16) for x in maps)
        and not torch.compiler.is_compiling()
        and not torch.jit.is_tracing()  # type: ignore[attr-defined, no-untyped-call]
    )


def drawn(layers: LastLayers, x: Tensor, fine: Tensor | None = None, add: Sequence[Tensor] = ()) -> Tensor:
    """All maps [B, out, 2H, 2W] of features [B, C, H, W]; all that is given must `fit`.

    fine  [B, D, 2H, 2W], read by the 3×3 convolution at full resolution
    add   maps [B, …, 2H, 2W] to add, together as many as there are
    """
    inputs = {"x": _terms(x, layers.pairs), "weight": layers.weight, "bias": layers.bias}
    if fine is not None and layers.fine_weight is not None:
        inputs |= {"fine": _terms(fine, layers.pairs), "fine_weight": layers.fine_weight}
    inputs |= {f"add_{index}": _planes(old) for index, old in enumerate(add)}
    batch, _, height, width = x.shape
    planes = torch.empty(batch, layers.bias.shape[0], 2 * height, 2 * width)
    native().head_planes(
        inputs=inputs, outputs={"planes": planes}, pairs=layers.pairs, threads=torch.get_num_threads()
    )
    return planes


@cache
def _built() -> bool:
    """Whether the kernel is there; that of a checkout may be older than its sources."""
    return COMPILED and hasattr(native(), "head_planes")


def _paired(weight: Tensor) -> Tensor:
    """[out, C, k, k] → [out, C/2, k, k], two bfloat16 in each float32."""
    by_pair = torch.unflatten(weight.bfloat16(), 1, (-1, 2)).movedim(2, -1).contiguous()
    return by_pair.view(torch.float32)[..., 0].contiguous()


def _terms(maps: Tensor, pairs: bool) -> Tensor:
    """[B, C, H, W] → [B, H, W, C] in float32, or [B, H, W, C/2] of pairs of bfloat16; no copy if it fits."""
    by_pixel = maps.detach().to(torch.bfloat16 if pairs else torch.float32).permute(0, 2, 3, 1).contiguous()
    if not pairs:
        return by_pixel
    return by_pixel.view(-1).view(torch.float32).view(*by_pixel.shape[:3], -1)


def _planes(maps: Tensor) -> Tensor:
    """In float32 with contiguous rows and columns, as the compiled form reads it."""
    maps = maps.detach().float()
    flat = maps.stride(-1) == 1 and maps.stride(-2) == maps.shape[-1]
    return maps if flat else maps.contiguous()
