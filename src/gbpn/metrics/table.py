"""Scores of single samples, and the table that averages them.

A table keeps one small row per sample and sums with `math.fsum`, which rounds once: the averages are the
same to the last digit in any order and any number of processes.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from torch import Tensor

from gbpn.errors import InputError
from gbpn.metrics.errors import ERRORS, errors, valid
from gbpn.metrics.surfaces import SURFACES, surface_errors
from gbpn.metrics.trust import trust_scores
from gbpn.metrics.uncertainty import UNCERTAINTIES, uncertainties

__all__ = ["MetricTable", "Scores", "score"]


@dataclass(frozen=True, kw_only=True)
class Scores:
    """What is known of one sample."""

    name: str
    pixels: int
    """Valid ground-truth pixels."""
    values: dict[str, float]
    """By metric name; NaN where a value does not exist."""
    curves: dict[str, list[float]] = field(default_factory=dict)
    """Sparsification and calibration curves, if there is an uncertainty."""

    def to_json(self) -> dict[str, Any]:
        """Plain data; NaN becomes None, which is what JSON can say."""
        values = {k: None if math.isnan(v) else v for k, v in self.values.items()}
        curves = {k: [None if math.isnan(v) else v for v in c] for k, c in self.curves.items()}
        return {"name": self.name, "pixels": self.pixels, "values": values, "curves": curves}

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> Scores:
        def number(value: float | None) -> float:
            return math.nan if value is None else float(value)

        return cls(
            name=data["name"],
            pixels=data["pixels"],
            values={k: number(v) for k, v in data["values"].items()},
            curves={k: [number(v) for v in c] for k, c in data.get("curves", {}).items()},
        )


def score(
    prediction: Tensor,
    target: Tensor,
    *,
    confidence: Tensor | None = None,
    std: Tensor | None = None,
    cameras: Tensor | None = None,
    measurements: Tensor | None = None,
    names: Sequence[str],
) -> list[Scores]:
    """All metrics of each sample of a batch; maps [B, 1, H, W] in metres.

    With `cameras` [B, 3, 3] also those of `SURFACES`, and with `measurements` and `std` those of
    `gbpn.metrics.trust`; they cost more.
    """
    if len(names) != len(prediction):
        raise InputError(f"names must have one entry per sample: wanted {len(prediction)}, got {len(names)}")
    values = errors(prediction, target)
    more, curves = uncertainties(prediction, target, confidence, std)
    values |= more
    if cameras is not None:
        values |= surface_errors(prediction, target, cameras)
    if measurements is not None and std is not None:
        values |= trust_scores(prediction, target, std, measurements)
    pixels = valid(target).flatten(1).sum(1)
    return [
        Scores(
            name=name,
            pixels=int(pixels[b]),
            values={k: float(v[b]) for k, v in values.items()},
            curves={k: c[b].tolist() for k, c in curves.items()},
        )
        for b, name in enumerate(names)
    ]


class MetricTable:
    """Collects `Scores` by sample name and averages them; mergeable across processes."""

    def __init__(self, rows: Iterable[Scores] = ()) -> None:
        self._rows: dict[str, Scores] = {}
        for row in rows:
            self.add(row)

    def add(self, row: Scores) -> None:
        """One more sample. A name may come twice only with the same scores (a padded last batch)."""
        old = self._rows.setdefault(row.name, row)
        if old is not row and not _same(old, row):
            raise InputError(
                f"two samples are called {row.name!r} but have different scores: "
                "give every sample its own name"
            )

    def update(
        self,
        prediction: Tensor,
        target: Tensor,
        *,
        confidence: Tensor | None = None,
        std: Tensor | None = None,
        names: Sequence[str] | None = None,
    ) -> None:
        """Score a batch [B, 1, H, W]; samples without names are counted through."""
        names = names or [f"sample {len(self._rows) + b}" for b in range(len(prediction))]
        for row in score(prediction, target, confidence=confidence, std=std, names=names):
            self.add(row)

    def merge(self, other: MetricTable) -> MetricTable:
        """A table of the samples of both."""
        return MetricTable([*self.rows, *other.rows])

    def __len__(self) -> int:
        return len(self._rows)

    @property
    def rows(self) -> list[Scores]:
        """Sorted by name."""
        return [self._rows[name] for name in sorted(self._rows)]

    @property
    def without_target(self) -> list[str]:
        """Samples that have no valid ground truth: listed, never averaged."""
        return [row.name for row in self.rows if row.pixels == 0]

    @property
    def without_prediction(self) -> list[str]:
        """Samples with ground truth where the method observed nothing at all."""
        return [row.name for row in self.rows if row.pixels and row.values["observed"] == 0]

    @property
    def samples(self) -> int:
        """Samples that count."""
        return sum(row.pixels > 0 for row in self.rows)

    @property
    def pixels(self) -> int:
        """Valid ground-truth pixels of all samples."""
        return sum(row.pixels for row in self.rows)

    def averages(self) -> dict[str, float]:
        """Mean over samples of each metric that any sample has: `ERRORS`, `UNCERTAINTIES`, `SURFACES`."""
        names = (*ERRORS, *UNCERTAINTIES, *SURFACES)
        return {name: mean for name in names if (mean := self._mean(name)) is not None}

    def curves(self) -> dict[str, list[float]]:
        """Mean over samples of each curve."""
        found: dict[str, list[list[float]]] = {}
        for row in self.rows:
            for name, curve in row.curves.items():
                if not any(map(math.isnan, curve)):
                    found.setdefault(name, []).append(curve)
        return {
            name: [math.fsum(points) / len(points) for points in zip(*curves, strict=True)]
            for name, curves in found.items()
        }

    def _mean(self, name: str) -> float | None:
        values = [v for row in self._rows.values() if not math.isnan(v := row.values.get(name, math.nan))]
        return math.fsum(values) / len(values) if values else None


def _same(a: Scores, b: Scores) -> bool:
    def close(x: float, y: float) -> bool:
        return math.isclose(x, y, rel_tol=1e-4, abs_tol=1e-6) or (math.isnan(x) and math.isnan(y))

    same_keys = a.pixels == b.pixels and a.values.keys() == b.values.keys()
    return same_keys and all(close(a.values[k], b.values[k]) for k in a.values)
