"""What happens on one edge, in Triton: shared by the sweeps and the non-local step.

Legend: eta = information, lam = precision (of a cavity or a message), as in the paper; *_up = gradient that
arrives from above. Formulas are those of `Gaussian.across` and `Gaussian.damped`.
"""
# mypy: disallow-untyped-defs=False

from __future__ import annotations

import triton
import triton.language as tl

__all__ = ["across", "across_adjoint", "hear", "hear_adjoint"]


@triton.jit
def across(eta, lam, weight, difference):
    """Message that a sender's (eta, lam) becomes across an edge; an uninformed sender sends (0, 0)."""
    total = weight + lam
    gain = weight / tl.where(total > 0, total, 1.0)
    return gain * (eta + lam * difference), gain * lam


@triton.jit
def across_adjoint(eta_up, lam_up, eta, lam, weight, difference):
    """Gradients of (eta, lam, weight, difference) from those of the message; all 0 where lam ≤ 0."""
    informed = lam > 0
    total = tl.where(informed, weight + lam, 1.0)
    gain = weight / total
    gain_up = eta_up * (eta + lam * difference) + lam_up * lam
    slope = gain_up / total
    eta_grad = tl.where(informed, gain * eta_up, 0.0)
    lam_grad = tl.where(informed, gain * (lam_up + difference * eta_up - slope), 0.0)
    weight_grad = tl.where(informed, slope * (lam / total), 0.0)  # 1 − gain, not by subtraction
    difference_grad = tl.where(informed, eta_up * gain * lam, 0.0)
    return eta_grad, lam_grad, weight_grad, difference_grad


@triton.jit
def hear(eta, lam, old_eta, old_lam, weight, difference, damping):
    """New content of a slot: kept where the sender knows nothing, damped only where it was filled."""
    new_eta, new_lam = across(eta, lam, weight, difference)
    keep = tl.where(old_lam > 0, damping, 0.0)
    new_eta = keep * old_eta + (1 - keep) * new_eta
    new_lam = keep * old_lam + (1 - keep) * new_lam
    informed = lam > 0
    return tl.where(informed, new_eta, old_eta), tl.where(informed, new_lam, old_lam)


@triton.jit
def hear_adjoint(eta_up, lam_up, eta, lam, old_eta, old_lam, weight, difference, damping):
    """Gradients of (eta, lam, old_eta, old_lam, weight, difference, damping) of `hear`."""
    informed = lam > 0
    filled = old_lam > 0
    new_eta, new_lam = across(eta, lam, weight, difference)
    keep = tl.where(filled, damping, 0.0)
    change = eta_up * (old_eta - new_eta) + lam_up * (old_lam - new_lam)
    damping_grad = tl.where(informed & filled, change, 0.0)
    share = tl.where(informed, keep, 1.0)
    eta_grad, lam_grad, weight_grad, difference_grad = across_adjoint(
        (1 - keep) * eta_up, (1 - keep) * lam_up, eta, lam, weight, difference
    )
    return eta_grad, lam_grad, share * eta_up, share * lam_up, weight_grad, difference_grad, damping_grad
