"""What people have, as the tensors a model takes: paths, PIL pictures, arrays, tensors, points.

Pictures with an EXIF mark are turned upright; measurements, points and cameras are those of the turned
picture.
"""

from __future__ import annotations

import os
import zipfile
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from PIL import Image
from torch import Tensor

from gbpn.camera.lens import Lens, undistorted_picture
from gbpn.camera.pinhole import FocalLength, default_intrinsics, fitted_intrinsics
from gbpn.camera.wide import Fisheye, Panorama, WideCamera
from gbpn.errors import InputError
from gbpn.files.guard import most_pixels, require_size, shown, taking
from gbpn.formats.arrays import numeric, read_npz
from gbpn.formats.calibration import intrinsics_of
from gbpn.formats.camera_files import CameraFile, read_camera, resized
from gbpn.formats.depth_files import likely_scale, read_depth, require_scale
from gbpn.formats.images import open_picture, orientation_notice, picture_pixels, read_image, to_tensor
from gbpn.formats.point_tables import COLUMNS, POINT_TABLES, read_point_table
from gbpn.inputs.frame import FrameInputs
from gbpn.inputs.measurements import DepthSensor, Measurements, fitted, rated, undistorted_measurements
from gbpn.inputs.prior import as_prior, undistorted_prior
from gbpn.inputs.wide import wide_camera, wide_inputs
from gbpn.measurements.validity import measured
from gbpn.sensors.projection import nearest_values, points_to_sparse

__all__ = [
    "UNDISTORTED",
    "as_camera",
    "as_image",
    "as_intrinsics",
    "as_measurements",
    "as_sparse",
    "frame_inputs",
]

UNDISTORTED = "the lens distortion is removed: depth and outputs are those of the undistorted picture"
"""What is said of a frame whose camera file has a lens."""

_LONGEST_STRIP = 256
"""Length by width of the longest picture that is completed: a scanner of 16 lines fits."""
_EXIF_FOCAL_35MM, _EXIF_FOLDER = 0xA405, 0x8769


def frame_inputs(
    image: Any,
    sparse: Any,
    intrinsics: Any = None,
    scale: float | None = None,
    sensor: DepthSensor | None = None,
    prior: Any = None,
    fisheye: float | None = None,
) -> FrameInputs:
    """Whatever people have, see `as_image`, `as_measurements`, `as_camera`, `as_prior` and `wide_camera`."""
    picture = as_image(image)
    _, height, width = picture.shape
    wide, told = wide_camera(intrinsics, fisheye, height, width, image=image)
    if wide is not None:
        if prior is not None:
            raise InputError(f"a prior is of a pinhole picture; got a {wide}: leave the prior out")
        found = as_measurements(sparse, height, width, scale, sensor, wide)
        return wide_inputs(picture, found, wide, notices=(orientation_notice(image), told), scale=scale)
    camera, lens, notice = as_camera(intrinsics, image, height, width)
    found = as_measurements(sparse, height, width, scale, sensor, camera)
    foreign, stretched = (None, None) if prior is None else as_prior(prior, height, width)
    if lens is not None:
        picture = undistorted_picture(picture, camera, lens)
        found = undistorted_measurements(found, camera, lens)
        foreign = None if foreign is None else undistorted_prior(foreign, height, width, camera, lens)
    notices = tuple(text for text in (orientation_notice(image), notice, found.notice, stretched) if text)
    return FrameInputs(
        image=picture,
        sparse=found.sparse,
        intrinsics=camera,
        notices=notices,
        scale=scale,
        std=found.std,
        weight=found.weight,
        areas=found.areas,
        prior=foreign,
    )


def _require_aspect(height: int, width: int) -> None:
    """Raise for strips that no network looks at sensibly."""
    if max(height, width) > _LONGEST_STRIP * min(height, width):
        raise InputError(
            f"a picture of {width}×{height} is a strip, more than {_LONGEST_STRIP} times as long as wide: "
            "cut it into pieces"
        )


