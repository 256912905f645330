"""Which samples each step sees: a pure function of the seed, so that a run can continue from any step."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from torch.utils.data import Sampler

__all__ = ["Key", "StepSampler"]


Key = tuple[int, int, tuple[int, int] | None]
"""(epoch, index, rows and columns of the crop; None: the augmentation's own)."""


class StepSampler(Sampler[list[Key]]):
    """Yields, step by step, this process's share of the global batch as (epoch, index, size).

    The samples form one endless stream of freshly shuffled epochs; step s takes positions
    s·batch … (s+1)·batch − 1 of it, and process r of n the r-th n-th of those. No sample is dropped,
    and n processes together see exactly what one would.
    """

    def __init__(
        self,
        *,
        length: int,
        batch: int,
        seed: int,
        first: int,
        last: int,
        rank: int = 0,
        processes: int = 1,
        sizes: Sequence[tuple[float, int, int]] = (),
    ) -> None:
        """`sizes` as the recipe's, shares of `last`."""
        self.length, self.batch, self.seed = length, batch, seed
        self.first, self.last = first, last
        self.sizes = sorted(sizes)
        self.share = batch // processes
        self.offset = rank * self.share
        self._permutation: tuple[int, np.ndarray] = (-1, np.empty(0, int))

    def __len__(self) -> int:
        return self.last - self.first

    def __iter__(self) -> Iterator[list[Key]]:
        for step in range(self.first, self.last):
            start = step * self.batch + self.offset
            size = self.size_at(step)
            yield [(*self.at(position), size) for position in range(start, start + self.share)]

    def size_at(self, step: int) -> tuple[int, int] | None:
        """Rows and columns of the crops of a step."""
        begun = [(rows, columns) for share, rows, columns in self.sizes if step >= share * self.last]
        return begun[-1] if begun else None

    def at(self, position: int) -> tuple[int, int]:
        """(epoch, index) of one position of the stream."""
        epoch, place = divmod(position, self.length)
        if self._permutation[0] != epoch:
            generator = np.random.default_rng([self.seed, epoch])
            self._permutation = (epoch, generator.permutation(self.length))
        return epoch, int(self._permutation[1][place])
