"""The non-local step and its adjoint in Triton: one program per block of pixels of one image.

Legend: eta = information, lam = precision; fy, fx = fractions of a pixel. The adjoint adds into the four
bilinear corners with atomics, so on a GPU the last bits of the field's gradient may differ from run to run.
"""
# mypy: disallow-untyped-defs=False

from __future__ import annotations

import triton
import triton.language as tl

from gbpn.gbp.triton.edge import across, across_adjoint

__all__ = ["bilinear", "corner", "nonlocal_adjoint", "nonlocal_forward", "place"]


@triton.jit
def place(offset, pixel, mask, plane, height, width):
    """Where an edge listens: top-left corner (row, column), fractions of a pixel, inside the image or not.

    Outside, the corner is (0, 0): a far offset is never turned into an integer.
    """
    dy = tl.load(offset + pixel, mask=mask, other=0.0)
    dx = tl.load(offset + plane + pixel, mask=mask, other=0.0)
    y = (pixel // width).to(dy.dtype) + dy
    x = (pixel % width).to(dx.dtype) + dx
    inside = mask & (y > -1) & (y < height) & (x > -1) & (x < width)
    y = tl.where(inside, y, 0.0)
    x = tl.where(inside, x, 0.0)
    top = tl.floor(y)
    left = tl.floor(x)
    return top.to(tl.int32), left.to(tl.int32), y - top, x - left, inside


@triton.jit
def corner(row, column, inside, height, width):
    """Index of a corner in its image, and whether it exists."""
    valid = inside & (row >= 0) & (row < height) & (column >= 0) & (column < width)
    return tl.where(valid, row * width + column, 0), valid


@triton.jit
def _load_corners(field, row, column, inside, height, width):
    """The four corners' values, 0 for those outside."""
    index, valid = corner(row, column, inside, height, width)
    top_left = tl.load(field + index, mask=valid, other=0.0)
    index, valid = corner(row, column + 1, inside, height, width)
    top_right = tl.load(field + index, mask=valid, other=0.0)
    index, valid = corner(row + 1, column, inside, height, width)
    bottom_left = tl.load(field + index, mask=valid, other=0.0)
    index, valid = corner(row + 1, column + 1, inside, height, width)
    bottom_right = tl.load(field + index, mask=valid, other=0.0)
    return top_left, top_right, bottom_left, bottom_right


@triton.jit
def bilinear(top_left, top_right, bottom_left, bottom_right, fy, fx):
    return (
        (1 - fy) * (1 - fx) * top_left
        + (1 - fy) * fx * top_right
        + fy * (1 - fx) * bottom_left
        + fy * fx * bottom_right
    )


@triton.jit
def _scatter(field_grad, value, row, column, fy, fx, inside, height, width):
    """Adjoint of reading `bilinear` at a place."""
    index, valid = corner(row, column, inside, height, width)
    tl.atomic_add(field_grad + index, (1 - fy) * (1 - fx) * value, mask=valid)
    index, valid = corner(row, column + 1, inside, height, width)
    tl.atomic_add(field_grad + index, (1 - fy) * fx * value, mask=valid)
    index, valid = corner(row + 1, column, inside, height, width)
    tl.atomic_add(field_grad + index, fy * (1 - fx) * value, mask=valid)
    index, valid = corner(row + 1, column + 1, inside, height, width)
    tl.atomic_add(field_grad + index, fy * fx * value, mask=valid)


@triton.jit
def nonlocal_forward(
    field_eta,
    field_lam,
    total_eta,
    total_lam,
    weight,
    difference,
    offset,
    damping,
    new_eta,
    new_lam,
    edges,
    height,
    width,
    RHO: tl.constexpr,
    BLOCK: tl.constexpr,
):
    """new = damping · total + (1 − damping) · Σ messages of all edges, written in full."""
    plane = height * width
    image = tl.program_id(1).to(tl.int64)
    pixel = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = pixel < plane
    sum_eta = tl.zeros([BLOCK], dtype=weight.dtype.element_ty)
    sum_lam = tl.zeros([BLOCK], dtype=weight.dtype.element_ty)
    for edge in range(edges):
        at = (image * edges + edge) * plane
        row, column, fy, fx, inside = place(offset + 2 * at, pixel, mask, plane, height, width)
        tl_, tr, bl, br = _load_corners(field_eta + image * plane, row, column, inside, height, width)
        eta = bilinear(tl_, tr, bl, br, fy, fx)
        tl_, tr, bl, br = _load_corners(field_lam + image * plane, row, column, inside, height, width)
        lam = bilinear(tl_, tr, bl, br, fy, fx)
        w = tl.load(weight + at + pixel, mask=mask, other=0.0) / RHO
        r = tl.load(difference + at + pixel, mask=mask, other=0.0)
        eta, message_lam = across(eta, lam, w, r)
        sum_eta += tl.where(lam > 0, eta, 0.0)
        sum_lam += tl.where(lam > 0, message_lam, 0.0)
    here = image * plane + pixel
    keep = tl.load(damping + here, mask=mask, other=0.0)
    old_eta = tl.load(total_eta + here, mask=mask, other=0.0)
    old_lam = tl.load(total_lam + here, mask=mask, other=0.0)
    tl.store(new_eta + here, keep * old_eta + (1 - keep) * sum_eta, mask=mask)
    tl.store(new_lam + here, keep * old_lam + (1 - keep) * sum_lam, mask=mask)


@triton.jit
def nonlocal_adjoint(
    eta_up,
    lam_up,
    field_eta,
    field_lam,
    total_eta,
    total_lam,
    weight,
    difference,
    offset,
    damping,
    field_eta_grad,
    field_lam_grad,
    total_eta_grad,
    total_lam_grad,
    weight_grad,
    difference_grad,
    offset_grad,
    damping_grad,
    edges,
    height,
    width,
    RHO: tl.constexpr,
    BLOCK: tl.constexpr,
):
    """field_*_grad are added to and must start at 0; every other *_grad is written in full."""
    plane = height * width
    image = tl.program_id(1).to(tl.int64)
    pixel = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = pixel < plane
    here = image * plane + pixel
    keep = tl.load(damping + here, mask=mask, other=0.0)
    up_eta = tl.load(eta_up + here, mask=mask, other=0.0)
    up_lam = tl.load(lam_up + here, mask=mask, other=0.0)
    change = up_eta * tl.load(total_eta + here, mask=mask, other=0.0)
    change += up_lam * tl.load(total_lam + here, mask=mask, other=0.0)
    tl.store(total_eta_grad + here, keep * up_eta, mask=mask)
    tl.store(total_lam_grad + here, keep * up_lam, mask=mask)
    for edge in range(edges):
        at = (image * edges + edge) * plane
        row, column, fy, fx, inside = place(offset + 2 * at, pixel, mask, plane, height, width)
        eta_tl, eta_tr, eta_bl, eta_br = _load_corners(
            field_eta + image * plane, row, column, inside, height, width
        )
        lam_tl, lam_tr, lam_bl, lam_br = _load_corners(
            field_lam + image * plane, row, column, inside, height, width
        )
        eta = bilinear(eta_tl, eta_tr, eta_bl, eta_br, fy, fx)
        lam = bilinear(lam_tl, lam_tr, lam_bl, lam_br, fy, fx)
        w = tl.load(weight + at + pixel, mask=mask, other=0.0) / RHO
        r = tl.load(difference + at + pixel, mask=mask, other=0.0)
        message_eta, message_lam = across(eta, lam, w, r)
        change -= tl.where(lam > 0, up_eta * message_eta + up_lam * message_lam, 0.0)

        eta, lam, w, r = across_adjoint((1 - keep) * up_eta, (1 - keep) * up_lam, eta, lam, w, r)
        tl.store(weight_grad + at + pixel, w / RHO, mask=mask)
        tl.store(difference_grad + at + pixel, r, mask=mask)
        _scatter(field_eta_grad + image * plane, eta, row, column, fy, fx, inside, height, width)
        _scatter(field_lam_grad + image * plane, lam, row, column, fy, fx, inside, height, width)
        rise_left = eta * (eta_bl - eta_tl) + lam * (lam_bl - lam_tl)
        rise_right = eta * (eta_br - eta_tr) + lam * (lam_br - lam_tr)
        rise_top = eta * (eta_tr - eta_tl) + lam * (lam_tr - lam_tl)
        rise_bottom = eta * (eta_br - eta_bl) + lam * (lam_br - lam_bl)
        tl.store(offset_grad + 2 * at + pixel, (1 - fx) * rise_left + fx * rise_right, mask=mask)
        tl.store(offset_grad + 2 * at + plane + pixel, (1 - fy) * rise_top + fy * rise_bottom, mask=mask)
    tl.store(damping_grad + here, change, mask=mask)
