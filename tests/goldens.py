"""Golden numbers: the compact set of the repository, and how it keeps a few pixels of large arrays.

The compact set (`tests/golden`, written by `scripts/compact_goldens.py`) is always there; the full set
beside the checkout is an extra. An array is kept whole, as sampled pixels, or, for pictures, as 8-bit
indices into a table of its values. What was not kept is NaN after loading, and `assert_known_close` does not
look at it.
"""

from __future__ import annotations

import hashlib
import zlib
from collections.abc import Iterable, Mapping
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

COMPACT = Path(__file__).resolve().parent / "golden"
FULL = Path(__file__).resolve().parents[2] / "shared" / "parity"
SETS = {"compact": COMPACT} | ({"full": FULL} if FULL.is_dir() else {})
"""Folders with golden numbers on this machine, by name."""

AT, SHAPE, TABLE = ".at", ".shape", ".table"
"""Endings of arrays beside a sampled one (flat places, whole shape) and an indexed one (its values)."""
FINGERPRINT = "2ed3468ad5d3afcf5089d694318f0e11a7a0cebb2ab3ca653a50e997f15006f2"
"""Of the weights of the whole network, seed 0."""

Layout = Iterable[tuple[str, tuple[int, ...], str]]
"""Name, shape and type of each tensor of a network."""


def read(path: Path) -> dict[str, np.ndarray]:
    """All arrays of a golden file in their whole shape."""
    with np.load(path) as file:
        arrays = {key: file[key] for key in file.files}
    return {key: _whole(key, arrays) for key in arrays if not key.endswith((AT, SHAPE, TABLE))}


def tensors(path: Path) -> dict[str, Tensor]:
    """The numbers of a golden file; words are left out."""
    return {key: torch.from_numpy(array) for key, array in read(path).items() if array.dtype.kind in "fiub"}


def sampled(key: str, array: np.ndarray, at: np.ndarray) -> dict[str, np.ndarray]:
    """What to store of `array` to keep only its values at the flat places `at`."""
    small = np.uint16 if array.size < 2**16 else np.uint32
    return {
        key: array.reshape(-1)[at],
        key + AT: at.astype(small),
        key + SHAPE: np.array(array.shape, np.uint32),
    }


def indexed(key: str, array: np.ndarray) -> dict[str, np.ndarray]:
    """What to store of a picture [1, C, H, W] with at most 256 values per channel: exact in 8 bits."""
    tables, planes = [], []
    for plane in array[0]:
        values, index = np.unique(plane, return_inverse=True)
        if len(values) > 256:
            raise ValueError(f"{key}: a channel of {len(values)} values does not fit 8 bits")
        tables.append(np.pad(values, (0, 256 - len(values))))
        planes.append(index.reshape(plane.shape).astype(np.uint8))
    return {key: np.stack(planes)[None], key + TABLE: np.stack(tables)}


def _whole(key: str, arrays: Mapping[str, np.ndarray]) -> np.ndarray:
    array = arrays[key]
    if key + AT in arrays:
        whole = np.full(arrays[key + SHAPE], np.nan, array.dtype)
        whole.reshape(-1)[arrays[key + AT]] = array
        return whole
    if key + TABLE in arrays:
        table = arrays[key + TABLE]
        return np.stack([values[plane] for values, plane in zip(table, array[0], strict=True)])[None]
    return array


def assert_known_close(got: Tensor, wanted: Tensor, *, rtol: float = 0.0, atol: float = 0.0) -> None:
    """Equal within the tolerances wherever a number is known, which is somewhere."""
    assert got.shape == wanted.shape, f"shape {tuple(got.shape)}, wanted {tuple(wanted.shape)}"
    known = ~wanted.isnan()
    assert bool(known.any()), "nothing to compare with"
    torch.testing.assert_close(got[known], wanted[known], rtol=rtol, atol=atol)


# --- the weights of the golden networks --------------------------------------------------------------------

_HEADS = {
    "mrf_omega": (1.6, -1.2, 1.2),
    "mrf_r": (0.06, 0.0, 0.004),
    "damping_beta": (0.9, 0.0, 0.7),
    "nonlocal_offs": (12.0, 0.0, 9.0),
}
"""Last layer of a head: deviation of its output, mean and deviation of its bias."""
_GAINS = (
    (("conv1.weight",), 0.9 * np.sqrt(2.0)),
    (("conv2.weight",), 0.22 * np.sqrt(2.0)),
    ((".proj.weight", ".projs.weight"), 0.70 * np.sqrt(2.0)),
    ((".qg.", ".qgs.", ".kv.", ".kvs."), 0.70),
    (("",), 0.76),
)
"""Gain of a convolution: of the first row with a part that its name contains."""


