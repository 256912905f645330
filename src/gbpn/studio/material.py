"""What a page works on: an embedded scene, or a picture of the user's with what came along."""

from __future__ import annotations

import io
import tempfile
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import TypeVar

import numpy as np
import torch
from PIL import Image, ImageOps
from torch import Tensor

from gbpn import scenes
from gbpn.engine import resizing
from gbpn.errors import GbpnError, InputError
from gbpn.files.guard import shown
from gbpn.formats.camera_files import CAMERA_FILES
from gbpn.formats.depth_files import read_foreign
from gbpn.inputs.reading import as_image, as_intrinsics
from gbpn.jobs.sources import Sensor
from gbpn.show import pictures
from gbpn.studio.limits import Limits

__all__ = [
    "Material",
    "Read",
    "decode_depth",
    "decode_picture",
    "decode_prior",
    "from_scene",
    "from_upload",
    "scene_depth",
    "scene_photo",
]

_DEPTH_TYPES = (".png", ".npy", ".csv", ".txt", ".ply")
"""Suffixes of depth that a page may send."""
_PICTURE_FORMATS = ("JPEG", "PNG", "WEBP", "BMP", "TIFF", "HEIF", "MPO")
Read = TypeVar("Read")
_PRIOR_TYPES = (".png", ".npy")
_NUMPY_MAGIC = b"\x93NUMPY"


@dataclass(frozen=True, kw_only=True)
class Material:
    """A picture at its working size."""

    name: str
    scene: str = ""
    """The embedded scene's name, if it is one."""
    image: np.ndarray
    """[H, W, 3] uint8."""
    intrinsics: tuple[float, float, float, float]
    """fx, fy, cx, cy."""
    truth: np.ndarray | None = None
    """[H, W] float32 metres, 0 where unknown: a dense map that can be measured."""
    points: np.ndarray
    """[N, 3] of x, y, depth: measurements that came along."""
    notices: tuple[str, ...] = ()


def from_scene(name: str) -> Material:
    """An embedded scene; its exact depth is the dense map."""
    sample = scenes.load(name)
    assert sample.target is not None
    return Material(
        name=name,
        scene=name,
        image=(sample.image * 255).round().byte().permute(1, 2, 0).numpy(),
        intrinsics=_four(sample.intrinsics),
        truth=sample.target[0].numpy(),
        points=np.zeros((0, 3), np.float32),
    )


def scene_photo(name: str) -> bytes:
    """The picture of an embedded scene, JPEG."""
    return (files(scenes) / name / "image.jpg").read_bytes()


@cache
def scene_depth(name: str) -> bytes:
    """The true depth of an embedded scene in the colours of the previews, JPEG."""
    target = scenes.load(name).target
    assert target is not None
    depth = target[0].numpy()
    known = np.where(depth > 0, depth, np.nan)
    buffer = io.BytesIO()
    colours = pictures.colours(known, *pictures.value_range(known), pictures.DEPTH)
    Image.fromarray(colours).save(buffer, format="JPEG", quality=85)
    return buffer.getvalue()


def from_upload(
    name: str,
    picture: bytes,
    depth: bytes | None,
    depth_type: str,
    scale: float | None,
    camera: list[float],
    limits: Limits,
    trained: float | None,
    *,
    camera_file: bytes | None = None,
    camera_type: str = "",
) -> Material:
    """A decoded upload at the size of the command line; its own is held against the limits first.

    trained  focal length in pixels that the weights were trained at, if their card states it
    """
    photo = decode_picture(picture, limits)
    height, width = photo.height, photo.width
    if camera and not (len(camera) == 4 and min(camera[:2]) > 0):
        raise InputError(f"a camera is fx, fy, cx, cy in pixels with positive focal lengths; got {camera}")
    if camera_file is not None and not camera:
        intrinsics, notice = _decode_camera(camera_file, camera_type, photo)
    else:
        intrinsics, notice = as_intrinsics(camera or None, photo, height, width)
    notices = [notice] if notice else []
    sparse = torch.zeros(1, height, width)
    if depth is not None:
        sparse = decode_depth(depth, depth_type, scale, intrinsics, (height, width), limits)
    image = as_image(photo)
    factor = (limits.working_pixels / (height * width)) ** 0.5
    if trained is not None:
        focal, count = float(intrinsics[0, 0] + intrinsics[1, 1]) / 2, int((sparse > 0).sum())
        factor = min(factor, resizing.working_scale(height, width, focal, count, trained))
    if factor < 1:
        image, sparse, intrinsics = resizing.reduce(image, sparse, intrinsics, factor)
        notices.append(
            f"completed at {image.shape[2]}×{image.shape[1]}, the size that suits it; "
            f"the photo has {width}×{height}"
        )
    dense = int((sparse > 0).sum()) > limits.points
    if dense:
        notices.append("the depth map is dense: take points from it with the patterns")
    rows, columns = np.nonzero(sparse[0].numpy())
    points = np.stack([columns, rows, sparse[0].numpy()[rows, columns]], axis=1).astype(np.float32)
    return Material(
        name=name[:80] or "picture",
        image=(image * 255).round().byte().permute(1, 2, 0).numpy(),
        intrinsics=_four(intrinsics),
        truth=sparse[0].numpy() if dense else None,
        points=points[:0] if dense else points,
        notices=tuple(notices),
    )


