"""Point clouds from Python: into the picture, and completed with it."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from gbpn.camera.lens import undistorted_picture
from gbpn.errors import InputError
from gbpn.files.guard import shown, taking
from gbpn.formats.arrays import numeric
from gbpn.formats.camera_files import read_transform
from gbpn.formats.images import orientation_notice
from gbpn.formats.point_clouds import read_points
from gbpn.inputs.frame import FrameInputs
from gbpn.inputs.prior import as_prior, undistorted_prior
from gbpn.inputs.reading import as_camera, as_image
from gbpn.inputs.wide import wide_camera, wide_cloud, wide_inputs
from gbpn.measurements.validity import measured
from gbpn.sensors.projection import projected_indices, remove_see_through

__all__ = ["Projection", "as_points", "as_transform", "cloud_inputs", "project"]


class Projection(NamedTuple):
    """Points in the picture."""

    sparse: np.ndarray
    """[H, W] float32 metres, 0 where no point is."""
    kept: np.ndarray
    """[M] which points these are, in the order of the pixels."""


def project(
    points: Any,
    intrinsics: Any,
    transform: Any = None,
    size: tuple[int, int] | None = None,
    *,
    see_through: bool = False,
) -> Projection:
    """Points of a scanner as sparse depth: the nearest per pixel, without those seen through the foreground.

    points       [N, 3 or more] metres, or a file of `formats.point_clouds`
    intrinsics   fx, fy, cx, cy; a 3×3 matrix; or a file, whose lens is left aside: the picture is undistorted
    transform    [4, 4] or [3, 4], points → camera (x right, y down, z ahead); None: they are there already
    size         (height, width) of the picture, as `image.shape[:2]`
    see_through  keep points that lie behind a nearer surface around them
    """
    if size is None or len(size) != 2:
        raise InputError(f"size must be (height, width) of the picture; got {size!r}: give image.shape[:2]")
    height, width = int(size[0]), int(size[1])
    if intrinsics is None:
        raise InputError(
            "points come into a picture by its camera: give intrinsics, fx, fy, cx, cy or a file"
        )
    camera, _, _ = as_camera(intrinsics, None, height, width)
    sparse, index = _projected(as_points(points), camera, height, width, as_transform(transform), see_through)
    return Projection(sparse=sparse[0].numpy(), kept=index[measured(sparse[0].numpy())])


def cloud_inputs(
    image: Any,
    cloud: Any,
    intrinsics: Any,
    transform: Any = None,
    prior: Any = None,
    fisheye: float | None = None,
) -> FrameInputs:
    """A picture and the points of a scanner; the picture is undistorted if its camera file has a lens."""
    picture = as_image(image)
    _, height, width = picture.shape
    if intrinsics is None:
        raise InputError("a cloud needs the camera: give intrinsics, fx, fy, cx, cy or a file")
    points = as_points(cloud)
    wide, told = wide_camera(intrinsics, fisheye, height, width, image=image)
    if wide is not None:
        if prior is not None:
            raise InputError(f"a prior is of a pinhole picture; got a {wide}: leave the prior out")
        found = wide_cloud(points, wide, height, width, as_transform(transform))
        return wide_inputs(picture, found, wide, notices=(orientation_notice(image), told))
    camera, lens, notice = as_camera(intrinsics, image, height, width)
    sparse, _ = _projected(points, camera, height, width, as_transform(transform), False)
    if not bool(measured(sparse).any()):
        raise InputError(
            f"none of the {len(points)} points falls into the {width}×{height} picture: check transform "
            "(cloud to camera, x right, y down, z ahead) and intrinsics"
        )
    foreign, stretched = (None, None) if prior is None else as_prior(prior, height, width)
    notices = tuple(text for text in (orientation_notice(image), notice, stretched) if text)
    if lens is not None:
        picture = undistorted_picture(picture, camera, lens)
        foreign = None if foreign is None else undistorted_prior(foreign, height, width, camera, lens)
    return FrameInputs(image=picture, sparse=sparse, intrinsics=camera, notices=notices, prior=foreign)


def as_points(points: Any) -> np.ndarray:
    """[N, 3] float64 of an array [N, 3 or more] or a file; what is not finite stays and falls out later."""
    if isinstance(points, str | os.PathLike):
        return read_points(Path(points))
    with taking("points", "an array [N, 3] of x, y, z in metres, or a file"):
        values = numeric(points.detach().cpu().numpy() if isinstance(points, Tensor) else points)
    if values.ndim != 2 or values.shape[1] < 3:
        raise InputError(f"points must be [N, 3 or more] of x, y, z; got {list(values.shape)}")
    return values[:, :3].astype(np.float64)


def as_transform(transform: Any) -> Tensor | None:
    """[4, 4] float64 of a matrix [4, 4] or [3, 4] or a file; None stays None."""
    if transform is None:
        return None
    if isinstance(transform, str | os.PathLike):
        return read_transform(Path(transform))
    with taking("transform", "a 4×4 or 3×4 matrix, points to camera"):
        values = numeric(transform.detach().cpu().numpy() if isinstance(transform, Tensor) else transform)
    if values.shape not in ((4, 4), (3, 4)) or not np.isfinite(values).all():
        raise InputError(f"transform must be a finite 4×4 or 3×4 matrix; got {shown(values.tolist())}")
    matrix = np.eye(4)
    matrix[: len(values)] = values
    if not np.allclose(matrix[:3, :3] @ matrix[:3, :3].T, np.eye(3), atol=1e-2):
        raise InputError(f"transform must turn and move only; got {shown(values.tolist())}")
    return torch.from_numpy(matrix)


def _projected(
    points: np.ndarray, camera: Tensor, height: int, width: int, transform: Tensor | None, see_through: bool
) -> tuple[Tensor, np.ndarray]:
    """[1, H, W] metres and [H, W] which point is there."""
    sparse, index = projected_indices(points, camera, height, width, transform)
    return sparse if see_through else remove_see_through(sparse), index
