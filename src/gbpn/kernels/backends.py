"""Which fast implementations this installation has; asked here and nowhere else.

Torch is imported where it is asked: the runtime without torch asks for the compiled module only.
"""

from __future__ import annotations

import importlib
import importlib.util
from types import ModuleType

from gbpn.errors import BackendError, InputError

__all__ = [
    "BACKENDS",
    "COMPILED",
    "TRITON",
    "available",
    "fastest_device",
    "native",
    "require_backend",
    "usable_device",
]

BACKENDS = ("auto", "reference", "cpu", "triton", "scan")
"""Names that `use_backend` and `infer` take; "auto" picks by device, "scan" is for exporters."""
COMPILED = importlib.util.find_spec("gbpn._native") is not None
"""Whether the C++ kernels were built."""
TRITON = importlib.util.find_spec("triton") is not None
"""Whether the package that compiles the GPU kernels is there."""


def native() -> ModuleType:
    """The compiled module, or an error that says how to get it."""
    try:
        return importlib.import_module("gbpn._native")
    except ImportError as error:
        raise BackendError(
            "backend 'cpu' needs the compiled module gbpn._native, which cannot be loaded "
            f"({error}): install a C++ compiler and reinstall gbpn (pip install --force-reinstall --no-deps "
            "gbpn), run scripts/build_native.sh in a checkout, or use backend='reference'"
        ) from error


def require_backend(name: str) -> None:
    """Raise unless `name` is one of `BACKENDS`."""
    if name not in BACKENDS:
        raise BackendError(f"backend must be one of {', '.join(BACKENDS)}; got {name!r}")


def available() -> dict[str, str]:
    """Name → "available", or what it would need."""
    import torch

    if not TRITON:
        triton = "needs pip install gbpn[gpu]"
    else:
        triton = "available" if torch.cuda.is_available() else "installed; needs a GPU"
    return {
        "reference": "available",
        "cpu": "available" if COMPILED else "needs the compiled extension, gbpn._native",
        "triton": triton,
    }


def fastest_device() -> str:
    """A GPU where there is one."""
    import torch

    return "cuda" if torch.cuda.is_available() else "cpu"


def usable_device(device: str) -> str:
    """`device` as torch takes it ("auto": the fastest), or an error that says why it cannot be used."""
    if device == "auto":
        return fastest_device()
    import torch

    try:
        kind = torch.device(device).type
    except RuntimeError as error:
        raise InputError(f"device must be cpu, cuda, cuda:1, … or auto; got {device!r}") from error
    if kind == "cuda" and not torch.cuda.is_available():
        raise BackendError(f"device {device!r} needs a GPU that torch can use; here is none: use cpu or auto")
    return device
