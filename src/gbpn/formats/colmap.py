"""COLMAP models (text or binary) → sparse depth per image, with its noise.

A model has its own unit: depths are multiplied by `scale` (metres per unit). COLMAP puts the centre of the
first pixel at (0.5, 0.5); here it is (0, 0).
"""

from __future__ import annotations

import os
import struct
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

import numpy as np

from gbpn.camera.lens import Lens
from gbpn.camera.pinhole import fitted_intrinsics
from gbpn.errors import DatasetError, InputError
from gbpn.files.atomic import checksum
from gbpn.files.guard import reading, require_size, shown
from gbpn.formats.colmap_noise import common_noise, depth_noise, point_covariances

if TYPE_CHECKING:
    from torch import Tensor

__all__ = [
    "MODELS",
    "Camera",
    "Reconstruction",
    "RegisteredImage",
    "SparseView",
    "lens_of_camera",
    "read_model",
    "sparse_view",
]

MODELS = {
    0: ("SIMPLE_PINHOLE", 3),
    1: ("PINHOLE", 4),
    2: ("SIMPLE_RADIAL", 4),
    3: ("RADIAL", 5),
    4: ("OPENCV", 8),
    5: ("OPENCV_FISHEYE", 8),
    6: ("FULL_OPENCV", 12),
    7: ("FOV", 5),
    8: ("SIMPLE_RADIAL_FISHEYE", 4),
    9: ("RADIAL_FISHEYE", 5),
    10: ("THIN_PRISM_FISHEYE", 12),
    11: ("RAD_TAN_THIN_PRISM_FISHEYE", 16),
}
"""COLMAP's number → name and count of parameters."""
_SINGLE_FOCAL = ("SIMPLE_PINHOLE", "SIMPLE_RADIAL", "RADIAL", "SIMPLE_RADIAL_FISHEYE", "RADIAL_FISHEYE")
_PARAMETERS = dict(MODELS.values())
_LONGEST_NAME = 4096
"""Bytes of the name of an image."""
_LENSES = {
    "SIMPLE_PINHOLE": "radtan",
    "PINHOLE": "radtan",
    "SIMPLE_RADIAL": "radtan",
    "RADIAL": "radtan",
    "OPENCV": "radtan",
    "FULL_OPENCV": "radtan",
    "OPENCV_FISHEYE": "equidistant",
    "SIMPLE_RADIAL_FISHEYE": "equidistant",
    "RADIAL_FISHEYE": "equidistant",
    "FOV": "fov",
}
"""Which lens of `gbpn.camera.lens` a model has; with COLMAP's order of parameters, which is OpenCV's."""


@dataclass(frozen=True, kw_only=True)
class Camera:
    """One camera as COLMAP stores it."""

    model: str
    width: int
    height: int
    parameters: np.ndarray


@dataclass(frozen=True, kw_only=True)
class RegisteredImage:
    """One registered image: its pose (world to camera) and the points it observes."""

    name: str
    camera: int
    rotation: np.ndarray
    """[3, 3]."""
    translation: np.ndarray
    """[3]."""
    points: np.ndarray
    """[N] ids of the observed 3D points."""

    def pose(self, scale: float = 1.0) -> np.ndarray:
        """[4, 4] camera → world, lengths multiplied by `scale`."""
        pose = np.eye(4)
        pose[:3, :3] = self.rotation.T
        pose[:3, 3] = -self.rotation.T @ self.translation * scale
        return pose


@dataclass(frozen=True, kw_only=True)
class Reconstruction:
    """A sparse reconstruction."""

    cameras: dict[int, Camera]
    pictures: list[RegisteredImage]
    """Sorted by name."""
    points: dict[int, np.ndarray]
    """id → x, y, z, mean reprojection error in pixels."""
    checksum: str = ""
    """Of the files that it was read from."""

    @cached_property
    def covariances(self) -> dict[int, np.ndarray]:
        """id → [3, 3] of each point, see `colmap_noise`."""
        return point_covariances(self)


