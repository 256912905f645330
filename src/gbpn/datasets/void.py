"""VOID: indoor and outdoor frames with points of a visual odometry (640×480, RealSense depth as target).

    ROOT/void_1500/data/<sequence>/{image,sparse_depth,ground_truth}/<time>.png, K.txt
    ROOT/void_1500/test_image.txt, test_sparse_depth.txt, test_ground_truth.txt, test_intrinsics.txt

and the same for void_500 and void_150. ROOT may also be one of these three. Depth PNGs are metres × 256.
"""

from __future__ import annotations

from pathlib import Path

from gbpn.datasets.selection import part
from gbpn.errors import DatasetError, InputError
from gbpn.files.guard import reading
from gbpn.formats.calibration import read_intrinsics
from gbpn.formats.depth_files import KITTI_SCALE, read_depth
from gbpn.formats.images import read_image
from gbpn.sample import Sample

__all__ = ["DENSITIES", "DEPTH_RANGE", "VoidDataset"]

_TREE = "ROOT/void_<points>/{data/<sequence>/..., test_image.txt, test_sparse_depth.txt, ...}"
_LISTS = ("image", "sparse_depth", "ground_truth", "intrinsics")
_PREFIX = {"train": "train", "validation": "train", "evaluation": "test", "test": "test"}


DENSITIES = (1500, 500, 150)
"""Numbers of points with lists of their own."""
DEPTH_RANGE = (0.2, 5.0)
"""Metres that the benchmark evaluates."""


class VoidDataset:
    """Whole frames; the target is limited to the range the benchmark evaluates."""

    def __init__(
        self,
        root: str | Path,
        split: str = "evaluation",
        *,
        points: int = 1500,
        depth_range: tuple[float, float] | None = DEPTH_RANGE,
        holdout: float = 0.0,
    ) -> None:
        """`points` is 1500, 500 or 150; targets outside `depth_range` (metres, or None) count as unknown.

        `holdout`: share of the training sequences that are `validation` instead of `train`.
        """
        if split not in _PREFIX:
            raise InputError(f"split must be one of {', '.join(_PREFIX)}; got {split!r}")
        root = Path(root)
        self.folder = root / f"void_{points}" if (root / f"void_{points}").is_dir() else root
        self.depth_range = depth_range
        columns = [self._read_list(_PREFIX[split], kind) for kind in _LISTS]
        lengths = {kind: len(column) for kind, column in zip(_LISTS, columns, strict=True)}
        if len(set(lengths.values())) != 1:
            raise DatasetError(f"{self.folder}: the lists differ in length: {lengths}")
        self._files = list(zip(*columns, strict=True))
        if short := next((paths[0] for paths in self._files if len(paths[0].parts) < 3), None):
            raise DatasetError(f"{self.folder}: wanted <sequence>/image/<time>.png in the list; got {short}")
        if not self._files:
            raise DatasetError(f"{self.folder}: the {_PREFIX[split]} lists are empty")
        if _PREFIX[split] == "train":
            self._files = part(self._files, split, holdout, group=lambda paths: paths[0].parts[-3])
        self.names = ["/".join((paths[0].parts[-3], paths[0].stem)) for paths in self._files]

    @staticmethod
    def densities(root: str | Path) -> tuple[int, ...]:
        """Which of the three are there; where `root` is one of them, that one."""
        root = Path(root)
        named = tuple(points for points in DENSITIES if root.name == f"void_{points}")
        found = tuple(points for points in DENSITIES if (root / f"void_{points}").is_dir())
        return found or named or DENSITIES[:1]

    def __len__(self) -> int:
        return len(self._files)

    def load(self, index: int) -> Sample:
        """The whole frame with the target limited to `depth_range`."""
        sample = self.frame(index)
        if self.depth_range is None:
            return sample
        assert sample.target is not None
        low, high = self.depth_range
        kept = (sample.target >= low) & (sample.target <= high)
        return Sample(
            image=sample.image,
            sparse=sample.sparse,
            target=sample.target * kept,
            intrinsics=sample.intrinsics,
            name=sample.name,
        )

    def frame(self, index: int) -> Sample:
        """The whole frame as stored."""
        image, sparse, target, intrinsics = self._files[index]
        return Sample(
            image=read_image(image),
            sparse=read_depth(sparse, KITTI_SCALE),
            target=read_depth(target, KITTI_SCALE),
            intrinsics=read_intrinsics(intrinsics),
            name=self.names[index],
        )

    def _read_list(self, prefix: str, kind: str) -> list[Path]:
        path = self.folder / f"{prefix}_{kind}.txt"
        with reading(path, "list", _TREE):
            lines = path.read_text().splitlines()
            return [self._resolve(line.strip()) for line in lines if line.strip()]

    def _resolve(self, entry: str) -> Path:
        """Lists name files from the release folder or from void_<points>; both are in circulation."""
        direct = Path(entry)
        if direct.is_absolute():
            return direct
        parts = direct.parts
        if self.folder.name in parts:  # e.g. void_release/void_1500/data/…: only what follows is certain
            return self.folder.joinpath(*parts[parts.index(self.folder.name) + 1 :])
        return self.folder / entry
