"""What people write on a command line: measurements and cameras."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from gbpn.camera.pinhole import FocalLength
from gbpn.camera.wide import Panorama
from gbpn.errors import InputError
from gbpn.formats.calibration import intrinsics_of
from gbpn.formats.camera_files import CAMERA_FILES, require_camera_file

if TYPE_CHECKING:
    from torch import Tensor

__all__ = ["parse_intrinsics", "parse_point"]


def parse_point(text: str) -> tuple[float, float, float]:
    """ "x,y,depth"."""
    try:
        x, y, depth = (float(word) for word in text.replace(",", " ").split())
    except ValueError:
        raise InputError(f"--points wants x,y,depth such as 120,80,2.5; got {text!r}") from None
    return x, y, depth


def parse_intrinsics(text: str | None) -> Tensor | FocalLength | Panorama | Path | None:
    """ "fx,fy,cx,cy", "26mm", "panorama", or a file with a camera, which must be readable now."""
    if text is None:
        return None
    if (focal := FocalLength.of(text)) is not None:
        return focal
    if (panorama := Panorama.of(text)) is not None:
        return panorama
    if (path := Path(text)).is_file() or path.suffix.lower() in CAMERA_FILES:
        require_camera_file(path)
        return path
    try:
        numbers: Any = [float(word) for word in text.replace(",", " ").split()]
    except ValueError:
        raise InputError(f"--intrinsics wants fx,fy,cx,cy or a file; got {text!r}") from None
    return intrinsics_of(np.array(numbers))
