"""Colour images on disk ↔ [3, H, W] RGB in [0, 1].

Pictures are turned upright as their EXIF mark says, and 16 bits of grey keep their full range. Only the
formats in `KINDS` are opened: others may start programs or follow paths.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from PIL import ExifTags, Image, ImageOps

from gbpn.files.atomic import replacing
from gbpn.files.guard import BoundedFile, most_pixels, reading, require_size

if TYPE_CHECKING:
    from torch import Tensor

__all__ = [
    "KINDS",
    "SUFFIXES",
    "open_picture",
    "orientation_notice",
    "picture_pixels",
    "read_image",
    "read_pixels",
    "to_pixels",
    "to_tensor",
    "turned",
    "write_image",
]

SUFFIXES = (".jpg", ".jpeg", ".png", ".bmp", ".webp", ".tif", ".tiff", ".ppm")
KINDS = ("PNG", "JPEG", "MPO", "BMP", "WEBP", "TIFF", "PPM", "GIF", "JPEG2000", "AVIF")
"""What is opened, whatever a file is called."""
_UPRIGHT = 1
"""EXIF's orientation of a picture that is stored as it is seen."""


def read_image(path: str | Path) -> Tensor:
    """[3, H, W] float32 RGB in [0, 1], upright."""
    return to_tensor(_read(path))


def read_pixels(path: str | Path) -> np.ndarray:
    """[H, W, 3] uint8 RGB, upright."""
    pixels = _read(path)
    return pixels if pixels.dtype == np.uint8 else np.rint(pixels / np.float32(257)).astype(np.uint8)


def _read(path: str | Path) -> np.ndarray:
    with reading(path, "image", "a picture") as file, open_picture(file) as picture:
        return picture_pixels(picture)


@contextmanager
def open_picture(path: Path) -> Iterator[Image.Image]:
    """A picture whose size was checked, before its pixels are read."""
    if (most := most_pixels()) > (Image.MAX_IMAGE_PIXELS or most):
        Image.MAX_IMAGE_PIXELS = most  # the limit was raised on purpose: Pillow's own must not stand below it
    Image.init()
    kinds = [kind for kind in KINDS if kind in Image.OPEN]
    with BoundedFile(path) as file, Image.open(file, formats=kinds) as picture:
        require_size("a picture", picture.height, picture.width)
        yield picture


def picture_pixels(picture: Image.Image) -> np.ndarray:
    """[H, W, 3] RGB of a picture of any mode, upright: uint16 where it holds 16 bits of grey, else uint8."""
    require_size("a picture", picture.height, picture.width)
    upright = ImageOps.exif_transpose(picture) if turned(picture) else picture
    if upright.mode == "F":
        return np.repeat(_unit_grey(np.asarray(upright))[..., None], 3, axis=2)
    if upright.mode.startswith("I"):
        grey = np.asarray(upright)
        if grey.min(initial=0) < 0 or grey.max(initial=0) > np.iinfo(np.uint16).max:
            raise ValueError(f"grey values must be 0 to 65535; got {grey.min()} to {grey.max()}")
        return np.repeat(grey.astype(np.uint16)[..., None], 3, axis=2)
    return np.array(upright.convert("RGB"))


def _unit_grey(grey: np.ndarray) -> np.ndarray:
    """uint16 of floats in [0, 1]."""
    if not (grey.min(initial=1) >= 0 and grey.max(initial=0) <= 1):
        raise ValueError("floating point grey must lie in [0, 1]")
    return np.rint(grey * np.float32(65535)).astype(np.uint16)


def turned(picture: Image.Image) -> bool:
    """Whether EXIF says that the picture is stored in another orientation than it is seen in."""
    try:
        return bool(2 <= int(picture.getexif().get(ExifTags.Base.Orientation) or _UPRIGHT) <= 8)
    except Exception:  # damaged EXIF is no reason to refuse the picture
        return False


def orientation_notice(image: Any) -> str | None:
    """What to say of a picture, or its file, that is turned upright; None for others and for arrays."""
    try:
        if isinstance(image, str | os.PathLike):
            with open_picture(Path(image)) as picture:
                was_turned = turned(picture)
        else:
            was_turned = isinstance(image, Image.Image) and turned(image)
    except Exception:  # whoever reads the picture itself has said what is wrong with it
        return None
    return (
        "the picture is turned upright as its EXIF mark says: measurements are in the turned picture"
        if was_turned
        else None
    )


def write_image(path: str | Path, image: Tensor) -> None:
    """Write [3, H, W] in [0, 1]; the format follows the suffix."""
    path = Path(path)
    picture = Image.fromarray(to_pixels(image))
    with replacing(path) as temporary:
        picture.save(temporary)


def to_tensor(pixels: np.ndarray) -> Tensor:
    """[H, W, 3] uint8 or uint16 → [3, H, W] float32 in [0, 1]."""
    import torch

    most = np.iinfo(pixels.dtype).max
    planes = np.ascontiguousarray(pixels.transpose(2, 0, 1))
    if planes.dtype != np.uint8:
        planes = planes.astype(np.float32)
    return torch.from_numpy(planes).to(torch.float32).div_(most)


def to_pixels(image: Tensor) -> np.ndarray:
    """[3, H, W] in [0, 1] → [H, W, 3] uint8, rounded."""
    import torch

    scaled = image.detach().cpu().clamp(0, 1).mul(255).round().to(torch.uint8)
    return np.ascontiguousarray(scaled.permute(1, 2, 0).numpy())
