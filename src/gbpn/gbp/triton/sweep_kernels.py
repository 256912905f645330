"""A serial sweep in Triton: one launch, a program per slanted strip of an image, lines in a loop.

Kernels know the two vertical sweeps only; for the horizontal ones the maps are transposed beforehand, so that
the positions of a line always lie side by side in memory and across the threads. Position p hears p − 1, p
and p + 1 of the line before (edges *before*, *middle*, *after*: _b, _m, _a). What a line tells the next stays
in registers and is shifted within the block by `tl.gather`. With one edge per sweep the outer two are 0 and
are neither read nor written.

A strip is BLOCK positions wide and moves one position to the left with every line, so that it hears itself
and the strip on its left, never the one on its right. A strip hands what its last two positions tell to
memory (`handed`), and how many lines are done (`progress`, every EVERY lines): the next strip follows.

Why waiting ends, although a GPU promises neither that all programs run at once nor in which order: a program
takes its image and strip from a counter when it starts. It waits for a strip with a smaller number only,
which therefore has been taken by a program that runs already; of the strips that are not done, the one with
the smallest number waits for nobody. What is handed over is stored before all threads of the program meet,
then `progress` is released; who acquired it reads what was handed from the cache that all programs share.

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
    "handed_over",
    "leave_one_out",
    "load_edges",
    "load_kept",
    "scale",
    "shift",
    "store_edges",
    "sweep_forward",
    "take_turn",
    "tell",
    "wait_until",
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
def handed_over(place, mask):
    """What the strip before has written there, past the cache that multiprocessors do not share."""
    return tl.load(place, mask=mask, other=0.0, cache_modifier=".cg")


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
def take_turn(counter, batch):
    """Image and strip of a program, in the order in which programs start, not in that of their numbers."""
    turn = tl.atomic_add(counter, 1)
    return (turn % batch).to(tl.int64), turn // batch


@triton.jit
def wait_until(progress, wanted):
    """Until the strip before has finished that many lines; see the module on why that comes to an end."""
    while tl.atomic_add(progress, 0, sem="acquire") < wanted:
        pass


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
    """Write the swept slots of new_* [B, 8, lines, positions]; the other slots are left alone.

    handed [B, strips, lines, 4, 2] of any content; progress [B, strips] and counter [1], int32, start at 0.
    """
    plane = lines * positions
    which, strip = take_turn(counter, batch)
    image = which * plane
    own = image * 7 + (5 * plane if BACKWARDS else 0)
    back = image * 7 + (2 * plane if BACKWARDS else 7 * plane)
    edge = image * 2 if EDGES == 3 else -plane
    lane = tl.arange(0, BLOCK)
    one, has_one = (lane - 1) & (BLOCK - 1), lane > 0
    two, has_two = (lane - 2) & (BLOCK - 1), lane > 1
    mine = progress + which * strips + strip
    there = handed + (which * strips + strip) * lines * 8 + (lane - (BLOCK - 2))
    before = handed + (which * strips + strip - 1) * lines * 8 + lane
    zero = tl.zeros([BLOCK], dtype=weight.dtype.element_ty)
    eta_b, eta_m, eta_a = zero, zero, zero
    lam_b, lam_m, lam_a = zero, zero, zero
    start = strip * BLOCK
    first = tl.maximum(start - positions + 1, 0)
    last = tl.minimum(start + BLOCK, lines)
    for visited in range(first, last):
        line = lines - 1 - visited if BACKWARDS else visited
        position = start + lane - visited
        mask = (position >= 0) & (position < positions)
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

        if (strip > 0) & (visited > 0) & (visited <= start):  # told by the strip before at the line before
            if (visited - 1) % EVERY == 0 or visited == first:
                wait_until(mine - 1, tl.minimum(visited - 1 + EVERY, tl.minimum(start, lines)))
            above = before + (visited - 1) * 8
            eta_b += handed_over(above, lane < 2)
            lam_b += handed_over(above + 2, lane < 2)
            eta_m += handed_over(above + 5, lane < 1)
            lam_m += handed_over(above + 7, lane < 1)
        eta_b, lam_b = hear(eta_b, lam_b, old_eta_b, old_lam_b, scale(w_b, 1 / RHO), r_b, keep)
        eta_m, lam_m = hear(eta_m, lam_m, old_eta_m, old_lam_m, scale(w_m, 1 / RHO), r_m, keep)
        eta_a, lam_a = hear(eta_a, lam_a, old_eta_a, old_lam_a, scale(w_a, 1 / RHO), r_a, keep)
        store_edges(new_eta + at_own, plane, mask, eta_b, eta_m, eta_a, EDGES)
        store_edges(new_lam + at_own, plane, mask, lam_b, lam_m, lam_a, EDGES)
        eta_b, eta_m, eta_a = tell(kept_eta, eta_b, eta_m, eta_a, back_eta_b, back_eta_m, back_eta_a, RHO)
        lam_b, lam_m, lam_a = tell(kept_lam, lam_b, lam_m, lam_a, back_lam_b, back_lam_m, back_lam_a, RHO)
        below = there + visited * 8
        tl.store(below, eta_b, mask=lane >= BLOCK - 2)
        tl.store(below + 2, lam_b, mask=lane >= BLOCK - 2)
        tl.store(below + 4, eta_m, mask=lane >= BLOCK - 2)
        tl.store(below + 6, lam_m, mask=lane >= BLOCK - 2)
        if (visited + 1) % EVERY == 0 or visited + 1 == last:
            tl.debug_barrier()  # all threads have stored …
            tl.atomic_xchg(mine, visited + 1, sem="release")  # … before anybody is told
        eta_b, lam_b = shift(eta_b, two, has_two), shift(lam_b, two, has_two)  # to the receiver
        eta_m, lam_m = shift(eta_m, one, has_one), shift(lam_m, one, has_one)
