"""What a person sees of a depth map: how its surfaces lie, how sharp its edges are, what pattern lies on it.

One value per sample, float64 [B]; NaN where there is none. Surfaces are pixels away from depth edges.
"""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional

from gbpn.measurements.validity import measured
from gbpn.metrics.errors import check_maps

__all__ = ["SURFACES", "depth_edges", "map_errors", "surface_errors"]

SURFACES = ("rmse_edges", "rmse_away", "normal_degrees", "pattern_2", "pattern_4")
"""Names of the values of `surface_errors`: metres, degrees, and multiples of the truth's."""
_STEP = 0.05
"""Log depth between neighbours that makes an edge."""
_NEAR = 3
"""Pixels from an edge that still count as the edge."""
_SMALLEST = 1e-3
"""Metres; depths below count as this where their logarithm is taken."""


def depth_edges(target: Tensor) -> Tensor:
    """[B, 1, H, W] bool: within 3 pixels of a step of 5 % between two neighbours that are both known."""
    known = measured(target)
    log = torch.where(known, target, 1.0).log()
    edge = torch.zeros_like(known)
    for axis in (2, 3):
        length = target.shape[axis] - 1
        there, here = log.narrow(axis, 1, length), log.narrow(axis, 0, length)
        both = known.narrow(axis, 1, length) & known.narrow(axis, 0, length)
        step = ((there - here).abs() > _STEP) & both
        edge.narrow(axis, 1, length).logical_or_(step)
        edge.narrow(axis, 0, length).logical_or_(step)
    reach = 2 * (_NEAR - 1) + 1  # an edge's own pixels lie on both of its sides
    return functional.max_pool2d(edge.float(), reach, 1, _NEAR - 1) > 0


def surface_errors(prediction: Tensor, target: Tensor, intrinsics: Tensor) -> dict[str, Tensor]:
    """All of `SURFACES` for maps [B, 1, H, W] in metres and cameras [B, 3, 3]."""
    check_maps(prediction, target)
    edges = depth_edges(target)
    known = measured(target) & torch.isfinite(prediction)
    found = torch.where(known, prediction, 1.0).double().clamp(min=_SMALLEST)
    true = torch.where(known, target, 1.0).double()
    square = (found - true).square()
    surface = known & ~edges
    out = {
        "rmse_edges": _mean(square, known & edges).sqrt(),
        "rmse_away": _mean(square, surface).sqrt(),
        "normal_degrees": _normal_error(found, true, surface, intrinsics.double()),
    }
    for period in (2, 4):
        patterns = [_pattern(maps.log(), surface, period // 2) for maps in (found, true)]
        some = patterns[1] > 0
        out[f"pattern_{period}"] = torch.where(some, patterns[0] / patterns[1].where(some, 1.0), torch.nan)
    return out


def map_errors(log_map: Tensor, target: Tensor, intrinsics: Tensor) -> dict[str, Tensor]:
    """Of a depth-like map [B, 1, H, W] in log units, up to a constant: correlation with the log depth, mean
    relative error with the median difference taken out, median error of the normal in degrees."""
    known = measured(target)
    log = torch.where(known, target, 1.0).double().log()
    rows = []
    for b in range(len(log_map)):
        u, t = log_map[b].double()[known[b]], log[b][known[b]]
        if u.numel() < 2:
            rows.append((torch.nan, torch.nan, 0.0))
            continue
        shift = (t - u).median()
        error = ((u + shift - t).exp() - 1).abs().mean()
        rows.append((float(torch.corrcoef(torch.stack((u, t)))[0, 1]), float(error), float(shift)))
    correlation, rel, shifts = torch.tensor(rows, dtype=torch.float64).unbind(1)
    aligned = (log_map.double() + shifts.view(-1, 1, 1, 1)).exp()
    surface = known & ~depth_edges(target)
    normal = _normal_error(aligned, log.exp(), surface, intrinsics.double())
    return {"rel": rel, "correlation": correlation, "normal_degrees": normal}


def _normal_error(found: Tensor, true: Tensor, surface: Tensor, intrinsics: Tensor) -> Tensor:
    """[B] medians of the angle between the normals, over pixels whose four neighbours are surface too."""
    inner = surface[..., 1:-1, 1:-1]
    for rows, columns in ((0, 1), (2, 1), (1, 0), (1, 2)):
        height, width = surface.shape[-2] - 2, surface.shape[-1] - 2
        inner = inner & surface[..., rows : rows + height, columns : columns + width]
    a, b = (_normals(depth, intrinsics) for depth in (found, true))
    angle = torch.rad2deg(torch.atan2(torch.linalg.cross(a, b, dim=1).norm(dim=1), (a * b).sum(1)))
    values = [degrees[mask[0]] for degrees, mask in zip(angle, inner, strict=True)]
    return torch.stack([v.median() if v.numel() else v.new_tensor(torch.nan) for v in values])


def _normals(depth: Tensor, intrinsics: Tensor) -> Tensor:
    """[B, 3, H − 2, W − 2] directions across the surface, by central differences; not of unit length."""
    height, width = depth.shape[-2:]
    x = (torch.arange(width) - intrinsics[:, 0, 2, None]) / intrinsics[:, 0, 0, None]
    y = (torch.arange(height) - intrinsics[:, 1, 2, None]) / intrinsics[:, 1, 1, None]
    z = depth[:, 0]
    place = torch.stack((x[:, None, :] * z, y[:, :, None] * z, z), dim=1)
    down = place[:, :, 2:, 1:-1] - place[:, :, :-2, 1:-1]
    along = place[:, :, 1:-1, 2:] - place[:, :, 1:-1, :-2]
    across: Tensor = torch.linalg.cross(down, along, dim=1)
    return across


def _pattern(log: Tensor, surface: Tensor, apart: int) -> Tensor:
    """[B]: root mean square of (2·pixel − one before − one behind)/4 along both axes, `apart` pixels away;
    1 for a pattern of period 2·apart and amplitude 1, and next to nothing on smooth surfaces."""
    total, count = [], []
    for axis in (2, 3):
        length = log.shape[axis] - 2 * apart
        parts = [log.narrow(axis, start, length) for start in (0, apart, 2 * apart)]
        masks = [surface.narrow(axis, start, length) for start in (0, apart, 2 * apart)]
        mask = masks[0] & masks[1] & masks[2]
        total.append(torch.where(mask, (2 * parts[1] - parts[0] - parts[2]) / 4, 0.0).square().sum((1, 2, 3)))
        count.append(mask.sum((1, 2, 3)))
    return (torch.stack(total).sum(0) / torch.stack(count).sum(0)).sqrt()


def _mean(values: Tensor, mask: Tensor) -> Tensor:
    """[B]; NaN where nothing is chosen."""
    return torch.where(mask, values, 0.0).sum((1, 2, 3)) / mask.sum((1, 2, 3))
