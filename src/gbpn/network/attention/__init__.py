"""Dilated neighbourhood attention with a relative position bias, in three forms with the same numbers.

`reference` is plain torch and the definition; `cpu` is compiled C++; `triton` runs on GPUs. Tensors are
images [B, heads · size, H, W], channel = head · size + d. Channels-last memory, and channel slices of it, are
read in place by the fast forms; their result is channels-last.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable

import torch
from torch import Tensor

from gbpn.errors import InputError
from gbpn.kernels.backends import COMPILED, TRITON, require_backend
from gbpn.kernels.checks import require_shape
from gbpn.network.attention.window import fitting_dilation, kernel_of, neighbours

__all__ = ["fitting_dilation", "kernel_of", "neighbourhood_attention", "neighbours"]


def neighbourhood_attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    bias: Tensor,
    *,
    dilation: int = 1,
    scale: float = 1.0,
    backend: str = "auto",
) -> Tensor:
    """Σ_n softmax_n(scale · q·k_n + bias_n) v_n over the kernel × kernel neighbours n of every pixel.

    query, key, value  [B, heads · size, H, W]
    bias               [heads, 2·kernel − 1, 2·kernel − 1] by (key − query) / dilation, rows first;
                       its shape says how many heads there are and how large the window is (kernel odd)
    dilation           distance between neighbours; shrinks, per axis, where the image is too small for it
    scale              factor on q·k (size^−½ for unscaled queries)
    backend            "reference", "cpu", "triton", or "auto" by device and what is installed

    Half precision (autocast) is given back in half; "triton" multiplies it as it is and adds up in float32,
    the others attend in float32.
    """
    _check(query, key, value, bias, dilation)
    require_backend(backend)
    name = backend if backend != "auto" else _automatic(query)
    if query.dtype in (torch.float16, torch.bfloat16) and name != "triton":
        wide = (tensor.float() for tensor in (query, key, value, bias))
        return neighbourhood_attention(*wide, dilation=dilation, scale=scale, backend=backend).to(query.dtype)
    attended: Tensor = _form(name)(query, key, value, bias, dilation=dilation, scale=scale)
    return attended


def _form(name: str) -> Callable[..., Tensor]:
    """The function of a backend; each is loaded on first use."""
    form: Callable[..., Tensor]
    if name in ("reference", "scan"):
        from gbpn.network.attention.reference import neighbourhood_attention as form
    elif name == "cpu":
        from gbpn.network.attention.cpu import neighbourhood_attention as form
    else:
        form = importlib.import_module("gbpn.network.attention.triton").neighbourhood_attention
    return form


def _automatic(query: Tensor) -> str:
    """The fastest form that takes this tensor here."""
    if query.device.type == "cpu" and query.dtype in (torch.float32, torch.float64) and COMPILED:
        return "cpu"
    return "triton" if query.is_cuda and TRITON else "reference"


def _check(query: Tensor, key: Tensor, value: Tensor, bias: Tensor, dilation: int) -> None:
    kernel_of(bias)
    require_shape("query", query, (None, None, None, None))
    if query.shape[1] % bias.shape[0]:
        raise InputError(
            f"query must have a multiple of heads = {bias.shape[0]} channels (bias has that many tables); "
            f"got {list(query.shape)}"
        )
    require_shape("key", key, tuple(query.shape), "keys live on the pixels of the query")
    require_shape("value", value, tuple(query.shape), "values live on the pixels of the query")
    if dilation < 1:
        raise InputError(f"dilation must be at least 1; got {dilation}")
