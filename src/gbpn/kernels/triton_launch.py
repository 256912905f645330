"""Launching Triton kernels: a device that can run them, explicit compiler options. Imports triton."""

from __future__ import annotations

import contextlib
from typing import Any

import torch
from torch import Tensor

from gbpn.errors import BackendError, InputError

try:
    import triton
    import triton.language as tl
    from triton.runtime.interpreter import InterpretedFunction
except ImportError as error:
    raise BackendError(
        "backend 'triton' needs the package triton: pip install gbpn[gpu], or use another backend"
    ) from error
if not hasattr(tl, "gather"):
    raise BackendError(
        f"backend 'triton' needs tl.gather, which triton {triton.__version__} lacks: pip install -U triton"
    )

__all__ = ["check_same_kind", "launch", "triton"]

_FUSE_MULTIPLY_ADD = True
"""Passed to every compilation: the answer must not depend on a default of the compiler."""


def launch(kernel: Any, grid: tuple[int, ...], *arguments: Any, warps: int, **constants: Any) -> None:
    """Run a kernel over tensors and numbers on the device of the first tensor."""
    like = arguments[0]
    if isinstance(kernel, InterpretedFunction):
        kernel[grid](*arguments, **constants)
        return
    if like.device.type == "cpu":
        raise BackendError(
            "backend 'triton' needs tensors on a GPU; got cpu: move them with .to('cuda'), use another "
            "backend, or set TRITON_INTERPRET=1 before the start to run the kernels in the (slow) interpreter"
        )
    guard = torch.cuda.device(like.device) if like.is_cuda else contextlib.nullcontext()
    with guard:
        kernel[grid](*arguments, **constants, num_warps=warps, enable_fp_fusion=_FUSE_MULTIPLY_ADD)


def check_same_kind(
    kinds: tuple[torch.dtype, ...] = (torch.float32, torch.float64), /, **tensors: Tensor
) -> None:
    """Raise unless all tensors share one dtype among `kinds` and one device."""
    name, like = next(iter(tensors.items()))
    if like.dtype not in kinds:
        raise InputError(f"{name} must be float32 or float64; got {like.dtype}: convert with .float()")
    for other, tensor in tensors.items():
        if tensor.dtype != like.dtype or tensor.device != like.device:
            raise InputError(
                f"{other} must be {like.dtype} on {like.device} like {name}; "
                f"got {tensor.dtype} on {tensor.device}"
            )
