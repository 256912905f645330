"""Gaussian belief propagation in C++: the functions of `gbpn.gbp.reference` at the speed of memory.

Float32 and float64, forward and adjoint; the images of a batch run on `torch.get_num_threads()` threads.
"""

from __future__ import annotations

from dataclasses import replace

import torch
from torch import Tensor

from gbpn.gaussian import Gaussian
from gbpn.gbp import operators
from gbpn.gbp.state import Messages
from gbpn.mrf import MRF, LocalEdges, SymmetricEdges

__all__ = ["directed", "infer", "nonlocal_step", "simd_level", "sweep"]


def sweep(
    base: Gaussian,
    messages: Gaussian,
    weight: Tensor,
    difference: Tensor,
    damping: Tensor,
    *,
    direction: int,
    reweighting: float = 1.0,
    always: bool = False,
) -> Gaussian:
    """One serial sweep; see `gbpn.gbp.reference.sweep`."""
    information, precision = torch.ops.gbpn.sweep(
        base.information,
        base.precision,
        messages.information,
        messages.precision,
        weight,
        difference,
        damping,
        direction,
        reweighting,
        always,
    )
    return Gaussian(information, precision)


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
    """One parallel step along the learned edges; see `gbpn.gbp.reference.nonlocal_step`."""
    information, precision = torch.ops.gbpn.nonlocal_step(
        base.information,
        base.precision,
        total.information,
        total.precision,
        weight,
        difference,
        offset,
        damping,
        reweighting,
    )
    return Gaussian(information, precision)


def directed(mrf: MRF) -> MRF:
    """`MRF.directed`, in one pass where no gradient is wanted."""
    edges = mrf.local
    if not isinstance(edges, SymmetricEdges):
        return mrf
    given = {"weight": edges.weight, "difference": edges.difference}
    wanted = torch.is_grad_enabled() and any(x.requires_grad for x in given.values())
    if wanted or torch.compiler.is_compiling() or edges.weight.dim() != 5 or not operators.directs():
        return mrf.directed()
    local = LocalEdges(**operators.directed(given), damping=edges.damping)
    return replace(mrf, local=local)


def infer(
    mrf: MRF,
    messages: Messages,
    *,
    iterations: int,
    nonlocal_steps: int,
    reweighting: float,
    backward: str,
) -> tuple[Gaussian, Messages]:
    """Belief and messages after a whole inference, as one operator; `mrf` has directed edges."""
    assert isinstance(mrf.local, LocalEdges)
    unary, edges, learned = mrf.unary, mrf.local, mrf.nonlocal_
    far: tuple[Tensor | None, ...] = (None,) * 4
    if learned is not None and nonlocal_steps:
        far = (learned.weight, learned.difference, learned.offset, learned.damping)
    inputs = (
        *(unary.information, unary.precision),
        *(messages.local.information, messages.local.precision),
        *(messages.nonlocal_.information, messages.nonlocal_.precision),
        *(edges.weight, edges.difference, edges.damping),
        *far,
    )
    trains = torch.is_grad_enabled() and any(x is not None and x.requires_grad for x in inputs)
    outcome = torch.ops.gbpn.infer(
        *inputs, iterations, nonlocal_steps, reweighting, backward if trains else "none"
    )
    belief, local, total = (Gaussian(*outcome[n : n + 2]) for n in (0, 2, 4))
    return belief, Messages(local, total)


def simd_level() -> str:
    """Instruction set in use: baseline, avx2 or avx512 (environment variable GBPN_SIMD forces one)."""
    return operators.simd_level()
