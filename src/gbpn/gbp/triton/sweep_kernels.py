"""A serial sweep in Triton: one launch, one program per image, lines in a loop.

Kernels know the two vertical sweeps only; for the horizontal ones the maps are transposed beforehand, so that
the positions of a line always lie side by side in memory and across the threads. Position p hears p − 1, p
and p + 1 of the line before (edges *before*, *middle*, *after*: _b, _m, _a). What a line tells the next stays
in registers and is shifted within the block by `tl.gather`: no thread reads what another has stored, so no
fence is needed. With one edge per sweep the outer two are 0 and are neither read nor written.

Legend: eta = information, lam = precision; w, r = weight, difference of an edge; RHO = reweighting;
BACKWARDS = bottom to top instead of top to bottom. Addresses of a line: at in maps with one plane per image,
at_8 with eight, at_own and at_back of the first slot written and of the one opposite to it, at_edge of the
first edge's plane. Slots written follow one another by + plane, opposite ones by − plane.
"""
# mypy: disallow-untyped-defs=False

from __future__ import annotations

import triton
import triton.language as tl

from gbpn.gbp.triton.edge import hear

__all__ = [
    "leave_one_out",
    "load_edges",
    "load_kept",
    "scale",
    "shift",
    "store_edges",
    "sweep_forward",
    "tell",
]


@triton.jit
def load_edges(first, step, mask, EDGES: tl.constexpr):
    """The planes at addresses first, first + step, first + 2·step: values of before, middle, after."""
    at_m = first + step
    middle = tl.load(at_m, mask=mask, other=0.0)
    if EDGES == 3:
        before = tl.load(first, mask=mask, other=0.0)
        after = tl.load(at_m + step, mask=mask, other=0.0)
    else:
        before = middle * 0.0
        after = middle * 0.0
    return before, middle, after


@triton.jit
def store_edges(first, step, mask, before, middle, after, EDGES: tl.constexpr):
    """Write where `load_edges` reads."""
    at_m = first + step
    tl.store(at_m, middle, mask=mask)
    if EDGES == 3:
        tl.store(first, before, mask=mask)
        tl.store(at_m + step, after, mask=mask)


@triton.jit
def scale(values, RHO: tl.constexpr):
    if RHO != 1:
        values *= RHO
    return values


@triton.jit
def load_kept(base, first, plane, mask, RHO: tl.constexpr, EDGES: tl.constexpr):
    """Base and the messages (slot 0 at address `first`) that this sweep neither writes nor leaves out."""
    at_3 = first + 3 * plane
    others = tl.load(at_3, mask=mask, other=0.0) + tl.load(at_3 + plane, mask=mask, other=0.0)
    if EDGES == 1:  # the four diagonal slots
        others += tl.load(first, mask=mask, other=0.0) + tl.load(first + 2 * plane, mask=mask, other=0.0)
        at_5 = first + 5 * plane
        others += tl.load(at_5, mask=mask, other=0.0) + tl.load(at_5 + 2 * plane, mask=mask, other=0.0)
    return tl.load(base, mask=mask, other=0.0) + scale(others, RHO)


@triton.jit
def shift(values, source, inside):
    """values[source] at every position of the block, 0 where that is not inside."""
    return tl.where(inside, tl.gather(values, source, 0), 0.0)


@triton.jit
def leave_one_out(common, b, m, a, RHO: tl.constexpr):
    """For each edge: common + ρ · (the other two) − (1 − ρ) · itself. Nothing is subtracted for ρ = 1."""
    out_b = common + scale(m + a, RHO)
    out_m = common + scale(b + a, RHO)
    out_a = common + scale(b + m, RHO)
    if RHO != 1:
        out_b -= (1 - RHO) * b
        out_m -= (1 - RHO) * m
        out_a -= (1 - RHO) * a
    return out_b, out_m, out_a


