"""Pinhole intrinsics and how they follow the image.

Pixel centres lie at integer coordinates: x, y = 0 … W−1, H−1, with no half-pixel shift.
Every function takes and returns [..., 3, 3] matrices and leaves its input untouched.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from gbpn.errors import InputError
from gbpn.files.guard import shown

if TYPE_CHECKING:
    from torch import Tensor

__all__ = [
    "USUAL_FOCAL",
    "FocalLength",
    "default_intrinsics",
    "fitted_intrinsics",
    "flipped",
    "nearest_wins",
    "normals",
    "points",
    "rays",
    "require_camera",
    "scaled",
    "shifted",
]

_DEFAULT_FIELD_OF_VIEW = math.radians(60.0)
"""Horizontal field of view assumed when nothing is known of the camera."""

USUAL_FOCAL = (0.2, 20.0)
"""Focal lengths, in the longer side of the picture, outside of which a notice is given."""
_POSSIBLE_FOCAL = (0.05, 1e4)
"""Those outside of which a camera is refused; a small crop of a telephoto picture is still one."""
_NORMALISED = 5.0
"""No camera has so few pixels of focal length: smaller numbers are shares of the picture's size."""


_FULL_FRAME_WIDTH = 36.0
"""Millimetres; cameras and phones state focal lengths as if the picture were this wide."""
_MILLIMETRES = re.compile(r"\s*(\d+(?:\.\d+)?)\s*mm\s*")


@dataclass(frozen=True, kw_only=True)
class FocalLength:
    """A focal length as phones and EXIF state it: as if the picture's longer side were 36 mm."""

    millimetres: float

    @classmethod
    def of(cls, text: str) -> FocalLength | None:
        """ "26mm"; None for other words."""
        found = _MILLIMETRES.fullmatch(text)
        return None if found is None else cls(millimetres=float(found[1]))

    def __post_init__(self) -> None:
        low, high = (share * _FULL_FRAME_WIDTH for share in USUAL_FOCAL)
        if not low <= self.millimetres <= high:
            raise InputError(
                f"a focal length is {low:g} to {high:g} mm, as if the picture were 36 mm wide (phones: about "
                f"26); got {self.millimetres:g}"
            )

    def matrix(self, height: int, width: int) -> Tensor:
        """[3, 3] of a picture of this size."""
        found = default_intrinsics(height, width)
        found[0, 0] = found[1, 1] = self.millimetres / _FULL_FRAME_WIDTH * max(height, width)
        return found


def require_camera(matrix: np.ndarray) -> None:
    """Raise unless [3, 3] is finite, in float32 too, with positive focal lengths and the last row 0 0 1."""
    with np.errstate(over="ignore"):
        finite = bool(np.isfinite(np.asarray(matrix, dtype=np.float32)).all())
    rows = np.asarray(matrix, dtype=np.float64)
    if not (finite and rows[0, 0] > 0 and rows[1, 1] > 0 and np.allclose(rows[2], (0, 0, 1), atol=1e-6)):
        raise InputError(
            "intrinsics must be finite, with positive focal lengths and a last row 0 0 1; got "
            f"{shown(rows.tolist())}"
        )


def fitted_intrinsics(intrinsics: Tensor, height: int, width: int) -> tuple[Tensor, str | None]:
    """[3, 3] in pixels of a `height` × `width` picture, and a notice where something about it is odd.

    Normalised intrinsics, shares of width and height, are converted. Cameras that no picture of this size has
    are refused.
    """
    require_camera(intrinsics.detach().cpu().numpy())
    fx, fy = float(intrinsics[0, 0]), float(intrinsics[1, 1])
    cx, cy = float(intrinsics[0, 2]), float(intrinsics[1, 2])
    notice = None
    if max(fx, fy) < _NORMALISED and abs(cx) <= 2 and abs(cy) <= 2 and max(height, width) > 2 * _NORMALISED:
        intrinsics = shifted(scaled(intrinsics, width, height), -0.5, -0.5)
        notice = f"normalised intrinsics {fx:g}, {fy:g}, {cx:g}, {cy:g} are converted to pixels"
        fx, fy, cx, cy = fx * width, fy * height, cx * width, cy * height
    longer = max(height, width)
    got = f"the camera's focal lengths {fx:g}, {fy:g} pixels for a picture of {width}×{height}"
    ratios = fx / longer, fy / longer
    if min(ratios) < _POSSIBLE_FOCAL[0] or max(ratios) > _POSSIBLE_FOCAL[1]:
        raise InputError(
            f"{got} are not possible; wanted {_POSSIBLE_FOCAL[0]:g} to {_POSSIBLE_FOCAL[1]:g} times the "
            "longer side: are the intrinsics those of this picture, in pixels?"
        )
    if abs(cx) > 10 * width or abs(cy) > 10 * height:
        raise InputError(
            f"the camera's principal point ({cx:g}, {cy:g}) is far outside of a picture of {width}×{height}: "
            "are the intrinsics those of this picture, in pixels?"
        )
    if min(ratios) < USUAL_FOCAL[0] or max(ratios) > USUAL_FOCAL[1]:
        odd = f"{got} are unusual: are the intrinsics those of this picture?"
        notice = odd if notice is None else f"{notice}; {odd}"
    return intrinsics, notice


