"""Moments of recordings: times in names and lists, and which measurement is nearest to which image.

Times are whole nanoseconds: seconds of today do not fit into a float with more than a tenth of a microsecond.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from decimal import Decimal
from pathlib import Path

import numpy as np

from gbpn.errors import DatasetError, InputError
from gbpn.files.guard import reading, shown

__all__ = ["NANOSECONDS", "nearest", "read_associations", "read_timed_list", "time_of_name", "tolerance_of"]

NANOSECONDS = 1_000_000_000
"""In a second."""
_DIGITS = {19: 1, 16: 1_000, 13: 1_000_000}
"""Digits of a time of our years in nano-, micro- and milliseconds → nanoseconds each."""
_NUMBER = re.compile(r"\d+(?:\.\d+)?")


def time_of_name(path: Path) -> int:
    """Nanoseconds: the last number of a file's name, as seconds, or by its digits in a smaller unit."""
    found = _NUMBER.findall(path.stem)
    if not found:
        raise InputError(
            f"{shown(path.name)} is no time: --pair nearest wants names such as 1305031102.175304.png"
        )
    return _nanoseconds(found[-1])


def _nanoseconds(word: str) -> int:
    if "." not in word and len(word) in _DIGITS:
        return int(word) * _DIGITS[len(word)]
    return int(Decimal(word) * NANOSECONDS)


def tolerance_of(seconds: float) -> int:
    """Nanoseconds of a tolerance that a person gave."""
    if not (math.isfinite(seconds) and seconds >= 0):
        raise InputError(f"--tolerance wants seconds, such as 0.05; got {seconds}")
    return round(seconds * NANOSECONDS)


def nearest(times: Sequence[int], others: Sequence[int]) -> tuple[list[int], list[int]]:
    """For each of `times` the index of the nearest of `others`, and how many nanoseconds apart they are.

    One of the others may serve several: a camera may be faster than a scanner.
    """
    if not len(others):
        raise InputError("there is nothing to pair with: no measurement has a time")
    order = np.argsort(np.asarray(others, np.int64), kind="stable")
    known = np.asarray(others, np.int64)[order]
    wanted = np.asarray(times, np.int64)
    after = np.clip(np.searchsorted(known, wanted), 1, max(len(known) - 1, 1)) if len(known) > 1 else 0
    before = np.maximum(after - 1, 0)
    first = np.abs(known[before] - wanted) <= np.abs(known[after] - wanted)
    chosen = np.where(first, before, after)
    return order[chosen].tolist(), np.abs(known[chosen] - wanted).tolist()


def read_timed_list(path: Path) -> list[tuple[int, Path]]:
    """TUM's rgb.txt and depth.txt: lines of a time in seconds and a file, relative to the list."""
    rows = _rows(path, "lines of a time and a file", 2)
    return [(_time(path, words[0]), path.parent / words[1]) for words in rows]


def read_associations(path: Path) -> list[tuple[Path, Path]]:
    """TUM's associations: lines of time, image, time, depth; or of an image and a depth file."""
    rows = _rows(path, "lines of time, image, time, depth", 4, 2)
    pairs = []
    for words in rows:
        image, depth = (words[1], words[3]) if len(words) == 4 else words
        pairs.append((path.parent / image, path.parent / depth))
    return pairs


def _time(path: Path, word: str) -> int:
    if not _NUMBER.fullmatch(word):
        raise DatasetError(f"{shown(path)}: wanted a time in seconds; got {shown(word)!r}")
    return _nanoseconds(word)


def _rows(path: Path, expected: str, *counts: int) -> list[list[str]]:
    with reading(path, "list", expected):
        lines = path.read_text(encoding="utf-8").splitlines()
    rows = [line.replace(",", " ").split() for line in lines if line.strip() and not line.startswith("#")]
    if not rows:
        raise DatasetError(f"{shown(path)}: an empty list; expected {expected}")
    for words in rows:
        if len(words) not in counts:
            raise DatasetError(f"{shown(path)}: expected {expected}; got {shown(' '.join(words))!r}")
    return rows
