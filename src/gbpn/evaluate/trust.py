"""Can σ be believed where nothing was measured? Settings that leave a lot open, and the table that judges.

For frames with dense truth. Patterns differ in where they measure and not only in how much; two rows take
the picture away, one adds the measurements to a session one by one.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import Any

from gbpn.evaluate.acceptance import COVERED
from gbpn.evaluate.report import Row
from gbpn.evaluate.settings import Setting
from gbpn.metrics.trust import BINS, SCORE

__all__ = ["SETTINGS", "by_bin", "pooled", "reliability", "tables", "trust"]

_PATTERNS = {
    "10 points": "points:10",
    "50 points": "points:50",
    "500 points": "points:500",
    "5000 points": "points:5000",
    "nearest 40 % only": "points:1250+nearest:0.4",
    "half of the picture": "points:1000+side:0.5",
    "one corner": "points:2000+corner:0.5",
    "ToF 8×8 as areas": "tof:8",
    "ToF 8×8 as points": "centres:8",
    "8 LiDAR lines": "lidar:8",
    "64 LiDAR lines": "lidar:64",
    "one row": "rows:1",
    "holes, half missing": "holes:0.5",
    "500 dark points": "dark:500",
    "500 textured points": "textured:500",
    "500 corners": "corners:500",
    "500, 3 % noise": "points:500+noise:0.03",
}
_ADDITIONS = (1, 2, 3, 10, 30)
_WITHOUT_PICTURE = {"black": "black picture", "other": "another's picture"}
_TITLES = {
    "point": "pixels to a measurement",
    "depth": "metres of depth",
    "edge": "pixels to an edge",
}
_WORST = 0.70
"""Share of the pixels of any frame that its 90 % intervals should hold."""
_FEWEST = 2000
"""Pixels of all frames together from which on a bin says something."""

SETTINGS = (
    *(Setting(name=name, pattern=pattern) for name, pattern in _PATTERNS.items()),
    *(
        Setting(name=f"{name}, {n} points", pattern=f"points:{n}", picture=picture)
        for picture, name in _WITHOUT_PICTURE.items()
        for n in (10, 50)
    ),
    *(
        Setting(name=f"session, {n} added", pattern=f"points:{n}", one_by_one=True, weights_only=True)
        for n in _ADDITIONS
    ),
)
"""In the order of the table."""


def tables(rows: Sequence[Row], learned: Iterable[str]) -> dict[str, list[dict[str, Any]]]:
    """By title: for every method that states a σ its settings, and the bins of all of them together."""
    out: dict[str, list[dict[str, Any]]] = {}
    methods = dict.fromkeys([*learned, *(row.method for row in rows)])
    for name in methods:
        own = [row for row in rows if row.method == name and "coverage_90" in row.values]
        if own:
            out[f"{name}: 90 % intervals by setting"] = trust(own)
            for kind, title in _TITLES.items():
                out[f"{name}: within 90 % intervals by {title}, in %"] = by_bin(own, kind)
    silent = [name for name in methods if not any(title.startswith(f"{name}: ") for title in out)]
    if silent:
        out["no sigma is stated by"] = [{"method": name} for name in silent]
    return out


def trust(rows: Sequence[Row]) -> list[dict[str, Any]]:
    """A line per setting: share within, of the worst frame, interval score, mean σ, and bins outside."""
    return [
        {
            "setting": row.setting["name"],
            "in 90 %": _verdict(row.values["coverage_90"], *COVERED),
            "worst": _verdict(min(_each(row, "coverage_90")), _WORST, 1.0),
            "score": f"{_mean(_each(row, SCORE)):.3f}",
            "σ [m]": f"{row.values['std']:.3f}",
            "RMSE": f"{row.values['rmse']:.3f}",
            "seen": f"{100 * row.values['observed']:.0f}%",
        }
        for row in rows
    ]


def by_bin(rows: Sequence[Row], kind: str) -> list[dict[str, Any]]:
    """A line per setting and for all: the share within in each bin of a kind, over all frames' pixels."""
    out = []
    for title, group in [*((row.setting["name"], [row]) for row in rows), ("all of these", list(rows))]:
        line: dict[str, Any] = {"setting": title}
        for index, range_ in enumerate(_ranges(BINS[kind])):
            share = pooled(group, f"{kind}_{index}")
            line[range_] = "–" if math.isnan(share) else _verdict(share, *COVERED)
        out.append(line)
    return out


def pooled(rows: Sequence[Row], name: str) -> float:
    """The share of a bin's pixels that are within, over all frames; NaN where there are too few."""
    inside = total = 0.0
    for row in rows:
        for scores in row.table.rows:
            if pixels := scores.values.get(f"pixels_{name}", 0.0):
                inside += pixels * scores.values[f"within_{name}"]
                total += pixels
    return inside / total if total >= _FEWEST else math.nan


def reliability(rows: Sequence[Row]) -> dict[str, list[float]]:
    """By setting, the observed share at each of the levels of a calibration plot."""
    found = {row.setting["name"]: row.table.curves() for row in rows}
    return {name: curves["calibration"] for name, curves in found.items() if "calibration" in curves}


def _ranges(ends: Sequence[float]) -> list[str]:
    inner = [f"{low:g}–{high:g}" for low, high in pairwise(ends)]
    return [f"≤{ends[0]:g}", *inner, f">{ends[-1]:g}"]


def _each(row: Row, name: str) -> list[float]:
    """Of every frame that has a value."""
    values = (scores.values.get(name, math.nan) for scores in row.table.rows)
    return [value for value in values if not math.isnan(value)]


def _mean(values: Sequence[float]) -> float:
    return math.fsum(values) / len(values) if values else math.nan


def _verdict(share: float, low: float, high: float) -> str:
    return f"{100 * share:.0f} {'✓' if low <= share <= high else '✗'}"
