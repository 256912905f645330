"""A pattern of two pixels' period taken out of the confidence, and so out of σ.

The heads of the network leave half resolution by 2×2 blocks: each of the four pixels has weights of its own,
and what these learned differently alternates over the whole picture, where scenes do not. Around every pixel
the usual (median) amplitude of three alternating patterns is found and subtracted; a median, so that edges
and textures of a scene, which alternate nowhere for long, stay as they are. Depth is left alone.
"""

from __future__ import annotations

import numpy as np

__all__ = ["Array", "amplitudes", "without_checkerboard"]

Array = np.ndarray

_TILE = 16
"""Pixels of a side of the squares in which amplitudes are found; even, to have all phases alike."""


def without_checkerboard(logit: Array, observed: Array) -> Array:
    """Confidence logits [H, W] without what alternates from pixel to pixel, where `observed` [H, W] holds."""
    known = observed & np.isfinite(logit)
    height, width = logit.shape
    if min(height, width) < 2 * _TILE or not known.any():
        return logit
    filled = np.where(known, logit, np.median(logit[known])).astype(np.float32)
    down, across = _between(height), _between(width)
    pattern = np.zeros_like(filled)
    for amplitude, sign in zip(amplitudes(filled), _signs(height, width), strict=True):
        pattern += (down @ amplitude @ across.T) * sign
    return np.where(known, filled - pattern, logit).astype(logit.dtype)


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
    height, width = values.shape
    whole = np.pad(values, ((0, -height % _TILE), (0, -width % _TILE)), mode="edge")
    squares = whole.reshape(whole.shape[0] // _TILE, _TILE, whole.shape[1] // _TILE, _TILE)
    medians: Array = np.median(squares.transpose(0, 2, 1, 3).reshape(*squares.shape[::2], -1), axis=2)
    return medians


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
