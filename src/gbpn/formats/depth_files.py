"""Depth images on disk ↔ metres in memory: 16-bit PNG, float TIFF, .npy/.npz, EXR.

A file says nothing about its unit, so integer formats need an explicit `scale`:
metres = stored value / scale (1000 for millimetres, 256 for KITTI). 0, NaN and infinity mean not measured.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from PIL import Image

from gbpn.errors import BackendError, DatasetError, InputError
from gbpn.files.atomic import replacing
from gbpn.files.guard import most_pixels, reading, require_size, shown
from gbpn.formats.arrays import read_npy, read_npz
from gbpn.formats.images import open_picture
from gbpn.measurements.scales import FARTHEST_PLAUSIBLE, KITTI_SCALE, MILLIMETRES, NEAREST_PLAUSIBLE

if TYPE_CHECKING:
    from torch import Tensor

__all__ = [
    "FARTHEST_PLAUSIBLE",
    "KITTI_SCALE",
    "MILLIMETRES",
    "NEAREST_PLAUSIBLE",
    "DepthRangeWarning",
    "implausible",
    "likely_scale",
    "read_depth",
    "read_foreign",
    "read_stored",
    "require_scale",
    "write_depth",
]

_TUM_SCALE = 5000.0
"""Scale of TUM's RGB-D PNGs."""


class DepthRangeWarning(UserWarning):
    """The depths found do not look like metres."""


def read_depth(
    path: str | Path, scale: float | None = None, *, drop_negative: bool = True, judge: bool = True
) -> Tensor:
    """[1, H, W] float32 metres, 0 where not measured.

    `scale` divides what is stored; needed for integer files, 1 by default for floating point ones.
    Negative values are dropped like other marks for "nothing here", or with drop_negative=False an error.
    `judge` warns of depths that do not look like metres; callers that look themselves switch it off.
    """
    import torch

    path = Path(path)
    stored = read_stored(path, scale)
    with np.errstate(over="ignore"):  # what is beyond float32 becomes infinite, which means not measured
        depth = stored.astype(np.float32)
        if scale is not None and scale != 1:
            depth /= np.float32(scale)
    if stored.dtype.kind in "fi":
        depth[~np.isfinite(depth)] = 0
        if not drop_negative and depth.min(initial=0) < 0:
            raise DatasetError(
                f"{path}: depth must not be negative; got {depth.min():.4g} in "
                f"{int((depth < 0).sum())} pixels: write 0 or NaN where nothing was measured"
            )
        np.maximum(depth, 0, out=depth)
    if judge:
        _warn_if_implausible(path, depth, scale)
    return torch.from_numpy(depth)[None]


def read_stored(path: Path, scale: float | None = None) -> np.ndarray:
    """[H, W] as the file has it, in metres × `scale`; integers without a scale are refused."""
    require_scale(scale)
    stored = _read_array(path)
    if stored.ndim == 3 and 1 in (stored.shape[0], stored.shape[-1]):
        stored = stored.reshape(stored.shape[1:] if stored.shape[0] == 1 else stored.shape[:2])
    if stored.ndim != 2:
        raise DatasetError(f"{path}: a depth map is [H, W]; got {list(stored.shape)}")
    if scale is None and np.issubdtype(stored.dtype, np.integer):
        raise InputError(
            f"{path} holds integers without a unit: give --scale (in Python scale=), which divides "
            f"them, 1000 for millimetres, 256 for KITTI; {likely_scale(stored)}"
        )
    return stored


def read_foreign(path: Path) -> np.ndarray:
    """[H, W] of a map that another network made, as the file has it: pictures of 8 bits too."""
    if path.suffix.lower() in (".png", ".tif", ".tiff"):
        with reading(path, "depth map", "one number per pixel") as file, open_picture(file) as picture:
            if picture.mode == "RGB":  # grey, written as colours
                pixels = np.array(picture)
                if (pixels != pixels[..., :1]).any():
                    raise DatasetError(
                        f"{shown(path)}: colours instead of numbers: save what the network gave, not its "
                        "picture"
                    )
                return pixels[..., 0]
            if picture.mode == "L":
                return np.array(picture)
    return read_stored(path, 1.0)


def likely_scale(stored: np.ndarray) -> str:
    """What the numbers [H, W] of a depth file most likely are, in words; only a person can know."""
    values = stored[stored > 0]
    if not values.size:
        return "it has no measurement in it"
    middle, (height, width) = float(np.median(values)), stored.shape
    wide = width > 2.5 * height  # pictures of cars are
    names = {MILLIMETRES: "millimetres", KITTI_SCALE: "KITTI's 1/256 m", _TUM_SCALE: "TUM's 1/5000 m"}
    order = (KITTI_SCALE, MILLIMETRES) if wide else (MILLIMETRES, _TUM_SCALE, KITTI_SCALE)
    usual = (2.0, 60.0) if wide else (0.3, 6.0)
    for scale in order:
        if usual[0] <= middle / scale <= usual[1]:
            return f"half of them below {middle:g}: most likely {names[scale]}, --scale {scale:g}"
    return f"half of them are below {middle:g}"