def as_image(image: Any) -> Tensor:
    """[3, H, W] float32 RGB in [0, 1]; see `_as_image` for what is understood.

    A path; a PIL picture of any mode; NumPy [H, W, 3 or 4] or [H, W], uint8, uint16 or float in [0, 1];
    torch [3, H, W] or [1, 3, H, W], uint8 or float in [0, 1].
    """
    with taking("image", "a path, a picture, NumPy [H, W, 3] or torch [3, H, W]"):
        planes = _as_image(image)
    require_size("an image", planes.shape[1], planes.shape[2])
    _require_aspect(planes.shape[1], planes.shape[2])
    return planes


def _as_image(image: Any) -> Tensor:
    if isinstance(image, str | os.PathLike):
        return read_image(Path(image))
    if isinstance(image, Image.Image):
        return to_tensor(picture_pixels(image))
    if isinstance(image, Tensor):
        planes = _plain(image)
        planes = planes[0] if planes.dim() == 4 and planes.shape[0] == 1 else planes
        if planes.dim() != 3 or planes.shape[0] != 3:
            raise InputError(f"a torch image must be [3, H, W] RGB; got {list(image.shape)}")
        return _unit_range(planes)
    pixels = np.asarray(image)
    if pixels.ndim == 2:
        pixels = np.repeat(pixels[..., None], 3, axis=2)
    if pixels.ndim != 3 or pixels.shape[2] not in (3, 4):
        raise InputError(f"a NumPy image must be [H, W, 3], [H, W, 4] or [H, W]; got {list(pixels.shape)}")
    require_size("an image", *pixels.shape[:2])
    if pixels.dtype == np.uint16:
        pixels = pixels.astype(np.float32) / np.float32(65535)
    return _unit_range(torch.from_numpy(pixels[..., :3].transpose(2, 0, 1).copy()))


def as_sparse(sparse: Any, height: int, width: int, scale: float | None = None) -> Tensor:
    """[1, H, W] float32 metres, 0 where not measured (NaN counts as not measured, +infinity as too far).

    A path of a depth file (`scale` divides integer files) or of a table x, y, depth (.csv, .txt);
    an array or tensor [H, W], [H, W, 1] or [1, H, W];
    or points, [N, 3] of (x, y, depth) with x to the right and y down in pixels.
    """
    return as_measurements(sparse, height, width, scale).sparse


def as_measurements(
    sparse: Any,
    height: int,
    width: int,
    scale: float | None = None,
    sensor: DepthSensor | None = None,
    camera: Tensor | WideCamera | None = None,
) -> Measurements:
    """As `as_sparse`, with all that is known of the measurements.

    Tables and points may have columns std and weight, .npz files arrays of these names. Maps may have another
    size or come from another camera, see `measurements.fitted`; `camera` [3, 3] is the picture's.
    """
    require_scale(scale)
    sensor = sensor or DepthSensor()
    with taking("sparse depth", f"a path, an array {height}×{width} in metres or points [N, 3]"):
        if (table := _points(sparse)) is not None:
            return rated(_on_pixels(table, height, width), sensor, scale)
        depth = _depth_map(sparse, scale)
        if depth.shape[2] <= len(COLUMNS) < width:  # no image is so narrow: a file with a table
            return rated(_on_pixels(depth[0], height, width), sensor, scale)
        return fitted(depth, (height, width), _with_arrays(sensor, sparse), camera, scale=scale)


def _points(sparse: Any) -> Tensor | None:
    """[N, 3 to 5] of x, y, depth and perhaps std, weight; None if it is a map."""
    if isinstance(sparse, str | os.PathLike):
        path = Path(sparse)
        return read_point_table(path) if path.suffix.lower() in POINT_TABLES else None
    values = _plain(sparse) if isinstance(sparse, Tensor) else _of_numpy(sparse)
    return values if values.dim() == 2 and 3 <= values.shape[1] <= len(COLUMNS) else None


