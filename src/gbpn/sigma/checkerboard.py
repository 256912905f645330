"""Patterns of two and four pixels' period taken out of the confidence, and so out of σ.

The network leaves quarter and half resolution by 2×2 blocks: each of the four pixels has weights of its own,
and what these learned differently alternates over the whole picture, where scenes do not. Around every pixel
the usual (median) amplitude of three alternating patterns is found and subtracted; a median, so that edges
and textures of a scene, which alternate nowhere for long, stay as they are. Depth is left alone.
"""

from __future__ import annotations

import numpy as np

__all__ = ["Array", "amplitudes", "without_checkerboard"]

Array = np.ndarray

_TILE = 16
"""Blocks along a side of the squares in which amplitudes are found; even, to have all phases alike."""


def without_checkerboard(logit: Array, observed: Array) -> Array:
    """Confidence logits [H, W] without what alternates from pixel to pixel, where `observed` [H, W] holds."""
    known = observed & np.isfinite(logit)
    height, width = logit.shape
    if min(height, width) < 2 * _TILE or not known.any():
        return logit
    even = np.where(known, logit, _median(logit[known])).astype(np.float32)
    for block in (2, 1):  # pixels of one phase; the larger first: means over 2×2 know nothing of the smaller
        even = even - _pattern(even, block)
    return np.where(known, even, logit).astype(logit.dtype)


def _pattern(maps: Array, block: int) -> Array:
    """What alternates from block to block of [H, W], alike in all pixels of one."""
    height, width = maps.shape
    means = _squares(maps, block).mean(axis=-1)
    down, across = _between(means.shape[0]), _between(means.shape[1])
    pattern = np.zeros_like(means)
    for amplitude, sign in zip(amplitudes(means), _signs(*means.shape), strict=True):
        pattern += (down @ amplitude @ across.T) * sign
    enlarged: Array = pattern.repeat(block, axis=0).repeat(block, axis=1)
    return enlarged[:height, :width]


def amplitudes(maps: Array) -> list[Array]:
    """Of a chequered pattern, of columns and of rows: the median in each square of [H, W], [H/16, W/16]."""
    height, width = maps.shape
    wide = np.pad(maps, 1, mode="edge")
    across = (wide[:, :-2] + wide[:, 2:]) / 2
    steep, smooth = (
        (wide[:, 1:-1] - across) / 2,
        (wide[:, 1:-1] + across) / 2,
    )  # alternating along rows, or not
    down = [(half[:-2] + half[2:]) / 2 for half in (steep, smooth)]
    chequered, columns = (steep[1:-1] - down[0]) / 2, (steep[1:-1] + down[0]) / 2  # each is 0 on planes
    rows = (smooth[1:-1] - down[1]) / 2
    found = zip((chequered, columns, rows), _signs(height, width), strict=True)
    return [_medians(response * sign) for response, sign in found]


def _medians(values: Array) -> Array:
    return _median(_squares(values, _TILE))


def _median(values: Array) -> Array:
    """`np.median` along the last axis of finite numbers, in a fraction of its time: sorting uses vectors."""
    ordered, count = np.sort(values, axis=-1), values.shape[-1]
    middle: Array = (ordered[..., (count - 1) // 2] + ordered[..., count // 2]) / 2
    return middle


def _squares(maps: Array, side: int) -> Array:
    """[H, W] → [H/side, W/side, side²], mirrored where squares reach beyond."""
    height, width = maps.shape
    whole = np.pad(maps, ((0, -height % side), (0, -width % side)), mode="symmetric")
    squares = whole.reshape(whole.shape[0] // side, side, whole.shape[1] // side, side)
    return squares.transpose(0, 2, 1, 3).reshape(*squares.shape[::2], side * side)


def _signs(height: int, width: int) -> tuple[Array, Array, Array]:
    """±1: chequered, columns, rows; they broadcast to [H, W]."""
    row = (1 - 2 * (np.arange(height) % 2)).astype(np.float32)[:, None]
    column = (1 - 2 * (np.arange(width) % 2)).astype(np.float32)
    return row * column, column, row


def _between(pixels: int) -> Array:
    """[pixels, squares]: linear weights of the squares' centres."""
    count = -(-pixels // _TILE)
    place = np.clip((np.arange(pixels) + 0.5) / _TILE - 0.5, 0, count - 1)
    weights: Array = np.maximum(0, 1 - np.abs(place[:, None] - np.arange(count)))
    return weights.astype(np.float32)
