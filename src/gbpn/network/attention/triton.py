"""Neighbourhood attention on GPUs: Triton kernels as a torch operator with gradient, shape and cost.

Half precision is multiplied as it is, on tensor cores, and added up in float32; float32 takes TensorFloat-32
where torch is allowed to (`torch.backends.cuda.matmul.allow_tf32`), as torch's own products do.

These kernels have not yet been run on a GPU. They are tested in Triton's interpreter on the CPU against the
reference (values and gradients) and compiled ahead of time for sm_80, sm_90, sm_100 and gfx942.
The gradient of the bias is added up by atomics: on a GPU its last bits may differ from run to run.
"""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor
from torch.utils.flop_counter import register_flop_formula

from gbpn.kernels.torch_operators import operator
from gbpn.kernels.triton_launch import check_same_kind, launch, triton
from gbpn.network.attention.triton_kernels import (
    attention_forward,
    attention_key_gradient,
    attention_query_gradient,
)
from gbpn.network.attention.window import fitting_dilation, kernel_of

__all__ = ["COPIES", "HALF", "OTHERS", "TILE", "WARPS", "neighbourhood_attention"]

TILE = 8, 8
"""Rows and columns of queries, or keys, of one class and head that a program holds; at least 16 in all."""
OTHERS = 32
"""Keys, or queries, that a program looks at together."""
WARPS = 4
COPIES = 32
"""Of the table that the gradient of the bias is added up in."""
HALF = torch.float16, torch.bfloat16
_NARROW = 16
"""Channels below which a product of matrices needs zeros beside them."""


def neighbourhood_attention(
    query: Tensor, key: Tensor, value: Tensor, bias: Tensor, *, dilation: int, scale: float = 1.0
) -> Tensor:
    """[B, heads · size, H, W] like `query`, channels-last; see `neighbourhood_attention` of the package."""
    if query.dtype in HALF:
        check_same_kind(HALF, query=query, key=key, value=value)
        bias = bias.float()
    else:
        check_same_kind(query=query, key=key, value=value, bias=bias)
    out: Tensor
    out, _ = _attention(query, key, value, bias, dilation, scale)
    return out


@operator("triton_attention")
def _attention(
    query: Tensor, key: Tensor, value: Tensor, bias: Tensor, dilation: int, scale: float
) -> tuple[Tensor, Tensor]:
    """The result, and the logarithm of the softmax's sum [B, heads, H, W]."""
    out, logarithm = _empty_image(query), _empty_maps(query, bias)
    tensors = (*_readable(query, key, value), bias.contiguous(), out, logarithm)
    _launch(attention_forward, query, bias, tensors, dilation, scale)
    return out, logarithm


@operator("triton_attention_backward")
def _attention_backward(
    up: Tensor,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    bias: Tensor,
    out: Tensor,
    logarithm: Tensor,
    dilation: int,
    scale: float,
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    query_grad, key_grad, value_grad = (_empty_image(query) for _ in range(3))
    bias_grad = bias.new_zeros(COPIES, *bias.shape)
    delta = torch.empty_like(logarithm)
    table = bias.contiguous()
    q, k, v, d, o = _readable(query, key, value, up, out)
    towards_query = (q, k, v, table, o, logarithm, d, query_grad, bias_grad, delta)
    _launch(attention_query_gradient, query, bias, towards_query, dilation, scale, COPIES=COPIES)
    towards_key = (q, k, v, table, logarithm, d, delta, key_grad, value_grad)
    _launch(attention_key_gradient, query, bias, towards_key, dilation, scale)
    return query_grad, key_grad, value_grad, bias_grad.sum(0)


def _launch(
    kernel: Any,
    query: Tensor,
    bias: Tensor,
    tensors: tuple[Tensor, ...],
    dilation: int,
    scale: float,
    **constants: int,
) -> None:
    batch, channels, height, width = query.shape
    heads, side = bias.shape[0], kernel_of(bias)
    if not query.numel():
        return
    rows, columns = fitting_dilation(height, side, dilation), fitting_dilation(width, side, dilation)
    tiles = triton.cdiv(triton.cdiv(height, rows), TILE[0]) * triton.cdiv(
        triton.cdiv(width, columns), TILE[1]
    )
    single = query.dtype == torch.float32
    launch(
        kernel,
        (rows * columns * tiles, batch * heads),
        *tensors,
        heads,
        height,
        width,
        rows,
        columns,
        min(side, height),
        min(side, width),
        warps=WARPS,
        SCALE=float(scale),
        KERNEL=side,
        SIZE=channels // heads,
        BLOCK=max(_NARROW, triton.next_power_of_2(channels // heads)),
        TILE_Y=TILE[0],
        TILE_X=TILE[1],
        OTHERS=OTHERS,
        PRECISION="tf32" if single and torch.backends.cuda.matmul.allow_tf32 else "ieee",
        **constants,
    )


@_attention.register_fake
def _(
    query: Tensor, key: Tensor, value: Tensor, bias: Tensor, dilation: int, scale: float
) -> tuple[Tensor, Tensor]:
    return _empty_image(query), _empty_maps(query, bias)


@_attention_backward.register_fake
def _(
    up: Tensor, query: Tensor, key: Tensor, value: Tensor, bias: Tensor, *rest: Any
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    images = _empty_image(query), _empty_image(query), _empty_image(query)
    return *images, torch.empty_like(bias, memory_format=torch.contiguous_format)


def _save(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, Tensor]) -> None:
    *tensors, ctx.dilation, ctx.scale = inputs
    ctx.save_for_backward(*tensors, *output)
    ctx.mark_non_differentiable(output[1])


def _differentiate(ctx: Any, up: Tensor, _: Tensor) -> tuple[Tensor | None, ...]:
    return *_attention_backward(up, *ctx.saved_tensors, ctx.dilation, ctx.scale), None, None


_attention.register_autograd(_differentiate, setup_context=_save)


def _empty_image(like: Tensor) -> Tensor:
    """Memory for [B, C, H, W], channels-last."""
    return torch.empty(like.shape, dtype=like.dtype, device=like.device, memory_format=torch.channels_last)


def _empty_maps(query: Tensor, bias: Tensor) -> Tensor:
    """Memory for one number per pixel and head, [B, heads, H, W], as exact as the bias."""
    batch, _, height, width = query.shape
    return bias.new_empty(batch, bias.shape[0], height, width)


def _readable(*images: Tensor) -> list[Tensor]:
    """The images as [B, H, W, C] in memory; copies only those that are not."""
    return [image.permute(0, 2, 3, 1).contiguous() for image in images]


@register_flop_formula(torch.ops.gbpn.triton_attention)
def _cost(query: list[int], key: list[int], value: list[int], bias: list[int], *_: Any, **__: Any) -> int:
    """Scores and weighted sum: two products, each of two operations per multiply-add."""
    return 2 * 2 * _keys(query, bias)


@register_flop_formula(torch.ops.gbpn.triton_attention_backward)
def _cost_backward(
    up: list[int], query: list[int], key: list[int], value: list[int], bias: list[int], *_: Any, **__: Any
) -> int:
    """Scores again, their gradient, and the gradients of queries, keys and values."""
    return 2 * 5 * _keys(query, bias)


def _keys(image: list[int], bias: list[int]) -> int:
    """Keys of all pixels and heads, times channels: multiply-adds of one product."""
    side = (bias[1] + 1) // 2
    return math.prod(image) * min(side, image[2]) * min(side, image[3])
