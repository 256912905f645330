"""A convolution together with what follows it, in one pass over memory: for folded networks on CPUs.

oneDNN, which computes torch's convolutions on CPUs, can apply an activation to a result, or add another map
to it, before it leaves the registers. Torch offers this to its compiler; here the same operators are called
directly. Wherever they cannot be (training, tracing, another device or dtype, another torch), the plain
modules serve, with the same result up to rounding.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

__all__ = ["convolution"]

_ACTIVATIONS: dict[Any, tuple[str, list[float], str]] = {
    None: ("none", [], ""),
    functional.gelu: ("gelu", [], "none"),
    functional.relu6: ("hardtanh", [0.0, 6.0], ""),
}
"""How oneDNN calls them: name, numbers, variant."""


def convolution(
    conv: nn.Module,
    x: Tensor,
    activation: Callable[[Tensor], Tensor] | None = None,
    add: Tensor | None = None,
) -> Tensor | None:
    """activation(conv(x)), or conv(x) + add; None where the plain modules must serve."""
    if not _fits(conv, x, activation) or (operator := _operator()) is None:
        return None
    assert isinstance(conv, nn.Conv2d)
    layer = (conv.weight, conv.bias, conv.padding, conv.stride, conv.dilation, conv.groups)
    if add is None:
        plain: Tensor = operator.default(x, *layer, *_ACTIVATIONS[activation])
        return plain
    if activation is not None:
        raise ValueError("an activation and a sum do not go together")
    summed: Tensor = operator.binary(x, add, *layer, "add", 1.0, None, [], None)
    return summed


def _fits(conv: nn.Module, x: Tensor, activation: Callable[[Tensor], Tensor] | None) -> bool:
    """Whether oneDNN takes this layer and input, and nobody wants its gradient or writes it down."""
    return (
        isinstance(conv, nn.Conv2d)
        and conv.padding_mode == "zeros"
        and activation in _ACTIVATIONS
        and x.device.type == "cpu"
        and x.dtype == torch.float32
        and not (torch.is_grad_enabled() and (x.requires_grad or conv.weight.requires_grad))
        and not torch.compiler.is_compiling()
        and not torch.jit.is_tracing()  # type: ignore[attr-defined, no-untyped-call]
    )


def _operator() -> Any | None:
    """Torch's own operator in both forms, plain and with a sum; None where this torch has no such thing."""
    if not torch.backends.mkldnn.is_available():  # type: ignore[no-untyped-call]
        return None
    found = getattr(torch.ops.mkldnn, "_convolution_pointwise", None)  # private: may leave with any release
    return found if hasattr(found, "default") and hasattr(found, "binary") else None
