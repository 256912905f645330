"""What a depth sensor gave, in the pixels of the picture: also maps of another size, of another camera, and
with a confidence or σ of their own.

Inference takes a measurement as a Gaussian of precision p, which the network draws from the image. A sensor
that knows better changes it: with σ metres of noise and weight w, it counts w / (1/p + σ²).
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from gbpn.camera.lens import Lens, undistorted_pixels, undistorted_sparse
from gbpn.camera.wide import Fisheye, Panorama, WideCamera
from gbpn.errors import InputError
from gbpn.files.guard import shown, taking
from gbpn.formats.arrays import numeric
from gbpn.formats.calibration import intrinsics_of, read_extrinsics, read_intrinsics
from gbpn.formats.confidence_files import read_weights, weights_of
from gbpn.formats.depth_files import read_depth
from gbpn.measurements.areas import AreaGrid, same_view
from gbpn.measurements.validity import measured
from gbpn.sensors.other_camera import ranges_in_picture, reprojected
from gbpn.sensors.projection import nearest_values

__all__ = ["DepthSensor", "Measurements", "fitted", "parse_sigma", "rated", "undistorted_measurements"]

_LARGEST_SHARE = 10.0
"""σ of more than this times the depth is a slip of the unit."""
_LARGEST_NUMBER = 1000.0
"""Metres, and per cent, of a σ that all measurements share."""


@dataclass(frozen=True, kw_only=True)
class DepthSensor:
    """What is known of a depth sensor besides its numbers; paths, arrays or tensors."""

    sigma: Any = None
    """σ: metres for all, a share of the depth such as "1%", or a map of metres in the size of the depth."""
    confidence: Any = None
    """A map in the size of the depth, see `formats.confidence_files`."""
    intrinsics: Any = None
    """Of the depth camera, where it is not the colour camera; a panorama is one of a scanner's ranges."""
    to_image: Any = None
    """[4, 4] or [3, 4]: depth camera → colour camera coordinates, metres; None: they are the same."""


@dataclass(frozen=True, kw_only=True)
class Measurements:
    """Measured depth of a picture of H × W pixels."""

    sparse: Tensor
    """[1, H, W] metres, 0 where not measured."""
    std: Tensor | None = None
    """[1, H, W] metres of noise beyond the usual; None: none."""
    weight: Tensor | None = None
    """[1, H, W] in [0, 1]; None: all count fully."""
    areas: tuple[int, int] | None = None
    """(h, w) of the map whose pixels are areas of the picture, their means being at the centres; None: each
    measurement is of one pixel."""
    notice: str | None = None
    """What was made of a map of another size, in words."""


def fitted(
    depth: Tensor,
    size: tuple[int, int],
    sensor: DepthSensor,
    camera: Tensor | WideCamera | None,
    *,
    scale: float | None,
) -> Measurements:
    """A map [1, h, w] of any size in a picture of `size` (H, W), with what the sensor says of it.

    camera  [3, 3] of the picture, or what stands for it, which a sensor with its own needs
    scale   what stored σ is divided by, as the depths were
    """
    given = rated(Measurements(sparse=depth), sensor, scale)
    small = (depth.shape[1], depth.shape[2])
    if sensor.intrinsics is not None:
        if camera is None:
            raise InputError("a depth camera of its own needs the intrinsics of the picture too: give both")
        return _from_other_camera(given, sensor, camera, size)
    if small == size:
        return given
    if not same_view(small, size):
        raise InputError(
            f"sparse depth must have the size of the image, {size[0]}×{size[1]}; got {small[0]}×{small[1]}, "
            "which has another shape: give the depth camera (--depth-camera, depth_intrinsics), or project "
            "the points again; do not interpolate measurements"
        )
    across = size[1] / small[1]
    if small[0] <= size[0] and small[1] <= size[1]:
        grid = AreaGrid.of(small, size)
        notice = (
            f"depth of {small[1]}×{small[0]} for a picture of {size[1]}×{size[0]}: taken as means over "
            f"areas of {across:.3g}×{size[0] / small[0]:.3g} pixels of the same view"
        )
        return replace(_each(given, grid.placed), areas=small, notice=notice)
    notice = f"depth of {small[1]}×{small[0]} for a picture of {size[1]}×{size[0]}: each to its pixel"
    return replace(_reduced(given, size), notice=notice)


