"""The adjoint of a serial sweep in Triton: one launch, a program per slanted strip, lines from last to first.

Layout, legend, addresses and handing over as in `sweep_kernels`; *_up = gradient that arrives from above,
*_grad = gradient that is written. The messages after the sweep are all that has to be kept: what a line was
told is made again, from the line that told it. For that a strip looks at one position more on either side:
of its BLOCK positions it owns all but the first and the last.
"""
# mypy: disallow-untyped-defs=False

from __future__ import annotations

import triton
import triton.language as tl

from gbpn.gbp.triton.edge import hear_adjoint
from gbpn.gbp.triton.sweep_kernels import (
    handed_over,
    leave_one_out,
    load_edges,
    load_kept,
    scale,
    shift,
    store_edges,
    take_turn,
    tell,
    wait_until,
)

__all__ = ["sweep_adjoint", "tell_adjoint"]


@triton.jit
def _add_to_kept(up, grad, plane, mask, value, EDGES: tl.constexpr):
    """Write up + value to the slots that `load_kept` reads; `up` and `grad` are addresses of slot 0."""
    for slot in tl.static_range(8):
        if slot == 3 or slot == 4 or (EDGES == 1 and slot != 1 and slot != 6):
            at = slot * plane
            tl.store(grad + at, tl.load(up + at, mask=mask, other=0.0) + value, mask=mask)


@triton.jit
def tell_adjoint(
    up_own,
    up_back,
    grad_back,
    up_8,
    grad_8,
    base_grad,
    plane,
    mask,
    b,
    m,
    a,
    RHO: tl.constexpr,
    EDGES: tl.constexpr,
):
    """Adjoint of `tell`: gradients of what a line told, at the teller, go to all that it was made from.

    Writes those of base, kept and reverse messages; returns those of the three messages it had just heard.
    """
    common = b + m + a
    tl.store(base_grad, common, mask=mask)
    scaled = scale(common, RHO)
    _add_to_kept(up_8, grad_8, plane, mask, scaled, EDGES)
    up_b, up_m, up_a = load_edges(up_back, -plane, mask, EDGES)
    back_b, back_m, back_a = leave_one_out(0.0, b, m, a, RHO)
    store_edges(grad_back, -plane, mask, up_b + back_b, up_m + back_m, up_a + back_a, EDGES)
    own_b, own_m, own_a = load_edges(up_own, plane, mask, EDGES)
    return own_b + scaled, own_m + scaled, own_a + scaled


@triton.jit
def _load_told(
    base,
    messages_8,
    heard_own,
    messages_back,
    plane,
    mask,
    RHO: tl.constexpr,
    EDGES: tl.constexpr,
):
    """`tell` of a line, from the stored messages before and after the sweep."""
    kept = load_kept(base, messages_8, plane, mask, RHO, EDGES)
    own_b, own_m, own_a = load_edges(heard_own, plane, mask, EDGES)
    back_b, back_m, back_a = load_edges(messages_back, -plane, mask, EDGES)
    return tell(kept, own_b, own_m, own_a, back_b, back_m, back_a, RHO)


