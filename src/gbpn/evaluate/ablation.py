"""The ablation as a table: measured here beside published, and whether they agree in what is better.

Weights called `v3`, or `v3-seed2` for a further seed, are the row V3; several seeds are averaged, and their
range says how much a difference between rows may be worth.
"""

from __future__ import annotations

import math
import re
import statistics
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

from gbpn.evaluate.report import Row

__all__ = ["tables"]

_ROW = re.compile(r"(v[1-9])(?:-seed\d+)?")


def tables(rows: Sequence[Row], published: Sequence[dict[str, Any]]) -> dict[str, list[dict[str, Any]]]:
    """Rows beside the paper's, and pairs of rows; nothing where no weights are called like rows."""
    printed = {entry["method"]: entry for entry in published}
    found: dict[str, list[dict[str, float]]] = {}
    for row in rows:
        if match := _ROW.fullmatch(row.method):
            found.setdefault(match[1].upper(), []).append(row.values)
    names = [name for name in printed if name in found]
    if not names:
        return {}
    return {
        "ablation, measured here and published": _rows(names, found, printed),
        "what agrees in order": _order(names, found, printed),
    }


def _mean(found: Sequence[dict[str, float]], metric: str) -> float:
    return statistics.fmean(values[metric] for values in found)


def _rows(
    names: Sequence[str], found: dict[str, list[dict[str, float]]], printed: dict[str, dict[str, Any]]
) -> list[dict[str, Any]]:
    out = []
    for name in names:
        values = [one["rmse"] for one in found[name]]
        spread = f" ± {(max(values) - min(values)) / 2:.4f}" if len(values) > 1 else ""
        out.append(
            {
                "row": name,
                "seeds": len(values),
                "RMSE here": f"{_mean(found[name], 'rmse'):.4f}{spread}",
                "RMSE published": f"{printed[name]['rmse']:.4f}",
                "δ1.02 here": f"{_mean(found[name], 'delta_1.02'):.4f}",
                "δ1.02 published": f"{printed[name]['delta_1.02']:.4f}",
            }
        )
    return out


def _order(
    names: Sequence[str], found: dict[str, list[dict[str, float]]], printed: dict[str, dict[str, Any]]
) -> list[dict[str, Any]]:
    """Each row against the one before it, and all pairs together."""
    here = {name: _mean(found[name], "rmse") for name in names}
    paper = {name: printed[name]["rmse"] for name in names}
    out = []
    for before, name in pairwise(names):
        own, theirs = here[name] / here[before] - 1, paper[name] / paper[before] - 1
        agrees = math.copysign(1, own) == math.copysign(1, theirs)
        out.append(
            {
                "from": before,
                "to": name,
                "RMSE here": f"{100 * own:+.1f} %",
                "RMSE published": f"{100 * theirs:+.1f} %",
                "agrees": "yes" if agrees else "no",
            }
        )
    pairs = [(a, b) for k, a in enumerate(names) for b in names[k + 1 :]]
    same = sum((here[a] < here[b]) == (paper[a] < paper[b]) for a, b in pairs)
    if pairs:
        out.append({"from": "all", "to": "pairs", "agrees": f"{same} of {len(pairs)}"})
    return out
