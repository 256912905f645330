"""Where to measure next: the pixels that would tell most about all the others.

The field says how pixels hang together. A measurement at j takes from the variance σ_i² of every pixel i the
share that j explains:

    gain(j) = Σ_i σ_i² · ρ_ij² · v_j / (v_j + 1/w_j)

σ_i is what the answer states, ρ_ij and v_j are correlation and variance of the field's own covariance A⁻¹,
and w_j is the precision that a measurement at j would have. The best j is taken, A⁻¹ and σ are updated as if
it had been measured, and the next one is sought: a pixel near it has little left to tell.

A⁻¹ is dense, so pixels are gathered in square cells: conductances between the centres of neighbouring cells
are those of the edges in series along rows and columns, summed over the cell's width.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from gbpn.errors import InputError

__all__ = ["Suggestion", "conductances", "suggest"]

_MOST_CELLS = 1200
"""Cells of the coarse field; its dense covariance takes their number squared, twice, in memory."""
_ANCHOR = 1e-4
"""Precision of every cell beside the edges, so that a field without a measurement has a covariance."""


@dataclass(frozen=True, kw_only=True)
class Suggestion:
    """A pixel that is worth a measurement."""

    x: int
    y: int
    gain: float
    """Expected reduction of the summed variance of all pixels, as a share of what it is now, in [0, 1]."""


def suggest(links: Tensor, measured: Tensor, unary: Tensor, std: Tensor, count: int) -> list[Suggestion]:
    """The `count` best pixels in order, each chosen with the ones before it taken as measured.

    links     [1, 4, E, H, W] precision of the edges by sweep and sender, as in `LocalEdges.weight`
    measured  [1, 1, H, W] precision of the measurements there are, 0 where there is none
    unary     [1, 1, H, W] precision that a measurement would have
    std       [1, 1, H, W] how uncertain each pixel is, in the unit in which uncertainty is to be reduced
    """
    if count < 1:
        raise InputError(f"at least one suggestion must be asked for; got {count}")
    height, width = std.shape[-2:]
    side = max(1, int(np.ceil(np.sqrt(height * width / _MOST_CELLS))))
    across, down = conductances(links, side)
    rows, columns = -(-height // side), -(-width // side)
    known = _cells(measured, side, "sum").numpy().ravel()
    covariance = np.linalg.inv(_precision(across.numpy(), down.numpy(), known, rows, columns))
    total = _cells(std.square(), side, "sum").numpy().ravel()
    noise = 1 / np.maximum(_cells(unary, side, "mean").numpy().ravel(), 1e-12)
    free = known == 0
    if not free.any():
        return []
    whole = max(float(total.sum()), 1e-300)
    found = []
    for _ in range(min(count, int(free.sum()))):
        variance = np.maximum(np.diagonal(covariance), 1e-300)
        explained = (covariance**2) @ (total / variance) / (variance + noise)
        cell = int(np.where(free, explained, -np.inf).argmax())
        y, x = _best_pixel(links, cell // columns, cell % columns, side)
        found.append(Suggestion(x=x, y=y, gain=float(explained[cell]) / whole))
        column = covariance[:, cell] / np.sqrt(variance[cell] + noise[cell])
        total = total * np.clip(1 - column**2 / variance, 0, 1)
        covariance = covariance - np.outer(column, column)
        free[cell] = False
    return found


def conductances(links: Tensor, side: int) -> tuple[Tensor, Tensor]:
    """Between the centres of cells of `side` pixels: [rows, columns − 1] across, [rows − 1, columns] down."""
    weight = links[0].double().cpu().sum(1)  # [4, H, W] over the senders of each sweep
    right = (weight[0][:, 1:] + weight[2][:, :-1]) / 2  # between columns x and x + 1
    below = (weight[1][1:] + weight[3][:-1]) / 2
    return _in_series(right, side), _in_series(below.mT, side).mT


def _in_series(links: Tensor, side: int) -> Tensor:
    """links [lines, P − 1] along lines of P pixels → [groups of `side` lines, cells − 1]."""
    lines, pixels = links.shape[0], links.shape[1] + 1
    resistance = functional.pad(
        (1 / links.clamp_min(1e-12)).cumsum(1), (1, 0)
    )  # from the first pixel to each
    starts = torch.arange(0, pixels, side)
    centres = (starts + torch.clamp(starts + side, max=pixels) - 1) // 2
    between = resistance[:, centres[1:]] - resistance[:, centres[:-1]]  # [lines, cells − 1]
    parallel = functional.pad(1 / between, (0, 0, 0, -lines % side))
    return torch.unflatten(parallel, 0, (-1, side)).sum(1)


def _precision(
    across: np.ndarray, down: np.ndarray, unary: np.ndarray, rows: int, columns: int
) -> np.ndarray:
    """[cells, cells] of the coarse field."""
    number = np.arange(rows * columns).reshape(rows, columns)
    matrix = np.zeros((rows * columns, rows * columns))
    for one, other, link in ((number[:, :-1], number[:, 1:], across), (number[:-1], number[1:], down)):
        matrix[one, other] = matrix[other, one] = -link
    matrix[number.ravel(), number.ravel()] = unary + _ANCHOR - matrix.sum(1)
    return matrix


def _cells(maps: Tensor, side: int, how: str) -> Tensor:
    """[1, 1, H, W] gathered by cell: [rows, columns]; pixels beyond the border do not count."""
    values = maps[0, 0].double().cpu()
    pad = (0, -values.shape[1] % side, 0, -values.shape[0] % side)
    ones = functional.pad(torch.ones_like(values), pad)

    def total(one: Tensor) -> Tensor:
        return torch.unflatten(torch.unflatten(one, 0, (-1, side)), 2, (-1, side)).sum((1, 3))

    summed = total(functional.pad(values, pad))
    return summed if how == "sum" else summed / total(ones)


def _best_pixel(links: Tensor, row: int, column: int, side: int) -> tuple[int, int]:
    """(y, x) of the cell's pixel with the strongest links around: on a surface, not on its edge."""
    height, width = links.shape[-2:]
    window = (
        slice(row * side, min(row * side + side, height)),
        slice(column * side, min(column * side + side, width)),
    )
    strength = links[0].sum((0, 1)).cpu()
    smooth = -functional.max_pool2d(-strength[None, None], 3, stride=1, padding=1)[0, 0][window]
    y, x = divmod(int(smooth.argmax()), smooth.shape[1])
    return row * side + y, column * side + x