def undistorted_measurements(given: Measurements, intrinsics: Tensor, lens: Lens) -> Measurements:
    """Measurements in the pixels of a picture as taken → in those of the undistorted one.

    Areas of a bent picture are none of the straight one: what was measured of them stays at their centres.
    """
    depth = given.sparse[0].numpy()
    rows, columns = np.nonzero(depth)
    x, y = undistorted_pixels(columns.astype(float), rows.astype(float), intrinsics, lens)

    def moved(maps: Tensor | None) -> Tensor | None:
        if maps is None:
            return None
        values = maps[0].numpy()[rows, columns][None]
        return torch.from_numpy(nearest_values(x, y, depth[rows, columns], values, *depth.shape))

    return replace(
        given,
        sparse=undistorted_sparse(given.sparse, intrinsics, lens),
        std=moved(given.std),
        weight=moved(given.weight),
        areas=None,
    )


def rated(given: Measurements, sensor: DepthSensor, scale: float | None = None) -> Measurements:
    """The measurements with the sensor's σ and confidence; what has no weight is not measured."""
    depth, std, weight = given.sparse, given.std, given.weight
    if sensor.sigma is not None:
        with taking(
            "sigma", "metres, a share such as '1%', a map of metres in the size of the depth, or a file"
        ):
            std = _sigma(sensor.sigma, depth, scale)
    elif std is not None:
        std = _of_measured(std, depth)
    if sensor.confidence is not None:
        with taking("confidence", "a map in the size of the depth, or a file"):
            weight = _confidence(sensor.confidence, depth)
    if weight is not None:
        depth = torch.where(weight > 0, depth, 0.0)
    return replace(given, sparse=depth, std=std, weight=weight)


def parse_sigma(text: str) -> float | str:
    """Metres, or a share such as "1%", of what was written on a command line."""
    try:
        number = float(text.removesuffix("%"))
    except ValueError:
        raise InputError(
            f"a sigma is metres such as 0.02, or a share such as 1%; got {shown(text)!r}"
        ) from None
    if not 0 <= number <= _LARGEST_NUMBER:
        raise InputError(
            f"a sigma must not be negative, and at most {_LARGEST_NUMBER:g} metres or %; got {shown(text)!r}"
        )
    return text if text.endswith("%") else number


def _sigma(sigma: Any, depth: Tensor, scale: float | None) -> Tensor:
    """[1, h, w] metres."""
    if isinstance(sigma, str) and sigma.rstrip().endswith("%"):
        parse_sigma(sigma.strip())
        return depth * (float(sigma.strip().removesuffix("%")) / 100)
    if isinstance(sigma, str | os.PathLike):
        std = read_depth(Path(sigma), scale, judge=False)
    else:
        values = sigma.detach().cpu().numpy() if isinstance(sigma, Tensor) else numeric(sigma)
        if values.ndim == 0:
            return torch.full_like(depth, float(parse_sigma(str(float(values)))))
        std = torch.from_numpy(np.squeeze(values).astype(np.float32))[None]
    _require_size("sigma", std, depth)
    return _of_measured(std, depth)


def _of_measured(std: Tensor, depth: Tensor) -> Tensor:
    """σ [1, h, w] where there is a measurement; it must be one."""
    known = measured(depth)
    std = torch.where(known, std.nan_to_num(0.0), 0.0)
    if bool((std < 0).any()) or bool((std > _LARGEST_SHARE * depth)[known].any()):
        raise InputError(
            f"sigma must be metres, 0 to {_LARGEST_SHARE:g} times the depth; got {float(std.min()):g} to "
            f"{float(std.max()):g}: its unit is that of the depth"
        )
    return std


def _confidence(confidence: Any, depth: Tensor) -> Tensor:
    """[1, h, w] in [0, 1]."""
    if isinstance(confidence, str | os.PathLike):
        weights = read_weights(Path(confidence))
    else:
        weights = weights_of(
            confidence.detach().cpu().numpy() if isinstance(confidence, Tensor) else confidence
        )
    weight = torch.from_numpy(weights)[None]
    _require_size("confidence", weight, depth)
    return weight