def decode_picture(content: bytes, limits: Limits) -> Image.Image:
    """The picture upright, as RGB with its EXIF."""
    _heif_if_there_is()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", Image.DecompressionBombWarning)
            picture = Image.open(io.BytesIO(content))
            _require_small(picture, limits)
            if picture.format not in _PICTURE_FORMATS:
                raise InputError(f"a picture is one of {', '.join(_PICTURE_FORMATS)}; got {picture.format}")
            upright = ImageOps.exif_transpose(picture)
            exif = upright.getexif()
            photo = upright.convert("RGB")
    except GbpnError:
        raise
    except Exception as error:  # decoders raise anything on damaged files
        raise InputError(f"this is not a picture that can be read{_why(error)}: send JPEG or PNG") from error
    photo.getexif().update(exif)
    photo.info["exif"] = exif.tobytes()
    return photo


def decode_depth(
    content: bytes,
    suffix: str,
    scale: float | None,
    intrinsics: Tensor,
    size: tuple[int, int],
    limits: Limits,
) -> Tensor:
    """[1, H, W] metres. The file passes through a folder of the server's own, under the server's own name."""
    if suffix not in _DEPTH_TYPES:
        raise InputError(f"depth is one of {', '.join(_DEPTH_TYPES)}; got {suffix[:20]!r}")
    if scale is not None and not 0 < scale < 1e9:
        raise InputError(f"scale divides integer depth and must be positive; got {scale}")
    if suffix == ".png":
        _require_small_file(content, limits)
    if suffix == ".npy" and not content.startswith(_NUMPY_MAGIC):
        raise InputError("the depth file does not begin like a .npy file")
    sensor = Sensor(scale=scale, intrinsics=intrinsics)
    return _from_file(content, suffix, "the depth file", lambda path: sensor.measure(path, path, *size)[0])


def decode_prior(content: bytes, suffix: str, limits: Limits) -> np.ndarray:
    """[h, w] of another network's depth map, as the file has it."""
    if suffix not in _PRIOR_TYPES:
        raise InputError(f"a prior is one of {', '.join(_PRIOR_TYPES)}; got {suffix[:20]!r}")
    if suffix == ".png":
        _require_small_file(content, limits)
    elif not content.startswith(_NUMPY_MAGIC):
        raise InputError("the prior does not begin like a .npy file")
    return _from_file(content, suffix, "the prior", read_foreign)


def _decode_camera(content: bytes, suffix: str, photo: Image.Image) -> tuple[Tensor, str | None]:
    """The intrinsics that a calibration gives, and what is to be told of them."""
    if suffix not in CAMERA_FILES:
        raise InputError(f"a camera file is one of {', '.join(CAMERA_FILES)}; got {suffix[:20]!r}")
    return _from_file(
        content, suffix, "the camera file", lambda path: as_intrinsics(path, photo, photo.height, photo.width)
    )


def _from_file(content: bytes, suffix: str, called: str, read: Callable[[Path], Read]) -> Read:
    """What `read` makes of a file with this content, whose path nobody gets to know."""
    with tempfile.TemporaryDirectory(prefix="gbpn-studio-") as folder:
        path = Path(folder) / f"upload{suffix}"
        path.write_bytes(content)
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                return read(path)
        except GbpnError as error:
            text = str(error).replace(shown(path), called).replace(str(path), called)
            raise InputError(text) from error
        except Exception as error:  # decoders raise anything on damaged files
            raise InputError(f"{called} cannot be read ({str(error)[:80]})") from error


def _require_small_file(content: bytes, limits: Limits) -> None:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", Image.DecompressionBombWarning)
            picture = Image.open(io.BytesIO(content))
    except Exception as error:
        raise InputError(f"the depth file is not a PNG that can be read{_why(error)}") from error
    _require_small(picture, limits)


def _require_small(picture: Image.Image, limits: Limits) -> None:
    if picture.width * picture.height > limits.megapixels * 1e6:
        raise InputError(
            f"at most {limits.megapixels:g} megapixels are taken; got {picture.width}×{picture.height}: "
            "reduce the picture"
        )


def _why(error: Exception) -> str:
    """What a decoder said, unless it speaks of its own insides."""
    text = str(error)[:80]
    return "" if not text or "<" in text else f" ({text})"


def _heif_if_there_is() -> None:
    """HEIC from phones, where the package pillow-heif is installed."""
    try:
        import pillow_heif  # type: ignore[import-not-found, unused-ignore]
    except ImportError:
        return
    pillow_heif.register_heif_opener()


def _four(intrinsics: Tensor) -> tuple[float, float, float, float]:
    return tuple(float(intrinsics[place]) for place in ((0, 0), (1, 1), (0, 2), (1, 2)))  # type: ignore[return-value]
