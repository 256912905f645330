"""What a sensor says of its own measurements, as weights from 0 (do not use) to 1 (as usual).

ARKit     0 low, 1 medium, 2 high: 0, ¼ and 1, so that medium has twice the σ of high
bytes     0 to 255: value / 255
floats    0 to 1: as they are, such as the weights of `gbpn project`
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from gbpn.errors import DatasetError, InputError
from gbpn.files.guard import most_pixels, reading, shown
from gbpn.formats.arrays import read_npy, read_npz
from gbpn.formats.images import open_picture

__all__ = ["ARKIT_WEIGHTS", "read_weights", "weights_of"]

ARKIT_WEIGHTS = (0.0, 0.25, 1.0)
"""Of ARKit's three levels."""


def read_weights(path: str | Path) -> np.ndarray:
    """[h, w] float32 in [0, 1] from a picture, .npy or .npz (key weight or confidence)."""
    with reading(path, "confidence file", "one number per pixel") as file:
        suffix = file.suffix.lower()
        if suffix == ".npy":
            stored = read_npy(file, most_pixels())
        elif suffix == ".npz":
            stored = read_npz(file, "weight", most_pixels())
        else:
            with open_picture(file) as picture:
                stored = np.array(picture)
        try:
            return weights_of(stored)
        except InputError as error:
            raise DatasetError(f"{shown(path)}: {error}") from error


def weights_of(values: np.ndarray) -> np.ndarray:
    """[h, w] float32 weights of numbers as a sensor gives them; see the top of this file."""
    stored = np.asarray(values)
    if stored.ndim == 3 and 1 in (stored.shape[0], stored.shape[2]):
        stored = stored[0] if stored.shape[0] == 1 else stored[..., 0]
    if stored.ndim != 2 or stored.dtype.kind not in "fiub":
        raise InputError(f"a confidence is a map [h, w] of numbers; got {list(stored.shape)} {stored.dtype}")
    low, high = float(np.nanmin(stored)), float(np.nanmax(stored))
    if low < 0 or high > 255 or (stored.dtype.kind == "f" and high > 1):
        raise InputError(
            f"confidences are 0 to 2 (ARKit), bytes up to 255, or floats from 0 to 1; got "
            f"{low:g} to {high:g}: divide them by their largest value"
        )
    if stored.dtype.kind == "f" or stored.dtype.kind == "b":
        return np.nan_to_num(stored.astype(np.float32))
    if high <= 2:
        return np.asarray(ARKIT_WEIGHTS, np.float32)[stored.astype(np.int64)]
    return (stored / np.float32(255)).astype(np.float32)
