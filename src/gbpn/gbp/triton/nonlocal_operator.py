"""`nonlocal_step` as a torch operator over the Triton kernels."""

from __future__ import annotations

from typing import Any

import torch
import triton
from torch import Tensor

from gbpn.gaussian import Gaussian
from gbpn.gbp.triton.nonlocal_kernels import nonlocal_adjoint, nonlocal_forward
from gbpn.kernels.checks import require_shape
from gbpn.kernels.torch_operators import operator
from gbpn.kernels.triton_launch import check_same_kind, launch

__all__ = ["BLOCK", "nonlocal_step"]

BLOCK = 256
"""Pixels per program."""
_WARPS = 4


def nonlocal_step(
    base: Gaussian,
    total: Gaussian,
    weight: Tensor,
    difference: Tensor,
    offset: Tensor,
    damping: Tensor,
    *,
    reweighting: float = 1.0,
) -> Gaussian:
    """One parallel step; arguments and meaning as in `gbpn.gbp.reference.nonlocal_step`."""
    batch, edges, height, width = weight.shape
    one = (batch, 1, height, width)
    for name, part in (("base", base), ("total", total)):
        require_shape(f"{name}.information", part.information, one)
        require_shape(f"{name}.precision", part.precision, one)
    require_shape("difference", difference, (batch, edges, height, width))
    require_shape("offset", offset, (batch, edges, 2, height, width))
    require_shape("damping", damping, one)
    tensors = {
        "weight": weight,
        "difference": difference,
        "offset": offset,
        "damping": damping,
        "base.information": base.information,
        "base.precision": base.precision,
        "total.information": total.information,
        "total.precision": total.precision,
    }
    check_same_kind(**tensors)
    information, precision = _nonlocal_step(
        base.information + reweighting * total.information,
        base.precision + reweighting * total.precision,
        total.information,
        total.precision,
        weight,
        difference,
        offset,
        damping,
        reweighting,
    )
    return Gaussian(information, precision)


@operator("triton_nonlocal_step")
def _nonlocal_step(
    field_information: Tensor,
    field_precision: Tensor,
    information: Tensor,
    precision: Tensor,
    weight: Tensor,
    difference: Tensor,
    offset: Tensor,
    damping: Tensor,
    reweighting: float,
) -> tuple[Tensor, Tensor]:
    field = (field_information, field_precision)
    inputs = [t.contiguous() for t in (*field, information, precision, weight, difference, offset, damping)]
    new = torch.empty_like(inputs[2]), torch.empty_like(inputs[3])
    _launch(nonlocal_forward, (*inputs, *new), edges=weight.shape[1], reweighting=reweighting)
    return new


@operator("triton_nonlocal_step_adjoint")
def _nonlocal_step_adjoint(
    information_up: Tensor,
    precision_up: Tensor,
    field_information: Tensor,
    field_precision: Tensor,
    information: Tensor,
    precision: Tensor,
    weight: Tensor,
    difference: Tensor,
    offset: Tensor,
    damping: Tensor,
    reweighting: float,
) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor, Tensor, Tensor, Tensor]:
    field = (field_information, field_precision)
    inputs = [t.contiguous() for t in (*field, information, precision, weight, difference, offset, damping)]
    fields = [torch.zeros_like(tensor) for tensor in inputs[:2]]  # corners are added into
    rest = [torch.empty_like(tensor) for tensor in inputs[2:]]
    up = information_up.contiguous(), precision_up.contiguous()
    tensors = (*up, *inputs, *fields, *rest)
    _launch(nonlocal_adjoint, tensors, edges=weight.shape[1], reweighting=reweighting)
    total_i, total_p, w, r, place, b = rest
    return fields[0], fields[1], total_i, total_p, w, r, place, b


def _launch(kernel: Any, tensors: tuple[Tensor, ...], *, edges: int, reweighting: float) -> None:
    batch, _, height, width = tensors[0].shape
    grid = (triton.cdiv(height * width, BLOCK), batch)
    launch(kernel, grid, *tensors, edges, height, width, warps=_WARPS, RHO=float(reweighting), BLOCK=BLOCK)


@_nonlocal_step.register_fake
def _(field_information, field_precision, information, precision, *rest):  # type: ignore[no-untyped-def]
    return _contiguous_like(information), _contiguous_like(precision)


@_nonlocal_step_adjoint.register_fake
def _(information_up, precision_up, *inputs):  # type: ignore[no-untyped-def]
    return tuple(_contiguous_like(tensor) for tensor in inputs[:8])


def _contiguous_like(tensor: Tensor) -> Tensor:
    return torch.empty_like(tensor, memory_format=torch.contiguous_format)


def _setup_context(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, Tensor]) -> None:
    *tensors, ctx.reweighting = inputs
    ctx.save_for_backward(*tensors)


def _backward(ctx: Any, information_up: Tensor, precision_up: Tensor) -> tuple[Tensor | None, ...]:
    return (
        *_nonlocal_step_adjoint(information_up, precision_up, *ctx.saved_tensors, ctx.reweighting),
        None,
    )


_nonlocal_step.register_autograd(_backward, setup_context=_setup_context)