@dataclass(frozen=True, kw_only=True)
class SparseView:
    """What a reconstruction knows about one image."""

    name: str
    sparse: Tensor
    """[1, H, W] depth."""
    std: Tensor
    """[1, H, W]: how sure the rays and the reprojection errors of a point leave its depth, see
    `colmap_noise`; 0 where there is no point."""
    common: float
    """Share of the depth by which the points may be off without contradicting each other."""
    intrinsics: Tensor
    """[3, 3], without distortion."""
    distortion: float
    """Largest displacement of a point by lens distortion, pixels: 0 for an undistorted image."""


def read_model(folder: str | Path) -> Reconstruction:
    """The model in `folder`: cameras, images and points3D as .bin or .txt."""
    folder = Path(folder)
    for suffix, readers in _READERS.items():
        files = [folder / f"{name}{suffix}" for name in ("cameras", "images", "points3D")]
        if all(os.path.isfile(file) for file in files):
            cameras, pictures, points = (
                _whole(reader, file) for reader, file in zip(readers, files, strict=True)
            )
            return Reconstruction(
                cameras=cameras,
                pictures=sorted(pictures, key=lambda picture: picture.name),
                points=points,
                checksum=" ".join(_whole(checksum, file) for file in files),
            )
    raise DatasetError(f"{shown(folder)}: expected cameras, images and points3D, all .bin or all .txt")


def _whole(reader: Callable[[Path], Any], file: Path) -> Any:
    with reading(file, "part of a COLMAP model", f"{file.stem} as COLMAP writes them"):
        return reader(file)


def sparse_view(
    model: Reconstruction,
    picture: RegisteredImage,
    scale: float = 1.0,
    *,
    camera: Camera | None = None,
    undistorted: bool = False,
) -> SparseView:
    """Depth of the points that `picture` observes, at the pixels where they appear in it.

    camera       another than the picture's own, such as one of resized pictures
    undistorted  the pixels of the undistorted picture, see `gbpn.camera.lens`; else distortion moves the
                 points but not the intrinsics

    What the model says of the camera and of its size is checked before memory is taken for it.
    """
    import torch

    camera = _checked(picture, _camera(model, picture) if camera is None else camera)
    focal_x, focal_y, centre_x, centre_y = _pinhole(camera)
    intrinsics = torch.tensor(
        [[focal_x, 0, centre_x], [0, focal_y, centre_y], [0, 0, 1]], dtype=torch.float64
    ).float()
    try:
        fitted, _ = fitted_intrinsics(intrinsics, camera.height, camera.width)
        if fitted is not intrinsics:
            raise InputError(f"focal lengths {focal_x:g}, {focal_y:g} are not pixels: export the model again")
    except InputError as error:
        raise DatasetError(f"COLMAP camera {picture.camera} of {shown(picture.name)}: {error}") from error
    lens = None if undistorted else lens_of_camera(camera)
    with np.errstate(all="ignore"):  # points at infinity fall out of the picture
        return _view(model, picture, scale, intrinsics, camera, lens)


def lens_of_camera(camera: Camera) -> Lens | None:
    """The camera's lens; None where it bends nothing."""
    parameters = camera.parameters[_focal_and_centre(camera) :]
    lens = Lens(kind=_LENSES[camera.model], parameters=tuple(parameters.tolist()))
    return None if lens.straight else lens


def _camera(model: Reconstruction, picture: RegisteredImage) -> Camera:
    if picture.camera not in model.cameras:
        raise DatasetError(
            f"{shown(picture.name)}: its camera {picture.camera} is not among the {len(model.cameras)} "
            f"there are"
        )
    return model.cameras[picture.camera]