@triton.jit
def tell(kept, own_b, own_m, own_a, back_b, back_m, back_a, RHO: tl.constexpr):
    """What a line tells the next, by edge, at the teller; `back` is what it had heard from the receiver."""
    common = kept + scale(own_b + own_m + own_a, RHO)
    return leave_one_out(common, back_b, back_m, back_a, RHO)


@triton.jit
def sweep_forward(
    base_eta,
    base_lam,
    old_eta,
    old_lam,
    weight,
    difference,
    damping,
    new_eta,
    new_lam,
    lines,
    positions,
    RHO: tl.constexpr,
    EDGES: tl.constexpr,
    BACKWARDS: tl.constexpr,
    BLOCK: tl.constexpr,
):
    """Write the swept slots of new_* [B, 8, lines, positions]; the other slots are left alone."""
    plane = lines * positions
    image = tl.program_id(0).to(tl.int64) * plane
    own = image * 7 + (5 * plane if BACKWARDS else 0)
    back = image * 7 + (2 * plane if BACKWARDS else 7 * plane)
    edge = image * 2 if EDGES == 3 else -plane
    position = tl.arange(0, BLOCK)
    mask = position < positions
    lower, has_lower = (position - 1) & (BLOCK - 1), position > 0
    upper, has_upper = (position + 1) & (BLOCK - 1), position < BLOCK - 1
    zero = tl.zeros([BLOCK], dtype=weight.dtype.element_ty)
    eta_b, eta_m, eta_a = zero, zero, zero
    lam_b, lam_m, lam_a = zero, zero, zero
    for visited in range(lines):
        line = lines - 1 - visited if BACKWARDS else visited
        at = image + line * positions + position
        at_8, at_own, at_back, at_edge = at + image * 7, at + own, at + back, at + edge
        keep = tl.load(damping + at, mask=mask, other=0.0)
        w_b, w_m, w_a = load_edges(weight + at_edge, plane, mask, EDGES)
        r_b, r_m, r_a = load_edges(difference + at_edge, plane, mask, EDGES)
        old_eta_b, old_eta_m, old_eta_a = load_edges(old_eta + at_own, plane, mask, EDGES)
        old_lam_b, old_lam_m, old_lam_a = load_edges(old_lam + at_own, plane, mask, EDGES)
        back_eta_b, back_eta_m, back_eta_a = load_edges(old_eta + at_back, -plane, mask, EDGES)
        back_lam_b, back_lam_m, back_lam_a = load_edges(old_lam + at_back, -plane, mask, EDGES)
        kept_eta = load_kept(base_eta + at, old_eta + at_8, plane, mask, RHO, EDGES)
        kept_lam = load_kept(base_lam + at, old_lam + at_8, plane, mask, RHO, EDGES)

        eta_b, lam_b = hear(eta_b, lam_b, old_eta_b, old_lam_b, scale(w_b, 1 / RHO), r_b, keep)
        eta_m, lam_m = hear(eta_m, lam_m, old_eta_m, old_lam_m, scale(w_m, 1 / RHO), r_m, keep)
        eta_a, lam_a = hear(eta_a, lam_a, old_eta_a, old_lam_a, scale(w_a, 1 / RHO), r_a, keep)
        store_edges(new_eta + at_own, plane, mask, eta_b, eta_m, eta_a, EDGES)
        store_edges(new_lam + at_own, plane, mask, lam_b, lam_m, lam_a, EDGES)
        eta_b, eta_m, eta_a = tell(kept_eta, eta_b, eta_m, eta_a, back_eta_b, back_eta_m, back_eta_a, RHO)
        lam_b, lam_m, lam_a = tell(kept_lam, lam_b, lam_m, lam_a, back_lam_b, back_lam_m, back_lam_a, RHO)
        eta_b, lam_b = shift(eta_b, lower, has_lower), shift(lam_b, lower, has_lower)  # to the receiver
        eta_a, lam_a = shift(eta_a, upper, has_upper), shift(lam_a, upper, has_upper)
