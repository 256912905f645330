"""Tables of measured points: lines of x, y, depth and perhaps std."""

from __future__ import annotations

from pathlib import Path

import torch
from torch import Tensor

from gbpn.border import reading, shown
from gbpn.errors import DatasetError

__all__ = ["POINT_TABLES", "read_point_table"]

POINT_TABLES = (".csv", ".txt")
"""Suffixes of such files."""


def read_point_table(path: Path) -> Tensor:
    """[N, 3 or 4] of x, y, depth and perhaps std, from lines of numbers; one line of names may come first."""
    with reading(path, "table of points", "lines of x, y, depth and perhaps std"):
        return _rows(path, path.read_text(encoding="utf-8").splitlines())


def _rows(path: Path, lines: list[str]) -> Tensor:
    rows: list[list[float]] = []
    for number, line in enumerate(lines, 1):
        words = line.partition("#")[0].replace(",", " ").replace(";", " ").split()
        if not words:
            continue
        try:
            rows.append([float(word) for word in words])
        except ValueError:
            if rows or number > 1:
                raise DatasetError(
                    f"{path}, line {number}: wanted numbers x, y, depth; got {shown(line)!r}"
                ) from None
    if len({len(row) for row in rows}) != 1 or len(rows[0]) not in (3, 4):
        raise DatasetError(f"{path}: wanted lines of x, y, depth (and perhaps std); got {shown(lines[:1])}")
    return torch.tensor(rows, dtype=torch.float64)
