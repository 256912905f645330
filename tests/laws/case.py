"""One drawn case of a law: a picture, measurements, a camera; smaller ones of the same kind."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

__all__ = ["Case"]

_SMALLEST, _LARGEST = 32, 96
"""Pixels along a side."""


@dataclass(frozen=True, kw_only=True)
class Case:
    """Everything follows from these numbers."""

    law: str
    seed: int
    height: int
    width: int
    count: int
    """Measurements."""

    @classmethod
    def drawn(cls, law: str, seed: int) -> Case:
        rng = np.random.default_rng([17, seed])
        height, width = (int(side) for side in rng.integers(_SMALLEST, _LARGEST, 2))
        count = int(np.exp(rng.uniform(0, np.log(height * width / 4))))
        return cls(law=law, seed=seed, height=height, width=width, count=max(count, 1))

    def smaller(self) -> Iterator[Case]:
        """Cases nearby that are easier to look at."""
        if self.count > 1:
            yield replace(self, count=max(self.count // 2, 1))
            yield replace(self, count=self.count - 1)
        for name in ("height", "width"):
            side = getattr(self, name)
            if side > _SMALLEST:
                yield replace(self, **{name: max(side // 2, _SMALLEST)})

    @property
    def rng(self) -> np.random.Generator:
        """For what a law draws besides."""
        return np.random.default_rng([19, self.seed])

    @cached_property
    def picture(self) -> np.ndarray:
        """[H, W, 3] uint8 in patches."""
        rng = np.random.default_rng([23, self.seed])
        small = rng.integers(0, 256, (self.height // 4 + 1, self.width // 4 + 1, 3)).astype(np.uint8)
        return small.repeat(4, 0).repeat(4, 1)[: self.height, : self.width]

    @cached_property
    def sparse(self) -> np.ndarray:
        """[H, W] metres of a slanted wall with a box before it."""
        rng = np.random.default_rng([29, self.seed])
        left, right = (float(metres) for metres in rng.uniform(1, 8, 2))
        wall = np.linspace(left, right, self.width)[None].repeat(self.height, 0)
        wall[self.height // 3 : self.height // 2, self.width // 3 : self.width // 2] *= 0.6
        out = np.zeros((self.height, self.width), np.float32)
        at = rng.choice(out.size, min(self.count, out.size), replace=False)
        out.reshape(-1)[at] = wall.reshape(-1)[at]
        return out

    @property
    def camera(self) -> tuple[float, float, float, float]:
        """fx, fy, cx, cy."""
        return (60.0, 60.0, (self.width - 1) / 2, (self.height - 1) / 2)

    @property
    def points(self) -> np.ndarray:
        """[N, 3] of x, y, metres."""
        rows, columns = np.nonzero(self.sparse)
        return np.stack([columns, rows, self.sparse[rows, columns]], 1).astype(np.float64)
