"""Pictures of wide cameras with their measurements: panoramas and fisheye lenses, ranges along the rays."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from gbpn.camera.wide import Fisheye, Panorama, WideCamera
from gbpn.errors import InputError
from gbpn.files.guard import shown
from gbpn.formats.camera_files import CameraFile, read_camera, resized
from gbpn.inputs.frame import FrameInputs
from gbpn.inputs.measurements import Measurements
from gbpn.measurements.validity import measured
from gbpn.sensors.projection import FARTHEST, NEAREST, nearest_values, remove_see_through

__all__ = ["wide_camera", "wide_cloud", "wide_inputs"]


def wide_camera(
    intrinsics: Any,
    fisheye: float | None,
    height: int,
    width: int,
    *,
    image: Any = None,
    number: int | None = None,
) -> tuple[WideCamera | None, str | None]:
    """The panorama or fisheye lens that was given, and a notice; None: a pinhole, or a lens to undistort.

    intrinsics  "panorama" or "panorama,TOP,BOTTOM", a `Panorama`, a `Fisheye`, or anything else
    fisheye     degrees that the lens of the camera file `intrinsics` sees; None: it is to be undistorted
    number      which camera of a Kalibr chain
    """
    if isinstance(intrinsics, str):
        intrinsics = Panorama.of(intrinsics) or intrinsics
    if fisheye is None:
        if isinstance(intrinsics, Panorama):
            return intrinsics.seen(height, width), None
        return (intrinsics, None) if isinstance(intrinsics, Fisheye) else (None, None)
    if isinstance(intrinsics, str | os.PathLike):
        path = Path(image) if isinstance(image, str | os.PathLike) else None
        intrinsics = read_camera(Path(intrinsics), number=number, image=path)
    if not isinstance(intrinsics, CameraFile) or intrinsics.lens is None:
        raise InputError(
            f"a fisheye field of {fisheye:g}° wants a camera file with an equidistant lens as intrinsics; "
            f"got {'none' if intrinsics is None else shown(intrinsics)}"
        )
    found, told = resized(intrinsics, height, width)
    matrix = found.intrinsics
    fx, fy, cx, cy = (float(matrix[place]) for place in ((0, 0), (1, 1), (0, 2), (1, 2)))
    assert found.lens is not None
    return Fisheye(intrinsics=(fx, fy, cx, cy), lens=found.lens, field=float(fisheye)), told


def wide_inputs(
    picture: Tensor,
    found: Measurements,
    camera: WideCamera,
    *,
    notices: tuple[str | None, ...] = (),
    scale: float | None = None,
) -> FrameInputs:
    """A frame of picture [3, H, W] and ranges in its pixels; what the lens does not see is not measured.

    The pixels of a smaller map are no areas of one plane: each stays a measurement at its middle.
    """
    _, height, width = picture.shape
    sees = torch.from_numpy(np.isfinite(camera.directions(height, width)[..., 0]))[None]
    there = measured(found.sparse)
    outside = int((there & ~sees).sum())
    if outside and outside == int(there.sum()):
        raise InputError(
            f"none of the {outside} measurements lies where the {camera} sees: are picture and camera one?"
        )
    told = f"{outside} measurements lie outside of what the {camera} sees: not used" if outside else None
    return FrameInputs(
        image=picture,
        sparse=torch.where(sees, found.sparse, 0.0),
        intrinsics=torch.from_numpy(camera.matrix(height, width)).float(),
        notices=tuple(text for text in (*notices, found.notice, told) if text),
        scale=scale,
        std=found.std,
        weight=found.weight,
        wide=camera,
    )


def wide_cloud(
    points: np.ndarray,
    camera: WideCamera,
    height: int,
    width: int,
    transform: Tensor | None = None,
    *,
    std: np.ndarray | None = None,
    weight: np.ndarray | None = None,
) -> Measurements:
    """Points [N, 3] of a scanner as ranges; the nearest per pixel, without those seen through others."""
    with np.errstate(all="ignore"):  # points at infinity fall out of the picture
        seen = (
            points if transform is None else points @ transform.numpy()[:3, :3].T + transform.numpy()[:3, 3]
        )
        ranges = np.linalg.norm(seen, axis=-1)
        there = (ranges > NEAREST) & (ranges < FARTHEST)
    seen, ranges = seen[there], ranges[there]
    x, y = camera.pixels(seen, height, width)
    columns = [column if column is None else column[there] for column in (std, weight)]
    given = [column for column in (ranges, *columns) if column is not None]
    maps = torch.from_numpy(nearest_values(x, y, ranges, np.stack(given), height, width))
    sparse = remove_see_through(maps[:1])
    if not bool(measured(sparse).any()):
        raise InputError(
            f"none of the {len(points)} points falls into the {width}×{height} picture of the {camera}: "
            "check the transform (cloud to camera, x right, y down, z ahead)"
        )
    found = Measurements(sparse=sparse, std=maps[1:2] if std is not None else None)
    if weight is None:
        return found
    return replace(found, sparse=torch.where(maps[-1:] > 0, sparse, 0.0), weight=maps[-1:])