def _checked(picture: RegisteredImage, camera: Camera) -> Camera:
    """The camera of a picture, if it is one that a picture can have."""
    name = shown(picture.name)
    wanted = _PARAMETERS.get(camera.model)
    if wanted is not None and len(camera.parameters) != wanted:
        raise DatasetError(
            f"{name}: a {camera.model} camera has {wanted} parameters; got {len(camera.parameters)}"
        )
    if not (np.isfinite(picture.rotation).all() and np.isfinite(picture.translation).all()):
        raise DatasetError(f"{name}: its pose must be finite; got NaN or infinity: a damaged model?")
    if not np.isfinite(camera.parameters).all():
        raise DatasetError(f"{name}: its camera must be finite; got {shown(camera.parameters.tolist())}")
    require_size(f"{name}: a COLMAP camera", camera.height, camera.width)
    return camera


def _view(
    model: Reconstruction,
    picture: RegisteredImage,
    scale: float,
    intrinsics: Tensor,
    camera: Camera,
    lens: Lens | None,
) -> SparseView:
    import torch

    focal_x, focal_y, centre_x, centre_y = _pinhole(camera)
    numbers = np.array([n for n in np.unique(picture.points).tolist() if n in model.points], np.int64)
    table = np.array([model.points[number] for number in numbers.tolist()]).reshape(-1, 4)
    seen = table[:, :3] @ picture.rotation.T + picture.translation
    numbers, seen = numbers[seen[:, 2] > 1e-6], seen[seen[:, 2] > 1e-6]
    noise = depth_noise(model, picture, numbers, seen[:, 2])
    x, y = seen[:, 0] / seen[:, 2], seen[:, 1] / seen[:, 2]
    moved_x, moved_y = (x, y) if lens is None else lens.distort(x, y)
    shift = np.hypot(focal_x * (moved_x - x), focal_y * (moved_y - y))
    column, row = np.rint(focal_x * moved_x + centre_x), np.rint(focal_y * moved_y + centre_y)
    inside = (column >= 0) & (column < camera.width) & (row >= 0) & (row < camera.height)
    inside &= np.isfinite((seen[:, 2] * scale).astype(np.float32))
    order = np.flatnonzero(inside)[np.argsort(-seen[inside, 2], kind="stable")]  # the nearest is written last
    place = row[order].astype(np.int64), column[order].astype(np.int64)
    sparse, std = np.zeros((2, camera.height, camera.width), np.float32)
    sparse[place] = seen[order, 2] * scale
    std[place] = noise[order] * scale
    return SparseView(
        name=picture.name,
        sparse=torch.from_numpy(sparse)[None],
        std=torch.from_numpy(std)[None],
        common=common_noise(noise, seen[:, 2]),
        intrinsics=intrinsics,
        distortion=float(shift[inside].max(initial=0)),
    )


def _pinhole(camera: Camera) -> tuple[float, float, float, float]:
    """fx, fy, cx, cy with pixel centres at integers."""
    values = camera.parameters
    if _focal_and_centre(camera) == 3:
        return values[0], values[0], values[1] - 0.5, values[2] - 0.5
    return values[0], values[1], values[2] - 0.5, values[3] - 0.5


def _focal_and_centre(camera: Camera) -> int:
    """How many parameters come before those of the lens."""
    if camera.model not in _LENSES:
        raise InputError(
            f"camera model {shown(camera.model)} is not a pinhole with a radial, tangential, fisheye or "
            f"FOV lens: "
            "run 'colmap image_undistorter' and use its output"
        )
    return 3 if camera.model in _SINGLE_FOCAL else 4


def _rotation(quaternion: np.ndarray) -> np.ndarray:
    """[3, 3] of (w, x, y, z)."""
    length = np.linalg.norm(quaternion)
    if not (np.isfinite(length) and length > 1e-9):
        raise ValueError(f"the quaternion {shown(quaternion.tolist())} is no rotation")
    w, x, y, z = quaternion / length
    return np.array(
        [
            [1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y)],
            [2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x)],
            [2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)],
        ]
    )


