"""Neighbourhood attention and its gradients in Triton: one program per tile of pixels and head of an image.

Images lie in memory as [B, H, W, heads · size]. On each axis the pixels of one class (position mod dilation)
are numbered by their *member* index; `window.py` states which members a pixel sees. A tile is TILE_Y × TILE_X
members of one class. All that its pixels see together is a rectangle of the same class, which is walked
OTHERS pixels at a time: every product is one of matrices, for tensor cores, and pairs that do not see each
other are left out afterwards. The forward pass has a running softmax and keeps the logarithm of its sum.

Products take their factors as they are (bfloat16, say) and are added up in float32, float64 for float64.
"""
# mypy: disallow-untyped-defs=False

from __future__ import annotations

import triton
import triton.language as tl

__all__ = ["attention_forward", "attention_key_gradient", "attention_query_gradient"]

_NOTHING = tl.constexpr(-1e30)
"""A score below all others that is still a number."""


@triton.jit
def _first_seen(member, members, KERNEL: tl.constexpr):
    """First member of the window of `member`: centred, moved inwards at the borders."""
    return tl.minimum(tl.maximum(member - KERNEL // 2, 0), tl.maximum(members - KERNEL, 0))


@triton.jit
def _own(tile, height, width, dilation_y, dilation_x, TILE_Y: tl.constexpr, TILE_X: tl.constexpr):
    """Per axis: the tile's class, its first member and how many members its class has."""
    class_x = tile % dilation_x
    tile = tile // dilation_x
    tiles_x = tl.cdiv(tl.cdiv(width, dilation_x), TILE_X)
    start_x = tile % tiles_x * TILE_X
    tile = tile // tiles_x
    class_y = tile % dilation_y
    start_y = tile // dilation_y * TILE_Y
    members_y = tl.cdiv(height - class_y, dilation_y)
    members_x = tl.cdiv(width - class_x, dilation_x)
    return class_y, class_x, start_y, start_x, members_y, members_x


@triton.jit
def _keys_of(start, members, window, TILE: tl.constexpr, KERNEL: tl.constexpr):
    """First key that queries start … of a tile see, and how many they see together; 0 if there is none."""
    last = tl.minimum(start + TILE, members) - 1
    low = _first_seen(start, members, KERNEL)
    count = _first_seen(last, members, KERNEL) + window - low
    return low, tl.where(start < members, count, 0)


@triton.jit
def _queries_of(start, members, TILE: tl.constexpr, KERNEL: tl.constexpr):
    """First query that sees keys start … of a tile, and how many see any of them; 0 if there is no key."""
    last = tl.minimum(start + TILE, members) - 1
    low = tl.where(start < KERNEL, 0, start - KERNEL // 2)
    high = tl.where(last >= members - KERNEL, members - 1, last + KERNEL // 2)
    return low, tl.where(start < members, high + 1 - low, 0)


@triton.jit
def _sees(query, key, members, window, KERNEL: tl.constexpr):
    """Whether a query member has the key member in its window."""
    first = _first_seen(query, members, KERNEL)
    return (key >= first) & (key < first + window)


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
def _place(query_y, query_x, key_y, key_x, seen, KERNEL: tl.constexpr):
    """Where a pair's bias stands in the table of its head."""
    row = key_y - query_y + KERNEL - 1
    return tl.where(seen, row * (2 * KERNEL - 1) + key_x - query_x + KERNEL - 1, 0)


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
    TILE_Y: tl.constexpr,
    TILE_X: tl.constexpr,
    OTHERS: tl.constexpr,
    PRECISION: tl.constexpr,
):
    """Write out like query, and logarithm [B, heads, H, W] = log Σ exp(score)."""
    head = tl.program_id(1) % heads
    channels = heads * SIZE
    start = (tl.program_id(1) // heads).to(tl.int64) * height * width * channels + head * SIZE
    class_y, class_x, start_y, start_x, members_y, members_x = _own(
        tl.program_id(0), height, width, dilation_y, dilation_x, TILE_Y, TILE_X
    )
    lane = tl.arange(0, TILE_Y * TILE_X)
    own_y, own_x = start_y + lane // TILE_X, start_x + lane % TILE_X
    mask = (own_y < members_y) & (own_x < members_x)
    pixel = (own_y * dilation_y + class_y) * width + own_x * dilation_x + class_x
    low_y, count_y = _keys_of(start_y, members_y, window_y, TILE_Y, KERNEL)
    low_x, count_x = _keys_of(start_x, members_x, window_x, TILE_X, KERNEL)
    table = bias + head * (2 * KERNEL - 1) * (2 * KERNEL - 1)
    q = _load_tile(query + start, pixel, mask, channels, SIZE, BLOCK)
    highest = tl.full([TILE_Y * TILE_X], _NOTHING, dtype=logarithm.dtype.element_ty)
    total = tl.zeros([TILE_Y * TILE_X], dtype=logarithm.dtype.element_ty)
    mixed = tl.zeros([TILE_Y * TILE_X, BLOCK], dtype=logarithm.dtype.element_ty)
    for done in range(0, count_y * count_x, OTHERS):
        number = done + tl.arange(0, OTHERS)
        key_y, key_x = low_y + number // count_x, low_x + number % count_x
        there = number < count_y * count_x
        source = (key_y * dilation_y + class_y) * width + key_x * dilation_x + class_x
        k = _load_tile(key + start, source, there, channels, SIZE, BLOCK)
        v = _load_tile(value + start, source, there, channels, SIZE, BLOCK)
        seen = mask[:, None] & there[None, :]
        seen = seen & _sees(own_y[:, None], key_y[None, :], members_y, window_y, KERNEL)
        seen = seen & _sees(own_x[:, None], key_x[None, :], members_x, window_x, KERNEL)
        place = _place(own_y[:, None], own_x[:, None], key_y[None, :], key_x[None, :], seen, KERNEL)
        score = tl.dot(q, tl.trans(k), input_precision=PRECISION) * SCALE
        score = tl.where(seen, score + tl.load(table + place, mask=seen, other=0.0), _NOTHING)
        higher = tl.maximum(highest, tl.max(score, 1))
        share = tl.where(seen, tl.exp(score - higher[:, None]), 0.0)
        rescale = tl.exp(highest - higher)
        total = total * rescale + tl.sum(share, 1)
        mixed = tl.dot(share.to(v.dtype), v, mixed * rescale[:, None], input_precision=PRECISION)
        highest = higher
    total = tl.where(mask, total, 1.0)
    _store_tile(out + start, pixel, mask, channels, mixed / total[:, None], SIZE, BLOCK)
    here = tl.program_id(1).to(tl.int64) * height * width + pixel
    tl.store(logarithm + here, highest + tl.log(total), mask=mask)


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
    TILE_Y: tl.constexpr,
    TILE_X: tl.constexpr,
    OTHERS: tl.constexpr,
    PRECISION: tl.constexpr,
    COPIES: tl.constexpr,
):
    """Write query_grad and delta [B, heads, H, W] = Σ out · up; add to bias_grad [COPIES, *bias's shape].

    bias_grad must start at 0. A tile adds to one of the copies, so that few tiles wait for one number.
    """
    head = tl.program_id(1) % heads
    channels = heads * SIZE
    start = (tl.program_id(1) // heads).to(tl.int64) * height * width * channels + head * SIZE
    class_y, class_x, start_y, start_x, members_y, members_x = _own(
        tl.program_id(0), height, width, dilation_y, dilation_x, TILE_Y, TILE_X
    )
    lane = tl.arange(0, TILE_Y * TILE_X)
    own_y, own_x = start_y + lane // TILE_X, start_x + lane % TILE_X
    mask = (own_y < members_y) & (own_x < members_x)
    pixel = (own_y * dilation_y + class_y) * width + own_x * dilation_x + class_x
    here = tl.program_id(1).to(tl.int64) * height * width + pixel
    low_y, count_y = _keys_of(start_y, members_y, window_y, TILE_Y, KERNEL)
    low_x, count_x = _keys_of(start_x, members_x, window_x, TILE_X, KERNEL)
    table = bias + head * (2 * KERNEL - 1) * (2 * KERNEL - 1)
    copy = tl.program_id(0) % COPIES * heads + head
    table_grad = bias_grad + copy * (2 * KERNEL - 1) * (2 * KERNEL - 1)
    q = _load_tile(query + start, pixel, mask, channels, SIZE, BLOCK)
    d = _load_tile(up + start, pixel, mask, channels, SIZE, BLOCK)
    o = _load_tile(out + start, pixel, mask, channels, SIZE, BLOCK)
    wide = logarithm.dtype.element_ty
    kept = tl.sum(d.to(wide) * o.to(wide), 1)
    tl.store(delta + here, kept, mask=mask)
    logsum = tl.load(logarithm + here, mask=mask, other=0.0)
    gradient = tl.zeros([TILE_Y * TILE_X, BLOCK], dtype=wide)
    for done in range(0, count_y * count_x, OTHERS):
        number = done + tl.arange(0, OTHERS)
        key_y, key_x = low_y + number // count_x, low_x + number % count_x
        there = number < count_y * count_x
        source = (key_y * dilation_y + class_y) * width + key_x * dilation_x + class_x
        k = _load_tile(key + start, source, there, channels, SIZE, BLOCK)
        v = _load_tile(value + start, source, there, channels, SIZE, BLOCK)
        seen = mask[:, None] & there[None, :]
        seen = seen & _sees(own_y[:, None], key_y[None, :], members_y, window_y, KERNEL)
        seen = seen & _sees(own_x[:, None], key_x[None, :], members_x, window_x, KERNEL)
        place = _place(own_y[:, None], own_x[:, None], key_y[None, :], key_x[None, :], seen, KERNEL)
        score = tl.dot(q, tl.trans(k), input_precision=PRECISION) * SCALE
        score += tl.load(table + place, mask=seen, other=0.0)
        share = tl.exp(tl.where(seen, score - logsum[:, None], _NOTHING))
        change = share * (tl.dot(d, tl.trans(v), input_precision=PRECISION) - kept[:, None])
        gradient = tl.dot(change.to(k.dtype), k, gradient, input_precision=PRECISION)
        tl.atomic_add(table_grad + place, change, mask=seen, sem="relaxed")
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
    TILE_Y: tl.constexpr,
    TILE_X: tl.constexpr,
    OTHERS: tl.constexpr,
    PRECISION: tl.constexpr,
):
    """Write key_grad and value_grad: each key collects from the queries that saw it."""
    head = tl.program_id(1) % heads
    channels = heads * SIZE
    start = (tl.program_id(1) // heads).to(tl.int64) * height * width * channels + head * SIZE
    class_y, class_x, start_y, start_x, members_y, members_x = _own(
        tl.program_id(0), height, width, dilation_y, dilation_x, TILE_Y, TILE_X
    )
    lane = tl.arange(0, TILE_Y * TILE_X)
    own_y, own_x = start_y + lane // TILE_X, start_x + lane % TILE_X
    mask = (own_y < members_y) & (own_x < members_x)
    pixel = (own_y * dilation_y + class_y) * width + own_x * dilation_x + class_x
    maps = tl.program_id(1).to(tl.int64) * height * width
    low_y, count_y = _queries_of(start_y, members_y, TILE_Y, KERNEL)
    low_x, count_x = _queries_of(start_x, members_x, TILE_X, KERNEL)
    table = bias + head * (2 * KERNEL - 1) * (2 * KERNEL - 1)
    k = _load_tile(key + start, pixel, mask, channels, SIZE, BLOCK)
    v = _load_tile(value + start, pixel, mask, channels, SIZE, BLOCK)
    wide = logarithm.dtype.element_ty
    key_gradient = tl.zeros([TILE_Y * TILE_X, BLOCK], dtype=wide)
    value_gradient = tl.zeros([TILE_Y * TILE_X, BLOCK], dtype=wide)
    for done in range(0, count_y * count_x, OTHERS):
        number = done + tl.arange(0, OTHERS)
        query_y, query_x = low_y + number // count_x, low_x + number % count_x
        there = number < count_y * count_x
        source = (query_y * dilation_y + class_y) * width + query_x * dilation_x + class_x
        q = _load_tile(query + start, source, there, channels, SIZE, BLOCK)
        d = _load_tile(up + start, source, there, channels, SIZE, BLOCK)
        logsum = tl.load(logarithm + maps + source, mask=there, other=0.0)
        kept = tl.load(delta + maps + source, mask=there, other=0.0)
        seen = mask[:, None] & there[None, :]
        seen = seen & _sees(query_y[None, :], own_y[:, None], members_y, window_y, KERNEL)
        seen = seen & _sees(query_x[None, :], own_x[:, None], members_x, window_x, KERNEL)
        place = _place(query_y[None, :], query_x[None, :], own_y[:, None], own_x[:, None], seen, KERNEL)
        score = tl.dot(k, tl.trans(q), input_precision=PRECISION) * SCALE
        score += tl.load(table + place, mask=seen, other=0.0)
        share = tl.exp(tl.where(seen, score - logsum[None, :], _NOTHING))
        value_gradient = tl.dot(share.to(d.dtype), d, value_gradient, input_precision=PRECISION)
        change = share * (tl.dot(v, tl.trans(d), input_precision=PRECISION) - kept[None, :])
        key_gradient = tl.dot(change.to(q.dtype), q, key_gradient, input_precision=PRECISION)
    _store_tile(key_grad + start, pixel, mask, channels, key_gradient * SCALE, SIZE, BLOCK)
    _store_tile(value_grad + start, pixel, mask, channels, value_gradient, SIZE, BLOCK)
