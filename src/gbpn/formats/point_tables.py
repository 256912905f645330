"""Tables of measured points: lines of x, y, depth and perhaps std and weight."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from gbpn.errors import DatasetError
from gbpn.files.guard import reading, shown

if TYPE_CHECKING:
    from torch import Tensor

__all__ = ["COLUMNS", "POINT_TABLES", "read_point_table"]

POINT_TABLES = (".csv", ".txt")
"""Suffixes of such files."""
COLUMNS = ("x", "y", "depth", "std", "weight")
"""What the columns mean, in this order unless a first line names them."""
_OTHER_NAMES = {"sigma": "std", "confidence": "weight", "z": "depth", "u": "x", "v": "y"}
_ABSENT = (0.0, 0.0, 0.0, 0.0, 1.0)
"""What a column that is not there stands for: no noise beyond the usual, full weight."""


def read_point_table(path: Path) -> Tensor:
    """[N, 5] of x, y, depth, std (metres) and weight (0 to 1), from lines of 3 to 5 numbers.

    One line of names may come first and then gives the order.
    """
    with reading(path, "table of points", "lines of x, y, depth and perhaps std and weight"):
        return _rows(path, path.read_text(encoding="utf-8").splitlines())


def _rows(path: Path, lines: list[str]) -> Tensor:
    import torch

    rows: list[list[float]] = []
    names: list[str] = []
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
            names = [word.lower() for word in words]
    if len({len(row) for row in rows}) != 1 or not 3 <= len(rows[0]) <= len(COLUMNS):
        raise DatasetError(
            f"{path}: wanted lines of x, y, depth (and perhaps std and weight); got {shown(lines[:1])}"
        )
    table = torch.tensor(_ABSENT, dtype=torch.float64).repeat(len(rows), 1)
    table[:, _order(names, len(rows[0]))] = torch.tensor(rows, dtype=torch.float64)
    return table


def _order(names: list[str], count: int) -> list[int]:
    """Which of `COLUMNS` each column is; names that say nothing leave the usual order."""
    known = [_OTHER_NAMES.get(name, name) for name in names]
    usable = len(known) == count == len(set(known)) and set(COLUMNS[:3]) <= set(known) <= set(COLUMNS)
    return [COLUMNS.index(name) for name in known] if usable else list(range(count))
