"""Three ways to solve A·x = b for a symmetric positive definite A: factorise, or iterate with a helper.

exact   sparse factorisation in a nested-dissection order: cost and memory grow like N^1.5 and N log N
cg      conjugate gradients, preconditioned by the diagonal: memory of a few images, many iterations
amg     conjugate gradients, preconditioned by algebraic multigrid: few iterations (needs pyamg)
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from scipy import sparse
from scipy.sparse.linalg import splu

from gbpn.errors import BackendError, ConvergenceError, InputError
from gbpn.gbp.exact.system import System

__all__ = ["SOLVERS", "Operator", "Solved", "Solver", "dissection", "prepare"]

SOLVERS = ("exact", "cg", "amg")

Operator = Callable[[np.ndarray], np.ndarray]

_LEAF = 6
"""Side of the smallest block that nested dissection still cuts, pixels."""


@dataclass(frozen=True, kw_only=True)
class Solved:
    """x with how it was reached."""

    x: np.ndarray
    iterations: int
    residual: float
    """‖b − A·x‖ / ‖b‖."""


@dataclass(frozen=True)
class Solver:
    """A system made ready for any number of right sides."""

    system: System
    precondition: Operator
    tolerance: float
    max_iterations: int
    name: str

    def solve(self, b: np.ndarray) -> Solved:
        """A⁻¹b by preconditioned conjugate gradients; a factorisation makes that one or two steps."""
        A = self.system.matrix
        x, residual = np.zeros_like(b), b.copy()
        scale = float(np.linalg.norm(b))
        if scale == 0:
            return Solved(x=x, iterations=0, residual=0.0)
        direction, last, error, iteration = np.zeros_like(b), 1.0, 1.0, 0
        for iteration in range(1, self.max_iterations + 1):
            guess = self.precondition(residual)
            energy = float(residual @ guess)
            direction = guess + (energy / last if iteration > 1 else 0.0) * direction
            last = energy
            image = A @ direction
            curvature = float(direction @ image)
            if not (energy > 0 and curvature > 0):  # rounding has used up all digits
                break
            x += energy / curvature * direction
            residual -= energy / curvature * image
            error = float(np.linalg.norm(residual)) / scale
            if error <= self.tolerance:
                return Solved(x=x, iterations=iteration, residual=error)
        raise ConvergenceError(
            f"solver {self.name!r} stopped after {iteration} iterations at a relative residual of "
            f"{error:.1e}; wanted {self.tolerance:.1e}: use solver='exact', a looser tolerance "
            "or more max_iterations"
        )


def prepare(system: System, name: str, tolerance: float, max_iterations: int) -> Solver:
    """Make `system` ready to be solved by the solver called `name`."""
    if name == "exact":
        helper = _factorised(system)
    elif name == "cg":
        helper = _diagonal(system)
    elif name == "amg":
        helper = _multigrid(system)
    else:
        raise InputError(f"solver must be one of {', '.join(SOLVERS)} (or gbp in infer); got {name!r}")
    return Solver(system, helper, tolerance, max_iterations, name)


def _factorised(system: System) -> Operator:
    order = dissection(*system.shape)
    permuted = sparse.csc_matrix(system.matrix[order][:, order])
    factor = splu(permuted, permc_spec="NATURAL", diag_pivot_thresh=0.0, options={"SymmetricMode": True})

    def apply(b: np.ndarray) -> np.ndarray:
        x = np.empty_like(b)
        x[order] = factor.solve(b[order])
        return x

    return apply


def _diagonal(system: System) -> Operator:
    scale = 1.0 / system.matrix.diagonal()
    return lambda b: scale * b


def _multigrid(system: System) -> Operator:
    try:
        import pyamg
    except ImportError as error:
        raise BackendError("solver 'amg' needs pyamg: pip install 'gbpn[solvers]'") from error
    with _fixed_seed():  # pyamg starts its eigenvalue estimates from the global random state
        hierarchy = pyamg.smoothed_aggregation_solver(system.matrix, max_coarse=200)
    cycle = hierarchy.aspreconditioner(cycle="V")
    return lambda b: np.asarray(cycle @ b)


@contextmanager
def _fixed_seed() -> Iterator[None]:
    """NumPy's global random state, fixed inside and as it was afterwards."""
    state = np.random.get_state()  # noqa: NPY002
    np.random.seed(0)  # noqa: NPY002
    try:
        yield
    finally:
        np.random.set_state(state)  # noqa: NPY002


@lru_cache(maxsize=8)
def dissection(height: int, width: int) -> np.ndarray:
    """Elimination order of the pixels of a grid: halves first, the line that separates them last."""
    pixels = np.arange(height * width).reshape(height, width)

    def order(block: np.ndarray) -> list[np.ndarray]:
        if min(block.shape) == 0:
            return []
        if max(block.shape) <= _LEAF:
            return [block.ravel()]
        if block.shape[0] < block.shape[1]:
            block = block.T
        middle = block.shape[0] // 2
        return [*order(block[:middle]), *order(block[middle + 1 :]), block[middle]]

    return np.concatenate(order(pixels))
