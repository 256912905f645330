"""Colour images on disk ↔ [3, H, W] RGB in [0, 1]."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import torch
from PIL import Image
from torch import Tensor

from gbpn.atomic_files import replacing
from gbpn.errors import DatasetError

SUFFIXES = (".jpg", ".jpeg", ".png", ".bmp", ".webp", ".tif", ".tiff", ".ppm")


def read_image(path: str | Path) -> Tensor:
    """[3, H, W] float32 RGB in [0, 1]."""
    return to_tensor(read_pixels(path))


def read_pixels(path: str | Path) -> np.ndarray:
    """[H, W, 3] uint8 RGB."""
    path = Path(path)
    if not path.is_file():
        raise DatasetError(f"{path}: no such image")
    try:
        with Image.open(path) as picture:
            return np.array(picture.convert("RGB"))
    except (
        OSError,
        ValueError,
        SyntaxError,
        Image.DecompressionBombError,
        Image.DecompressionBombWarning,
    ) as error:
        raise DatasetError(f"{path}: not a readable image ({error})") from error


def write_image(path: str | Path, image: Tensor) -> None:
    """Write [3, H, W] in [0, 1]; the format follows the suffix."""
    path = Path(path)
    picture = Image.fromarray(to_pixels(image))
    with replacing(path) as temporary:
        picture.save(temporary)


def to_tensor(pixels: np.ndarray) -> Tensor:
    """[H, W, 3] uint8 → [3, H, W] float32 in [0, 1]."""
    planes = np.ascontiguousarray(pixels.transpose(2, 0, 1))
    return torch.from_numpy(planes).to(torch.float32).div_(255)


def to_pixels(image: Tensor) -> np.ndarray:
    """[3, H, W] in [0, 1] → [H, W, 3] uint8, rounded."""
    scaled = image.detach().cpu().clamp(0, 1).mul(255).round().to(torch.uint8)
    return np.ascontiguousarray(scaled.permute(1, 2, 0).numpy())
