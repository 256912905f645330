"""Where the measurements of a frame come from: depth files, tables of points, point clouds, COLMAP models."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch import Tensor

from gbpn.camera.lens import Lens, undistorted_picture
from gbpn.camera.pinhole import FocalLength, fitted_intrinsics
from gbpn.camera.wide import Panorama
from gbpn.errors import InputError
from gbpn.files.atomic import checksum
from gbpn.formats import colmap
from gbpn.formats.calibration import kitti_calibration
from gbpn.formats.camera_files import read_transform
from gbpn.formats.colmap_layout import registered
from gbpn.formats.depth_files import require_scale
from gbpn.formats.images import orientation_notice
from gbpn.formats.point_clouds import read_rated_points
from gbpn.inputs.frame import FrameInputs
from gbpn.inputs.measurements import DepthSensor, Measurements, rated, undistorted_measurements
from gbpn.inputs.prior import as_prior, undistorted_prior
from gbpn.inputs.reading import UNDISTORTED, as_camera, as_image, as_measurements
from gbpn.inputs.wide import wide_camera, wide_cloud, wide_inputs
from gbpn.jobs.pairing import CLOUDS
from gbpn.measurements.validity import measured
from gbpn.sensors.projection import points_to_sparse, project_values, remove_see_through
from gbpn.sigma.reservation import FEATURES, Reservation

__all__ = ["WITHOUT_UNIT", "Readings", "Sensor"]

WITHOUT_UNIT = (
    "depths have no unit, they are in that of the COLMAP model: --units METRES (metres per unit) makes them "
    "metres"
)
"""What is said of a frame whose depths are not metres."""
_KITTI_CAMERA = 2
"""The left colour camera."""


class Readings(NamedTuple):
    """What a frame's files say, apart from its picture."""

    measurements: Measurements
    camera: Tensor
    """[3, 3]."""
    lens: Lens | None
    """That the picture has still to be freed from."""
    notices: tuple[str, ...]
    reservation: Reservation | None = None