@triton.jit
def sweep_adjoint(
    eta_up,
    lam_up,
    base_eta,
    base_lam,
    old_eta,
    old_lam,
    new_eta,
    new_lam,
    weight,
    difference,
    damping,
    base_eta_grad,
    base_lam_grad,
    old_eta_grad,
    old_lam_grad,
    weight_grad,
    difference_grad,
    damping_grad,
    handed,
    progress,
    counter,
    batch,
    strips,
    lines,
    positions,
    RHO: tl.constexpr,
    EDGES: tl.constexpr,
    BACKWARDS: tl.constexpr,
    BLOCK: tl.constexpr,
    EVERY: tl.constexpr,
):
    """Every *_grad is written in full. *_up, old_*, new_*: [B, 8, lines, positions]; as `sweep_forward`."""
    plane = lines * positions
    which, strip = take_turn(counter, batch)
    image = which * plane
    own = image * 7 + (5 * plane if BACKWARDS else 0)
    back = image * 7 + (2 * plane if BACKWARDS else 7 * plane)
    edge = image * 2 if EDGES == 3 else -plane
    step = positions if BACKWARDS else -positions  # to the line that was visited before
    lane = tl.arange(0, BLOCK)
    owned = (lane > 0) & (lane < BLOCK - 1)
    lower, has_lower = (lane - 1) & (BLOCK - 1), lane > 0
    two_lower = (lane - 2) & (BLOCK - 1)
    upper, has_upper = (lane + 1) & (BLOCK - 1), lane < BLOCK - 1
    mine = progress + which * strips + strip
    there = handed + (which * strips + strip) * lines * 8 + (lane - (BLOCK - 3))
    before = handed + (which * strips + strip - 1) * lines * 8 + (lane - 1)
    zero = tl.zeros([BLOCK], dtype=weight.dtype.element_ty)
    eta_b, eta_m, eta_a = zero, zero, zero  # gradients of what a line told the next
    lam_b, lam_m, lam_a = zero, zero, zero
    start = strip * (BLOCK - 2)
    first = tl.maximum(start - positions + 1, 0)
    last = tl.minimum(start + BLOCK - 2, lines)
    for visited in range(first, last):
        line = visited if BACKWARDS else lines - 1 - visited
        position = start - 1 + lane - visited
        exists = (position >= 0) & (position < positions)
        mask = exists & owned
        at = image + line * positions + position
        at_8, at_own, at_back, at_edge = at + image * 7, at + own, at + back, at + edge
        if (strip > 0) & (visited > 0) & (visited <= start):  # told by the strip before at the line before
            if (visited - 1) % EVERY == 0 or visited == first:
                wait_until(mine - 1, tl.minimum(visited - 1 + EVERY, tl.minimum(start, lines)))
            above = before + (visited - 1) * 8
            eta_a += handed_over(above, owned & (lane < 3))
            lam_a += handed_over(above + 2, owned & (lane < 3))
            eta_m += handed_over(above + 5, owned & (lane < 2))
            lam_m += handed_over(above + 7, owned & (lane < 2))
        eta_b, eta_m, eta_a = tell_adjoint(
            eta_up + at_own,
            eta_up + at_back,
            old_eta_grad + at_back,
            eta_up + at_8,
            old_eta_grad + at_8,
            base_eta_grad + at,
            plane,
            mask,
            eta_b,
            eta_m,
            eta_a,
            RHO,
            EDGES,
        )
        lam_b, lam_m, lam_a = tell_adjoint(
            lam_up + at_own,
            lam_up + at_back,
            old_lam_grad + at_back,
            lam_up + at_8,
            old_lam_grad + at_8,
            base_lam_grad + at,
            plane,
            mask,
            lam_b,
            lam_m,
            lam_a,
            RHO,
            EDGES,
        )

        keep = tl.load(damping + at, mask=mask, other=0.0)
        w_b, w_m, w_a = load_edges(weight + at_edge, plane, mask, EDGES)
        r_b, r_m, r_a = load_edges(difference + at_edge, plane, mask, EDGES)
        old_eta_b, old_eta_m, old_eta_a = load_edges(old_eta + at_own, plane, mask, EDGES)
        old_lam_b, old_lam_m, old_lam_a = load_edges(old_lam + at_own, plane, mask, EDGES)
        told = exists & (tl.full([BLOCK], visited, tl.int32) < lines - 1)  # nobody told the first line
        at, at_8, at_teller, at_back = at + step, at_8 + step, at_own + step, at_back + step
        told_eta_b, told_eta_m, told_eta_a = _load_told(
            base_eta + at, old_eta + at_8, new_eta + at_teller, old_eta + at_back, plane, told, RHO, EDGES
        )
        told_lam_b, told_lam_m, told_lam_a = _load_told(
            base_lam + at, old_lam + at_8, new_lam + at_teller, old_lam + at_back, plane, told, RHO, EDGES
        )
        told_eta_b, told_lam_b = shift(told_eta_b, lower, has_lower), shift(told_lam_b, lower, has_lower)
        told_eta_a, told_lam_a = shift(told_eta_a, upper, has_upper), shift(told_lam_a, upper, has_upper)

        eta_b, lam_b, old_eta_b, old_lam_b, w_b, r_b, keep_b = hear_adjoint(
            eta_b, lam_b, told_eta_b, told_lam_b, old_eta_b, old_lam_b, scale(w_b, 1 / RHO), r_b, keep
        )
        eta_m, lam_m, old_eta_m, old_lam_m, w_m, r_m, keep_m = hear_adjoint(
            eta_m, lam_m, told_eta_m, told_lam_m, old_eta_m, old_lam_m, scale(w_m, 1 / RHO), r_m, keep
        )
        eta_a, lam_a, old_eta_a, old_lam_a, w_a, r_a, keep_a = hear_adjoint(
            eta_a, lam_a, told_eta_a, told_lam_a, old_eta_a, old_lam_a, scale(w_a, 1 / RHO), r_a, keep
        )
        w_b, w_m, w_a = scale(w_b, 1 / RHO), scale(w_m, 1 / RHO), scale(w_a, 1 / RHO)
        store_edges(old_eta_grad + at_own, plane, mask, old_eta_b, old_eta_m, old_eta_a, EDGES)
        store_edges(old_lam_grad + at_own, plane, mask, old_lam_b, old_lam_m, old_lam_a, EDGES)
        store_edges(weight_grad + at_edge, plane, mask, w_b, w_m, w_a, EDGES)
        store_edges(difference_grad + at_edge, plane, mask, r_b, r_m, r_a, EDGES)
        tl.store(damping_grad + (at - step), keep_b + keep_m + keep_a, mask=mask)
        below = there + visited * 8
        tl.store(below, eta_a, mask=owned & (lane >= BLOCK - 3))
        tl.store(below + 2, lam_a, mask=owned & (lane >= BLOCK - 3))
        tl.store(below + 4, eta_m, mask=owned & (lane >= BLOCK - 3))
        tl.store(below + 6, lam_m, mask=owned & (lane >= BLOCK - 3))
        if (visited + 1) % EVERY == 0 or visited + 1 == last:
            tl.debug_barrier()  # all threads have stored …
            tl.atomic_xchg(mine, visited + 1, sem="release")  # … before anybody is told
        eta_m, lam_m = shift(eta_m, lower, owned), shift(lam_m, lower, owned)  # back to the teller
        eta_a, lam_a = (
            shift(eta_a, two_lower, owned & (lane > 1)),
            shift(lam_a, two_lower, owned & (lane > 1)),
        )
