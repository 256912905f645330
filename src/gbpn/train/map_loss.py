"""What a depth-like map learns by: log depth, its steps, and the surfaces that it describes."""

from __future__ import annotations

import torch
from torch import Tensor

from gbpn.kernels.checks import require_shape
from gbpn.measurements.validity import measured

__all__ = ["NORMAL_DISTANCES", "SHAPE_DISTANCES", "normals_loss", "shape_loss", "surface_loss"]

SHAPE_DISTANCES = (1, 4, 16)
"""Pixels over which `shape_loss` compares steps."""
_SURFACE_DISTANCES = (1, 2, 4, 8)
"""Pixels over which `surface_loss` compares steps."""
NORMAL_DISTANCES = (1, 3)
"""Half of the pixels over which normals are taken."""
_STEEP = 0.06
"""Log depth per side of a normal; what changes more is an edge, and an edge has no normal."""
_STEPS_WEIGHT, _NORMALS_WEIGHT = 0.5, 0.3
_KINK = 1e-3
"""Of the squared distance of normals: below, the loss is round."""


def shape_loss(prior: Tensor, target: Tensor, intrinsics: Tensor | None = None) -> Tensor:
    """How far a depth-like map [B, 1, H, W] in log units is from the log of `target`, up to a constant.

    Per image: mean |e − mean e| with e = prior − log target, plus the mean |change of e| over
    `SHAPE_DISTANCES` pixels along rows and columns, both over known pixels; then the mean over the batch.
    """
    error, valid = _error(prior, target)
    total = _per_image((error - _per_image(error, valid).view(-1, 1, 1, 1)).abs(), valid)
    steps = _steps(error, valid, SHAPE_DISTANCES)
    return (total + steps / (2 * len(SHAPE_DISTANCES))).mean()


def surface_loss(prior: Tensor, target: Tensor, intrinsics: Tensor) -> Tensor:
    """`shape_loss` that counts steps more, over shorter distances, and adds the `normals_loss`.

    intrinsics  [B, 3, 3] of the target's pixels
    """
    error, valid = _error(prior, target)
    total = _per_image((error - _per_image(error, valid).view(-1, 1, 1, 1)).abs(), valid)
    total = total + _STEPS_WEIGHT * _steps(error, valid, _SURFACE_DISTANCES)
    return total.mean() + _NORMALS_WEIGHT * normals_loss(prior, target, intrinsics)


def normals_loss(prior: Tensor, target: Tensor, intrinsics: Tensor) -> Tensor:
    """Mean distance of the unit normals of map and target on smooth surfaces, over `NORMAL_DISTANCES`.

    With u = log depth and rays (x, y, 1), a normal is (−∂u/∂x, −∂u/∂y, 1 + x·∂u/∂x + y·∂u/∂y): a factor of
    all depths has no part in it. The distance of two unit normals is their angle while that is small.
    """
    valid = measured(target)
    log = torch.where(valid, target.to(prior), 1.0).log()
    height, width = prior.shape[-2:]
    total = prior.new_zeros(())
    for distance in NORMAL_DISTANCES:
        if min(height, width) <= 2 * distance:
            continue
        known = _inner(valid, distance)
        for axis, amount in ((2, distance), (2, -distance), (3, distance), (3, -distance)):
            known = known & _moved(valid, distance, axis, amount)
            step = _moved(log, distance, axis, amount) - _inner(log, distance)
            known = known & (step.abs() < _STEEP * distance)
        focal = intrinsics.to(prior)[:, (0, 1), (0, 1)].view(-1, 2, 1, 1)
        ray = _rays(height, width, intrinsics.to(prior), distance)
        found, true = (_normal(u, ray, focal, distance) for u in (prior, log))
        length = (found.square().sum(1, keepdim=True) * true.square().sum(1, keepdim=True)).rsqrt()
        apart = 2 * (1 - (found * true).sum(1, keepdim=True) * length)
        total = total + _per_image((apart.clamp(min=0) + _KINK).sqrt() - _KINK**0.5, known).mean()
    return total / len(NORMAL_DISTANCES)


def _normal(log: Tensor, ray: Tensor, focal: Tensor, distance: int) -> Tensor:
    """[B, 3, H − 2d, W − 2d] normals, not of unit length."""
    along = _moved(log, distance, 3, distance) - _moved(log, distance, 3, -distance)
    down = _moved(log, distance, 2, distance) - _moved(log, distance, 2, -distance)
    slope = torch.cat((along, down), dim=1) * (focal / (2 * distance))
    facing = 1 + (slope * ray).sum(1, keepdim=True)
    return torch.cat((-slope, facing), dim=1)


def _rays(height: int, width: int, intrinsics: Tensor, distance: int) -> Tensor:
    """[B, 2, H − 2d, W − 2d]: x and y of the rays through the inner pixels."""
    down = torch.arange(distance, height - distance, dtype=intrinsics.dtype, device=intrinsics.device)
    along = torch.arange(distance, width - distance, dtype=intrinsics.dtype, device=intrinsics.device)
    x = (along - intrinsics[:, 0, 2, None]) / intrinsics[:, 0, 0, None]
    y = (down - intrinsics[:, 1, 2, None]) / intrinsics[:, 1, 1, None]
    rows, columns = y.shape[1], x.shape[1]
    return torch.stack(
        (x[:, None, :].expand(-1, rows, columns), y[:, :, None].expand(-1, rows, columns)), dim=1
    )


def _inner(maps: Tensor, margin: int) -> Tensor:
    return maps[..., margin : maps.shape[-2] - margin, margin : maps.shape[-1] - margin]


def _moved(maps: Tensor, margin: int, axis: int, amount: int) -> Tensor:
    """The pixels `amount` further along `axis` than those of `_inner`."""
    row, column = (amount, 0) if axis == 2 else (0, amount)
    height, width = maps.shape[-2:]
    return maps[..., margin + row : height - margin + row, margin + column : width - margin + column]


def _error(prior: Tensor, target: Tensor) -> tuple[Tensor, Tensor]:
    """(prior − log target, 0 where not known; where it is known)."""
    require_shape("target", target, tuple(prior.shape), "metres, 0 where unknown, like the map")
    valid = measured(target)
    return torch.where(valid, prior - torch.where(valid, target.to(prior), 1.0).log(), 0.0), valid


def _steps(error: Tensor, valid: Tensor, distances: tuple[int, ...]) -> Tensor:
    """[B] sums over both axes and all distances of the mean |change of the error|."""
    total = error.new_zeros(error.shape[0])
    for distance in distances:
        for axis in (2, 3):
            if error.shape[axis] <= distance:
                continue
            length = error.shape[axis] - distance
            here, there = error.narrow(axis, 0, length), error.narrow(axis, distance, length)
            both = valid.narrow(axis, 0, length) & valid.narrow(axis, distance, length)
            total = total + _per_image((there - here).abs(), both)
    return total


def _per_image(values: Tensor, valid: Tensor) -> Tensor:
    """[B] means over valid pixels; 0 where an image has none."""
    count = valid.sum(dim=(1, 2, 3)).clamp(min=1)
    return (values * valid).sum(dim=(1, 2, 3)) / count