def _on_pixels(table: Tensor, height: int, width: int) -> Measurements:
    """Points with what their columns say; where two fall on one pixel, the nearer one stays."""
    sparse = points_to_sparse(table[:, :3], height, width)
    if table.shape[1] == 3:
        return Measurements(sparse=sparse)
    columns = table.double().numpy()
    extra = torch.from_numpy(
        nearest_values(columns[:, 0], columns[:, 1], columns[:, 2], columns[:, 3:].T, height, width)
    )
    if bool((extra < 0).any()) or bool((extra[1:] > 1).any()) or not bool(torch.isfinite(extra).all()):
        raise InputError("columns std and weight must be metres of at least 0, and 0 to 1")
    weight = extra[1:] if len(extra) == 2 and bool((extra[1:][measured(sparse)] < 1).any()) else None
    std = extra[:1] if bool(measured(extra[:1]).any()) else None
    kept = sparse if weight is None else torch.where(weight > 0, sparse, 0.0)
    return Measurements(sparse=kept, std=std, weight=weight)


def _with_arrays(sensor: DepthSensor, sparse: Any) -> DepthSensor:
    """The sensor with arrays std (or sigma) and weight (or confidence) of an .npz file, if it has none."""
    if not isinstance(sparse, str | os.PathLike) or Path(sparse).suffix.lower() != ".npz":
        return sensor
    with zipfile.ZipFile(sparse) as archive:
        names = {name.removesuffix(".npy") for name in archive.namelist()}
    read = {
        field: read_npz(Path(sparse), name, most_pixels())
        for field, choices in (("sigma", ("std", "sigma")), ("confidence", ("weight", "confidence")))
        for name in choices
        if name in names and getattr(sensor, field) is None
    }
    return replace(sensor, **read)


def _depth_map(sparse: Any, scale: float | None) -> Tensor:
    """[1, h, w] metres of a map of any size."""
    if isinstance(sparse, str | os.PathLike):
        depth = read_depth(Path(sparse), scale, drop_negative=False, judge=False)
    else:
        values = _plain(sparse) if isinstance(sparse, Tensor) else _of_numpy(sparse)
        squeezed = values.squeeze() if values.dim() > 2 else values
        if scale is None and not values.is_floating_point():
            likely = f"; {likely_scale(squeezed.numpy())}" if squeezed.dim() == 2 else ""
            raise InputError(
                f"integer depth ({values.dtype}) needs its scale: 1000 for millimetres, 256 for KITTI{likely}"
            )
        depth = squeezed.to(torch.float32).div(scale or 1.0)[None]
    if depth.dim() != 3 or not depth.numel():
        raise InputError(f"sparse depth is a map [H, W] or points [N, 3]; got {_by(depth.shape[1:])}")
    depth = torch.nan_to_num(depth, nan=0.0, posinf=torch.inf, neginf=-torch.inf)
    if bool((depth < 0).any()):
        raise InputError(
            f"sparse depth must not be negative; got {float(depth.min()):g} to "
            f"{float(depth.max()):g}: 0 or NaN means not measured"
        )
    return depth


def as_intrinsics(intrinsics: Any, image: Any, height: int, width: int) -> tuple[Tensor, str | None]:
    """`as_camera` for those who work on the picture as it is: a lens that bends is refused."""
    camera, lens, notice = as_camera(intrinsics, image, height, width)
    if lens is not None:
        raise InputError(
            f"{shown(intrinsics)} has a {lens.kind} lens, and this works on undistorted pictures: "
            f"undistort first "
            "(gbpn.camera.lens.undistorted_picture) and give fx, fy, cx, cy"
        )
    return camera, notice


