"""The C++ kernels as torch operators, with shapes for tracing and gradients for training.

    gbpn::infer           a whole inference, with the tape that its adjoint walks back
    gbpn::sweep           one serial sweep
    gbpn::nonlocal_step   one parallel step along the learned edges

Each has an adjoint operator of its own (`*_adjoint`), so that compiled training graphs can hold it.
Imported by `gbpn.gbp.cpu`, which also says what to do where the native module is missing.

Torch wants tensors one after the other; the native functions want them by name, and check every one of them
(dtype, shape, memory) at every call.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor

from gbpn.kernels import memory as kept_memory
from gbpn.kernels.backends import native
from gbpn.kernels.torch_operators import operator

__all__ = [
    "EDGES",
    "directed",
    "directs",
    "infer",
    "infer_adjoint",
    "nonlocal_step",
    "rows",
    "simd_level",
    "sweep",
    "sweep_adjoint",
    "tape_planes",
]

_native = native()
_TAPES = ("none", "tape", "recompute")


class _Field(NamedTuple):
    """What an inference reads; the native module knows these tensors by the same names."""

    unary_information: Tensor
    unary_precision: Tensor
    messages_local_information: Tensor
    messages_local_precision: Tensor
    messages_nonlocal_information: Tensor
    messages_nonlocal_precision: Tensor
    local_weight: Tensor
    local_difference: Tensor
    local_damping: Tensor
    nonlocal_weight: Tensor | None
    nonlocal_difference: Tensor | None
    nonlocal_offset: Tensor | None
    nonlocal_damping: Tensor | None


_MESSAGES = _Field._fields[2:6]
_OUTCOME = ("belief_information", "belief_precision", *_MESSAGES, "tape")
"""What an inference gives."""
EDGES = ("weight", "difference", "damping")
_LEARNED_EDGES = ("weight", "difference", "offset", "damping")
_BASE, _PAIR = ("base_information", "base_precision"), ("information", "precision")
_COUNT, _LEARNED = len(_Field._fields), 9
"""Tensors of a field; the first of those that an MRF without learned edges lacks."""


def _tensors(count: int) -> str:
    return "(" + ", ".join(["Tensor"] * count) + ")"


def simd_level() -> str:
    """Instruction set of the compiled module; see `gbpn.gbp.cpu.simd_level`."""
    return str(_native.simd_level())


def _arguments(names: Iterable[str], optional: Iterable[str] = ()) -> str:
    return ", ".join(f"Tensor{'?' if name in optional else ''} {name}" for name in names)


_FIELD = _arguments(_Field._fields, _Field._fields[_LEARNED:])
_PLAN = "int iterations, int steps, float reweighting, str tape"


def rows(tensor: Tensor) -> Tensor:
    """What the kernels read: rows and columns contiguous, any strides before."""
    if tensor.dim() < 2:  # which the native side refuses
        return tensor.detach()
    height, width = tensor.shape[-2:]
    kept = (width == 1 or tensor.stride(-1) == 1) and (height == 1 or tensor.stride(-2) == width)
    return tensor.detach() if kept else tensor.detach().contiguous()


def _read(names: Iterable[str], tensors: Iterable[Tensor | None]) -> dict[str, Tensor | None]:
    """Tensors that a native function reads, by name."""
    return {name: None if x is None else rows(x) for name, x in zip(names, tensors, strict=True)}


def _written(names: Iterable[str], tensors: Iterable[Tensor | None]) -> dict[str, Tensor | None]:
    """Tensors that a native function writes, by name."""
    return dict(zip(names, tensors, strict=True))


def _always(given: Sequence[bool]) -> dict[str, bool]:
    """Told only where it is wanted: the module of a checkout may be older than its sources."""
    return {"always": True} if any(given) else {}


def directs() -> bool:
    """Whether `directed` is there; the module of a checkout may be older than its sources."""
    return hasattr(_native, "field_directed")


def directed(undirected: dict[str, Tensor]) -> dict[str, Tensor]:
    """weight and difference [B, T, U, H, W] → [B, T, 4, E, H, W]; see `gbpn.mrf.SymmetricEdges.directed`."""
    outputs = {}
    for name, x in undirected.items():
        batch, sets, edges, height, width = x.shape
        shape = (batch, sets, 4, 3 if edges == 4 else 1, height, width)
        outputs[name] = kept_memory.empty(shape, like=x)
    _native.field_directed(
        inputs=_read(undirected, undirected.values()), outputs=outputs, threads=torch.get_num_threads()
    )
    return outputs


def tape_planes(edges: int, learned: bool, steps: int, tape: str) -> int:
    """Planes [H, W] that the backward pass needs for each iteration; the native side counts them alike.

    "tape": what each sweep and step overwrote, 8·E + 2·steps planes (128 bytes per pixel and iteration for
    float32, 3 edges and 4 steps). "recompute": the messages before the iteration, 18 planes (72 bytes).
    """
    if tape == "recompute":
        return 18
    return 8 * edges + (2 * steps if learned else 0)


@operator("infer", schema=f"({_FIELD}, {_PLAN}) -> {_tensors(7)}")
def infer(*arguments: Any) -> tuple[Tensor, ...]:
    """Belief pair, local pair, non-local pair, tape."""
    outputs = _outcome(kept_memory.empty, *arguments)
    iterations, steps, reweighting, tape = arguments[_COUNT:]
    kept = outputs if tape != "none" else (*outputs[:-1], None)
    _native.gbp_infer(
        field=_read(_Field._fields, arguments[:_COUNT]),
        outcome=_written(_OUTCOME, kept),
        iterations=iterations,
        steps=steps,
        reweighting=reweighting,
        checkpoints=tape == "recompute",
        threads=torch.get_num_threads(),
    )
    return outputs


@infer.register_fake
def _empty_outcome(*arguments: Any) -> tuple[Tensor, ...]:
    return _outcome(lambda shape, like: like.new_empty(shape), *arguments)


def _outcome(empty: Callable[[Sequence[int], Tensor], Tensor], *arguments: Any) -> tuple[Tensor, ...]:
    """Tensors that an inference writes, made by `empty`."""
    field = _Field(*arguments[:_COUNT])
    iterations, steps, _, tape = arguments[_COUNT:]
    unary, local = field.unary_information, field.messages_local_information
    if unary.dim() != 4 or field.local_weight.dim() != 6:  # which the native side refuses
        return tuple(unary.new_empty(0) for _ in _OUTCOME)
    batch, _, height, width = unary.shape
    planes = tape_planes(field.local_weight.shape[3], field.nonlocal_weight is not None, steps, tape)
    shape = (0,) if tape == "none" else (batch, iterations, planes, height, width)
    return (
        *(empty((batch, 1, height, width), unary) for _ in range(2)),
        *(empty((batch, 8, height, width), local) for _ in range(2)),
        *(empty((batch, 1, height, width), unary) for _ in range(2)),
        unary.new_empty(shape),
    )


@operator(
    "infer_adjoint",
    schema=f"({_FIELD}, Tensor?[] cotangents, Tensor[] outcome, {_PLAN}) -> {_tensors(_COUNT)}",
)
def infer_adjoint(*arguments: Any) -> tuple[Tensor, ...]:
    """Gradients of the 13 tensors of a field; empty for those that are absent."""
    field = _Field(*arguments[:_COUNT])
    cotangents, outcome = arguments[_COUNT : _COUNT + 2]
    iterations, steps, reweighting, tape = arguments[_COUNT + 2 :]
    given = [torch.zeros_like(x) if g is None else g for g, x in zip(cotangents, field[:6], strict=True)]
    gradients = tuple(
        None if x is None else x.new_zeros(x.shape) if n >= 6 else x.new_empty(x.shape)
        for n, x in enumerate(field)
    )
    _native.gbp_infer_adjoint(
        field=_read(_Field._fields, field),
        outcome=_read(_OUTCOME[2:], outcome),
        cotangents=_read(_OUTCOME[:-1], given),
        gradients=_written(_Field._fields, gradients),
        iterations=iterations,
        steps=steps,
        reweighting=reweighting,
        checkpoints=tape == "recompute",
        threads=torch.get_num_threads(),
    )
    return tuple(torch.empty(0) if x is None else x for x in gradients)


@infer_adjoint.register_fake
def _empty_gradients(*arguments: Any) -> tuple[Tensor, ...]:
    return tuple(torch.empty(0) if x is None else x.new_empty(x.shape) for x in arguments[:_COUNT])


def _keep_for_infer(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, ...]) -> None:
    field = inputs[:_COUNT]
    ctx.plan = inputs[_COUNT:]
    ctx.learned = field[_LEARNED] is not None
    ctx.set_materialize_grads(False)
    ctx.save_for_backward(*(x for x in field if x is not None), *output[2:])


def _infer_backward(ctx: Any, *cotangents: Tensor | None) -> tuple[Tensor | None, ...]:
    if ctx.plan[3] == "none":
        raise RuntimeError("gbpn::infer ran without a tape; call it with tape='tape' or 'recompute'")
    count = _COUNT if ctx.learned else _LEARNED
    field = [*ctx.saved_tensors[:count], *([None] * (_COUNT - count))]
    gradients = torch.ops.gbpn.infer_adjoint(
        *field, list(cotangents[:6]), list(ctx.saved_tensors[count:]), *ctx.plan
    )
    known = [g if x is not None else None for g, x in zip(gradients, field, strict=True)]
    return (*known, None, None, None, None)


infer.register_autograd(_infer_backward, setup_context=_keep_for_infer)

_SWEEP = (*_BASE, *_PAIR, *EDGES)
_SWEEP_TENSORS = _arguments(_SWEEP)


@operator(
    "sweep",
    schema=f"({_SWEEP_TENSORS}, int direction, float reweighting, bool always=False) -> (Tensor, Tensor)",
)
def sweep(*arguments: Any) -> tuple[Tensor, Tensor]:
    """Messages [B, 8, H, W] after one sweep; arguments as `gbpn.gbp.reference.sweep`."""
    base, (information, precision), edges = arguments[:2], arguments[2:4], arguments[4:7]
    messages = tuple(
        x.detach().clone(memory_format=torch.contiguous_format) for x in (information, precision)
    )
    _native.gbp_sweep(
        inputs=_read((*_BASE, *EDGES), (*base, *edges)),
        messages=_written(_PAIR, messages),
        direction=arguments[7],
        reweighting=arguments[8],
        **_always(arguments[9:]),
    )
    return messages[0], messages[1]


@sweep.register_fake
def _sweep_shapes(*arguments: Any) -> tuple[Tensor, Tensor]:
    return arguments[2].new_empty(arguments[2].shape), arguments[3].new_empty(arguments[3].shape)


@operator(
    "sweep_adjoint",
    schema=(
        f"({_SWEEP_TENSORS}, Tensor?[] cotangents, Tensor[] after, int direction, float reweighting, "
        f"bool always=False) -> {_tensors(7)}"
    ),
)
def sweep_adjoint(*arguments: Any) -> tuple[Tensor, ...]:
    inputs, (cotangents, after, direction, reweighting, *always) = arguments[:7], arguments[7:]
    after = [_own(x, x) for x in after]
    along = [_own(g, x) for g, x in zip(cotangents, inputs[2:4], strict=True)]
    base = [x.new_zeros(x.shape) for x in inputs[:2]]
    edges = [x.new_zeros(x.shape) for x in inputs[4:]]
    _native.gbp_sweep_adjoint(
        inputs=_read(_SWEEP, inputs),
        after=_written(_PAIR, after),
        cotangents=_written(_PAIR, along),
        gradients=_written((*_BASE, *EDGES), (*base, *edges)),
        direction=direction,
        reweighting=reweighting,
        **_always(always),
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
    return (*gradients, *(None for _ in ctx.plan))


sweep.register_autograd(_sweep_backward, setup_context=_keep_for_sweep)

_STEP = (*_BASE, *_PAIR, *_LEARNED_EDGES)
_STEP_TENSORS = _arguments(_STEP)


@operator("nonlocal_step", schema=f"({_STEP_TENSORS}, float reweighting) -> (Tensor, Tensor)")
def nonlocal_step(*arguments: Any) -> tuple[Tensor, Tensor]:
    """The new sum of messages [B, 1, H, W]; arguments as `gbpn.gbp.reference.nonlocal_step`."""
    results = [kept_memory.empty(x.shape, like=x) for x in arguments[2:4]]
    _native.gbp_nonlocal_step(
        inputs=_read(_STEP, arguments[:8]),
        result=_written(_PAIR, results),
        reweighting=arguments[8],
        threads=torch.get_num_threads(),
    )
    return results[0], results[1]


@nonlocal_step.register_fake
def _nonlocal_shapes(*arguments: Any) -> tuple[Tensor, Tensor]:
    return arguments[2].new_empty(arguments[2].shape), arguments[3].new_empty(arguments[3].shape)


@operator(
    "nonlocal_step_adjoint",
    schema=f"({_STEP_TENSORS}, Tensor?[] cotangents, float reweighting) -> {_tensors(8)}",
)
def _nonlocal_step_adjoint(*arguments: Any) -> tuple[Tensor, ...]:
    inputs, (cotangents, reweighting) = arguments[:8], arguments[8:]
    total = [_own(g, x) for g, x in zip(cotangents, inputs[2:4], strict=True)]
    base = [x.new_zeros(x.shape) for x in inputs[:2]]
    edges = [x.new_zeros(x.shape) for x in inputs[4:]]
    _native.gbp_nonlocal_step_adjoint(
        inputs=_read(_STEP, inputs),
        cotangents=_written(_PAIR, total),
        gradients=_written((*_BASE, *_LEARNED_EDGES), (*base, *edges)),
        reweighting=reweighting,
    )
    return (*base, *total, *edges)


@_nonlocal_step_adjoint.register_fake
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
