""".npy and .npz files → arrays of numbers: shapes are checked before memory is taken, no pickles."""

from __future__ import annotations

import math
import zipfile
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.lib import format as npy

__all__ = ["numeric", "read_npy", "read_npz", "require_numbers"]

_HOW = "; GBPN_MAX_MEGAPIXELS raises the limit"


def read_npy(path: Path, most: int | None = None) -> np.ndarray:
    """The array of a .npy file, of at most `most` numbers."""
    with open(path, "rb") as file:
        return _read(file, path.stat().st_size, most)


def read_npz(path: Path, key: str, most: int | None = None) -> np.ndarray:
    """The array called `key` of a .npz file, or its only one, of at most `most` numbers."""
    with zipfile.ZipFile(path) as archive:
        names = [name.removesuffix(".npy") for name in archive.namelist()]
        if key not in names and len(names) != 1:
            raise ValueError(f"expected one array, or one called {key!r}; got {names[:5]}")
        member = archive.infolist()[names.index(key) if key in names else 0]
        with archive.open(member) as file:
            return _read(file, member.file_size, most)


def require_numbers(shape: tuple[int, ...], kind: np.dtype[Any], most: int | None = None) -> None:
    """Raise unless these are real numbers, and not more than `most`."""
    if kind.kind not in "fiu":
        raise ValueError(f"wanted integers or floating point numbers; got {str(kind)[:60]}")
    if min(shape, default=1) < 0 or (most is not None and math.prod(shape) > most):
        raise ValueError(
            f"the declared shape {list(shape)[:4]} is more than the {most} numbers allowed{_HOW}"
        )


def numeric(values: Any) -> np.ndarray:
    """[...] of real numbers from what NumPy understands; ragged lists, words and objects raise."""
    array = np.asarray(values)
    require_numbers(array.shape, array.dtype)
    return array


def _read(file: IO[bytes], size: int, most: int | None) -> np.ndarray:
    version = npy.read_magic(file)
    if version not in ((1, 0), (2, 0)):
        raise ValueError(f"wanted version 1 or 2 of the .npy format; got {version}")
    header = npy.read_array_header_1_0 if version == (1, 0) else npy.read_array_header_2_0
    shape, _, kind = header(file)
    require_numbers(shape, kind, most)
    if math.prod(shape) * kind.itemsize > size:
        raise ValueError(f"the declared shape {list(shape)[:4]} needs more bytes than the {size} there are")
    file.seek(0)
    return npy.read_array(file, allow_pickle=False)
