"""Cameras as people have them: one reader for the files of ROS, Kalibr, OpenCV, nerfstudio, and plain
numbers.

ROS         camera_info as YAML: of camera_calibration, or a message as `ros2 topic echo --once` prints it
Kalibr      camchain.yaml: cam0, cam1, …
OpenCV      FileStorage (.yaml, .xml, .json): a camera matrix and distortion coefficients
nerfstudio  transforms.json: fl_x, fl_y, cx, cy, of the file or of a frame
plain       fx fy cx cy or a matrix (.txt, .npy), or JSON and YAML with K, and perhaps D, T, width and height

Pixel centres are integers here, as in ROS, Kalibr and OpenCV; nerfstudio counts from the pixel's corner.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any

import numpy as np

from gbpn.camera.lens import Lens
from gbpn.camera.pinhole import require_camera
from gbpn.errors import DatasetError
from gbpn.files.guard import reading, shown
from gbpn.formats.arrays import numeric
from gbpn.formats.calibration import intrinsics_of, read_extrinsics, read_intrinsics, rigid_transform
from gbpn.formats.structured_files import STRUCTURED, read_structured

if TYPE_CHECKING:
    from torch import Tensor

__all__ = [
    "CAMERA_FILES",
    "CameraFile",
    "camera_info",
    "lens_of",
    "read_camera",
    "read_transform",
    "require_camera_file",
    "resized",
]

CAMERA_FILES = (".txt", ".npy", *STRUCTURED)
"""Suffixes of files that can hold a camera."""
_EXPECTED = "a camera: ROS camera_info, Kalibr camchain, OpenCV FileStorage, transforms.json, or K"
_NO_LENS = ("", "none", "pinhole", "perspective")
_LENS_NAMES = {
    "plumb_bob": "radtan", "radtan": "radtan", "rational_polynomial": "radtan", "opencv": "radtan",
    "brown": "radtan", "brown_conrady": "radtan", "radial-tangential": "radtan", "simple_radial": "radtan",
    "radial": "radtan", "full_opencv": "radtan",
    "equidistant": "equidistant", "equi": "equidistant", "fisheye": "equidistant",
    "opencv_fisheye": "equidistant", "kannala_brandt4": "equidistant",
    "fov": "fov",
}  # fmt: skip
"""What others call the lenses of `gbpn.camera.lens`."""
_MATRIX_NAMES = ("K", "k", "camera_matrix", "cameraMatrix", "Camera_Matrix", "intrinsics", "intrinsic_matrix")
_LENS_PARAMETERS = (
    "D",
    "d",
    "distortion_coefficients",
    "distCoeffs",
    "Distortion_Coefficients",
    "dist_coeffs",
)
_TRANSFORM_NAMES = ("T", "to_camera", "T_cam_lidar", "T_cam_cloud", "transform", "extrinsics")
_SAME_ASPECT = 0.01
"""Relative difference of the two factors up to which a picture counts as resized; sides are whole pixels."""
_LARGEST_SIDE = 10**6
"""Pixels of the longer side of a picture."""
_THIN_PRISM = 12
"""OpenCV's coefficients from the ninth on bend in ways that no file met so far uses: they must be 0."""


@dataclass(frozen=True, kw_only=True)
class CameraFile:
    """What a file says of a camera."""

    intrinsics: Tensor
    """[3, 3] float64."""
    lens: Lens | None = None
    """None: nothing bends."""
    size: tuple[int, int] | None = None
    """(width, height) of the pictures it was calibrated with, where the file says so."""


def read_camera(
    path: str | Path, *, number: int | None = None, image: str | Path | None = None
) -> CameraFile:
    """The camera of a file, see the module.

    number  which camera of a Kalibr chain; the first one if it is None
    image   the picture, for files that hold one camera per picture
    """
    path = Path(path)
    if path.suffix.lower() not in STRUCTURED:
        return CameraFile(intrinsics=read_intrinsics(path).double())
    table = read_structured(path, _EXPECTED) if not _is_list(path) else {"K": read_intrinsics(path).numpy()}
    with reading(path, "calibration file", _EXPECTED):
        try:
            return _of_table(table, number, image)
        except DatasetError as error:
            raise DatasetError(f"{shown(path)}: {error}") from error


