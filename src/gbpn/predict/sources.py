"""Where the measurements of a frame come from: depth files, tables of points, point clouds, COLMAP models."""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from gbpn.camera import fitted_intrinsics
from gbpn.errors import InputError
from gbpn.formats import colmap
from gbpn.formats.calibration import intrinsics_of, kitti_calibration
from gbpn.formats.camera_files import CAMERA_FILES, read_transform, require_camera_file
from gbpn.formats.colmap_layout import registered
from gbpn.formats.depth_files import require_scale
from gbpn.formats.images import orientation_notice
from gbpn.formats.point_clouds import read_points
from gbpn.formats.point_tables import POINT_TABLES
from gbpn.lens import Lens, undistorted_picture, undistorted_sparse
from gbpn.predict.inputs import UNDISTORTED, FrameInputs, as_camera, as_image, as_sparse
from gbpn.sensors.projection import points_to_sparse, project, remove_see_through
from gbpn.validity import measured

__all__ = ["MEASUREMENTS", "Sensor", "parse_intrinsics", "parse_point"]

_DEPTH_FILES = (".png", ".tif", ".tiff", ".npy", ".npz", ".exr")
_CLOUDS = (".bin", ".ply", ".pcd", ".las", ".laz")
MEASUREMENTS = (*_DEPTH_FILES, *_CLOUDS, *POINT_TABLES)
"""Suffixes of files that can hold the measurements of one frame."""
_KITTI_CAMERA = 2
"""The left colour camera."""