def _text_cameras(path: Path) -> dict[int, Camera]:
    return {
        int(words[0]): Camera(
            model=words[1], width=int(words[2]), height=int(words[3]), parameters=np.array(words[4:], float)
        )
        for words in _lines(path)
    }


def _text_pictures(path: Path) -> list[RegisteredImage]:
    """Pairs of lines: the pose, then the keypoints, which may be an empty line."""
    text = [line for line in path.read_text().splitlines() if not line.startswith("#")]
    while text and not text[-1].strip():
        text.pop()
    text += [""] * (len(text) % 2)  # the last image observes nothing
    pictures = []
    for pose, observed in zip(text[::2], text[1::2], strict=True):
        words = pose.split(maxsplit=9)
        pictures.append(
            RegisteredImage(
                name=words[9],
                camera=int(words[8]),
                rotation=_rotation(np.array(words[1:5], float)),
                translation=np.array(words[5:8], float),
                points=np.array(observed.split()[2::3], np.int64),
            )
        )
    return pictures


def _text_points(path: Path) -> dict[int, np.ndarray]:
    return {int(words[0]): np.array([*words[1:4], words[7]], float) for words in _lines(path)}


def _lines(path: Path) -> list[list[str]]:
    lines = (line.strip() for line in path.read_text().splitlines())
    return [line.split() for line in lines if line and not line.startswith("#")]


def _binary_cameras(path: Path) -> dict[int, Camera]:
    cameras = {}
    with open(path, "rb") as file:
        for _ in range(_take(file, "Q")[0]):
            number, kind, width, height = _take(file, "iiQQ")
            if kind not in MODELS:
                raise ValueError(f"camera model number {kind}")
            name, count = MODELS[kind]
            parameters = np.array(_take(file, f"{count}d"))
            cameras[number] = Camera(model=name, width=width, height=height, parameters=parameters)
    return cameras


def _binary_pictures(path: Path) -> list[RegisteredImage]:
    pictures = []
    with open(path, "rb") as file:
        for _ in range(_take(file, "Q")[0]):
            pose = _take(file, "i7di")
            letters = bytearray()
            while (letter := _exactly(file, 1)) != b"\0":
                letters += letter
                if len(letters) > _LONGEST_NAME:
                    raise ValueError(f"the name of an image is longer than {_LONGEST_NAME} bytes")
            count = _take(file, "Q")[0]
            observed = np.frombuffer(
                _exactly(file, 24 * count), np.dtype([("xy", "<f8", 2), ("point", "<i8")])
            )
            pictures.append(
                RegisteredImage(
                    name=letters.decode(),
                    camera=pose[8],
                    rotation=_rotation(np.array(pose[1:5])),
                    translation=np.array(pose[5:8]),
                    points=observed["point"].copy(),
                )
            )
    return pictures


def _binary_points(path: Path) -> dict[int, np.ndarray]:
    points = {}
    with open(path, "rb") as file:
        for _ in range(_take(file, "Q")[0]):
            number, x, y, z, _, _, _, error, length = _take(file, "Q3d3BdQ")
            _exactly(file, 8 * length)
            points[number] = np.array([x, y, z, error])
    return points


_READERS: dict[str, tuple[Callable[[Path], Any], ...]] = {
    ".bin": (_binary_cameras, _binary_pictures, _binary_points),
    ".txt": (_text_cameras, _text_pictures, _text_points),
}


def _take(file: BinaryIO, layout: str) -> tuple[Any, ...]:
    return struct.unpack("<" + layout, _exactly(file, struct.calcsize("<" + layout)))


def _exactly(file: BinaryIO, count: int) -> bytes:
    left = os.fstat(file.fileno()).st_size - file.tell()
    if count > left:  # looked at first: memory is taken for as many bytes as are asked for
        raise ValueError(f"the file ends {count - left} bytes early")
    return file.read(count)
