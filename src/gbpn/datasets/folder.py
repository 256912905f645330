"""Your own frames: a folder, a glob of pictures, or a list file.

    ROOT/rgb/*.jpg                 also: image, images, color
    ROOT/sparse/<same name>.*      also: sparse_depth, lidar
    ROOT/gt/<same name>.*          optional; also: ground_truth, depth, target
    ROOT/intrinsics.txt            one camera, or intrinsics/<same name>.txt: fx fy cx cy or 3×3;
                                   also camera.yaml, .xml, .json, transforms.json, see `formats.camera_files`:
                                   a lens is removed
    ROOT/train, ROOT/validation    optional: such trees of their own, else `holdout` divides the frames

A glob (`captures/*/rgb/*.png`) finds the other parts in the folders beside each picture's folder.
A list file has one frame per line: image, sparse, target, intrinsics; paths relative to the list, separated
by commas or blanks, `-` where there is none; lines that start with # are comments.
"""

from __future__ import annotations

import glob
import os
import warnings
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor

from gbpn.camera import pinhole as camera
from gbpn.camera.lens import Lens, undistorted_picture, undistorted_sparse
from gbpn.datasets.selection import part
from gbpn.errors import DatasetError, InputError
from gbpn.files.guard import reading
from gbpn.formats.camera_files import read_camera, resized
from gbpn.formats.depth_files import read_depth
from gbpn.formats.images import SUFFIXES, read_image
from gbpn.formats.structured_files import STRUCTURED
from gbpn.sample import Sample

__all__ = ["FolderDataset"]

_TREE = "ROOT/{rgb/*.jpg, sparse/<name>.png|npy, gt/<name>.png|npy, intrinsics.txt}"
_IMAGE_FOLDERS = ("rgb", "image", "images", "color")
_SPARSE_FOLDERS = ("sparse", "sparse_depth", "lidar")
_TARGET_FOLDERS = ("gt", "ground_truth", "depth", "target")
_DEPTH_SUFFIXES = (".png", ".npy", ".npz", ".tiff", ".tif", ".exr")


@dataclass(frozen=True, kw_only=True)
class _Files:
    """Where the parts of one frame lie; None where there is none."""

    image: Path
    sparse: Path | None
    target: Path | None
    intrinsics: Path | None


class FolderDataset:
    """Whole frames in the order of their names."""

    def __init__(
        self,
        root: str | Path,
        split: str = "evaluation",
        *,
        scale: float | None = None,
        holdout: float = 0.0,
    ) -> None:
        """`root` is a folder, a glob or a list file; PNG depth needs `scale` (metres = value/scale).

        A subfolder named like `split` is taken if there is one. Otherwise `train` and `validation` share the
        frames: `holdout` is the part that is kept for validation, whole folders where a glob names several,
        else the last frames; with 0 all frames serve every split.
        """
        text = str(root)
        self.scale = scale
        own = (Path(text) / split).is_dir() or (Path(text) / "validation").is_dir()
        if glob.has_magic(text):
            self._files = [_siblings(Path(path)) for path in sorted(glob.glob(text, recursive=True))]
        elif Path(text).is_file():
            self._files = _read_list(Path(text))
        else:
            self._files = _read_tree(Path(text) / split if (Path(text) / split).is_dir() else Path(text))
        if not self._files:
            raise DatasetError(
                f"{root}: no picture found; expected {_TREE}, a glob of pictures or a list file"
            )
        self.names = _unique_names([files.image for files in self._files])
        if split in ("train", "validation"):
            if holdout > 0 and not own:
                frames = list(zip(self._files, self.names, strict=True))
                frames = part(frames, split, holdout, lambda frame: str(frame[0].image.parent))
                self._files, self.names = [files for files, _ in frames], [name for _, name in frames]
            if holdout > 0:
                self._require_targets(root, split)
        if any(files.intrinsics is None for files in self._files):
            warnings.warn(
                f"{root}: no intrinsics file for some frames; 60° along the longer side is assumed",
                stacklevel=2,
            )

    def _require_targets(self, root: str | Path, split: str) -> None:
        """Raise unless there is something to learn from."""
        if not self._files:
            raise DatasetError(
                f"{root}: no frame is left for {split}: give a smaller holdout, or more frames"
            )
        if missing := [files.image for files in self._files if files.target is None]:
            raise DatasetError(
                f"{missing[0]}: no ground truth for {len(missing)} of {len(self._files)} frames; training "
                f"wants {_TREE}: put dense depth into gt/ under the same names"
            )

    def __len__(self) -> int:
        return len(self._files)

    def load(self, index: int) -> Sample:
        """The whole frame."""
        return self.frame(index)

    def frame(self, index: int) -> Sample:
        """The whole frame; `sparse` is empty where there is no measurement file."""
        files = self._files[index]
        image = read_image(files.image)
        height, width = image.shape[-2:]
        depths = []
        for path in (files.sparse, files.target):
            depth = None if path is None else read_depth(path, self.scale if path.suffix == ".png" else None)
            if depth is not None and depth.shape[-2:] != image.shape[-2:]:
                raise DatasetError(
                    f"{path}: depth {list(depth.shape[-2:])} must be as large as its image {[height, width]}"
                )
            depths.append(depth)
        sparse, target = depths
        intrinsics, lens = _camera(files, height, width)
        if lens is not None:
            image = undistorted_picture(image, intrinsics, lens)
            sparse, target = (
                None if depth is None else undistorted_sparse(depth, intrinsics, lens)
                for depth in (sparse, target)
            )
        return Sample(
            image=image,
            sparse=torch.zeros(1, height, width) if sparse is None else sparse,
            target=target,
            intrinsics=intrinsics,
            name=self.names[index],
        )


