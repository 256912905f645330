"""Frames by index: the benchmarks' own layouts, folders of your own, mixtures, made scenes."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from pathlib import Path
from typing import Any

from gbpn.datasets.folder import FolderDataset
from gbpn.datasets.kitti import KittiDataset
from gbpn.datasets.mixed import MixedDataset
from gbpn.datasets.nyuv2 import NyuV2Dataset
from gbpn.datasets.training_view import Batch, Dataset, TrainingView, collate
from gbpn.datasets.void import VoidDataset
from gbpn.errors import InputError
from gbpn.synthetic.dataset import SyntheticDataset

__all__ = [
    "DATASETS",
    "Batch",
    "Dataset",
    "FolderDataset",
    "KittiDataset",
    "MixedDataset",
    "NyuV2Dataset",
    "SyntheticDataset",
    "TrainingView",
    "VoidDataset",
    "collate",
    "open_dataset",
]

DATASETS: dict[str, Callable[..., Dataset]] = {
    "nyuv2": NyuV2Dataset,
    "kitti": KittiDataset,
    "void": VoidDataset,
    "folder": FolderDataset,
    "pool": MixedDataset,
    "synthetic": SyntheticDataset,
}
"""Kind → class; each takes (root, split, **options). A pool is a tree of scenes of several datasets."""


def open_dataset(kind: str, root: str | Path, split: str = "evaluation", **options: Any) -> Dataset:
    """A dataset by kind; `options` go to its class, see `DATASETS`."""
    if kind not in DATASETS:
        raise InputError(f"unknown dataset kind {kind!r}: choose from {', '.join(DATASETS)}")
    known = list(inspect.signature(DATASETS[kind]).parameters)[2:]
    if unknown := sorted(set(options) - set(known)):
        raise InputError(f"{kind} has no option {unknown[0]!r}; there are {', '.join(known) or 'none'}")
    return DATASETS[kind](root, split, **options)
