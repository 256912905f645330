"""Neighbourhood attention in plain torch: every key and value gathered, the definition of the fast twins."""

from __future__ import annotations

import torch
from torch import Tensor

from gbpn.network.attention.window import kernel_of, neighbours

__all__ = ["neighbourhood_attention", "scores"]


def neighbourhood_attention(
    query: Tensor, key: Tensor, value: Tensor, bias: Tensor, *, dilation: int, scale: float = 1.0
) -> Tensor:
    """[B, heads · size, H, W] like `query`; see `gbpn.network.attention.neighbourhood_attention`."""
    weight = scores(query, key, bias, dilation=dilation, scale=scale).softmax(-1)  # [B, heads, H, W, keys]
    values = _gathered(value, bias, dilation)
    return torch.einsum("bhyxn,bhyxnd->bhdyx", weight, values).flatten(1, 2)


def scores(query: Tensor, key: Tensor, bias: Tensor, *, dilation: int, scale: float = 1.0) -> Tensor:
    """[B, heads, H, W, keys]: scale · q·k + bias before the softmax, keys in raster order of the window."""
    kernel, (height, width) = kernel_of(bias), query.shape[-2:]
    _, down = neighbours(height, kernel, dilation, bias.device)
    _, right = neighbours(width, kernel, dilation, bias.device)
    relative = bias[:, down[:, None, :, None], right[None, :, None, :]].flatten(-2)  # [heads, H, W, keys]
    queries = torch.unflatten(query, 1, (bias.shape[0], -1))
    products = torch.einsum("bhdyx,bhyxnd->bhyxn", queries, _gathered(key, bias, dilation))
    return scale * products + relative


def _gathered(source: Tensor, bias: Tensor, dilation: int) -> Tensor:
    """[B, heads · size, H, W] → [B, heads, H, W, keys, size]."""
    kernel, (height, width) = kernel_of(bias), source.shape[-2:]
    rows, _ = neighbours(height, kernel, dilation, source.device)
    columns, _ = neighbours(width, kernel, dilation, source.device)
    pixel = rows[:, None, :, None] * width + columns[None, :, None, :]  # [H, W, window, window]
    by_head = torch.unflatten(source, 1, (bias.shape[0], -1))  # [B, heads, size, H, W]
    by_pixel = by_head.flatten(-2).transpose(-1, -2)  # [B, heads, H·W, size]
    keys = by_pixel.contiguous().index_select(2, pixel.flatten())
    return torch.unflatten(keys, 2, (height, width, -1))
