"""NYUv2 in the HDF5 layout of sparse-to-dense (640×480 colour and Kinect depth).

    ROOT/train/<scene>/00001.h5      about 47,600 frames
    ROOT/val/official/00001.h5       the 654 test frames

Each file holds `rgb` [3, 480, 640] uint8 and `depth` [480, 640] float metres.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import torch

from gbpn.augmentation import geometry
from gbpn.datasets.selection import part
from gbpn.errors import BackendError, DatasetError, InputError
from gbpn.files.guard import most_pixels, reading
from gbpn.formats.arrays import require_numbers
from gbpn.formats.images import to_tensor
from gbpn.sample import Sample

__all__ = ["INTRINSICS", "NyuV2Dataset"]

_TREE = "ROOT/{train/<scene>/*.h5, val/official/*.h5}"
_FOLDERS = {"train": "train/**/*.h5", "validation": "train/**/*.h5", "evaluation": "val/official/*.h5"}
INTRINSICS = (518.85790117450188, 519.46961112127485, 325.58244941119034, 253.73616633400465)
"""fx, fy, cx, cy at 640×480."""


class NyuV2Dataset:
    """Evaluation: 240 rows by filtering, centre crop 228×304; the protocol samples measurements."""

    def __init__(
        self,
        root: str | Path,
        split: str = "evaluation",
        *,
        crop: tuple[int, int] = (228, 304),
        holdout: float = 0.0,
    ) -> None:
        """`holdout`: share of the training scenes that are `validation` instead of `train`."""
        if split not in _FOLDERS:
            raise InputError(f"split must be one of {', '.join(_FOLDERS)}; got {split!r}")
        self.root, self.crop = Path(root), crop
        self._files = sorted(self.root.glob(_FOLDERS[split]))
        if not self._files:
            raise DatasetError(f"{self.root}: no {_FOLDERS[split]} below; expected {_TREE}")
        if split != "evaluation":
            self._files = part(self._files, split, holdout, group=lambda file: file.parent.name)
        self.names = [file.relative_to(self.root).with_suffix("").as_posix() for file in self._files]

    def __len__(self) -> int:
        return len(self._files)

    def load(self, index: int) -> Sample:
        """228×304, `sparse` empty, `target` the filtered Kinect depth."""
        return geometry.center_crop(geometry.resize_filtered(self.frame(index), 240), *self.crop)

    def frame(self, index: int) -> Sample:
        """The whole 480×640 frame; `sparse` is empty."""
        path = self._files[index]
        rgb, depth = _read(path)
        if rgb.ndim != 3 or rgb.shape[0] != 3 or depth.shape != rgb.shape[1:]:
            raise DatasetError(
                f"{path}: wanted rgb [3, H, W], depth [H, W]; got {list(rgb.shape)}, {list(depth.shape)}"
            )
        height, width = depth.shape
        fx, fy, cx, cy = INTRINSICS
        across, down = width / 640, height / 480
        with np.errstate(over="ignore"):
            depth = np.nan_to_num(depth.astype(np.float32), nan=0.0, posinf=0.0, neginf=0.0)
        return Sample(
            image=to_tensor(np.ascontiguousarray(rgb.transpose(1, 2, 0))),
            sparse=torch.zeros(1, height, width),
            target=torch.from_numpy(np.maximum(depth, 0))[None],
            intrinsics=torch.tensor([[fx * across, 0, cx * across], [0, fy * down, cy * down], [0, 0, 1]]),
            name=self.names[index],
        )


def _read(path: Path) -> tuple[np.ndarray, np.ndarray]:
    try:
        import h5py  # type: ignore[import-untyped, unused-ignore]
    except ImportError as error:
        raise BackendError("reading NYUv2's HDF5 files needs h5py: pip install gbpn[data]") from error
    with reading(path, "HDF5 file", "rgb and depth"), h5py.File(path, "r") as file:
        rgb, depth = _array(file, "rgb", 3), _array(file, "depth", 1)
        if rgb.dtype != np.uint8:
            raise ValueError(f"rgb of {rgb.dtype}, not uint8")
        return rgb, depth


def _array(file: Any, name: str, planes: int) -> np.ndarray:
    """A dataset that lies in the file itself, looked at before it is read."""
    import h5py

    if not isinstance(file.get(name, getlink=True), h5py.HardLink):
        raise ValueError(f"{name} is not in the file itself")
    found = file[name]
    if not isinstance(found, h5py.Dataset) or found.shape is None or found.is_virtual or found.external:
        raise ValueError(f"{name} is no array in the file itself")
    require_numbers(found.shape, found.dtype, planes * most_pixels())
    return np.array(found)
