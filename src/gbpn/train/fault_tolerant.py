"""Reading training samples without falling over a bad file."""

from __future__ import annotations

from dataclasses import dataclass

from gbpn.datasets.training_view import Batch, TrainingView, collate
from gbpn.errors import DatasetError, TrainingError
from gbpn.sample import Sample
from gbpn.train.step_sampler import Key

__all__ = ["FaultTolerantSamples", "Fetched", "collate_fetched"]


@dataclass(frozen=True)
class Fetched:
    """A sample, and what could not be read on the way to it."""

    sample: Sample
    failures: tuple[str, ...] = ()


class FaultTolerantSamples:
    """`stream[epoch, index, size]` → Fetched. A frame that cannot be read is replaced by the next one."""

    def __init__(self, view: TrainingView, patience: int = 8) -> None:
        self.view = view
        self.patience = patience

    def __len__(self) -> int:
        return len(self.view)

    def __getitem__(self, key: Key) -> Fetched:
        epoch, index, size = key
        self.view.set_epoch(epoch)
        self.view.set_size(size)
        failures: list[str] = []
        for attempt in range(self.patience):
            try:
                return Fetched(self.view[(index + attempt) % len(self.view)], tuple(failures))
            except DatasetError as error:
                failures.append(str(error))
        raise TrainingError(
            f"{self.patience} frames in a row cannot be read; the last: {failures[-1]}: check the data folder"
        )


def collate_fetched(fetched: list[Fetched]) -> tuple[Batch, list[str]]:
    """The batch, and all failures on the way to it."""
    return collate([f.sample for f in fetched]), [failure for f in fetched for failure in f.failures]
