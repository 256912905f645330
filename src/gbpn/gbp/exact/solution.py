"""`solve`: mean and, on request, marginal variances of a symmetric field, with gradients."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from gbpn.errors import InputError
from gbpn.gaussian import Gaussian
from gbpn.gbp.exact.solvers import Solved, Solver, prepare
from gbpn.gbp.exact.system import System
from gbpn.gbp.exact.variance import marginal_variance
from gbpn.mrf import MRF, SymmetricEdges

__all__ = ["Solution", "solve"]


@dataclass(frozen=True, kw_only=True)
class Solution:
    """The answer of `solve`."""

    belief: Gaussian
    """[B, 1, H, W]; precision 0 where no chain of edges leads to a measurement."""
    marginal: bool
    """Whether the precision is 1 / marginal variance. If not, it is the *conditional* precision A_ii: what
    would be left if all neighbours were known, never below the marginal one; good for the mean only."""
    solver: str
    iterations: int
    """Conjugate-gradient steps, the most over the batch; 1 or 2 after a factorisation."""
    residual: float
    """‖b − A·x‖ / ‖b‖, the largest over the batch."""

    @property
    def mean(self) -> Tensor:
        """[B, 1, H, W] metres; NaN where not observed."""
        return self.belief.mean


def solve(
    mrf: MRF,
    *,
    solver: str = "exact",
    variances: bool = False,
    ignore_nonlocal: bool = False,
    tolerance: float = 1e-10,
    max_iterations: int = 10_000,
    check: bool = True,
) -> Solution:
    """The exact mean of a symmetric field, differentiable in depth, weight, edge weights and differences.

    solver           "exact" (sparse factorisation), "cg" or "amg"; all in float64 on the CPU
    variances        also the marginal variances, by line elimination (see `gbpn.gbp.exact.variance`)
    ignore_nonlocal  leave out learned non-local edges instead of refusing a field that has them
    tolerance, max_iterations  of the conjugate gradients, relative to the right side
    """
    if check:
        mrf.check()
    edges = _undirected(mrf, ignore_nonlocal)
    log = _Log()
    mean, observed = _Mean.apply(  # type: ignore[no-untyped-call]  # torch gives `apply` no types
        mrf.depth, mrf.weight, edges.weight, edges.difference, (solver, tolerance, max_iterations), log
    )
    precision = _precision(mrf.weight, edges, observed, variances)
    return Solution(
        belief=Gaussian(mean * precision, precision),
        marginal=variances,
        solver=solver,
        iterations=max(s.iterations for s in log.solved),
        residual=max(s.residual for s in log.solved),
    )


def _undirected(mrf: MRF, ignore_nonlocal: bool = False) -> SymmetricEdges:
    """The local edges, if the field is one quadratic energy; otherwise an error that says why it is not."""
    edges = mrf.local
    if not isinstance(edges, SymmetricEdges):
        raise InputError(
            "an exact solution needs SymmetricEdges; got directed LocalEdges: with a weight and a difference "
            "of its own for each direction the field has no energy whose minimum could be found"
        )
    lengths = {"local.weight": edges.weight.shape[1], "local.difference": edges.difference.shape[1]}
    if set(lengths.values()) != {1}:
        raise InputError(
            f"an exact solution needs edges shared by all iterations (T = 1); got T = {lengths}: "
            "pick one iteration, e.g. weight[:, t : t + 1]"
        )
    if mrf.nonlocal_ is not None and not ignore_nonlocal:
        raise InputError(
            "an exact solution is not defined with non-local edges: their step hears full beliefs, not "
            "cavities, so it minimises no energy; leave them out with ignore_nonlocal=True "
            "(nonlocal_steps=0 in infer)"
        )
    return edges


def _precision(weight: Tensor, edges: SymmetricEdges, observed: Tensor, variances: bool) -> Tensor:
    """[B, 1, H, W] marginal or conditional precision, 0 where not observed."""
    if not variances:
        directed = edges.directed().weight[:, 0]  # [B, 4, E, H, W]; corners stand in two directions
        middle = directed.shape[2] // 2
        total = directed[:, :, middle].sum(1, keepdim=True)
        if middle:
            total = total + directed[:, 1::2, ::2].sum((1, 2))[:, None]
        return torch.where(observed, weight + total, 0.0).detach()
    wide = weight.double()
    unary = torch.where(observed, wide, torch.ones_like(wide))
    live = SymmetricEdges(
        weight=edges.weight.double() * observed[:, None],
        difference=edges.difference,
        damping=edges.damping,
    )
    variance = marginal_variance(unary, live)
    return torch.where(observed, 1 / variance, torch.zeros_like(variance)).to(weight.dtype)


class _Log:
    """What the solves of one call did; filled during the forward pass."""

    def __init__(self) -> None:
        self.solved: list[Solved] = []


class _Mean(torch.autograd.Function):
    """μ = A⁻¹b for a batch. With λ = A⁻¹ dL/dμ and an edge from tail t to head h:

    dL/ds_i = w_i λ_i                      dL/dw_i = λ_i (s_i − μ_i)
    dL/dr_e = w_e (λ_h − λ_t)              dL/dw_e = −(λ_h − λ_t)(μ_h − μ_t − r_e)
    """

    @staticmethod
    def forward(
        ctx: Any,
        depth: Tensor,
        weight: Tensor,
        edge_weight: Tensor,
        edge_difference: Tensor,
        how: tuple[str, float, int],
        log: _Log,
    ) -> tuple[Tensor, Tensor]:
        ctx.arrays = [_array(t) for t in (depth, weight, edge_weight, edge_difference)]
        ctx.solvers, ctx.means = [], []
        for s, w, edge, r in zip(*ctx.arrays, strict=True):
            system = System.of(w[0], edge[0])
            ready = prepare(system, *how)
            mean = _mean(ready, s.ravel(), r.ravel(), log)
            ctx.solvers.append(ready)
            ctx.means.append(mean)
        observed = torch.from_numpy(np.stack([r.system.observed for r in ctx.solvers])).to(depth.device)
        observed = observed.view_as(weight)
        ctx.mark_non_differentiable(observed)
        return torch.from_numpy(np.stack(ctx.means)).to(weight).view_as(weight), observed

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor, _: Tensor) -> tuple[Tensor | None, ...]:
        depths, weights, _edges, differences = ctx.arrays
        grads: list[list[np.ndarray]] = [[], [], [], []]
        for b, (ready, mean) in enumerate(zip(ctx.solvers, ctx.means, strict=True)):
            system = ready.system
            adjoint = ready.solve(np.where(system.observed, _array(grad[b]).ravel(), 0.0)).x
            tail, head = system.endpoints()
            known = (tail != head) & system.observed[tail] & system.observed[head]
            pull = np.where(known, adjoint[head] - adjoint[tail], 0.0)
            miss = mean[head] - mean[tail] - differences[b].ravel()
            grads[0].append(weights[b].ravel() * adjoint)
            grads[1].append(np.where(system.observed, adjoint * (depths[b].ravel() - mean), 0.0))
            grads[2].append(-pull * miss)
            grads[3].append(system.edge * pull)
        shapes = [a.shape for a in ctx.arrays]
        out = [torch.from_numpy(np.stack(g)).view(s).to(grad) for g, s in zip(grads, shapes, strict=True)]
        return (*out, None, None)


def _mean(ready: Solver, depth: np.ndarray, difference: np.ndarray, log: _Log) -> np.ndarray:
    """[N] mean, 0 where not observed. Solved as a deviation from each component's measured level, which keeps
    the digits of far-away depths, and shifted back onto it: Σ w_i (x_i − s_i) = 0 holds at the minimum."""
    system = ready.system
    level = system.level(depth)
    solved = ready.solve(system.right_side(np.where(system.unary > 0, depth - level, 0.0), difference))
    log.solved.append(solved)
    deviation = solved.x
    shift = system.level(depth - level) - system.level(deviation)
    return np.where(system.observed, level + deviation + shift, 0.0)


def _array(tensor: Tensor) -> np.ndarray:
    return tensor.detach().cpu().double().numpy()
