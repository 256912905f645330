"""Neighbourhood attention and its gradients in Triton: one program per tile of pixels and head of an image.

Images lie in memory as [B, H, W, heads · size]. On each axis the pixels of one class (position mod dilation)
are numbered by their *member* index; `window.py` states which members a pixel sees. The forward pass walks
the window with a running softmax and keeps the logarithm of its sum. The gradients walk the relative places
(key − query) and skip those that no pixel of the tile needs: there the bias is one number, and a key can
collect from the queries that saw it without atomics.
"""
# mypy: disallow-untyped-defs=False

from __future__ import annotations

import triton
import triton.language as tl

__all__ = ["attention_forward", "attention_key_gradient", "attention_query_gradient"]


@triton.jit
def _members_of(position, length, dilation):
    """(class, member index, members of the class) of positions on an axis."""
    residue = position % dilation
    return residue, position // dilation, (length - residue + dilation - 1) // dilation


@triton.jit
def _first_seen(member, members, KERNEL: tl.constexpr):
    """First member of the window of `member`: centred, moved inwards at the borders."""
    return tl.minimum(tl.maximum(member - KERNEL // 2, 0), tl.maximum(members - KERNEL, 0))


@triton.jit
def _sees(query, key, members, window, KERNEL: tl.constexpr):
    """Whether a query member exists and has the key member in its window."""
    first = _first_seen(query, members, KERNEL)
    return (query >= 0) & (query < members) & (key >= first) & (key < first + window)


@triton.jit
def _load_tile(images, pixel, mask, channels, SIZE: tl.constexpr, BLOCK: tl.constexpr):
    """[pixels, BLOCK] channels of one head; `images` is the address of its first channel at pixel 0."""
    channel = tl.arange(0, BLOCK)
    at = pixel[:, None] * channels + channel[None, :]
    return tl.load(images + at, mask=mask[:, None] & (channel < SIZE)[None, :], other=0.0)


@triton.jit
def _store_tile(images, pixel, mask, channels, values, SIZE: tl.constexpr, BLOCK: tl.constexpr):
    channel = tl.arange(0, BLOCK)
    at = pixel[:, None] * channels + channel[None, :]
    tl.store(images + at, values, mask=mask[:, None] & (channel < SIZE)[None, :])


@triton.jit
def attention_forward(
    query,
    key,
    value,
    bias,
    out,
    logarithm,
    heads,
    height,
    width,
    dilation_y,
    dilation_x,
    window_y,
    window_x,
    SCALE: tl.constexpr,
    KERNEL: tl.constexpr,
    SIZE: tl.constexpr,
    BLOCK: tl.constexpr,
    PIXELS: tl.constexpr,
):
    """Write out like query, and logarithm [B, heads, H, W] = log Σ exp(score)."""
    head = tl.program_id(1) % heads
    channels = heads * SIZE
    start = (tl.program_id(1) // heads).to(tl.int64) * height * width * channels + head * SIZE
    pixel = tl.program_id(0) * PIXELS + tl.arange(0, PIXELS)
    mask = pixel < height * width
    class_y, own_y, members_y = _members_of(pixel // width, height, dilation_y)
    class_x, own_x, members_x = _members_of(pixel % width, width, dilation_x)
    first_y = _first_seen(own_y, members_y, KERNEL)
    first_x = _first_seen(own_x, members_x, KERNEL)
    table = bias + head * (2 * KERNEL - 1) * (2 * KERNEL - 1)
    q = _load_tile(query + start, pixel, mask, channels, SIZE, BLOCK) * SCALE
    highest = tl.full([PIXELS], float("-inf"), dtype=q.dtype)
    total = tl.zeros([PIXELS], dtype=q.dtype)
    mixed = tl.zeros([PIXELS, BLOCK], dtype=q.dtype)
    for i in range(window_y):
        key_y = first_y + i
        for j in range(window_x):
            key_x = first_x + j
            place = (key_y - own_y + KERNEL - 1) * (2 * KERNEL - 1) + key_x - own_x + KERNEL - 1
            source = (key_y * dilation_y + class_y) * width + key_x * dilation_x + class_x
            k = _load_tile(key + start, source, mask, channels, SIZE, BLOCK)
            v = _load_tile(value + start, source, mask, channels, SIZE, BLOCK)
            score = tl.sum(q * k, 1) + tl.load(table + place, mask=mask, other=0.0)
            higher = tl.maximum(highest, score)
            share = tl.exp(score - higher)
            rescale = tl.exp(highest - higher)
            total = total * rescale + share
            mixed = mixed * rescale[:, None] + share[:, None] * v
            highest = higher
    _store_tile(out + start, pixel, mask, channels, mixed / total[:, None], SIZE, BLOCK)
    here = tl.program_id(1).to(tl.int64) * height * width + pixel
    tl.store(logarithm + here, highest + tl.log(total), mask=mask)


@triton.jit
def _score_gradient(q, k, v, up, bias, logarithm, delta, seen):
    """Softmax weight of a pair and gradient of its score; both 0 where it is not seen. q is scaled."""
    score = tl.sum(q * k, 1) + bias
    weight = tl.where(seen, tl.exp(tl.where(seen, score - logarithm, 0.0)), 0.0)
    return weight, weight * (tl.sum(up * v, 1) - delta)


@triton.jit
def attention_query_gradient(
    query,
    key,
    value,
    bias,
    out,
    logarithm,
    up,
    query_grad,
    bias_grad,
    delta,
    heads,
    height,
    width,
    dilation_y,
    dilation_x,
    window_y,
    window_x,
    SCALE: tl.constexpr,
    KERNEL: tl.constexpr,
    SIZE: tl.constexpr,
    BLOCK: tl.constexpr,
    PIXELS: tl.constexpr,
):
    """Write query_grad and delta [B, heads, H, W] = Σ out · up; add to bias_grad, which must start at 0."""
    head = tl.program_id(1) % heads
    channels = heads * SIZE
    start = (tl.program_id(1) // heads).to(tl.int64) * height * width * channels + head * SIZE
    pixel = tl.program_id(0) * PIXELS + tl.arange(0, PIXELS)
    mask = pixel < height * width
    here = tl.program_id(1).to(tl.int64) * height * width + pixel
    class_y, own_y, members_y = _members_of(pixel // width, height, dilation_y)
    class_x, own_x, members_x = _members_of(pixel % width, width, dilation_x)
    q = _load_tile(query + start, pixel, mask, channels, SIZE, BLOCK) * SCALE
    d = _load_tile(up + start, pixel, mask, channels, SIZE, BLOCK)
    kept = tl.sum(d * _load_tile(out + start, pixel, mask, channels, SIZE, BLOCK), 1)
    tl.store(delta + here, kept, mask=mask)
    logsum = tl.load(logarithm + here, mask=mask, other=0.0)
    gradient = tl.zeros([PIXELS, BLOCK], dtype=q.dtype)
    for i in range(2 * KERNEL - 1):
        key_y = own_y + i - (KERNEL - 1)
        seen_y = mask & _sees(own_y, key_y, members_y, window_y, KERNEL)
        if tl.max(seen_y.to(tl.int32), 0) > 0:
            for j in range(2 * KERNEL - 1):
                key_x = own_x + j - (KERNEL - 1)
                seen = seen_y & _sees(own_x, key_x, members_x, window_x, KERNEL)
                if tl.max(seen.to(tl.int32), 0) > 0:
                    place = (head * (2 * KERNEL - 1) + i) * (2 * KERNEL - 1) + j
                    source = (key_y * dilation_y + class_y) * width + key_x * dilation_x + class_x
                    k = _load_tile(key + start, source, seen, channels, SIZE, BLOCK)
                    v = _load_tile(value + start, source, seen, channels, SIZE, BLOCK)
                    _, change = _score_gradient(q, k, v, d, tl.load(bias + place), logsum, kept, seen)
                    gradient += change[:, None] * k
                    tl.atomic_add(bias_grad + place, tl.sum(change, 0))
    _store_tile(query_grad + start, pixel, mask, channels, gradient * SCALE, SIZE, BLOCK)


@triton.jit
def attention_key_gradient(
    query,
    key,
    value,
    bias,
    logarithm,
    up,
    delta,
    key_grad,
    value_grad,
    heads,
    height,
    width,
    dilation_y,
    dilation_x,
    window_y,
    window_x,
    SCALE: tl.constexpr,
    KERNEL: tl.constexpr,
    SIZE: tl.constexpr,
    BLOCK: tl.constexpr,
    PIXELS: tl.constexpr,
):
    """Write key_grad and value_grad: each key collects from the queries that saw it."""
    head = tl.program_id(1) % heads
    channels = heads * SIZE
    start = (tl.program_id(1) // heads).to(tl.int64) * height * width * channels + head * SIZE
    pixel = tl.program_id(0) * PIXELS + tl.arange(0, PIXELS)
    mask = pixel < height * width
    maps = tl.program_id(1).to(tl.int64) * height * width
    class_y, own_y, members_y = _members_of(pixel // width, height, dilation_y)
    class_x, own_x, members_x = _members_of(pixel % width, width, dilation_x)
    k = _load_tile(key + start, pixel, mask, channels, SIZE, BLOCK)
    v = _load_tile(value + start, pixel, mask, channels, SIZE, BLOCK)
    key_gradient = tl.zeros([PIXELS, BLOCK], dtype=k.dtype)
    value_gradient = tl.zeros([PIXELS, BLOCK], dtype=k.dtype)
    for i in range(2 * KERNEL - 1):
        query_y = own_y - i + (KERNEL - 1)
        seen_y = mask & _sees(query_y, own_y, members_y, window_y, KERNEL)
        if tl.max(seen_y.to(tl.int32), 0) > 0:
            for j in range(2 * KERNEL - 1):
                query_x = own_x - j + (KERNEL - 1)
                seen = seen_y & _sees(query_x, own_x, members_x, window_x, KERNEL)
                if tl.max(seen.to(tl.int32), 0) > 0:
                    place = (head * (2 * KERNEL - 1) + i) * (2 * KERNEL - 1) + j
                    source = (query_y * dilation_y + class_y) * width + query_x * dilation_x + class_x
                    q = _load_tile(query + start, source, seen, channels, SIZE, BLOCK) * SCALE
                    d = _load_tile(up + start, source, seen, channels, SIZE, BLOCK)
                    logsum = tl.load(logarithm + maps + source, mask=seen, other=0.0)
                    kept = tl.load(delta + maps + source, mask=seen, other=0.0)
                    weight, change = _score_gradient(q, k, v, d, tl.load(bias + place), logsum, kept, seen)
                    value_gradient += weight[:, None] * d
                    key_gradient += change[:, None] * q
    _store_tile(key_grad + start, pixel, mask, channels, key_gradient, SIZE, BLOCK)
    _store_tile(value_grad + start, pixel, mask, channels, value_gradient, SIZE, BLOCK)
