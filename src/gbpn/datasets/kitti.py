"""KITTI depth completion, in both folder layouts in common use.

Training and validation drives, LiDAR and annotated depth side by side or merged:

    ROOT/data_depth_velodyne/<split>/<drive>/proj_depth/velodyne_raw/image_02/0000000005.png
    ROOT/data_depth_annotated/<split>/<drive>/proj_depth/groundtruth/image_02/0000000005.png
    ROOT/<split>/<drive>/proj_depth/{velodyne_raw,groundtruth}/image_02/0000000005.png      (merged)

Colour and calibration of the raw recordings:

    ROOT/raw/<date>/<drive>/image_02/data/0000000005.png, ROOT/raw/<date>/calib_cam_to_cam.txt
    ROOT/<split>/<drive>/image_02/data/0000000005.png, ROOT/<split>/<drive>/calib_cam_to_cam.txt    (merged)

The 1000 selected frames and the 1000 test frames, directly in ROOT or in ROOT/depth_selection:

    val_selection_cropped/{image,velodyne_raw,groundtruth_depth,intrinsics}/
    test_depth_completion_anonymous/{image,velodyne_raw,intrinsics}/
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor

from gbpn.augmentation import geometry
from gbpn.datasets.selection import part
from gbpn.errors import DatasetError, InputError
from gbpn.formats.calibration import kitti_intrinsics, read_intrinsics
from gbpn.formats.depth_files import KITTI_SCALE, read_depth
from gbpn.formats.images import read_image
from gbpn.sample import Sample

__all__ = ["NEAREST", "KittiDataset"]

_SPLITS = ("train", "validation", "val", "selection", "test")
_ALIASES = {"evaluation": "selection"}
_CAMERAS = ("image_02", "image_03")
_RAW_FOLDERS = ("raw", "kitti_raw", "data_raw", "raw_data", ".")
_SELECTION_PARENTS = (".", "depth_selection", "data_depth_selection", "data_depth_selection/depth_selection")
NEAREST = 1.0
"""Metres. A KITTI map whose farthest depth is nearer than this was saved with 8 bits."""


@dataclass(frozen=True, kw_only=True)
class _Files:
    """Where the parts of one frame lie."""

    name: str
    image: Path
    sparse: Path
    target: Path | None
    calibration: Path
    camera: int | None
    """2 or 3 for a calib_cam_to_cam.txt; None where the calibration is a plain matrix."""


class KittiDataset:
    """Evaluation: the bottom 352 rows, centred 1216 columns, as the LiDAR sees nothing above."""

    def __init__(
        self,
        root: str | Path,
        split: str = "selection",
        *,
        height: int = 352,
        width: int = 1216,
        raw: str | Path | None = None,
        holdout: float = 0.0,
    ) -> None:
        """`split` is train, validation, val, selection (alias evaluation) or test.

        `raw`: where the raw recordings lie. `holdout`: share of the training drives that are `validation`
        instead of `train`; the benchmark's own val and selection are for evaluation.
        """
        split = _ALIASES.get(split, split)
        if split not in _SPLITS:
            raise InputError(f"split must be one of {', '.join(_SPLITS)}; got {split!r}")
        self.root, self.height, self.width = Path(root), height, width
        if split in ("selection", "test"):
            self._files = _selected(self.root, split)
        else:
            folder = "train" if split == "validation" else split
            raws = [Path(raw)] if raw else [self.root / n for n in _RAW_FOLDERS]
            self._files = _drives(self.root, folder, raws)
            if split != "val":
                self._files = part(self._files, split, holdout, group=lambda f: f.name.split("/")[1])
        self.names = [files.name for files in self._files]

    def __len__(self) -> int:
        return len(self._files)

    def load(self, index: int) -> Sample:
        """Bottom crop as the released evaluation does; `target` is None on the test split."""
        sample = self.frame(index)
        height, width = sample.image.shape[-2:]
        if height < self.height or width < self.width:
            raise DatasetError(
                f"{self._files[index].image}: {height}×{width} is smaller than the evaluation crop "
                f"{self.height}×{self.width}"
            )
        top, left = height - self.height, (width - self.width) // 2
        return geometry.crop(sample, top, left, self.height, self.width)

    def frame(self, index: int) -> Sample:
        """The whole frame."""
        files = self._files[index]
        image = read_image(files.image)
        sparse = _read(files.sparse, image)
        return Sample(
            image=image,
            sparse=sparse,
            target=None if files.target is None else _read(files.target, image),
            intrinsics=(
                read_intrinsics(files.calibration)
                if files.camera is None
                else kitti_intrinsics(files.calibration, files.camera)
            ),
            name=files.name,
        )


def _read(path: Path, image: Tensor) -> Tensor:
    depth = read_depth(path, KITTI_SCALE)
    if depth.shape[-2:] != image.shape[-2:]:
        raise DatasetError(f"{path}: {list(depth.shape[-2:])} but its image is {list(image.shape[-2:])}")
    if 0 < float(torch.max(depth)) < NEAREST:
        raise DatasetError(
            f"{path}: farthest depth {float(depth.max()):.3f} m: saved with 8 bits instead of 16?"
        )
    return depth


def _selected(root: Path, split: str) -> list[_Files]:
    folder_name = {"selection": "val_selection_cropped", "test": "test_depth_completion_anonymous"}[split]
    folders = [root / parent / folder_name for parent in _SELECTION_PARENTS]
    folder = next((folder for folder in folders if (folder / "image").is_dir()), None)
    if folder is None:
        raise DatasetError(
            f"{root}: no {folder_name}/image; expected ROOT[/depth_selection]/{folder_name}/image/*.png"
        )
    found = []
    for image in sorted((folder / "image").glob("*.png")):
        found.append(
            _Files(
                name=f"{split}/{image.stem}",
                image=image,
                sparse=folder / "velodyne_raw" / image.name.replace("_image_0000", "_velodyne_raw_0000"),
                target=(
                    folder
                    / "groundtruth_depth"
                    / image.name.replace("_image_0000", "_groundtruth_depth_0000")
                    if split == "selection"
                    else None
                ),
                calibration=folder / "intrinsics" / f"{image.stem}.txt",
                camera=None,
            )
        )
    if not found:
        raise DatasetError(f"{folder / 'image'}: no *.png")
    return found


def _drives(root: Path, split: str, raws: list[Path]) -> list[_Files]:
    bases = [root / "data_depth_velodyne" / split, root / split]
    base = next((base for base in bases if any(base.glob("*/proj_depth/velodyne_raw"))), None)
    if base is None:
        raise DatasetError(
            f"{root}: no LiDAR maps of split {split!r}; expected "
            "ROOT[/data_depth_velodyne]/<split>/<drive>/proj_depth/velodyne_raw/image_02/*.png"
        )
    annotated = root / "data_depth_annotated" / split if base.parent.name == "data_depth_velodyne" else base
    found = []
    for drive in sorted(path for path in base.iterdir() if path.is_dir()):
        merged = root / split / drive.name
        date = drive.name[:10]
        recordings = [raw / date / drive.name for raw in raws]
        for camera in _CAMERAS:
            maps = sorted((drive / "proj_depth" / "velodyne_raw" / camera).glob("*.png"))
            if not maps:
                continue
            pictures = _first([place / camera / "data" for place in (merged, *recordings)], drive.name)
            calibration = _first(
                [merged / "calib_cam_to_cam.txt", *(raw / date / "calib_cam_to_cam.txt" for raw in raws)],
                drive.name,
            )
            target = annotated / drive.name / "proj_depth" / "groundtruth" / camera
            suffix = ".jpg" if (pictures / f"{maps[0].stem}.jpg").is_file() else ".png"
            found += [
                _Files(
                    name=f"{split}/{drive.name}/{camera}/{path.stem}",
                    image=pictures / f"{path.stem}{suffix}",
                    sparse=path,
                    target=target / path.name,
                    calibration=calibration,
                    camera=int(camera[-1]),
                )
                for path in maps
            ]
    return found


def _first(candidates: list[Path], drive: str) -> Path:
    for candidate in candidates:
        if candidate.exists():
            return candidate
    raise DatasetError(
        f"drive {drive}: expected one of " + ", ".join(str(candidate) for candidate in candidates)
    )
