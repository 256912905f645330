"""What a training loop iterates over: a dataset seen through an augmentation, samples as batches."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np
import torch
from torch import Tensor

from gbpn.augmentation.augmentations import Augmentation
from gbpn.errors import InputError
from gbpn.sample import Sample

__all__ = ["Batch", "Dataset", "TrainingView", "collate"]


class Dataset(Protocol):
    """Frames by index."""

    names: list[str]

    def __len__(self) -> int: ...

    def load(self, index: int) -> Sample:
        """The frame with the processing of its evaluation protocol."""
        ...

    def frame(self, index: int) -> Sample:
        """The whole frame as stored."""
        ...


class TrainingView:
    """A map-style dataset for `torch.utils.data.DataLoader` (with `collate`).

    The sample at an index depends only on (seed, epoch, index): not on the worker, the order or the process.
    """

    def __init__(self, dataset: Dataset, augmentation: Augmentation, seed: int = 0) -> None:
        self.dataset, self.augmentation, self.seed = dataset, augmentation, seed
        self.epoch = 0
        self._given = augmentation
        self._size: tuple[int, int] | None = None

    def set_epoch(self, epoch: int) -> None:
        """Other crops, colours and measurements from here on; set it before workers start."""
        self.epoch = epoch

    def set_size(self, size: tuple[int, int] | None) -> None:
        """Crops of these rows and columns from here on; None: as the augmentation came."""
        if size is None:
            self.augmentation = self._given
        elif size != self._size:
            self.augmentation = replace(self._given, height=size[0], width=size[1])  # type: ignore[type-var]
        self._size = size

    def __len__(self) -> int:
        return len(self.dataset)

    def __getitem__(self, index: int) -> Sample:
        if not 0 <= index < len(self):
            raise IndexError(index)
        rng = np.random.default_rng(np.random.SeedSequence([self.seed, self.epoch, index]))
        whole = getattr(self.augmentation, "whole_frame", False)
        sample = self.dataset.frame(index) if whole else self.dataset.load(index)
        return self.augmentation(sample, rng)


@dataclass(frozen=True, kw_only=True)
class Batch:
    """Samples of one size, stacked."""

    image: Tensor
    """[B, 3, H, W]."""
    sparse: Tensor
    """[B, 1, H, W] metres."""
    intrinsics: Tensor
    """[B, 3, 3]."""
    target: Tensor | None
    """[B, 1, H, W] metres."""
    names: tuple[str, ...]

    def to(self, device: torch.device | str) -> Batch:
        """The same batch on another device."""
        return Batch(
            image=self.image.to(device, non_blocking=True),
            sparse=self.sparse.to(device, non_blocking=True),
            intrinsics=self.intrinsics.to(device, non_blocking=True),
            target=None if self.target is None else self.target.to(device, non_blocking=True),
            names=self.names,
        )

    def pin_memory(self) -> Batch:
        """For the DataLoader's `pin_memory`."""
        return Batch(
            image=self.image.pin_memory(),
            sparse=self.sparse.pin_memory(),
            intrinsics=self.intrinsics.pin_memory(),
            target=None if self.target is None else self.target.pin_memory(),
            names=self.names,
        )


def collate(samples: Sequence[Sample]) -> Batch:
    """Stack samples of one size; all or none must have a target."""
    sizes = {tuple(sample.image.shape[-2:]) for sample in samples}
    if len(sizes) != 1:
        raise InputError(
            f"a batch needs frames of one size; got {sorted(sizes)}: crop them or use batch size 1"
        )
    targets = [sample.target for sample in samples if sample.target is not None]
    if len(targets) not in (0, len(samples)):
        raise InputError(f"{len(targets)} of {len(samples)} samples have a target; a batch needs all or none")
    return Batch(
        image=torch.stack([sample.image for sample in samples]),
        sparse=torch.stack([sample.sparse for sample in samples]),
        intrinsics=torch.stack([sample.intrinsics for sample in samples]),
        target=torch.stack(targets) if targets else None,
        names=tuple(sample.name for sample in samples),
    )
