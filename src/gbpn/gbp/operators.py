"""The C++ kernels as torch operators, with shapes for tracing and gradients for training.

    gbpn::infer           a whole inference, with the tape that its adjoint walks back
    gbpn::sweep           one serial sweep
    gbpn::nonlocal_step   one parallel step along the learned edges

Each has an adjoint operator of its own (`*_adjoint`), so that compiled training graphs can hold it.
Imported by `gbpn.gbp.cpu`, which also says what to do where the native module is missing.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

import gbpn._native as _native

TAPES = ("none", "tape", "recompute")

_FIELD = (
    "Tensor unary_information, Tensor unary_precision, Tensor local_information, Tensor local_precision, "
    "Tensor far_information, Tensor far_precision, Tensor weight, Tensor difference, Tensor damping, "
    "Tensor? far_weight, Tensor? far_difference, Tensor? far_offset, Tensor? far_damping"
)
_PLAN = "int iterations, int steps, float reweighting, str tape"
_FIELD_COUNT = 13


def _tensors(count: int) -> str:
    return "(" + ", ".join(["Tensor"] * count) + ")"


def simd_level() -> str:
    """Instruction set of the compiled module; see `gbpn.gbp.cpu.simd_level`."""
    return str(_native.simd_level())


def rows(tensor: Tensor | None) -> Tensor:
    """What the kernels read: rows and columns contiguous, any strides before; absent is empty."""
    if tensor is None:
        return torch.empty(0)
    height, width = tensor.shape[-2:]
    kept = (width == 1 or tensor.stride(-1) == 1) and (height == 1 or tensor.stride(-2) == width)
    return tensor.detach() if kept else tensor.detach().contiguous()


def tape_planes(edges: int, learned: bool, steps: int, tape: str) -> int:
    """Planes [H, W] that the backward pass needs for each iteration.

    "tape": what each sweep and step overwrote, 8·E + 2·steps planes (128 bytes per pixel and iteration for
    float32, 3 edges and 4 steps). "recompute": the messages before the iteration, 18 planes (72 bytes).
    """
    if tape == "recompute":
        return 18
    return 8 * edges + (2 * steps if learned else 0)


@torch.library.custom_op("gbpn::infer", mutates_args=(), schema=f"({_FIELD}, {_PLAN}) -> {_tensors(7)}")
def infer(*arguments: Any) -> tuple[Tensor, ...]:
    """Belief pair, local pair, non-local pair, tape."""
    outputs: tuple[Tensor, ...] = _empty_outcome(*arguments)
    iterations, steps, reweighting, tape = arguments[_FIELD_COUNT:]
    _native.gbp_infer(
        [rows(x) for x in arguments[:_FIELD_COUNT]],
        list(outputs),
        iterations,
        steps,
        reweighting,
        tape == "recompute",
        torch.get_num_threads(),
    )
    return outputs


@infer.register_fake
def _empty_outcome(*arguments: Any) -> tuple[Tensor, ...]:
    unary, local, weight, far_weight = arguments[0], arguments[2], arguments[6], arguments[9]
    iterations, steps, _, tape = arguments[_FIELD_COUNT:]
    batch, _, height, width = unary.shape
    planes = tape_planes(weight.shape[3], far_weight is not None, steps, tape)
    shape = (0,) if tape == "none" else (batch, iterations, planes, height, width)
    return (
        *(unary.new_empty((batch, 1, height, width)) for _ in range(2)),
        *(local.new_empty((batch, 8, height, width)) for _ in range(2)),
        *(unary.new_empty((batch, 1, height, width)) for _ in range(2)),
        unary.new_empty(shape),
    )


@torch.library.custom_op(
    "gbpn::infer_adjoint",
    mutates_args=(),
    schema=f"({_FIELD}, Tensor?[] cotangents, Tensor[] outcome, {_PLAN}) -> {_tensors(_FIELD_COUNT)}",
)
def infer_adjoint(*arguments: Any) -> tuple[Tensor, ...]:
    """Gradients of the 13 tensors of a field; empty for those that are absent."""
    field = arguments[:_FIELD_COUNT]
    cotangents, outcome = arguments[_FIELD_COUNT : _FIELD_COUNT + 2]
    iterations, steps, reweighting, tape = arguments[_FIELD_COUNT + 2 :]
    like = (field[0], field[0], field[2], field[2], field[0], field[0])
    given = [torch.zeros_like(x) if g is None else g for g, x in zip(cotangents, like, strict=True)]
    gradients = tuple(
        torch.empty(0) if x is None else x.new_zeros(x.shape) if n >= 6 else x.new_empty(x.shape)
        for n, x in enumerate(field)
    )
    _native.gbp_infer_adjoint(
        [rows(x) for x in field],
        [rows(x) for x in given] + [rows(x) for x in outcome],
        list(gradients),
        iterations,
        steps,
        reweighting,
        tape == "recompute",
        torch.get_num_threads(),
    )
    return gradients


@infer_adjoint.register_fake
def _empty_gradients(*arguments: Any) -> tuple[Tensor, ...]:
    return tuple(torch.empty(0) if x is None else x.new_empty(x.shape) for x in arguments[:_FIELD_COUNT])


def _keep_for_infer(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, ...]) -> None:
    field = inputs[:_FIELD_COUNT]
    ctx.plan = inputs[_FIELD_COUNT:]
    ctx.learned = field[9] is not None
    ctx.set_materialize_grads(False)
    ctx.save_for_backward(*(x for x in field if x is not None), *output[2:])


def _infer_backward(ctx: Any, *cotangents: Tensor | None) -> tuple[Tensor | None, ...]:
    if ctx.plan[3] == "none":
        raise RuntimeError("gbpn::infer ran without a tape; call it with tape='tape' or 'recompute'")
    count = _FIELD_COUNT if ctx.learned else 9
    field = [*ctx.saved_tensors[:count], *([None] * (_FIELD_COUNT - count))]
    gradients = torch.ops.gbpn.infer_adjoint(
        *field, list(cotangents[:6]), list(ctx.saved_tensors[count:]), *ctx.plan
    )
    known = [g if x is not None else None for g, x in zip(gradients, field, strict=True)]
    return (*known, None, None, None, None)


infer.register_autograd(_infer_backward, setup_context=_keep_for_infer)

_SWEEP = (
    "Tensor base_information, Tensor base_precision, Tensor information, Tensor precision, "
    "Tensor weight, Tensor difference, Tensor damping"
)


@torch.library.custom_op(
    "gbpn::sweep",
    mutates_args=(),
    schema=f"({_SWEEP}, int direction, float reweighting) -> (Tensor, Tensor)",
)
def sweep(*arguments: Any) -> tuple[Tensor, Tensor]:
    """Messages [B, 8, H, W] after one sweep; arguments as `gbpn.gbp.reference.sweep`."""
    base_information, base_precision, information, precision, weight, difference, damping = arguments[:7]
    messages = tuple(
        x.detach().clone(memory_format=torch.contiguous_format) for x in (information, precision)
    )
    inputs = [rows(x) for x in (base_information, base_precision, weight, difference, damping)]
    _native.gbp_sweep(inputs, list(messages), *arguments[7:])
    return messages[0], messages[1]


@sweep.register_fake
def _sweep_shapes(*arguments: Any) -> tuple[Tensor, Tensor]:
    return arguments[2].new_empty(arguments[2].shape), arguments[3].new_empty(arguments[3].shape)


@torch.library.custom_op(
    "gbpn::sweep_adjoint",
    mutates_args=(),
    schema=(
        f"({_SWEEP}, Tensor?[] cotangents, Tensor[] after, int direction, float reweighting) -> {_tensors(7)}"
    ),
)
def sweep_adjoint(*arguments: Any) -> tuple[Tensor, ...]:
    inputs, (cotangents, after, direction, reweighting) = arguments[:7], arguments[7:]
    after = [_own(x, x) for x in after]
    along = [_own(g, x) for g, x in zip(cotangents, inputs[2:4], strict=True)]
    base = [x.new_zeros(x.shape) for x in inputs[:2]]
    edges = [x.new_zeros(x.shape) for x in inputs[4:]]
    _native.gbp_sweep_adjoint(
        [rows(x) for x in inputs], [*after, *along, *base, *edges], direction, reweighting
    )
    return (*base, *along, *edges)


@sweep_adjoint.register_fake
def _sweep_adjoint_shapes(*arguments: Any) -> tuple[Tensor, ...]:
    return tuple(x.new_empty(x.shape) for x in arguments[:7])


def _keep_for_sweep(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, Tensor]) -> None:
    ctx.plan = inputs[7:]
    ctx.set_materialize_grads(False)
    ctx.save_for_backward(*inputs[:7], *output)


def _sweep_backward(ctx: Any, *cotangents: Tensor | None) -> tuple[Tensor | None, ...]:
    inputs, after = ctx.saved_tensors[:7], ctx.saved_tensors[7:]
    gradients = torch.ops.gbpn.sweep_adjoint(*inputs, list(cotangents), list(after), *ctx.plan)
    return (*gradients, None, None)


sweep.register_autograd(_sweep_backward, setup_context=_keep_for_sweep)

_STEP = (
    "Tensor base_information, Tensor base_precision, Tensor information, Tensor precision, "
    "Tensor weight, Tensor difference, Tensor offset, Tensor damping"
)


@torch.library.custom_op(
    "gbpn::nonlocal_step", mutates_args=(), schema=f"({_STEP}, float reweighting) -> (Tensor, Tensor)"
)
def nonlocal_step(*arguments: Any) -> tuple[Tensor, Tensor]:
    """The new sum of messages [B, 1, H, W]; arguments as `gbpn.gbp.reference.nonlocal_step`."""
    results: tuple[Tensor, Tensor] = _nonlocal_shapes(*arguments)
    _native.gbp_nonlocal([rows(x) for x in arguments[:8]], list(results), arguments[8])
    return results


@nonlocal_step.register_fake
def _nonlocal_shapes(*arguments: Any) -> tuple[Tensor, Tensor]:
    return arguments[2].new_empty(arguments[2].shape), arguments[3].new_empty(arguments[3].shape)


@torch.library.custom_op(
    "gbpn::nonlocal_step_adjoint",
    mutates_args=(),
    schema=f"({_STEP}, Tensor?[] cotangents, float reweighting) -> {_tensors(8)}",
)
def nonlocal_step_adjoint(*arguments: Any) -> tuple[Tensor, ...]:
    inputs, (cotangents, reweighting) = arguments[:8], arguments[8:]
    total = [_own(g, x) for g, x in zip(cotangents, inputs[2:4], strict=True)]
    base = [x.new_zeros(x.shape) for x in inputs[:2]]
    edges = [x.new_zeros(x.shape) for x in inputs[4:]]
    _native.gbp_nonlocal_adjoint([rows(x) for x in inputs], [*total, *base, *edges], reweighting)
    return (*base, *total, *edges)


@nonlocal_step_adjoint.register_fake
def _nonlocal_adjoint_shapes(*arguments: Any) -> tuple[Tensor, ...]:
    return tuple(x.new_empty(x.shape) for x in arguments[:8])


def _keep_for_nonlocal(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, Tensor]) -> None:
    ctx.reweighting = inputs[8]
    ctx.set_materialize_grads(False)
    ctx.save_for_backward(*inputs[:8])


def _nonlocal_backward(ctx: Any, *cotangents: Tensor | None) -> tuple[Tensor | None, ...]:
    gradients = torch.ops.gbpn.nonlocal_step_adjoint(*ctx.saved_tensors, list(cotangents), ctx.reweighting)
    return (*gradients, None)


nonlocal_step.register_autograd(_nonlocal_backward, setup_context=_keep_for_nonlocal)


def _own(cotangent: Tensor | None, like: Tensor) -> Tensor:
    """A contiguous copy that a kernel may overwrite; zeros where there is nothing to copy."""
    return like.new_zeros(like.shape) if cotangent is None else like.new_empty(like.shape).copy_(cotangent)
