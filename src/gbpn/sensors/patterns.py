"""Where a sensor measures: dense (or sparse) depth in, the measured pixels out.

Every pattern is a pure function of a depth map [1, H, W] in metres (0 = unknown) and an explicit random
generator, and returns a new map that is 0 outside the pattern. Values are never invented: except for
`time_of_flight`, which averages over its zones, what is kept is what was there.
"""

from __future__ import annotations

import math

import numpy as np
import torch
from torch import Tensor

from gbpn.camera import pinhole as camera
from gbpn.errors import InputError
from gbpn.measurements.validity import measured

__all__ = [
    "block_means",
    "corners",
    "elevation_lines",
    "fixed_positions",
    "holes",
    "near_only",
    "pitch_lines",
    "random_points",
    "regular_grid",
    "rotating_lidar",
    "time_of_flight",
    "zone_middles",
]

_HDL64_ELEVATION = (math.radians(-24.9), math.radians(2.0))
"""Vertical field of view of the 64-line scanner of KITTI, radians above the horizon."""
_SCAN_LINES = 64


def random_points(depth: Tensor, rng: np.random.Generator, count: int = 500) -> Tensor:
    """`count` pixels, uniform over those with depth; all of them where there are fewer."""
    valid = np.flatnonzero(measured(depth.numpy()))
    return _keep(depth, rng.choice(valid, min(count, valid.size), replace=False) if valid.size else valid)


def fixed_positions(depth: Tensor, count: int = 500, seed: int = 0) -> Tensor:
    """The released evaluation protocol: the same `count` positions for every frame of this size.

    NumPy's legacy generator seeded with (frame index mod number of masks, 0 by default) draws them from the
    whole frame, so a position without depth gives no measurement.
    """
    legacy = np.random.RandomState(seed)
    if count > depth.numel():
        raise InputError(f"{count} positions wanted in a map of {depth.numel()} pixels")
    return _keep(depth, legacy.choice(depth.numel(), count, replace=False))


