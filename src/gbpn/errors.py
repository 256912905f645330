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


def require_finite(**tensors: Tensor | None) -> None:
    """Raise `NonFiniteError` that names the first tensor with NaN or infinity, and how many it has."""
    for name, tensor in tensors.items():
        if tensor is None or not tensor.is_floating_point():
            continue
        finite = torch.isfinite(tensor)
        if not bool(finite.all()):
            bad = int((~finite).sum())
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
