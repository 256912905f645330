"""Any depth source in: datasets, sensors, sparsity patterns, training recipes."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from pathlib import Path
from typing import Any

from gbpn.data.augment import RECIPES, KittiRecipe, NyuRecipe, VariedRecipe
from gbpn.data.depth_files import DepthRangeWarning, read_depth, write_depth
from gbpn.data.folder import FolderDataset
from gbpn.data.images import read_image, write_image
from gbpn.data.kitti import KittiDataset
from gbpn.data.nyuv2 import NyuV2Dataset
from gbpn.data.pool import PoolDataset
from gbpn.data.sampling import CORRUPTIONS, PATTERNS, mixture, sparsify
from gbpn.data.synthetic import SyntheticDataset
from gbpn.data.view import Batch, Dataset, TrainingView, collate
from gbpn.data.void import VoidDataset
from gbpn.errors import InputError

DATASETS: dict[str, Callable[..., Dataset]] = {
    "nyuv2": NyuV2Dataset,
    "kitti": KittiDataset,
    "void": VoidDataset,
    "folder": FolderDataset,
    "pool": PoolDataset,
    "synthetic": SyntheticDataset,
}
"""Kind → class; each takes (root, split, **options)."""

__all__ = [
    "CORRUPTIONS",
    "DATASETS",
    "PATTERNS",
    "RECIPES",
    "Batch",
    "Dataset",
    "DepthRangeWarning",
    "FolderDataset",
    "KittiDataset",
    "KittiRecipe",
    "NyuRecipe",
    "NyuV2Dataset",
    "PoolDataset",
    "SyntheticDataset",
    "TrainingView",
    "VariedRecipe",
    "VoidDataset",
    "collate",
    "mixture",
    "open_dataset",
    "read_depth",
    "read_image",
    "sparsify",
    "write_depth",
    "write_image",
]


def open_dataset(kind: str, root: str | Path, split: str = "evaluation", **options: Any) -> Dataset:
    """A dataset by kind; `options` go to its class, see `DATASETS`."""
    if kind not in DATASETS:
        raise InputError(f"unknown dataset kind {kind!r}: choose from {', '.join(DATASETS)}")
    known = list(inspect.signature(DATASETS[kind]).parameters)[2:]
    if unknown := sorted(set(options) - set(known)):
        raise InputError(f"{kind} has no option {unknown[0]!r}; there are {', '.join(known) or 'none'}")
    return DATASETS[kind](root, split, **options)