def default_intrinsics(height: int, width: int, field_of_view: float = _DEFAULT_FIELD_OF_VIEW) -> Tensor:
    """Square pixels, centred principal point, `field_of_view` (radians) across the longer side."""
    import torch

    focal = max(height, width) / (2 * math.tan(field_of_view / 2))
    return torch.tensor([[focal, 0.0, (width - 1) / 2], [0.0, focal, (height - 1) / 2], [0.0, 0.0, 1.0]])


def scaled(intrinsics: Tensor, scale_x: float, scale_y: float) -> Tensor:
    """After a resize by (scale_x, scale_y): the first two rows are multiplied."""
    factors = intrinsics.new_tensor([[scale_x], [scale_y], [1.0]])
    return intrinsics * factors


def shifted(intrinsics: Tensor, dx: float, dy: float) -> Tensor:
    """After the image content moved by (dx, dy) pixels: padding is positive, cropping negative."""
    out = intrinsics.clone()
    out[..., 0, 2] += dx
    out[..., 1, 2] += dy
    return out


def flipped(intrinsics: Tensor, width: int) -> Tensor:
    """After a left-right flip of an image `width` pixels wide."""
    out = intrinsics.clone()
    out[..., 0, 2] = width - 1 - out[..., 0, 2]
    return out


def rays(intrinsics: Tensor, height: int, width: int) -> Tensor:
    """[B, 3, H, W]: ((x − cx)/fx, (y − cy)/fy, 1), the camera ray of unit depth through each pixel."""
    import torch

    x = torch.arange(width, dtype=intrinsics.dtype, device=intrinsics.device)
    y = torch.arange(height, dtype=intrinsics.dtype, device=intrinsics.device)
    fx, fy = intrinsics[:, 0, 0, None, None], intrinsics[:, 1, 1, None, None]
    cx, cy = intrinsics[:, 0, 2, None, None], intrinsics[:, 1, 2, None, None]
    ray_x = ((x - cx) / fx).expand(-1, height, -1)  # [B, H, W]
    ray_y = ((y[:, None] - cy) / fy).expand(-1, -1, width)
    return torch.stack([ray_x, ray_y, torch.ones_like(ray_x)], dim=1)


def points(depth: Tensor, intrinsics: Tensor) -> Tensor:
    """[B, 3, H, W] camera coordinates of a depth map [B, 1, H, W]."""
    return depth * rays(intrinsics, depth.shape[-2], depth.shape[-1])


def normals(places: np.ndarray) -> np.ndarray:
    """[H, W, 3] unit normals towards the camera of a surface [H, W, 3] in camera coordinates.

    On each axis the neighbour on the side of the smaller step counts, so that edges stay sharp; where a pixel
    has no neighbour, the normal looks at the camera.
    """
    across, down = _smaller_step(places, 1), _smaller_step(places, 0)
    normal = np.cross(down, across)
    with np.errstate(invalid="ignore"):
        away = (normal * places).sum(axis=2, keepdims=True) > 0
        normal = np.where(away, -normal, normal)
        length = np.linalg.norm(normal, axis=2, keepdims=True)
        facing = -places / np.linalg.norm(places, axis=2, keepdims=True)
        return np.where(length > 0, normal / np.where(length > 0, length, 1), facing).astype(np.float32)


def _smaller_step(places: np.ndarray, axis: int) -> np.ndarray:
    """[H, W, 3]: the difference to the next or from the previous pixel, whichever is shorter."""
    if places.shape[axis] < 2:
        return np.zeros_like(places)
    step = np.diff(places, axis=axis)
    nothing = np.full_like(np.take(places, [0], axis=axis), np.inf)
    after, before = np.concatenate([step, nothing], axis), np.concatenate([nothing, step], axis)
    lengths = [np.nan_to_num(np.abs(s).sum(axis=2, keepdims=True), nan=np.inf) for s in (after, before)]
    chosen = np.where(lengths[0] <= lengths[1], after, before)
    return np.where(np.isfinite(chosen), chosen, 0.0)


def nearest_wins(x: np.ndarray, y: np.ndarray, depth: np.ndarray, height: int, width: int) -> np.ndarray:
    """Z-buffer: [height, width] map of the smallest depth that falls into each pixel, 0 where none does."""
    column, row = np.rint(x).astype(np.int64), np.rint(y).astype(np.int64)
    inside = (column >= 0) & (column < width) & (row >= 0) & (row < height)
    place = row[inside] * width + column[inside]
    nearest = np.full(height * width, np.inf, dtype=np.float32)
    np.minimum.at(nearest, place, depth[inside].astype(np.float32))
    nearest[np.isinf(nearest)] = 0
    return nearest.reshape(height, width)