def pitch_lines(depth: Tensor, intrinsics: Tensor, lines: int) -> Tensor:
    """Scan lines by the released rule: 65 labels between the lowest and highest pitch of this very frame.

    With step = 64/lines, labels ≡ step/2 (mod step) stay, so 32, 16 and 8 lines are disjoint subsets of 64,
    not nested in each other.
    """
    step = _line_step(lines)
    if step == 1:
        return depth.clone()
    there = measured(depth)
    if not bool(there.any()):
        return depth.clone()
    # Labels near a rounding boundary must not depend on the order of float32 sums.
    points = camera.points(depth[None].double(), intrinsics[None].double())[0]  # [3, H, W]
    pitch = torch.asin((points[1] / points.norm(dim=0).clamp_min(1e-12)).clamp(-1, 1))[None]
    low, high = pitch[there].min(), pitch[there].max()
    width = ((high - low) / _SCAN_LINES).clamp_min(1e-12)
    label = torch.round((pitch - low) / width).long()
    return depth * (there & (label % step == step // 2))


def elevation_lines(
    depth: Tensor,
    intrinsics: Tensor,
    lines: int,
    elevation: tuple[float, float] = _HDL64_ELEVATION,
) -> Tensor:
    """Scan lines by elevation: 64 equal bins over the field of view, every (64/lines)-th stays.

    The bins do not depend on the frame, and 64 ⊃ 32 ⊃ 16 ⊃ 8. Points outside `elevation` join the
    outermost bins.
    """
    step = _line_step(lines)
    points = camera.points(depth[None].double(), intrinsics[None].double())[0]
    angle = torch.asin((-points[1] / points.norm(dim=0).clamp_min(1e-12)).clamp(-1, 1))[None]  # up is −y
    share = (angle - elevation[0]) / (elevation[1] - elevation[0])
    label = torch.floor(share * _SCAN_LINES).long().clamp(0, _SCAN_LINES - 1)
    return depth * (measured(depth) & (label % step == 0))


def rotating_lidar(
    depth: Tensor,
    rng: np.random.Generator,
    intrinsics: Tensor,
    lines: int = 64,
    *,
    elevation: tuple[float, float] = _HDL64_ELEVATION,
    azimuth_step: float = math.radians(0.2),
    reach: float = 80.0,
    dropout: float = 0.0,
) -> Tensor:
    """A virtual spinning scanner at the camera: `lines` of 64 beams, one shot per `azimuth_step` (radians).

    The phase of the spin is random. Shots beyond `reach` metres and a share `dropout` of the rest are lost.
    """
    height, width = depth.shape[-2:]
    matrix = intrinsics.double().numpy()
    beams = np.linspace(elevation[0], elevation[1], _SCAN_LINES)[:: _line_step(lines)]
    half = math.atan2(max(matrix[0, 2], width - 1 - matrix[0, 2]) + 1, matrix[0, 0])
    azimuth = np.arange(-half - azimuth_step, half + azimuth_step, azimuth_step)
    azimuth = (azimuth + rng.uniform(0, azimuth_step)).clip(-1.5, 1.5)  # short of ±90°
    # Direction (sin a cos e, −sin e, cos a cos e); a and e are the scanner's angles.
    column = np.rint(matrix[0, 0] * np.tan(azimuth)[None] + matrix[0, 2])
    row = np.rint(-matrix[1, 1] * np.tan(beams)[:, None] / np.cos(azimuth)[None] + matrix[1, 2])
    column = np.broadcast_to(column, row.shape)
    inside = (column >= 0) & (column < width) & (row >= 0) & (row < height)
    place = np.unique(row[inside].astype(np.int64) * width + column[inside].astype(np.int64))
    if dropout > 0:
        place = place[rng.random(place.size) >= dropout]
    kept = _keep(depth, place)
    return kept * (kept <= reach)


def corners(depth: Tensor, rng: np.random.Generator, image: Tensor, count: int = 500) -> Tensor:
    """Image corners as a visual odometry would track: strong, locally maximal Harris responses with depth.

    Which of the strong ones are tracked is random: each response is multiplied by an exponential variate.
    """
    response = _harris(image)
    peak = torch.nn.functional.max_pool2d(response[None], 5, stride=1, padding=2)[0]
    candidates = np.flatnonzero(((response >= peak) & (response > 0) & measured(depth)).numpy())
    if candidates.size > count:
        strength = response.numpy().reshape(-1)[candidates] * rng.exponential(size=candidates.size)
        candidates = candidates[np.argpartition(-strength, count - 1)[:count]]
    return _keep(depth, candidates)


def _harris(image: Tensor, sensitivity: float = 0.05) -> Tensor:
    """[1, H, W] Harris corner response of [3, H, W]: det − k trace² of the gradients' 5×5 covariance."""
    grey = image.mean(dim=0, keepdim=True)[None]
    padded = torch.nn.functional.pad(grey, (1, 1, 1, 1), mode="replicate")
    right = (padded[..., 1:-1, 2:] - padded[..., 1:-1, :-2]) / 2
    down = (padded[..., 2:, 1:-1] - padded[..., :-2, 1:-1]) / 2
    products = torch.cat([right * right, down * down, right * down], dim=1)
    xx, yy, xy = torch.nn.functional.avg_pool2d(products, 5, stride=1, padding=2)[0]
    response: Tensor = xx * yy - xy * xy - sensitivity * (xx + yy) ** 2
    return response[None]


def regular_grid(depth: Tensor, rng: np.random.Generator, spacing: int = 16) -> Tensor:
    """One pixel every `spacing` rows and columns, at a random phase."""
    if spacing < 1:
        raise InputError(f"grid spacing must be at least 1 pixel; got {spacing}")
    height, width = depth.shape[-2:]
    top, left = rng.integers(min(spacing, height)), rng.integers(min(spacing, width))
    out = torch.zeros_like(depth)
    out[:, top::spacing, left::spacing] = depth[:, top::spacing, left::spacing]
    return out


def time_of_flight(depth: Tensor, zones: tuple[int, int] = (8, 8)) -> Tensor:
    """A low-resolution sensor: per zone the mean of its known depths, at the zone's middle pixel."""
    height, width = depth.shape[-2:]
    rows, columns = min(zones[0], height), min(zones[1], width)
    known = measured(depth).float()
    count = torch.nn.functional.adaptive_avg_pool2d(known, (rows, columns))
    total = torch.nn.functional.adaptive_avg_pool2d(depth * known, (rows, columns))
    reading = torch.where(count > 0, total / count.clamp_min(1e-12), 0.0)  # [1, rows, columns]
    out = torch.zeros_like(depth)
    out[:, zone_middles(rows, height)[:, None], zone_middles(columns, width)] = reading
    return out


def zone_middles(zones: int, pixels: int) -> Tensor:
    """[zones]: the middle pixel of each of so many zones along a side of so many pixels."""
    return ((torch.arange(zones) + 0.5) * pixels / zones).long()


def block_means(depth: Tensor, side: int = 4) -> Tensor:
    """A smaller depth map: the mean of every block of `side` × `side` pixels, at the block's middle pixel."""
    return time_of_flight(depth, (max(depth.shape[-2] // side, 1), max(depth.shape[-1] // side, 1)))


def holes(
    depth: Tensor, rng: np.random.Generator, share: float = 0.5, sizes: tuple[float, float] = (0.15, 0.5)
) -> Tensor:
    """Cut random ellipses out until about `share` of the frame is gone; axes are fractions of its sides."""
    height, width = depth.shape[-2:]
    gone = np.zeros((height, width), dtype=bool)
    y, x = np.ogrid[:height, :width]
    for _ in range(64):  # enough for any share; a bound rather than a promise
        if gone.mean() >= share:
            break
        centre_y, centre_x = rng.uniform(0, height), rng.uniform(0, width)
        half_y, half_x = rng.uniform(*sizes) * height / 2, rng.uniform(*sizes) * width / 2
        gone |= ((y - centre_y) / half_y) ** 2 + ((x - centre_x) / half_x) ** 2 <= 1
    return depth * torch.from_numpy(~gone)


def near_only(depth: Tensor, reach: float) -> Tensor:
    """A sensor of limited reach: nothing beyond `reach` metres."""
    return depth * (depth <= reach)


def _line_step(lines: int) -> int:
    if lines < 1 or _SCAN_LINES % lines:
        raise InputError(f"lines must divide {_SCAN_LINES} (64, 32, 16, 8, ...); got {lines}")
    return _SCAN_LINES // lines


def _keep(depth: Tensor, flat: np.ndarray) -> Tensor:
    """Only the pixels with these flat indices."""
    out = torch.zeros_like(depth)
    chosen = torch.from_numpy(np.ascontiguousarray(flat, dtype=np.int64))
    out.view(-1)[chosen] = depth.reshape(-1)[chosen]
    return out