@dataclass(frozen=True, kw_only=True)
class Sensor:
    """What is the same for all frames of a run."""

    points: tuple[tuple[float, float, float], ...] = ()
    """x, y, depth, added to every frame."""
    scale: float | None = None
    """What depth files are divided by."""
    intrinsics: Tensor | Path | None = None
    """[3, 3], a file, or None: EXIF, else a stated default."""
    extrinsics: Path | None = None
    """File with the cloud-to-camera matrix."""
    calib: Path | None = None
    """KITTI calibration file or folder, instead of intrinsics and extrinsics."""
    camera: int | None = None
    """Which camera of a KITTI calibration, by default 2, or of a Kalibr chain, by default the first."""
    rectified: bool = False
    """Whether the pictures are undistorted already, whatever lens the camera file has."""
    units: float = 1.0
    """Metres per unit of a COLMAP model."""
    reconstruction: colmap.Reconstruction | None = None
    """A COLMAP model with the frames in it."""

    def __post_init__(self) -> None:
        if self.calib is not None and (self.intrinsics is not None or self.extrinsics is not None):
            raise InputError("give either --calib or --intrinsics with --extrinsics, not both")
        require_scale(self.scale)
        if not (math.isfinite(self.units) and self.units > 0):
            raise InputError(f"--units must be metres per unit, above 0; got {self.units}")

    def read(self, image: Path, sparse: Path | None) -> FrameInputs:
        """One frame with its measurements and its camera."""
        return self.of_picture(as_image(image), image, sparse)

    def of_picture(self, picture: Tensor, image: Path, sparse: Path | None) -> FrameInputs:
        """The same for a picture [3, H, W] that was read already; `image` is where it came from."""
        depth, camera, notices = self.measure(image, sparse, *picture.shape[1:])
        if (lens := self.lens(image, *picture.shape[1:])) is not None:
            picture = undistorted_picture(picture, camera, lens)
        inputs = FrameInputs(
            image=picture, sparse=depth, intrinsics=camera, notices=notices, scale=self.scale
        )
        if inputs.doubt is not None and self.scale is None:
            raise InputError(f"{sparse or 'points'}: {inputs.doubt}; --scale 1 if these are metres")
        return inputs

    def measure(
        self, image: Path, sparse: Path | None, height: int, width: int
    ) -> tuple[Tensor, Tensor, tuple[str, ...]]:
        """Measurements [1, H, W], camera [3, 3] and notices of a frame; `image` is read for EXIF only."""
        depth = torch.zeros(1, height, width)
        camera, lens, notice = self._camera(image, height, width)
        notices = [notice] if notice else []
        straight = True
        if self.reconstruction is not None:
            depth, camera, notices = self._from_colmap(self.reconstruction, image, height, width)
            lens = self.lens(image, height, width)
        elif sparse is not None and self._is_cloud(sparse):
            depth, camera, notices = self._from_cloud(sparse, image, height, width)
        elif sparse is not None:
            depth, straight = as_sparse(sparse, height, width, self.scale), False
        if lens is not None and not straight:
            depth = undistorted_sparse(depth, camera, lens)
        if self.points:
            more = points_to_sparse(torch.tensor(self.points), height, width)
            more = more if lens is None else undistorted_sparse(more, camera, lens)
            depth = torch.where(measured(more), more, depth)
        if turned := orientation_notice(image):
            notices.insert(0, turned)
        return depth, camera, tuple(notices)

    def lens(self, image: Path, height: int, width: int) -> Lens | None:
        """The lens that pictures are freed from; clouds and models are projected without it."""
        if self.reconstruction is not None:
            return None if self.rectified else registered(self.reconstruction, image, height, width).lens
        return self._camera(image, height, width)[1] if self.calib is None else None

    def _camera(self, image: Path, height: int, width: int) -> tuple[Tensor, Lens | None, str | None]:
        matrix, lens, notice = as_camera(self.intrinsics, image, height, width, number=self.camera)
        if lens is not None and self.rectified:
            told = [part for part in (notice or "").split("; ") if part != UNDISTORTED]
            return matrix, None, "; ".join(told) or None
        return matrix, lens, notice

    def _is_cloud(self, sparse: Path) -> bool:
        located = self.calib is not None or self.extrinsics is not None
        return sparse.suffix.lower() in _CLOUDS or (located and sparse.suffix.lower() == ".npy")

    def _from_cloud(
        self, cloud: Path, image: Path, height: int, width: int
    ) -> tuple[Tensor, Tensor, list[str]]:
        to_camera: Tensor | None
        if self.calib is not None:
            calibration = kitti_calibration(self.calib, _KITTI_CAMERA if self.camera is None else self.camera)
            camera, notice = fitted_intrinsics(calibration.intrinsics, height, width)
            to_camera = calibration.to_camera
        elif self.intrinsics is None:
            raise InputError(
                f"{cloud} is a point cloud: give --calib (KITTI), or --intrinsics and, unless it is in "
                "camera coordinates already, --extrinsics"
            )
        else:
            camera, _, notice = self._camera(image, height, width)
            to_camera = None if self.extrinsics is None else read_transform(self.extrinsics)
        points = read_points(cloud)
        depth = remove_see_through(project(points, camera, height, width, to_camera))
        if not bool(measured(depth).any()):
            raise InputError(
                f"{cloud}: none of its {len(points)} points falls into the {width}×{height} picture: check "
                "the extrinsics (cloud to camera, x right, y down, z ahead) and the intrinsics"
            )
        return depth, camera.float(), [notice] if notice else []

    def _from_colmap(
        self, model: colmap.Reconstruction, image: Path, height: int, width: int
    ) -> tuple[Tensor, Tensor, list[str]]:
        found = registered(model, image, height, width)
        view = colmap.sparse_view(model, found.picture, self.units, camera=found.camera, undistorted=True)
        notices = []
        if self.units == 1:
            notices.append("COLMAP depth is in the model's own unit: --units METRES makes it metres")
        if found.resized:
            notices.append("COLMAP saw the pictures in another size: its cameras are resized with them")
        if found.lens is not None and not self.rectified:
            notices.append(UNDISTORTED)
        return view.sparse, view.intrinsics, notices


def parse_point(text: str) -> tuple[float, float, float]:
    """ "x,y,depth"."""
    try:
        x, y, depth = (float(word) for word in text.replace(",", " ").split())
    except ValueError:
        raise InputError(f"--points wants x,y,depth such as 120,80,2.5; got {text!r}") from None
    return x, y, depth


def parse_intrinsics(text: str | None) -> Tensor | Path | None:
    """ "fx,fy,cx,cy", or a file with that or a matrix, which must be readable now."""
    if text is None:
        return None
    if (path := Path(text)).is_file() or path.suffix.lower() in CAMERA_FILES:
        require_camera_file(path)
        return path
    try:
        numbers: Any = [float(word) for word in text.replace(",", " ").split()]
    except ValueError:
        raise InputError(f"--intrinsics wants fx,fy,cx,cy or a file; got {text!r}") from None
    return intrinsics_of(np.array(numbers))
