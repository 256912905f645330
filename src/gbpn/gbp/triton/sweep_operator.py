"""`sweep` as a torch operator over the Triton kernels."""

from __future__ import annotations

from functools import cache
from typing import Any

import torch
from torch import Tensor

from gbpn.gaussian import Gaussian
from gbpn.gbp.triton.sweep_adjoint_kernels import sweep_adjoint
from gbpn.gbp.triton.sweep_kernels import sweep_forward
from gbpn.kernels.checks import require_shape
from gbpn.kernels.torch_operators import operator
from gbpn.kernels.triton_launch import check_same_kind, launch
from gbpn.mrf import RING

__all__ = ["ADJOINT_STRIP", "EVERY", "STRIP", "strips_of", "sweep"]

STRIP = 64
"""Positions of a strip: two warps, so that its threads meet quickly and many strips run side by side."""
ADJOINT_STRIP = 64
"""The same of the adjoint, whose strips overlap by two positions."""
EVERY = 8
"""Lines after which a strip tells the next one that it may follow."""
_WARP = 32
"""Threads that step together."""

_TRANSPOSED = tuple(RING.index((column, row)) for row, column in RING)
"""Slot of each message when rows and columns change places; its own inverse."""


def sweep(
    base: Gaussian,
    messages: Gaussian,
    weight: Tensor,
    difference: Tensor,
    damping: Tensor,
    *,
    direction: int,
    reweighting: float = 1.0,
) -> Gaussian:
    """One serial sweep; arguments and meaning as in `gbpn.gbp.reference.sweep`."""
    batch, edges, height, width = weight.shape
    one, eight = (batch, 1, height, width), (batch, 8, height, width)
    for name, part, shape in (("base", base, one), ("messages", messages, eight)):
        require_shape(f"{name}.information", part.information, shape)
        require_shape(f"{name}.precision", part.precision, shape)
    require_shape("difference", difference, (batch, edges, height, width))
    require_shape("damping", damping, one)
    tensors = {
        "weight": weight,
        "difference": difference,
        "damping": damping,
        "base.information": base.information,
        "base.precision": base.precision,
        "messages.information": messages.information,
        "messages.precision": messages.precision,
    }
    check_same_kind(**tensors)
    information, precision = _sweep(
        base.information,
        base.precision,
        messages.information,
        messages.precision,
        weight,
        difference,
        damping,
        direction,
        reweighting,
    )
    return Gaussian(information, precision)


@operator("triton_sweep")
def _sweep(
    base_information: Tensor,
    base_precision: Tensor,
    information: Tensor,
    precision: Tensor,
    weight: Tensor,
    difference: Tensor,
    damping: Tensor,
    direction: int,
    reweighting: float,
) -> tuple[Tensor, Tensor]:
    inputs = (base_information, base_precision, information, precision, weight, difference, damping)
    lined = [_to_lines(tensor, direction) for tensor in inputs]
    # a line's slots are read before they are written, so that a copy of the messages can be swept in place
    new = [_own(tensor, lined[at], direction) for at, tensor in ((2, information), (3, precision))]
    _launch_strips(
        sweep_forward, STRIP, (*lined[:2], *new, *lined[4:], *new), weight.shape[1], direction, reweighting
    )
    return _from_lines(new[0], direction), _from_lines(new[1], direction)


@operator("triton_sweep_adjoint")
def _sweep_adjoint(
    information_up: Tensor,
    precision_up: Tensor,
    base_information: Tensor,
    base_precision: Tensor,
    information: Tensor,
    precision: Tensor,
    new_information: Tensor,
    new_precision: Tensor,
    weight: Tensor,
    difference: Tensor,
    damping: Tensor,
    direction: int,
    reweighting: float,
) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor, Tensor, Tensor]:
    differentiable = (base_information, base_precision, information, precision, weight, difference, damping)
    lined = [_to_lines(tensor, direction) for tensor in differentiable]
    after = [_to_lines(t, direction) for t in (information_up, precision_up, new_information, new_precision)]
    gradients = [torch.empty_like(tensor) for tensor in lined]
    arguments = (*after[:2], *lined[:4], *after[2:], *lined[4:], *gradients)
    own = ADJOINT_STRIP - 2
    _launch_strips(sweep_adjoint, own, arguments, weight.shape[1], direction, reweighting)
    base_i, base_p, old_i, old_p, w, r, b = (_from_lines(gradient, direction) for gradient in gradients)
    return base_i, base_p, old_i, old_p, w, r, b


