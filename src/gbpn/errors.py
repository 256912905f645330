"""Every error that gbpn raises on purpose.

    GbpnError
    ├── InputError (ValueError)       what the caller passed: shape, dtype, device, range
    │   └── NonFiniteError            NaN or infinity in a named tensor
    ├── BackendError (RuntimeError)   a named backend or optional package is missing
    ├── ConvergenceError              a linear solver did not reach the asked accuracy
    ├── CheckpointError               a weight file is missing, truncated or of another layout
    ├── DatasetError                  a data tree or one of its files is not as expected
    └── TrainingError                 a run cannot go on

A message says what was wanted, what was got, and what to do.
"""

from __future__ import annotations

import torch
from torch import Tensor

try:
    import gbpn._native as _native
except ImportError:  # installed without a compiler
    _native = None  # type: ignore[assignment]


class GbpnError(Exception):
    """Base of all errors of this package."""


class InputError(GbpnError, ValueError):
    """What the caller passed cannot be used."""


class NonFiniteError(InputError):
    """A tensor holds NaN or infinity."""


class BackendError(GbpnError, RuntimeError):
    """A backend or an optional package that was asked for is not there."""


class ConvergenceError(GbpnError, ArithmeticError):
    """A linear solver did not reach the accuracy that was asked of it."""


class CheckpointError(GbpnError):
    """A weight file is missing, truncated, or of another layout or version."""


class DatasetError(GbpnError):
    """A data tree, or one file in it, is not as expected."""


class TrainingError(GbpnError):
    """A training run cannot go on."""


def extent(tensor: Tensor) -> tuple[float, float, int]:
    """Smallest and largest finite value, and how many are not finite; one pass where C++ is compiled."""
    values = tensor.detach()
    kernels = values.dtype in (torch.float32, torch.float64) and values.device.type == "cpu"
    if _native is not None and kernels and values.is_contiguous() and values.numel():
        low, high, bad = _native.scan(values)
        if not bad:
            return low, high, 0
    finite = torch.isfinite(values)
    kept = values[finite]
    bad = values.numel() - kept.numel()
    return (float(kept.min()), float(kept.max()), bad) if kept.numel() else (0.0, 0.0, bad)


def require_finite(**tensors: Tensor | None) -> None:
    """Raise `NonFiniteError` that names the first tensor with NaN or infinity, and how many it has."""
    for name, tensor in tensors.items():
        if tensor is None or not tensor.is_floating_point():
            continue
        if bad := extent(tensor)[2]:
            raise NonFiniteError(
                f"{name} must be finite; got {bad} NaN or infinite of {tensor.numel()} values: "
                "mask them out or repair the input"
            )


def require_shape(name: str, tensor: Tensor, wanted: tuple[int | None, ...], hint: str = "") -> None:
    """Raise `InputError` unless `tensor` has the wanted shape; None matches any length."""
    got = tuple(tensor.shape)
    matches = len(got) == len(wanted) and all(w is None or w == g for w, g in zip(wanted, got, strict=True))
    if not matches:
        text = "[" + ", ".join("*" if w is None else str(w) for w in wanted) + "]"
        raise InputError(f"{name} must have shape {text}; got {list(got)}" + (f": {hint}" if hint else ""))