def deterministic_weights(layout: Layout, seed: int = 0) -> dict[str, np.ndarray]:
    """Weights that depend on names, shapes and the seed only: raw words of PCG64 and exact arithmetic."""
    return {name: _tensor(name, shape, seed).astype(dtype) for name, shape, dtype in layout}


def fingerprint(weights: Mapping[str, np.ndarray]) -> str:
    """SHA-256 over names and bytes."""
    digest = hashlib.sha256()
    for name, array in weights.items():
        digest.update(name.encode())
        digest.update(np.ascontiguousarray(array).tobytes())
    return digest.hexdigest()


def released_layout() -> list[tuple[str, tuple[int, ...], str]]:
    """Name, shape and type of each tensor in a checkpoint of the released network."""
    rows = (line.split() for line in (COMPACT / "layout.txt").read_text().splitlines())
    return [
        (name, tuple(map(int, shape.split("x"))) if shape != "-" else (), dtype)
        for name, dtype, shape in rows
    ]


def _tensor(name: str, shape: tuple[int, ...], seed: int) -> np.ndarray:
    words = np.random.PCG64(zlib.crc32(name.encode()) + seed).random_raw(int(np.prod(shape, dtype=np.int64)))
    last = name.rsplit(".", 1)[-1]
    if last in ("num_batches_tracked", "dist"):
        return np.full(shape, 1000.0 if last == "num_batches_tracked" else 0.984375)
    if last == "running_var" or (last == "weight" and len(shape) == 1):
        return (0.5 + _uniform(words)).reshape(shape)
    scale, shift = _scale_and_shift(name, last, shape)
    out = (shift + scale * _normal(words)).reshape(shape)
    if name.endswith("conv_img.0.conv.conv.weight"):  # the stem; metres among its inputs weigh less
        out = 2.0 * out
        if shape[1] == 7:
            out[:, 3:6] *= 0.08
    return out


def _scale_and_shift(name: str, last: str, shape: tuple[int, ...]) -> tuple[float, float]:
    head = next((value for key, value in _HEADS.items() if f".{key}.2.conv." in name), None)
    if last in ("rpb", "rpbs"):
        return 0.2, 0.0
    if head is not None:
        return (head[0] / np.sqrt(shape[0]), 0.0) if last == "weight" else (head[2], head[1])
    if last in ("running_mean", "bias"):
        return 0.1, 0.0
    if ".upf." in name:  # a transposed convolution: one tap per output
        return 0.76 / np.sqrt(shape[0]), 0.0
    gain = next(gain for parts, gain in _GAINS if any(part in name for part in parts))
    return gain / np.sqrt(shape[1] * shape[2] * shape[3]), 0.0


def _uniform(words: np.ndarray) -> np.ndarray:
    return (words >> np.uint64(11)).astype(np.float64) * 2.0**-53


def _normal(words: np.ndarray) -> np.ndarray:
    """Mean 0, variance 1: the centred sum of the four 16-bit parts of each word."""
    total = sum(((words >> np.uint64(16 * k)) & np.uint64(0xFFFF)).astype(np.float64) for k in range(4))
    return (total - 2.0 * 65535.0) / 65536.0 * np.sqrt(3.0)


# --- a frame for our own networks --------------------------------------------------------------------------


def synthetic_frame(height: int = 96, width: int = 128) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Picture [H, W, 3] uint8, measurements [H, W] float32 metres and intrinsics [3, 3], by integers only.

    A slanted wall with a near box in front, both with checks and grain, and about 2 % of the pixels measured.
    """
    y, x = np.mgrid[:height, :width]
    noise = _words_at(y * width + x)
    box = (y > height // 3) & (x > width // 4) & (x < width // 2)
    checks = 90 * ((x // np.where(box, 5, 9) + y // 7) % 2)
    shade = 40 + checks + (noise & 31) + np.where(box, 60, 0)
    tint = np.stack((shade + x % 64, shade + 20 - y // 2, np.where(box, 30, shade) + (noise >> 5 & 31)), -1)
    depth = np.where(box, 1500 + 2 * y, 3000 + 8 * x - 3 * y) / np.float32(1000)
    measured = (noise >> 12) % 50 == 0
    camera = np.array([[110.0, 0, (width - 1) / 2], [0, 110.0, (height - 1) / 2], [0, 0, 1]], np.float32)
    return tint.clip(0, 255).astype(np.uint8), (depth * measured).astype(np.float32), camera


def _words_at(index: np.ndarray) -> np.ndarray:
    """Random-looking integers below 2³², the same everywhere."""
    mixed = (index.astype(np.uint64) + np.uint64(1)) * np.uint64(0x9E3779B97F4A7C15)
    mixed ^= mixed >> np.uint64(29)
    mixed *= np.uint64(0xBF58476D1CE4E5B9)
    return ((mixed >> np.uint64(32)) & np.uint64(0xFFFFFFFF)).astype(np.int64)
