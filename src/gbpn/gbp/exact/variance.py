"""Exact marginal variances of a grid, line by line.

Neighbours lie in the same or the next line, so the precision matrix is block tridiagonal, with one dense
block D_k per line and a coupling −N_k of three diagonals to the next. Eliminating all lines before line k
leaves a correction P_k of its block, all lines after it a correction Q_k:

    P_(k+1) = N_kᵀ (D_k − P_k)⁻¹ N_k        Q_(k−1) = N_(k−1) (D_k − Q_k)⁻¹ N_(k−1)ᵀ

and (D_k − P_k − Q_k)⁻¹ is the covariance of line k. The cost is four Cholesky inverses of a block per line:
4·L·P³ operations for L lines of P pixels. Plain torch: any device, differentiated by autograd.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

from gbpn.errors import ConvergenceError
from gbpn.mrf import SymmetricEdges

__all__ = ["marginal_variance"]


def marginal_variance(unary: Tensor, edges: SymmetricEdges) -> Tensor:
    """diag(A⁻¹) [B, 1, H, W] for measurement precisions [B, 1, H, W], of which every pixel is reached by one.

    Lines run along the shorter side. Memory: about 2·√L blocks of P×P; all of them when a gradient is asked.
    """
    weight = edges.directed().weight[:, 0]  # [B, 4, E, H, W]
    middle = weight.shape[2] // 2
    below, right = weight[:, 3], weight[:, 2]  # from the next row, from the next column: [B, E, H, W]
    unary = unary[:, 0]
    if unary.shape[-1] <= unary.shape[-2]:
        lines = _Lines(unary, right[:, middle], below)
        return torch.stack(lines.variances(), 1)[:, None]
    lines = _Lines(unary.mT, below[:, middle].mT, right.mT)
    return torch.stack(lines.variances(), 2)[:, None]


class _Lines:
    """L lines of P pixels: the blocks of the precision matrix and their elimination."""

    def __init__(self, unary: Tensor, along: Tensor, across: Tensor) -> None:
        """unary [B, L, P]; along [B, L, P] to the next pixel; across [B, E, L, P] to the next line."""
        edges, width = across.shape[1], unary.shape[-1]
        self.steps = range(-(edges // 2), edges // 2 + 1)
        before = torch.nn.functional.pad(along, (1, 0))[..., :width]
        diagonal = unary + along + before + across.sum(1)
        for edge, step in enumerate(self.steps):  # what the line before pays for the same edges
            moved = torch.nn.functional.pad(across[:, edge], (1, 1, 1, 0))[:, :-1]
            diagonal = diagonal + moved[..., 1 - step : 1 - step + width]
        self.diagonal, self.along = diagonal.unbind(1), along.unbind(1)
        self.across = across.unbind(2)  # each [B, E, P]

    def variances(self) -> list[Tensor]:
        """[B, P] for every line."""
        count = len(self.diagonal)
        nothing = torch.zeros_like(self._block(0))
        starts = range(0, count, max(1, math.isqrt(count)))
        saved = {0: nothing}  # P at the first line of each segment; the rest is recomputed segment by segment
        before = nothing
        for k in range(starts[-1]):
            before = self._carry_on(k, before)
            if k + 1 in starts:
                saved[k + 1] = before
        after, out = nothing, []
        for start in reversed(starts):
            stop = min(start + starts.step, count)
            segment = [saved[start]]
            for k in range(start, stop - 1):
                segment.append(self._carry_on(k, segment[-1]))
            for k in reversed(range(start, stop)):
                out.append(_inverse(self._block(k) - segment[k - start] - after).diagonal(dim1=-2, dim2=-1))
                after = self._carry_back(k, after)
        return out[::-1]

    def _block(self, k: int) -> Tensor:
        """D_k, [B, P, P]."""
        inner = self.along[k][..., :-1]
        off = torch.diag_embed(inner, offset=1) + torch.diag_embed(inner, offset=-1)
        return torch.diag_embed(self.diagonal[k]) - off

    def _carry_on(self, k: int, before: Tensor) -> Tensor:
        """P_(k+1) from P_k."""
        covariance = _inverse(self._block(k) - before)
        return self._onto_next(k, self._onto_next(k, covariance).mT)

    def _onto_next(self, k: int, rows: Tensor) -> Tensor:
        """N_kᵀ · rows: sums of scaled and shifted rows, since N_k has three diagonals."""
        total = torch.zeros_like(rows)
        for edge, step in enumerate(self.steps):
            total = total + _moved(rows * self.across[k][:, edge, :, None], step)
        return total

    def _carry_back(self, k: int, after: Tensor) -> Tensor:
        """Q_(k−1) from Q_k."""
        if k == 0:
            return after
        covariance = _inverse(self._block(k) - after)
        return self._onto_last(k - 1, self._onto_last(k - 1, covariance).mT)

    def _onto_last(self, k: int, rows: Tensor) -> Tensor:
        """N_k · rows."""
        total = torch.zeros_like(rows)
        for edge, step in enumerate(self.steps):
            total = total + _moved(rows, -step) * self.across[k][:, edge, :, None]
        return total


def _moved(rows: Tensor, step: int) -> Tensor:
    """rows [B, P, Q] with row p moved to p + step, zeros where nothing came from."""
    if step == 0:
        return rows
    count = rows.shape[1]
    return torch.nn.functional.pad(rows, (0, 0, 1, 1))[:, 1 - step : 1 - step + count]


def _inverse(block: Tensor) -> Tensor:
    factor, failed = torch.linalg.cholesky_ex(block)
    if bool((failed > 0).any()):
        raise ConvergenceError(
            "the precision matrix is not positive definite in float64: weights span more than about 15 "
            "orders of magnitude; raise the smallest measurement weight or lower the largest edge weight"
        )
    return torch.cholesky_inverse(factor)