def _require_size(name: str, maps: Tensor, depth: Tensor) -> None:
    if maps.shape != depth.shape:
        raise InputError(
            f"{name} must have the size of the depth, {list(depth.shape[1:])}; got {list(maps.shape[1:])}"
        )


def _each(given: Measurements, change: Callable[[Tensor], Tensor]) -> Measurements:
    """All maps changed alike."""
    std, weight = (None if maps is None else change(maps) for maps in (given.std, given.weight))
    return replace(given, sparse=change(given.sparse), std=std, weight=weight)


def _stack(given: Measurements) -> Tensor:
    """[2, h, w]: std and weight, with what stands for their absence."""
    std = torch.zeros_like(given.sparse) if given.std is None else given.std
    weight = torch.ones_like(given.sparse) if given.weight is None else given.weight
    return torch.cat((std, weight))


def _unstacked(given: Measurements, sparse: Tensor, others: Tensor) -> Measurements:
    """Maps after a change, those that were not there left out again."""
    std = None if given.std is None else others[:1]
    weight = None if given.weight is None else others[1:]
    return Measurements(sparse=sparse, std=std, weight=weight)


def _reduced(given: Measurements, size: tuple[int, int]) -> Measurements:
    """A map that is finer than the picture: each measurement to its pixel, the nearest wins."""
    _, height, width = given.sparse.shape
    row, column = np.nonzero(measured(given.sparse[0].numpy()))
    maps = torch.cat((given.sparse, _stack(given))).numpy()
    x, y = (column + 0.5) * (size[1] / width) - 0.5, (row + 0.5) * (size[0] / height) - 0.5
    found = torch.from_numpy(nearest_values(x, y, maps[0, row, column], maps[:, row, column], *size))
    return _unstacked(given, found[:1], found[1:])


def _from_other_camera(
    given: Measurements, sensor: DepthSensor, camera: Tensor | WideCamera, size: tuple[int, int]
) -> Measurements:
    with taking("depth_intrinsics", "fx, fy, cx, cy, a 3×3 matrix, a file of either, or panorama"):
        own = sensor.intrinsics
        if isinstance(own, str):
            own = Panorama.of(own) or own
        if isinstance(own, Panorama):
            own = own.seen(given.sparse.shape[1], given.sparse.shape[2])
        elif isinstance(own, str | os.PathLike):
            own = read_intrinsics(Path(own))
        else:
            own = intrinsics_of(np.squeeze(np.asarray(own, dtype=np.float64)))
    with taking("depth_to_image", "a 3×4 or 4×4 matrix or a file of it"):
        pose = _pose(sensor.to_image)
    if isinstance(own, Panorama) or isinstance(camera, Panorama | Fisheye):
        sparse, others = ranges_in_picture(given.sparse, _stack(given), own, pose, camera, size)
    else:
        sparse, others = reprojected(given.sparse, _stack(given), own, pose, camera, size)
    return _unstacked(given, sparse, others)


def _pose(matrix: Any) -> Tensor:
    """[4, 4] float64."""
    if matrix is None:
        return torch.eye(4, dtype=torch.float64)
    if isinstance(matrix, str | os.PathLike):
        return read_extrinsics(Path(matrix))
    numbers = np.asarray(matrix, dtype=np.float64).reshape(-1, 4)
    if numbers.shape[0] not in (3, 4) or not np.isfinite(numbers).all():
        raise InputError(f"a pose is a finite 3×4 or 4×4 matrix; got {list(np.shape(matrix))}")
    pose = np.eye(4)
    pose[:3] = numbers[:3]
    turn = pose[:3, :3]
    if not np.allclose(turn @ turn.T, np.eye(3), atol=1e-2) or np.linalg.det(turn) < 0:
        raise InputError(
            f"a pose turns and moves: its left 3×3 block must be a rotation; got {shown(turn.tolist())}"
        )
    return torch.from_numpy(pose)