def resized(camera: CameraFile, height: int, width: int) -> tuple[CameraFile, str | None]:
    """The camera of a `height` × `width` picture, and a notice where it was calibrated with another size."""
    if camera.size is None or camera.size == (width, height):
        return camera, None
    wide, high = camera.size
    if abs(width / wide - height / high) > _SAME_ASPECT * height / high:
        raise DatasetError(
            f"the camera was calibrated with {shown(wide)}×{shown(high)} pictures; got {width}×{height}, "
            f"which is "
            "no resize of that: crop the intrinsics likewise, or give those of this picture"
        )
    matrix = camera.intrinsics.clone()
    matrix[0], matrix[1] = matrix[0] * (width / wide), matrix[1] * (height / high)
    matrix[0, 2] += 0.5 * (width / wide - 1)  # the corners of a picture stay its corners, not its centres
    matrix[1, 2] += 0.5 * (height / high - 1)
    sizes = f"{wide}×{high} pictures: its intrinsics are resized to {width}×{height}"
    notice = f"the camera was calibrated with {sizes}"
    return replace(camera, intrinsics=matrix, size=(width, height)), notice


def camera_info(message: Any) -> CameraFile:
    """A CameraInfo message of ROS 1 (K, D) or ROS 2 (k, d), or its fields by name."""

    def get(name: str) -> Any:
        return message.get(name) if isinstance(message, dict) else getattr(message, name, None)

    matrix = get("K") if get("K") is not None else get("k")
    lens = get("D") if get("D") is not None else get("d")
    if matrix is None or not np.any(numeric(matrix)):
        raise DatasetError("this camera_info is not calibrated: its K is 0; calibrate, or give --intrinsics")
    return CameraFile(
        intrinsics=_matrix(matrix),
        lens=lens_of(str(get("distortion_model") or ""), () if lens is None else lens),
        size=_size(get("width"), get("height")),
    )


def lens_of(model: str, parameters: Any) -> Lens | None:
    """The lens of this name with these parameters; None where it bends nothing."""
    values = numeric(parameters).astype(np.float64).reshape(-1) if len(parameters) else np.zeros(0)
    name = model.strip().lower()
    if name in _NO_LENS and not values.any():
        return None
    kind = "radtan" if name in _NO_LENS else _LENS_NAMES.get(name)
    if kind is None:
        raise DatasetError(
            f"distortion model {shown(model)!r} is not known; known are "
            f"{', '.join(sorted(_LENS_NAMES))} and none: undistort the pictures first and give --intrinsics"
        )
    if kind == "radtan" and len(values) >= _THIN_PRISM and not values[8:].any():
        values = values[:8]
    if kind == "equidistant" and not len(values):
        raise DatasetError("an equidistant lens wants its four parameters; got none")
    lens = Lens(kind=kind, parameters=tuple(values.tolist()))
    return None if lens.straight else lens


def require_camera_file(path: str | Path) -> None:
    """Raise unless there is a camera in the file; those with one per picture are looked at when it is
    there."""
    path = Path(path)
    if path.suffix.lower() in STRUCTURED and not _is_list(path):
        table = read_structured(path, _EXPECTED)
        if "frames" in table and "fl_x" not in table and "camera_angle_x" not in table:
            return
    read_camera(path)


def read_transform(path: str | Path) -> Tensor:
    """[4, 4] float64, cloud to camera: numbers, or a file with T, to_camera, T_cam_lidar …, or R and t."""
    path = Path(path)
    if path.suffix.lower() not in STRUCTURED or _is_list(path):
        return read_extrinsics(path)
    expected = f"a 3×4 or 4×4 matrix called {', '.join(_TRANSFORM_NAMES)}, or R and t"
    table = read_structured(path, expected)
    with reading(path, "calibration file", expected):
        for name in _TRANSFORM_NAMES:
            if name in table and (values := numeric(table[name])).size in (12, 16):
                return rigid_transform(path, values.astype(np.float64))
        turn, move = table.get("R"), table.get("t", table.get("T"))
        if turn is None or move is None:
            raise ValueError(f"only {shown(', '.join(map(str, table)))}")
        return rigid_transform(
            path, np.hstack([numeric(turn).reshape(3, 3), numeric(move).reshape(3, 1)]).astype(np.float64)
        )


def _is_list(path: Path) -> bool:
    """Whether a JSON file is a matrix without a name."""
    if path.suffix.lower() != ".json" or not path.is_file():
        return False
    with open(path, "rb") as file:
        return file.read(64).lstrip(b"\xef\xbb\xbf \t\r\n").startswith(b"[")


def _of_table(table: dict[str, Any], number: int | None, image: str | Path | None) -> CameraFile:
    if any(_is_chain_name(name) for name in table):
        return _kalibr(table, number)
    if "fl_x" in table or "camera_angle_x" in table or "frames" in table:
        return _nerfstudio(table, image)
    if "distortion_model" in table and ("width" in table or "K" in table or "k" in table):
        return camera_info(table)
    return _named_matrix(table)


def _is_chain_name(name: Any) -> bool:
    return isinstance(name, str) and name.startswith("cam") and name[3:].isdecimal()


