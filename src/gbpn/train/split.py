"""Training and validation parts of one dataset, and reading them without falling over a bad file."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from gbpn.data import TrainingView
from gbpn.errors import DatasetError, TrainingError
from gbpn.sample import Sample

BLOCK = 16
"""Neighbouring frames that go to the same side, because they often show the same room."""


class Frames(Protocol):
    names: list[str]

    def __len__(self) -> int: ...

    def load(self, index: int) -> Sample: ...


def split_indices(length: int, fraction: float) -> tuple[list[int], list[int]]:
    """(training, validation) indices; every 1/fraction-th block of neighbours is held out."""
    if fraction <= 0 or length < 2:
        return list(range(length)), []
    block = max(min(BLOCK, int(length * fraction)), 1)
    period = max(round(1 / fraction), 2)
    held_out = [i for i in range(length) if (i // block) % period == period // 2]
    held = set(held_out)
    return [i for i in range(length) if i not in held], held_out


@dataclass(frozen=True)
class Part:
    """Some frames of a dataset, seen as a dataset."""

    whole: Frames
    indices: Sequence[int]

    @property
    def names(self) -> list[str]:
        return [self.whole.names[i] for i in self.indices]

    def __len__(self) -> int:
        return len(self.indices)

    def load(self, index: int) -> Sample:
        return self.whole.load(self.indices[index])


@dataclass(frozen=True)
class Fetched:
    """A training sample and what could not be read on the way to it."""

    sample: Sample
    failures: tuple[str, ...] = ()


class Stream:
    """`stream[epoch, index]` → Fetched. A frame that cannot be read is replaced by the next one."""

    def __init__(self, view: TrainingView, patience: int = 8) -> None:
        self.view = view
        self.patience = patience

    def __getitem__(self, key: tuple[int, int]) -> Fetched:
        epoch, index = key
        self.view.set_epoch(epoch)
        failures: list[str] = []
        for attempt in range(self.patience):
            try:
                return Fetched(self.view[(index + attempt) % len(self.view)], tuple(failures))
            except DatasetError as error:
                failures.append(str(error))
        raise TrainingError(
            f"{self.patience} frames in a row cannot be read; the last: {failures[-1]}: check the data folder"
        )

    def __len__(self) -> int:
        return len(self.view)


def validation_generator(index: int) -> np.random.Generator:
    """The same measurements of validation frame `index` in every run."""
    return np.random.default_rng([7, index])