@dataclass(frozen=True, kw_only=True)
class Sensor:
    """What is the same for all frames of a run."""

    points: tuple[tuple[float, float, float], ...] = ()
    """x, y, depth, added to every frame."""
    scale: float | None = None
    """What depth files are divided by."""
    intrinsics: Tensor | FocalLength | Panorama | Path | None = None
    """[3, 3], millimetres, a panorama, a file, or None: EXIF, else a stated default."""
    fisheye: float | None = None
    """Degrees that the lens of the camera file sees, all of which is completed; None: it is undistorted."""
    extrinsics: Path | None = None
    """File with the cloud-to-camera matrix."""
    calib: Path | None = None
    """KITTI calibration file or folder, instead of intrinsics and extrinsics."""
    camera: int | None = None
    """Which camera of a KITTI calibration, by default 2, or of a Kalibr chain, by default the first."""
    rectified: bool = False
    """Whether the pictures are undistorted already, whatever lens the camera file has."""
    units: float | None = None
    """Metres per unit of a COLMAP model; None: not known, and its depths have no unit."""
    reconstruction: colmap.Reconstruction | None = None
    """A COLMAP model with the frames in it."""
    sigma: float | str | Path | None = None
    """Of the measurements: metres, a share such as "1%", or a file or folder of maps."""
    confidence: Path | None = None
    """File or folder of maps, see `formats.confidence_files`."""
    depth_camera: Tensor | FocalLength | Panorama | Path | None = None
    """Intrinsics of a depth camera that is not the colour camera."""
    depth_extrinsics: Path | None = None
    """File with the matrix depth camera to colour camera."""
    prior: Path | None = None
    """Another network's depth map, or a folder with one of each image's name."""

    def __post_init__(self) -> None:
        if self.calib is not None and (self.intrinsics is not None or self.extrinsics is not None):
            raise InputError("give either --calib or --intrinsics with --extrinsics, not both")
        require_scale(self.scale)
        if self.wide:
            self._require_ranges()
        if self.units is not None and not (math.isfinite(self.units) and self.units > 0):
            raise InputError(f"--units must be metres per unit, above 0; got {self.units}")

    @property
    def wide(self) -> bool:
        """Whether pictures are panoramas or of a fisheye lens, completed view by view."""
        return isinstance(self.intrinsics, Panorama) or self.fisheye is not None

    def read(self, image: Path, sparse: Path | None) -> FrameInputs:
        """One frame with its measurements and its camera."""
        return self.of_picture(as_image(image), image, sparse)

    def of_picture(self, picture: Tensor, image: Path, sparse: Path | None) -> FrameInputs:
        """The same for a picture [3, H, W] that was read already; `image` is where it came from."""
        if self.wide:
            return self._judged(self._wide(picture, image, sparse), sparse)
        found, camera, lens, notices, reservation = self.readings(image, sparse, *picture.shape[1:])
        height, width = picture.shape[1:]
        prior = None
        if self.prior is not None:
            prior, told = as_prior(_file_of(self.prior, image, "--prior"), height, width)
            notices = (*notices, told) if told else notices
        if lens is not None:
            picture = undistorted_picture(picture, camera, lens)
            prior = None if prior is None else undistorted_prior(prior, height, width, camera, lens)
        inputs = FrameInputs(
            image=picture,
            sparse=found.sparse,
            intrinsics=camera,
            notices=notices,
            scale=self.scale,
            std=found.std,
            weight=found.weight,
            areas=found.areas,
            prior=prior,
            metric=self.reconstruction is None or self.units is not None,
            reservation=reservation,
        )
        return self._judged(inputs, sparse)

    def _judged(self, inputs: FrameInputs, sparse: Path | None) -> FrameInputs:
        """The frame, if nothing speaks against its depths being metres."""
        if inputs.doubt is not None and self.scale is None:
            raise InputError(f"{sparse or 'points'}: {inputs.doubt}; --scale 1 if these are metres")
        return inputs

    def _wide(self, picture: Tensor, image: Path, sparse: Path | None) -> FrameInputs:
        """A frame of a wide camera, with ranges for depths."""
        height, width = picture.shape[1:]
        camera, told = wide_camera(
            self.intrinsics, self.fisheye, height, width, image=image, number=self.camera
        )
        assert camera is not None
        sensor, found = self.depth_sensor(sparse or image), Measurements(sparse=torch.zeros(1, height, width))
        if sparse is not None and self._is_cloud(sparse):
            pose = None if self.extrinsics is None else read_transform(self.extrinsics)
            points, std, weight = read_rated_points(sparse)
            found = rated(wide_cloud(points, camera, height, width, pose, std=std, weight=weight), sensor)
        elif sparse is not None:
            found = as_measurements(sparse, height, width, self.scale, sensor, camera)
        if self.points:
            found = _with_points(found, points_to_sparse(torch.tensor(self.points), height, width))
        notices = (orientation_notice(image), told)
        return wide_inputs(picture, found, camera, notices=notices, scale=self.scale)

    def _require_ranges(self) -> None:
        """Raise for what is known of pinhole pictures only."""
        what = "a panorama" if self.fisheye is None else "a picture of --fisheye"
        for option, given in (
            ("a COLMAP model", self.reconstruction),
            ("--calib", self.calib),
            ("--prior", self.prior),
            ("--rectified", self.rectified or None),
        ):
            if given is not None:
                raise InputError(f"{option} is for pinhole pictures, and this is {what}: leave it out")
        if self.fisheye is not None and not isinstance(self.intrinsics, Path):
            raise InputError(
                "--fisheye wants the file of a camera with an equidistant lens: give --intrinsics FILE"
            )

    def measure(
        self, image: Path, sparse: Path | None, height: int, width: int
    ) -> tuple[Tensor, Tensor, tuple[str, ...]]:
        """Measurements [1, H, W], camera [3, 3] and notices of a frame; `image` is read for EXIF only."""
        found, camera, _, notices, _ = self.readings(image, sparse, height, width)
        return found.sparse, camera, notices

    def readings(self, image: Path, sparse: Path | None, height: int, width: int) -> Readings:
        """As `measure`, with all that is known of the measurements; those have no lens any more."""
        if self.wide:
            raise InputError(
                "this works on pinhole pictures; panoramas and --fisheye are for gbpn complete: leave them "
                "out"
            )
        found, reservation = Measurements(sparse=torch.zeros(1, height, width)), None
        sensor = self.depth_sensor(sparse or image)
        if self.reconstruction is not None:
            found, camera, lens, notices, reservation = self._from_colmap(
                self.reconstruction, image, height, width
            )
            found = rated(found, sensor)
        elif sparse is not None and self._is_cloud(sparse):
            found, camera, lens, notices = self._from_cloud(sparse, image, height, width)
            found = rated(found, sensor)
        else:
            camera, lens, notice = self._camera(image, height, width)
            notices = [notice] if notice else []
            if sparse is not None:
                found = as_measurements(sparse, height, width, self.scale, sensor, camera)
                notices += [found.notice] if found.notice else []
                found = found if lens is None else undistorted_measurements(found, camera, lens)
        if self.points:
            more = Measurements(sparse=points_to_sparse(torch.tensor(self.points), height, width))
            more = more if lens is None else undistorted_measurements(more, camera, lens)
            found = _with_points(found, more.sparse)
        if turned := orientation_notice(image):
            notices.insert(0, turned)
        return Readings(found, camera, lens, tuple(notices), reservation)

    def place(self, image: Path, height: int, width: int) -> dict[str, Any]:
        """Where a frame was taken, for its record, in the unit of its depth; empty: not known."""
        if self.reconstruction is None:
            return {}
        picture = registered(self.reconstruction, image, height, width).picture
        return {"pose": picture.pose(self.units or 1.0).tolist(), "metres_per_unit": self.units}

    def depth_sensor(self, of: Path) -> DepthSensor:
        """What is known of the sensor for the frame whose measurements or picture are `of`."""
        sigma = self.sigma
        return DepthSensor(
            sigma=_file_of(sigma, of, "--sigma") if isinstance(sigma, Path) else sigma,
            confidence=None if self.confidence is None else _file_of(self.confidence, of, "--confidence"),
            intrinsics=self.depth_camera,
            to_image=self.depth_extrinsics,
        )

    def settings(self) -> dict[str, Any]:
        """What measurements depend on besides each frame's own files, as plain data; files by contents."""
        return {name: _plain_setting(value) for name, value in vars(self).items()}

    def rating_files(self, image: Path, sparse: Path | None) -> list[Path]:
        """The files of a frame besides its picture and its measurements."""
        sensor = self.depth_sensor(sparse or image)
        prior = None if self.prior is None else _file_of(self.prior, image, "--prior")
        return [file for file in (sensor.sigma, sensor.confidence, prior) if isinstance(file, Path)]

    def _camera(self, image: Path, height: int, width: int) -> tuple[Tensor, Lens | None, str | None]:
        matrix, lens, notice = as_camera(self.intrinsics, image, height, width, number=self.camera)
        if lens is not None and self.rectified:
            told = [part for part in (notice or "").split("; ") if part != UNDISTORTED]
            return matrix, None, "; ".join(told) or None
        return matrix, lens, notice

    def _is_cloud(self, sparse: Path) -> bool:
        located = self.calib is not None or self.extrinsics is not None
        return sparse.suffix.lower() in CLOUDS or (located and sparse.suffix.lower() == ".npy")

    def _from_cloud(
        self, cloud: Path, image: Path, height: int, width: int
    ) -> tuple[Measurements, Tensor, Lens | None, list[str]]:
        to_camera: Tensor | None
        lens = None
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
            camera, lens, notice = self._camera(image, height, width)
            to_camera = None if self.extrinsics is None else read_transform(self.extrinsics)
        points, std, weight = read_rated_points(cloud)
        maps = project_values(points, [std, weight], camera, height, width, to_camera)
        depth = remove_see_through(maps[:1])
        if not bool(measured(depth).any()):
            raise InputError(
                f"{cloud}: none of its {len(points)} points falls into the {width}×{height} picture: check "
                "the extrinsics (cloud to camera, x right, y down, z ahead) and the intrinsics"
            )
        found = Measurements(sparse=depth, std=maps[1:2] if std is not None else None)
        if weight is not None:
            found = replace(found, sparse=torch.where(maps[-1:] > 0, depth, 0.0), weight=maps[-1:])
        return found, camera.float(), lens, [notice] if notice else []

    def _from_colmap(
        self, model: colmap.Reconstruction, image: Path, height: int, width: int
    ) -> tuple[Measurements, Tensor, Lens | None, list[str], Reservation]:
        found = registered(model, image, height, width)
        scale = self.units or 1.0
        view = colmap.sparse_view(model, found.picture, scale, camera=found.camera, undistorted=True)
        notices = []
        if self.units is None:
            notices.append(WITHOUT_UNIT)
        if found.resized:
            notices.append("COLMAP saw the pictures in another size: its cameras are resized with them")
        lens = None if self.rectified else found.lens
        if lens is not None:
            notices.append(UNDISTORTED)
        reservation = Reservation(common=view.common, spread=FEATURES)
        std = view.std if bool(view.std.any()) else None
        return Measurements(sparse=view.sparse, std=std), view.intrinsics, lens, notices, reservation


def _with_points(found: Measurements, more: Tensor) -> Measurements:
    """The measurements and points [1, H, W] given by hand, which count fully."""
    there = measured(more)
    return replace(
        found,
        sparse=torch.where(there, more, found.sparse),
        std=None if found.std is None else torch.where(there, 0.0, found.std),
        weight=None if found.weight is None else torch.where(there, 1.0, found.weight),
        areas=None,
    )


def _plain_setting(value: Any) -> Any:
    if isinstance(value, Tensor):
        return value.tolist()
    if isinstance(value, Panorama):
        return value.as_json()
    if isinstance(value, colmap.Reconstruction):
        return value.checksum
    if isinstance(value, Path):
        files = [value] if value.is_file() else sorted(value.glob("calib*.txt"))  # KITTI's are a folder
        return " ".join([str(value), *map(checksum, files)])
    return str(value)


def _file_of(place: Path, frame: Path, option: str) -> Path:
    """The file for a frame: `place` itself, or the one of the frame's name in it."""
    if not place.is_dir():
        return place
    found = sorted(file for file in place.iterdir() if file.stem == frame.stem)
    if len(found) != 1:
        raise InputError(f"{option} {place}: wanted one file called {frame.stem}; got {len(found)}")
    return found[0]