def strips_of(lines: int, positions: int, strip: int) -> int:
    """How many slanted strips cover an image: line n of strip k is from k·strip − n on."""
    return -(-(positions + lines - 1) // strip)


def _launch_strips(
    kernel: Any, owned: int, tensors: tuple[Tensor, ...], edges: int, direction: int, reweighting: float
) -> None:
    """Run a kernel whose strips own `owned` positions of a line each."""
    block = STRIP if kernel is sweep_forward else ADJOINT_STRIP
    batch, lines, positions = len(tensors[0]), *tensors[0].shape[-2:]
    strips = strips_of(lines, positions, owned)
    handed = tensors[0].new_empty(batch, strips, lines, 4, 2)
    done = torch.zeros(1 + batch * strips, dtype=torch.int32, device=handed.device)
    launch(
        kernel,
        (batch * strips,),
        *tensors,
        handed,
        done[1:],
        done,
        batch,
        strips,
        lines,
        positions,
        warps=max(block // _WARP, 1),
        RHO=float(reweighting),
        EDGES=edges,
        BACKWARDS=direction >= 2,
        BLOCK=block,
        EVERY=EVERY,
    )


def _to_lines(maps: Tensor, direction: int) -> Tensor:
    """[B, C, H, W] → contiguous [B, C, lines, positions], one copy; message slots follow a transposition."""
    if direction % 2 == 1:
        return maps.contiguous()
    if maps.shape[1] == 8:
        return maps.transpose(-1, -2).index_select(1, _transposed_slots(maps.device)).contiguous()
    return maps.transpose(-1, -2).contiguous()


@cache
def _transposed_slots(device: torch.device) -> Tensor:
    return torch.tensor(_TRANSPOSED, device=device)


def _own(given: Tensor, lined: Tensor, direction: int) -> Tensor:
    """Lines that may be written over: `given` itself never is."""
    return lined.clone() if direction % 2 == 1 and given.is_contiguous() else lined


def _from_lines(maps: Tensor, direction: int) -> Tensor:
    """Inverse of `_to_lines`, which is an involution."""
    return _to_lines(maps, direction)


@_sweep.register_fake
def _(base_information, base_precision, information, precision, *rest):  # type: ignore[no-untyped-def]
    return _contiguous_like(information), _contiguous_like(precision)


@_sweep_adjoint.register_fake
def _(information_up, precision_up, base_i, base_p, i, p, new_i, new_p, w, r, b, *rest):  # type: ignore[no-untyped-def]
    return tuple(_contiguous_like(tensor) for tensor in (base_i, base_p, i, p, w, r, b))


def _contiguous_like(tensor: Tensor) -> Tensor:
    return torch.empty_like(tensor, memory_format=torch.contiguous_format)


def _setup_context(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, Tensor]) -> None:
    base_i, base_p, i, p, weight, difference, damping, ctx.direction, ctx.reweighting = inputs
    ctx.save_for_backward(base_i, base_p, i, p, *output, weight, difference, damping)


def _backward(ctx: Any, information_up: Tensor, precision_up: Tensor) -> tuple[Tensor | None, ...]:
    gradients = _sweep_adjoint(
        information_up, precision_up, *ctx.saved_tensors, ctx.direction, ctx.reweighting
    )
    return (*gradients, None, None)


_sweep.register_autograd(_backward, setup_context=_setup_context)
