"""Depth maps smaller than their picture: each pixel of them is the mean depth of an area, not of a point.

Cell i of h cells over H picture rows covers the rows from i·H/h − ½ to (i + 1)·H/h − ½, pixel centres being
at integers; its centre is (i + ½)·H/h − ½. Columns alike. What is known of the area's mean becomes depth in
two steps: the model says how its centre pixel differs from the mean, so that the centre can be measured; and
its last answer is corrected until the means are those that were measured.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch
from torch import Tensor
from torch.nn import functional

from gbpn.distribution import DepthDistribution
from gbpn.errors import InputError
from gbpn.measurements.validity import measured

__all__ = ["AreaGrid", "agreeing", "centre_depths", "same_view"]

_CORRECTIONS = 3
"""Times that the answer is corrected; training frames get no better from more."""
_FARTHEST = 3.0
"""A centre differs from its area's mean by no more than this factor, whatever the answer says."""
_SLACK = 1.0
"""Pixels of the small map by which two shapes may differ and still show the same."""


def same_view(small: tuple[int, int], large: tuple[int, int]) -> bool:
    """Whether a map of size `small` (rows, columns) has the shape of a picture of size `large`."""
    (height, width), (rows, columns) = small, large
    return abs(width * rows / height - columns) < _SLACK * max(rows / height, columns / width)


@dataclass(frozen=True, kw_only=True)
class AreaGrid:
    """How the h × w cells of a small depth map lie in a picture of H × W pixels."""

    rows: Tensor
    """[h, H]: share of each picture row in a cell's mean; every line sums to 1."""
    columns: Tensor
    """[w, W]: the same of columns."""

    @classmethod
    def of(cls, small: tuple[int, int], large: tuple[int, int]) -> AreaGrid:
        """Cells of a map of size `small`, not larger than the picture's, `large`; both (rows, columns)."""
        if small[0] > large[0] or small[1] > large[1]:
            raise InputError(f"areas must not be smaller than pixels; got {small} cells for {large} pixels")
        return cls(rows=_shares(small[0], large[0]), columns=_shares(small[1], large[1]))

    @property
    def cells(self) -> tuple[int, int]:
        """(h, w)."""
        return len(self.rows), len(self.columns)

    @property
    def size(self) -> tuple[int, int]:
        """(H, W)."""
        return self.rows.shape[1], self.columns.shape[1]

    @property
    def centres(self) -> tuple[Tensor, Tensor]:
        """Picture rows [h, 1] and columns [w] nearest to the cells' centres; no two cells share a pixel."""
        row, column = (_centres(*shares.shape) for shares in (self.rows, self.columns))
        return row[:, None], column

    def means(self, maps: Tensor) -> Tensor:
        """[..., H, W] → [..., h, w]: the mean of every area; NaN where any of its pixels is not finite."""
        rows, columns = self.rows.to(maps), self.columns.to(maps).T
        absent = ~torch.isfinite(maps)
        if not bool(absent.any()):
            return rows @ maps @ columns
        # zeros, since a product with NaN would reach all areas of its row and column
        means = rows @ torch.where(absent, 0.0, maps) @ columns
        return torch.where(rows @ absent.to(maps) @ columns > 0, torch.nan, means)

    def at_centres(self, maps: Tensor) -> Tensor:
        """[..., H, W] → [..., h, w]: the values of the centre pixels."""
        row, column = self.centres
        return maps[..., row, column]

    def placed(self, cells: Tensor) -> Tensor:
        """[..., h, w] → [..., H, W]: the values at the centre pixels, 0 elsewhere."""
        row, column = self.centres
        maps = cells.new_zeros(*cells.shape[:-2], *self.size)
        maps[..., row, column] = cells
        return maps

    def enlarged(self, cells: Tensor) -> Tensor:
        """[B, 1, h, w] → [B, 1, H, W]: bilinear between the cells' centres."""
        return functional.interpolate(cells, size=self.size, mode="bilinear", align_corners=False)


def centre_depths(grid: AreaGrid, sparse: Tensor, answer: DepthDistribution) -> Tensor:
    """[B, 1, H, W]: `sparse`, which has the areas' means at their centres, with the depths of the centres.

    answer  what the model says when it takes the means for them: the shape inside every area is its
    """
    mean = grid.at_centres(sparse)
    depth = answer.mean
    ratio = grid.at_centres(depth) / grid.means(depth)
    ratio = torch.where(torch.isfinite(ratio), ratio, 1.0).clamp(1 / _FARTHEST, _FARTHEST)
    return grid.placed(torch.where(measured(mean), mean * ratio, 0.0))


def agreeing(
    grid: AreaGrid, sparse: Tensor, answer: DepthDistribution, *, exact: bool = False
) -> DepthDistribution:
    """The answer, corrected smoothly until the areas have the means that `sparse` has at their centres.

    exact  the last correction is the same all over an area, so that every mean is the measured one
    """
    wanted = grid.at_centres(sparse).to(answer.mean)
    known = measured(wanted) & torch.isfinite(grid.means(answer.mean))
    mean = torch.where(torch.isfinite(answer.mean), answer.mean, 0.0)
    for _ in range(_CORRECTIONS):
        step = grid.enlarged(torch.where(known, wanted - grid.means(mean), 0.0))
        mean = torch.maximum(mean + step, mean / 2)  # never through the camera
    if exact:
        mean = _exactly(grid, mean, wanted, known)
    return replace(answer, mean=torch.where(torch.isfinite(answer.mean), mean, torch.nan))


def _exactly(grid: AreaGrid, mean: Tensor, wanted: Tensor, known: Tensor) -> Tensor:
    """Least change with the wanted means: (A Aᵀ)⁻¹ of the residual, which areas that share pixels need."""
    residual = torch.where(known, wanted - grid.means(mean), 0.0).double()
    rows, columns = grid.rows.to(residual), grid.columns.to(residual)
    inner = torch.linalg.solve(rows @ rows.T, residual)
    inner = torch.linalg.solve(columns @ columns.T, inner.transpose(-1, -2)).transpose(-1, -2)
    step: Tensor = rows.T @ inner @ columns
    return mean + step.to(mean)


def _shares(cells: int, pixels: int) -> Tensor:
    """[cells, pixels]: by how much of its length each pixel lies in each cell."""
    edges = torch.arange(cells + 1, dtype=torch.float64) * (pixels / cells)
    left = torch.arange(pixels, dtype=torch.float64)
    inside = torch.minimum(edges[1:, None], left + 1) - torch.maximum(edges[:-1, None], left)
    shares = inside.clamp_min(0)
    return (shares / shares.sum(1, keepdim=True)).float()


def _centres(cells: int, pixels: int) -> Tensor:
    """[cells]: the pixel that holds each cell's centre; of two that touch it, the first."""
    centre = (torch.arange(cells, dtype=torch.float64) + 0.5) * (pixels / cells) - 0.5
    return (centre - 1e-9).round().long().clamp(0, pixels - 1)