def _camera(files: _Files, height: int, width: int) -> tuple[Tensor, Lens | None]:
    """Intrinsics for a picture of this size, and its lens; what is odd about them is a warning."""
    path = files.intrinsics
    if path is None:
        return camera.default_intrinsics(height, width), None
    found, resize = resized(read_camera(path, image=files.image), height, width)
    intrinsics, odd = camera.fitted_intrinsics(found.intrinsics.float(), height, width)
    for notice in (resize, odd):
        if notice is not None:
            warnings.warn(f"{path}: {notice}", stacklevel=3)
    return intrinsics, found.lens


def _read_tree(root: Path) -> list[_Files]:
    if not root.is_dir():
        raise DatasetError(f"{root}: no such folder; expected {_TREE}")
    folder = next((root / name for name in _IMAGE_FOLDERS if (root / name).is_dir()), None)
    if folder is None:
        raise DatasetError(f"{root}: none of {', '.join(_IMAGE_FOLDERS)} in it; expected {_TREE}")
    return [_siblings(path) for path in sorted(folder.iterdir()) if path.suffix.lower() in SUFFIXES]


def _siblings(image: Path) -> _Files:
    """The other parts of the frame, in the folders beside the picture's."""
    root = image.parent.parent
    intrinsics = [
        root / "intrinsics" / f"{image.stem}.txt",
        root / "intrinsics" / f"{image.stem}.json",
        root / "intrinsics.txt",
        root / "intrinsics.json",
        root / "K.txt",
        *(
            root / f"{name}{suffix}"
            for name in ("camera", "camera_info", "intrinsics")
            for suffix in STRUCTURED
        ),
        root / "transforms.json",
    ]
    return _Files(
        image=image,
        sparse=_find(root, _SPARSE_FOLDERS, image.stem),
        target=_find(root, _TARGET_FOLDERS, image.stem),
        intrinsics=next((path for path in intrinsics if path.is_file()), None),
    )


def _find(root: Path, folders: tuple[str, ...], stem: str) -> Path | None:
    """The depth file of this name; a folder that is there but lacks the file is an error, not an absence."""
    folder = next((root / name for name in folders if (root / name).is_dir()), None)
    if folder is None:
        return None
    for suffix in _DEPTH_SUFFIXES:
        if (folder / f"{stem}{suffix}").is_file():
            return folder / f"{stem}{suffix}"
    raise DatasetError(f"{folder}: no depth file called {stem} ({', '.join(_DEPTH_SUFFIXES)})")


def _read_list(path: Path) -> list[_Files]:
    frames = []
    with reading(path, "list", "one frame per line"):
        lines = path.read_text().splitlines()
    for number, line in enumerate(lines, start=1):
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        words = line.split(",") if "," in line else line.split()
        if len(words) > 4:
            raise InputError(
                f"{path}, line {number}: image, sparse, target, intrinsics; got {len(words)} parts"
            )
        parts = [None if word.strip() in ("", "-") else path.parent / word.strip() for word in words]
        image, sparse, target, intrinsics = [*parts, None, None, None][:4]
        if image is None:
            raise InputError(f"{path}, line {number}: a frame needs an image")
        frames.append(_Files(image=image, sparse=sparse, target=target, intrinsics=intrinsics))
    return frames


def _unique_names(images: list[Path]) -> list[str]:
    stems = [image.stem for image in images]
    if len(set(stems)) == len(stems):
        return stems
    common = os.path.commonpath([image.parent for image in images])
    return [image.relative_to(common).with_suffix("").as_posix() for image in images]