def _kalibr(table: dict[str, Any], number: int | None) -> CameraFile:
    names = [name for name in table if _is_chain_name(name)]
    name = names[0] if number is None else f"cam{number}"
    if name not in names:
        raise DatasetError(f"there is no {name}; there are {', '.join(names)}: choose with --camera")
    camera = table[name]
    model = str(camera.get("camera_model", "pinhole"))
    if model != "pinhole":
        raise DatasetError(
            f"{name} is a {shown(model)!r} camera and no pinhole: calibrate with pinhole-radtan or "
            f"pinhole-equi"
        )
    width, height = camera.get("resolution", (None, None))
    return CameraFile(
        intrinsics=intrinsics_of(numeric(camera["intrinsics"])).double(),
        lens=lens_of(str(camera.get("distortion_model", "none")), camera.get("distortion_coeffs", ())),
        size=_size(width, height),
    )


def _nerfstudio(table: dict[str, Any], image: str | Path | None) -> CameraFile:
    frames = [frame for frame in table.get("frames", ()) if isinstance(frame, dict)]
    if "fl_x" not in table and "camera_angle_x" not in table:
        wanted = None if image is None else PurePosixPath(Path(image).as_posix())
        own = [f for f in frames if wanted is not None and _same_picture(str(f.get("file_path", "")), wanted)]
        if len(own) != 1:
            raise DatasetError(
                f"each frame has a camera of its own, and {len(own)} of {len(frames)} are of "
                f"{shown(wanted)}: is the picture one of this capture?"
            )
        table = {**table, **own[0]}
    width, height = table.get("w"), table.get("h")
    if "fl_x" in table:
        fx, fy = float(table["fl_x"]), float(table.get("fl_y", table["fl_x"]))
    elif width is None:
        raise DatasetError("camera_angle_x needs w and h beside it")
    else:
        fx = fy = float(width) / (2 * np.tan(float(table["camera_angle_x"]) / 2))
    cx = float(table["cx"]) if "cx" in table else float(width or 0) / 2
    cy = float(table["cy"]) if "cy" in table else float(height or 0) / 2
    model = str(table.get("camera_model", "OPENCV"))
    fisheye = _LENS_NAMES.get(model.lower()) == "equidistant"
    names = ("k1", "k2", "k3", "k4") if fisheye else ("k1", "k2", "p1", "p2", "k3")
    if not fisheye and float(table.get("k4", 0.0)):
        raise DatasetError("k4 of a nerfstudio camera that is no fisheye is not known here: undistort first")
    return CameraFile(
        intrinsics=_matrix([fx, 0, cx - 0.5, 0, fy, cy - 0.5, 0, 0, 1]),
        lens=lens_of(model, [float(table.get(name, 0.0)) for name in names]),
        size=_size(width, height),
    )


def _same_picture(listed: str, image: PurePosixPath) -> bool:
    """Whether a frame's path is the end of the picture's, or of its name only."""
    parts = PurePosixPath(listed).parts
    return bool(parts) and image.parts[-len(parts) :] == parts[-len(image.parts) :]


def _named_matrix(table: dict[str, Any]) -> CameraFile:
    """OpenCV's and ROS's `camera_matrix`, or a plain K."""
    name = next((name for name in _MATRIX_NAMES if name in table), None)
    if name is None:
        raise DatasetError(
            f"no camera in it; it has {shown(', '.join(map(str, table)))}: expected {_EXPECTED}"
        )
    lens_name = next((name for name in _LENS_PARAMETERS if name in table), None)
    model = str(table.get("distortion_model", table.get("camera_model", "")))
    if not model and float(table.get("fisheye_model", 0) or 0):
        model = "fisheye"
    width = table.get("image_width", table.get("image_Width", table.get("width")))
    height = table.get("image_height", table.get("image_Height", table.get("height")))
    return CameraFile(
        intrinsics=_matrix(_values(table[name])),
        lens=lens_of(model, [] if lens_name is None else _values(table[lens_name])),
        size=_size(width, height),
    )


def _values(entry: Any) -> Any:
    """The numbers of a matrix as ROS writes it: rows, cols, data."""
    return numeric(entry["data"] if isinstance(entry, dict) else entry).reshape(-1)


def _matrix(values: Any) -> Tensor:
    import torch

    numbers = numeric(values).astype(np.float64).reshape(-1)
    if numbers.size == 4:
        return intrinsics_of(numbers).double()
    matrix = numbers.reshape({9: (3, 3), 12: (3, 4), 16: (4, 4)}.get(numbers.size, (3, 3)))[:3, :3]
    require_camera(matrix)
    return torch.from_numpy(matrix.copy())


def _size(width: Any, height: Any) -> tuple[int, int] | None:
    if not (width and height):
        return None
    size = int(width), int(height)
    if min(size) < 1 or max(size) > _LARGEST_SIDE:
        raise DatasetError(
            f"the camera's pictures are {shown(width)}×{shown(height)} pixels: a damaged file?"
        )
    return size
