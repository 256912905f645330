"""The folder that KITTI's depth completion server takes: one 16-bit PNG per frame, metre = value / 256."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import numpy as np
import torch
from PIL import Image
from torch import Tensor
from torch.nn import functional

from gbpn.datasets.training_view import Dataset
from gbpn.errors import InputError
from gbpn.evaluate.methods import Predictor
from gbpn.evaluate.settings import Setting
from gbpn.formats.depth_files import write_depth

__all__ = ["SCALE", "check_submission", "to_full_height", "write_submission"]

SCALE = 256.0
_FURTHEST = 65535 / SCALE
"""Metres that fit 16 bits; also far beyond any target."""
_SMALLEST = 1 / SCALE
"""Metres. The server reads 0 as missing and wants every pixel, so nothing is written below this."""


def _file_name(name: str) -> str:
    """The server's file name of a frame: the last part of its name, as .png."""
    return name.rpartition("/")[2].removesuffix(".png") + ".png"


def write_submission(
    dataset: Dataset, predict: Predictor, folder: Path, progress: Callable[[int, int], None] | None = None
) -> int:
    """Complete every frame as the sensor gave it and write its PNG; returns their number."""
    names = [_file_name(name) for name in dataset.names]
    if len(set(names)) != len(names):
        raise InputError("two frames would get the same file name: a submission needs the flat test split")
    for index, name in enumerate(names):
        sample, whole = dataset.load(index), dataset.frame(index)
        mean = predict([sample], Setting()).mean[0].cpu()
        if bool(torch.isnan(mean).any()):
            raise InputError(
                f"{dataset.names[index]}: some pixels have no depth; the server wants all of them"
            )
        write_depth(
            folder / name, to_full_height(mean, whole.image.shape[1:]).clamp(_SMALLEST, _FURTHEST), SCALE
        )
        if progress:
            progress(index + 1, len(names))
    check_submission(dataset, folder)
    return len(names)


def to_full_height(mean: Tensor, size: Sequence[int]) -> Tensor:
    """[1, H, W] of the evaluation crop (bottom, centred) at the frame's size; edge values all around."""
    rows, columns = size[0] - mean.shape[1], size[1] - mean.shape[2]
    if rows < 0 or columns < 0:
        raise InputError(f"prediction {list(mean.shape[1:])} is larger than its frame {list(size)}")
    left = columns // 2
    return functional.pad(mean[None], (left, columns - left, rows, 0), mode="replicate")[0]


def check_submission(dataset: Dataset, folder: Path) -> None:
    """Raise unless every frame has its file, and every file is 16 bits, of its frame's size and full."""
    wanted = {_file_name(name): index for index, name in enumerate(dataset.names)}
    have = {path.name for path in folder.glob("*.png")}
    if missing := sorted(set(wanted) - have):
        raise InputError(f"{folder}: {len(missing)} of {len(wanted)} frames are missing, first {missing[0]}")
    if extra := sorted(have - set(wanted)):
        raise InputError(f"{folder}: {len(extra)} files belong to no frame, first {extra[0]}: remove them")
    for problem in _problems(dataset, folder, wanted):
        raise InputError(problem)


def _problems(dataset: Dataset, folder: Path, wanted: dict[str, int]) -> Iterator[str]:
    for name, index in wanted.items():
        height, width = dataset.frame(index).image.shape[1:]
        with Image.open(folder / name) as file:
            stored = np.asarray(file)
        if stored.dtype != np.uint16:
            yield f"{folder / name}: wanted a 16-bit PNG, got {stored.dtype}"
        elif stored.shape != (height, width):
            yield f"{folder / name}: wanted {height}×{width}, got {stored.shape[0]}×{stored.shape[1]}"
        elif not stored.all():
            zeros = int((stored == 0).sum())
            yield f"{folder / name}: {zeros} pixels are 0, which the server reads as missing"
