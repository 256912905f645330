"""The exact answer of a symmetric field, by linear algebra: the judge of belief propagation.

A symmetric field with shared parameters is one Gaussian over all pixels, N⁻¹(b, A), with a sparse precision
matrix A. Its mean A⁻¹b and its marginal variances diag(A⁻¹) are what belief propagation approximates.
"""

from gbpn.gbp.exact.solution import Solution, solve
from gbpn.gbp.exact.variance import marginal_variance

__all__ = ["Solution", "marginal_variance", "solve"]
