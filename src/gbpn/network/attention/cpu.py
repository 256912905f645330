"""Neighbourhood attention in compiled C++, as a torch operator with gradient, shape and cost of its own.

The gradient computes the attention weights again instead of keeping them: nothing but the inputs is saved.
Results do not depend on the number of threads.
"""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor
from torch.utils.flop_counter import register_flop_formula

from gbpn.errors import InputError
from gbpn.kernels.backends import native
from gbpn.kernels.torch_operators import operator

__all__ = ["neighbourhood_attention"]

_DTYPES = (torch.float32, torch.float64)


def neighbourhood_attention(
    query: Tensor, key: Tensor, value: Tensor, bias: Tensor, *, dilation: int, scale: float = 1.0
) -> Tensor:
    """[B, heads · size, H, W] like `query`, channels-last; see `neighbourhood_attention` of the package."""
    for name, tensor in (("query", query), ("key", key), ("value", value), ("bias", bias)):
        if tensor.dtype not in _DTYPES or tensor.dtype != query.dtype or tensor.device.type != "cpu":
            raise InputError(
                f"the cpu backend wants one dtype, float32 or float64, on the CPU; got {name} in "
                f"{tensor.dtype} on {tensor.device}: convert it, or use backend='reference'"
            )
    attended: Tensor = _attention(query, key, value, bias, dilation, scale)
    return attended


@operator("neighbourhood_attention", device="cpu")
def _attention(
    query: Tensor, key: Tensor, value: Tensor, bias: Tensor, dilation: int, scale: float
) -> Tensor:
    out = _empty_image(query)
    if out.numel():
        native().attention_forward(
            inputs=_inputs(query, key, value, bias),
            outputs={"out": out},
            dilation=dilation,
            scale=scale,
            threads=torch.get_num_threads(),
        )
    return out


@_attention.register_fake
def _(query: Tensor, key: Tensor, value: Tensor, bias: Tensor, dilation: int, scale: float) -> Tensor:
    return _empty_image(query)


@operator("neighbourhood_attention_backward", device="cpu")
def _attention_backward(
    grad: Tensor, query: Tensor, key: Tensor, value: Tensor, bias: Tensor, dilation: int, scale: float
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    grad_query = _empty_image(query)
    grad_key, grad_value = _empty_image(query).zero_(), _empty_image(query).zero_()
    grad_bias = torch.zeros_like(bias, memory_format=torch.contiguous_format)
    if grad.numel():
        native().attention_backward(
            inputs=_inputs(query, key, value, bias),
            cotangents={"out": _readable(grad)},
            gradients={"query": grad_query, "key": grad_key, "value": grad_value, "bias": grad_bias},
            dilation=dilation,
            scale=scale,
            threads=torch.get_num_threads(),
        )
    return grad_query, grad_key, grad_value, grad_bias


@_attention_backward.register_fake
def _(
    grad: Tensor, query: Tensor, key: Tensor, value: Tensor, bias: Tensor, dilation: int, scale: float
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    images = _empty_image(query), _empty_image(query), _empty_image(query)
    return *images, torch.empty_like(bias, memory_format=torch.contiguous_format)


def _save(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
    *tensors, ctx.dilation, ctx.scale = inputs
    ctx.save_for_backward(*tensors)


def _differentiate(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
    grads = _attention_backward(grad, *ctx.saved_tensors, ctx.dilation, ctx.scale)
    return *grads, None, None


_attention.register_autograd(_differentiate, setup_context=_save)


def _empty_image(like: Tensor) -> Tensor:
    """Memory for [B, C, H, W], channels-last."""
    return torch.empty(like.shape, dtype=like.dtype, device=like.device, memory_format=torch.channels_last)


def _readable(image: Tensor) -> Tensor:
    """The image with the channels of a pixel side by side; copied only where they are not."""
    if image.dim() != 4 or image.stride(1) == 1:
        return image.detach()
    return image.contiguous(memory_format=torch.channels_last).detach()


def _inputs(query: Tensor, key: Tensor, value: Tensor, bias: Tensor) -> dict[str, Tensor]:
    images = {"query": query, "key": key, "value": value}
    return {**{name: _readable(image) for name, image in images.items()}, "bias": bias.detach().contiguous()}


def _keys(image: list[int], bias: list[int]) -> int:
    """Keys of all pixels and heads, times channels: multiply-adds of one product."""
    kernel = (bias[1] + 1) // 2
    return math.prod(image) * min(kernel, image[2]) * min(kernel, image[3])


@register_flop_formula(torch.ops.gbpn.neighbourhood_attention)
def _cost(query: list[int], key: list[int], value: list[int], bias: list[int], *_: Any, **__: Any) -> int:
    """Scores and weighted sum: two products, each of two operations per multiply-add."""
    return 2 * 2 * _keys(query, bias)


@register_flop_formula(torch.ops.gbpn.neighbourhood_attention_backward)
def _cost_backward(
    grad: list[int], query: list[int], key: list[int], value: list[int], bias: list[int], *_: Any, **__: Any
) -> int:
    """Scores again, their gradient, and the gradients of queries, keys and values."""
    return 2 * 5 * _keys(query, bias)