def as_camera(
    intrinsics: Any, image: Any, height: int, width: int, *, number: int | None = None
) -> tuple[Tensor, Lens | None, str | None]:
    """[3, 3] float32, a lens if there is one, and a notice if the camera had to be guessed or looks odd.

    Four numbers fx, fy, cx, cy; a 3×3 matrix; a file, see `formats.camera_files`, of which `number` chooses
    the camera of a Kalibr chain; "26mm", see `FocalLength`; a `CameraFile`; or None: the focal length that
    the picture file's EXIF gives, else a field of view of 60° across the longer side. In pixels or shares of
    the size.
    """
    if isinstance(intrinsics, str):
        intrinsics = FocalLength.of(intrinsics) or Panorama.of(intrinsics) or intrinsics
    if isinstance(intrinsics, Panorama | Fisheye):
        raise InputError(
            "this works on pinhole pictures; got a panorama or fisheye: DepthCompleter and gbpn complete "
            "take those, or cut pinhole views out of it first (gbpn.camera.views)"
        )
    if isinstance(intrinsics, FocalLength):
        return intrinsics.matrix(height, width), None, None
    if isinstance(intrinsics, CameraFile):
        return _read_camera(intrinsics, height, width)
    if intrinsics is not None:
        with taking("intrinsics", "fx, fy, cx, cy, a 3×3 matrix or a file of either"):
            if isinstance(intrinsics, str | os.PathLike):
                path = image if isinstance(image, str | os.PathLike) else None
                return _file_camera(
                    Path(intrinsics), None if path is None else Path(path), height, width, number
                )
            values = _plain(intrinsics).numpy() if isinstance(intrinsics, Tensor) else numeric(intrinsics)
            given = intrinsics_of(np.squeeze(values).astype(np.float64))
            matrix, notice = fitted_intrinsics(given, height, width)
            return matrix, None, notice
    guess, told = _guessed(image, height, width)
    return guess, None, told


def _file_camera(
    path: Path, image: Path | None, height: int, width: int, number: int | None
) -> tuple[Tensor, Lens | None, str | None]:
    return _read_camera(read_camera(path, number=number, image=image), height, width)


def _read_camera(camera: CameraFile, height: int, width: int) -> tuple[Tensor, Lens | None, str | None]:
    camera, resize = resized(camera, height, width)
    matrix, odd = fitted_intrinsics(camera.intrinsics.float(), height, width)
    told = (resize, odd, None if camera.lens is None else UNDISTORTED)
    return matrix, camera.lens, "; ".join(text for text in told if text) or None


def _guessed(image: Any, height: int, width: int) -> tuple[Tensor, str]:
    """The camera of a picture of which nothing was said."""
    guess = default_intrinsics(height, width)
    focal = _exif_focal(image)
    if focal is None:
        told = "camera not given: a field of view of 60° along the longer side is assumed"
        return guess, f"{told} (give intrinsics to be exact)"
    matrix = focal.matrix(height, width)
    return matrix, f"camera from EXIF: focal length {float(matrix[0, 0]):.0f} pixels"


def _exif_focal(image: Any) -> FocalLength | None:
    """A picture's 35 mm equivalent, if it has a usual one."""
    try:
        if isinstance(image, str | os.PathLike):
            with open_picture(Path(image)) as picture:
                exif = picture.getexif()
        elif isinstance(image, Image.Image):
            exif = image.getexif()
        else:
            return None
        return FocalLength(millimetres=float(exif.get_ifd(_EXIF_FOLDER).get(_EXIF_FOCAL_35MM) or 0))
    except Exception:  # damaged EXIF is no reason to refuse the picture
        return None


def _plain(tensor: Tensor) -> Tensor:
    """On the CPU, dense, without gradients."""
    odd = tensor.is_meta or tensor.is_complex() or tensor.is_quantized or tensor.dtype == torch.bool
    if odd or tensor.layout is not torch.strided:
        raise InputError(
            f"tensors must be dense real numbers with data; got {tensor.layout}, {tensor.dtype}, "
            f"{tensor.device}: convert it first"
        )
    return tensor.detach().cpu()


def _of_numpy(values: Any) -> Tensor:
    """A copy; formats that torch does not know, such as the other byte order, are converted."""
    array = numeric(values)
    kind = array.dtype.newbyteorder("=")
    if kind.kind == "f" and kind.itemsize > 8:
        kind = np.dtype(np.float64)
    return torch.from_numpy(np.array(array, dtype=kind))


def _unit_range(planes: Tensor) -> Tensor:
    if planes.dtype == torch.uint8:
        return planes.float().div_(255)
    if not planes.is_floating_point():
        raise InputError(f"an image must be uint8, uint16 or float in [0, 1]; got {planes.dtype}")
    planes = planes.float()
    low, high = float(planes.min()), float(planes.max())
    if not (low >= 0 and high <= 1):
        raise InputError(f"a float image must lie in [0, 1]; got {low:g} to {high:g}: divide by 255?")
    return planes


def _by(shape: Sequence[int]) -> str:
    return "×".join(str(n) for n in shape)