def require_scale(scale: float | None) -> None:
    """Raise unless `scale` is None or a number that depths can be divided by."""
    number = isinstance(scale, int | float | np.integer | np.floating) and not isinstance(scale, bool)
    if scale is not None and not (number and 1e-12 < scale < 1e12):
        raise InputError(
            f"depth scale must be positive and finite (metres = value / scale); got {shown(repr(scale))}: "
            "1000 for millimetres, 256 for KITTI"
        )


def write_depth(path: str | Path, depth: Tensor, scale: float = MILLIMETRES) -> None:
    """Write [1, H, W] or [H, W] metres; integers by `scale` in .png, metres in .npy, .npz and .tiff.

    PNG truncates to 16 bits as the benchmarks' own files do; what does not fit is an error, not a wrap.
    """
    path = Path(path)
    metres = depth.detach().cpu().float().reshape(depth.shape[-2:]).numpy()
    suffix = path.suffix.lower()
    if suffix == ".png":
        stored = np.nan_to_num(metres, nan=0.0) * np.float32(scale)
        if stored.max(initial=0) > np.iinfo(np.uint16).max:
            raise InputError(
                f"{path}: {metres.max():.1f} m at scale {scale:g} does not fit 16 bits: use a smaller scale "
                "(256) or .npy"
            )
        image = Image.fromarray(np.maximum(stored, 0).astype(np.uint16))
        with replacing(path) as temporary:
            image.save(temporary, format="PNG")
    elif suffix in (".tif", ".tiff"):
        with replacing(path) as temporary:
            Image.fromarray(metres.astype(np.float32)).save(temporary, format="TIFF")
    elif suffix == ".npy":
        with replacing(path) as temporary, open(temporary, "wb") as file:
            np.save(file, metres)
    elif suffix == ".npz":
        with replacing(path) as temporary, open(temporary, "wb") as file:
            np.savez_compressed(file, depth=metres)
    else:
        raise InputError(f"{path}: depth is written as .png, .tiff, .npy or .npz; got {suffix!r}")


def _read_array(path: Path) -> np.ndarray:
    """[H, W], or with an axis of length 1, of real numbers and within the limit in size."""
    known = ", ".join(sorted(_READERS))
    with reading(path, "depth file", "one number per pixel") as file:
        reader = _READERS.get(file.suffix.lower())
        if reader is None:
            raise DatasetError(f"{shown(path)}: depth files are {known}; got {shown(path.suffix)!r}")
        stored = reader(file)
        if stored.dtype.kind not in "fiu" or not stored.size:
            raise ValueError(f"an array {list(stored.shape)[:4]} of {stored.dtype}")
        return stored


def _read_picture(path: Path) -> np.ndarray:
    with open_picture(path) as picture:
        if picture.mode not in ("I;16", "I;16B", "I", "F", "L"):
            raise ValueError(
                f"a depth picture has one channel of 16 bits or floats; this one is {picture.mode}"
            )
        if picture.mode == "L":
            raise ValueError("8 bits per pixel cannot hold depth; expected 16-bit")
        return np.array(picture)


def _read_exr(path: Path) -> np.ndarray:
    try:
        import OpenEXR  # type: ignore[import-not-found, unused-ignore]
    except ImportError as error:
        raise BackendError(f"{path}: reading EXR needs a package: pip install OpenEXR") from error
    opened: Any = OpenEXR.File(str(path), header_only=True)
    low, high = opened.header()["dataWindow"]
    require_size("a depth map", int(high[1]) - int(low[1]) + 1, int(high[0]) - int(low[0]) + 1)
    channels: dict[str, Any] = OpenEXR.File(str(path)).channels()
    for name in ("Z", "depth", "Y", "R", "RGB", *channels):
        if name in channels:
            pixels = np.array(channels[name].pixels, dtype=np.float32)
            return pixels if pixels.ndim == 2 else pixels[..., 0]
    raise ValueError("no channel in this EXR")


_READERS: dict[str, Callable[[Path], np.ndarray]] = {
    ".png": _read_picture,
    ".tif": _read_picture,
    ".tiff": _read_picture,
    ".npy": lambda path: read_npy(path, most_pixels()),
    ".npz": lambda path: read_npz(path, "depth", most_pixels()),
    ".exr": _read_exr,
}


def implausible(depth: np.ndarray) -> str | None:
    """What speaks against these depths being metres, with their range; None where nothing does."""
    highest = float(depth.max(initial=0))
    if highest == 0 or NEAREST_PLAUSIBLE <= highest <= FARTHEST_PLAUSIBLE:
        return None
    measured = depth[depth > 0]
    found = f"depths from {measured.min():.4g} to {highest:.4g} m (median {np.median(measured):.4g})"
    if np.median(measured) > FARTHEST_PLAUSIBLE:
        return f"{found}: millimetres read as metres? Then their scale is 1000 (--scale 1000)"
    if highest < NEAREST_PLAUSIBLE:
        return f"{found}: the scale looks too large; metres = value / scale"
    return None


def _warn_if_implausible(path: Path, depth: np.ndarray, scale: float | None) -> None:
    if (doubt := implausible(depth)) is not None:
        used = f"scale {scale:g}" if scale is not None else "no scale"
        warnings.warn(f"{path} with {used}: {doubt}", DepthRangeWarning, stacklevel=3)
