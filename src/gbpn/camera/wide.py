"""Cameras that no single pinhole picture shows: panoramas, and fisheye lenses of any field.

They have no image plane, so depth of their pixels is the **range**, metres along the ray. Directions are unit
vectors in camera coordinates: x right, y down, z ahead. Pixel centres lie at integer coordinates.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from gbpn.camera.lens import Lens
from gbpn.errors import InputError

__all__ = ["Fisheye", "Panorama", "WideCamera", "inside"]

_WORDS = re.compile(r"\s*panorama\s*(?:[,:]\s*([-+.\d]+)\s*,\s*([-+.\d]+)\s*)?")
_NEARLY_WHOLE = 0.01
"""Relative difference to 2:1 up to which a panorama counts as a whole sphere; sides are whole pixels."""


@dataclass(frozen=True, kw_only=True)
class Panorama:
    """Equirectangular: columns are all azimuths, the middle looks ahead; rows are elevations, evenly spaced.

    The left edge of the picture looks back (−180°), and so does the right one (180°).
    """

    top: float | None = None
    """Elevation of the upper edge in degrees, 90 straight up; None: see `seen`."""
    bottom: float | None = None
    """Of the lower edge; −90 straight down."""

    def __post_init__(self) -> None:
        if (self.top is None) != (self.bottom is None):
            raise InputError("a panorama has both edges, top and bottom in degrees, or neither")
        if self.top is not None and self.bottom is not None and not -90 <= self.bottom < self.top <= 90:
            raise InputError(
                "a panorama reaches from bottom to top within −90° to 90°; got top "
                f"{self.top:g}, bottom {self.bottom:g}: wanted such as panorama,15,-25"
            )

    @classmethod
    def of(cls, text: str) -> Panorama | None:
        """ "panorama", or with the elevations of its edges "panorama,45,-45"; None for other words."""
        found = _WORDS.fullmatch(text)
        if found is None:
            return None
        if found[1] is None:
            return cls()
        try:
            top, bottom = float(found[1]), float(found[2])
        except ValueError:
            raise InputError(f"panorama,TOP,BOTTOM wants two elevations in degrees; got {text!r}") from None
        return cls(top=top, bottom=bottom)

    def seen(self, height: int, width: int) -> Panorama:
        """With its edges: those of square pixels around the horizon where they were not given."""
        if self.top is not None:
            return self
        half = 180 * height / width
        if abs(half - 90) <= 90 * _NEARLY_WHOLE:
            half = 90.0
        if half > 90:
            raise InputError(
                f"a panorama is all around, so twice as wide as high or wider; got {width}×{height}: is this "
                "one, or of more columns than rows' degrees? panorama,TOP,BOTTOM says its elevations"
            )
        return Panorama(top=half, bottom=-half)

    @property
    def wraps(self) -> bool:
        """Whether the right edge goes on at the left one."""
        return True

    def density(self, height: int, width: int) -> float:
        """Pixels per radian where they are densest."""
        return max(width / (2 * math.pi), height / self._field)

    def directions(self, height: int, width: int) -> np.ndarray:
        """[H, W, 3] of the pixels."""
        azimuth = ((np.arange(width) + 0.5) / width - 0.5) * (2 * np.pi)
        elevation = np.radians(self._top) - (np.arange(height) + 0.5) / height * self._field
        across, up = np.meshgrid(azimuth, elevation)
        return np.stack([np.cos(up) * np.sin(across), -np.sin(up), np.cos(up) * np.cos(across)], axis=-1)

    def pixels(self, towards: np.ndarray, height: int, width: int) -> tuple[np.ndarray, np.ndarray]:
        """x, y [...] of directions [..., 3] of any length."""
        azimuth = np.arctan2(towards[..., 0], towards[..., 2])
        elevation = np.arctan2(-towards[..., 1], np.hypot(towards[..., 0], towards[..., 2]))
        x = (azimuth / (2 * np.pi) + 0.5) * width - 0.5
        y = (np.radians(self._top) - elevation) / self._field * height - 0.5
        return x, y

    def matrix(self, height: int, width: int) -> np.ndarray:
        """[3, 3]: pixels per radian of azimuth and elevation (down), and the pixel at 0, 0."""
        across, down = width / (2 * np.pi), height / self._field
        return np.array(
            [
                [across, 0, (width - 1) / 2],
                [0, down, math.radians(self._top) * down - 0.5],
                [0, 0, 1],
            ]
        )

    def as_json(self) -> dict[str, Any]:
        """Plain values, for records."""
        return {"kind": "panorama", "top": self.top, "bottom": self.bottom, "depth": "range along the ray"}

    def __str__(self) -> str:
        return f"panorama, 360° × {math.degrees(self._field):.0f}°"

    @property
    def _top(self) -> float:
        assert self.top is not None, "seen() first"
        return self.top

    @property
    def _field(self) -> float:
        """Radians from bottom to top."""
        assert self.bottom is not None, "seen() first"
        return math.radians(self._top - self.bottom)


@dataclass(frozen=True, kw_only=True)
class Fisheye:
    """An equidistant lens, see `gbpn.camera.lens`, up to a field of 360°."""

    intrinsics: tuple[float, float, float, float]
    """fx, fy, cx, cy of the picture, pixels."""
    lens: Lens
    field: float
    """Degrees across the circle that the lens sees; beyond it there is nothing in the picture."""

    def __post_init__(self) -> None:
        if self.lens.kind != "equidistant":
            raise InputError(
                f"a fisheye lens of a wide field is an equidistant one (Kannala-Brandt, cv2.fisheye); got "
                f"{self.lens.kind!r}, which bends a pinhole's picture: leave out --fisheye"
            )
        if not 0 < self.field <= 360:
            raise InputError(f"a fisheye's field is in degrees, above 0 and at most 360; got {self.field:g}")

    @property
    def wraps(self) -> bool:
        """Whether the right edge goes on at the left one."""
        return False

    def density(self, height: int, width: int) -> float:
        """Pixels per radian on the axis."""
        return max(self.intrinsics[:2])

    def directions(self, height: int, width: int) -> np.ndarray:
        """[H, W, 3] of the pixels, NaN where the lens sees nothing."""
        fx, fy, cx, cy = self.intrinsics
        across, down = np.meshgrid((np.arange(width) - cx) / fx, (np.arange(height) - cy) / fy)
        radius = np.hypot(across, down)
        angle = self.lens.angle(radius)
        angle = np.where(angle <= math.radians(self.field) / 2, angle, np.nan)
        sideways = np.sin(angle) / np.maximum(radius, 1e-12)
        ahead = np.cos(angle)
        return np.stack([across * sideways, down * sideways, ahead], axis=-1)

    def pixels(self, towards: np.ndarray, height: int, width: int) -> tuple[np.ndarray, np.ndarray]:
        """x, y [...] of directions [..., 3] of any length; NaN where the lens does not look."""
        fx, fy, cx, cy = self.intrinsics
        sideways = np.hypot(towards[..., 0], towards[..., 1])
        angle = np.arctan2(sideways, towards[..., 2])
        widest = min(math.radians(self.field) / 2, self.lens.widest)
        radius = self.lens.radius(np.where(angle <= widest, angle, np.nan))
        factor = radius / np.maximum(sideways, 1e-12)
        return fx * towards[..., 0] * factor + cx, fy * towards[..., 1] * factor + cy

    def matrix(self, height: int, width: int) -> np.ndarray:
        """[3, 3] of the lens."""
        fx, fy, cx, cy = self.intrinsics
        return np.array([[fx, 0, cx], [0, fy, cy], [0, 0, 1]])

    def as_json(self) -> dict[str, Any]:
        """Plain values, for records."""
        return {
            "kind": "fisheye",
            "intrinsics": list(self.intrinsics),
            "lens": list(self.lens.parameters),
            "field": self.field,
            "depth": "range along the ray",
        }

    def __str__(self) -> str:
        return f"fisheye, {self.field:g}°"


WideCamera: TypeAlias = Panorama | Fisheye
"""With its edges known."""


def inside(x: np.ndarray, y: np.ndarray, height: int, width: int) -> np.ndarray:
    """Where pixels x, y lie in the picture, edges included; NaN does not."""
    with np.errstate(invalid="ignore"):
        return np.asarray((x >= -0.5) & (x <= width - 0.5) & (y >= -0.5) & (y <= height - 0.5))
