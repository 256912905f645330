"""Looks at tensors before they are used: shapes, and values that are not finite."""

from __future__ import annotations

import torch
from torch import Tensor

from gbpn.errors import InputError, NonFiniteError
from gbpn.kernels.backends import COMPILED, native

__all__ = ["extent", "require_finite", "require_not_negative", "require_shape", "values_are_known"]


def values_are_known() -> bool:
    """Whether tensors hold numbers: not while torch.compile or torch.export write down what is done to them.

    Values are looked at where this holds, and nowhere else; shapes are known always.
    """
    return not torch.compiler.is_compiling()


def extent(tensor: Tensor) -> tuple[float, float, int]:
    """Smallest and largest finite value, and how many are not finite; one pass where C++ is compiled."""
    values = tensor.detach()
    kernels = values.dtype in (torch.float32, torch.float64) and values.device.type == "cpu"
    if COMPILED and kernels and values.is_contiguous() and values.numel():
        low, high, bad = native().scan(values)
        if not bad:
            return low, high, 0
    finite = torch.isfinite(values)
    kept = values[finite]
    bad = values.numel() - kept.numel()
    return (float(kept.min()), float(kept.max()), bad) if kept.numel() else (0.0, 0.0, bad)


def require_finite(**tensors: Tensor | None) -> None:
    """Raise `NonFiniteError` that names the first tensor with NaN or infinity, and how many it has."""
    if not values_are_known():
        return
    for name, tensor in tensors.items():
        if tensor is None or not tensor.is_floating_point():
            continue
        if bad := extent(tensor)[2]:
            raise NonFiniteError(
                f"{name} must be finite; got {bad} NaN or infinite of {tensor.numel()} values: "
                "mask them out or repair the input"
            )


def require_not_negative(name: str, tensor: Tensor, hint: str) -> None:
    """Raise `InputError` if any value is below 0."""
    if values_are_known() and bool((tensor < 0).any()):
        raise InputError(f"{name} must not be negative; got {float(tensor.min()):g}: {hint}")


def require_shape(name: str, tensor: Tensor, wanted: tuple[int | None, ...], hint: str = "") -> None:
    """Raise `InputError` unless `tensor` has the wanted shape; None matches any length."""
    got = tuple(tensor.shape)
    matches = len(got) == len(wanted) and all(w is None or w == g for w, g in zip(wanted, got, strict=True))
    if not matches:
        text = "[" + ", ".join("*" if w is None else str(w) for w in wanted) + "]"
        raise InputError(f"{name} must have shape {text}; got {list(got)}" + (f": {hint}" if hint else ""))
