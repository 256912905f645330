"""What is said of many frames at once: notices that differ only in their numbers become one."""

from __future__ import annotations

import re
from collections.abc import Sequence

__all__ = ["merged"]

_NUMBER = re.compile(r"(?<![\w.])\d+(?:\.\d+)?(?:e[+-]?\d+)?(?![\w])")


def merged(notices: Sequence[str]) -> list[tuple[str, int]]:
    """Each kind of notice once, in order of appearance, with its count; numbers that differ become ranges."""
    kinds: dict[str, list[list[str]]] = {}
    for notice in notices:
        kinds.setdefault(_NUMBER.sub("\0", notice), []).append(_NUMBER.findall(notice))
    out = []
    for kind, rows in kinds.items():
        parts = kind.split("\0")
        ranges = [_range(column) for column in zip(*rows, strict=True)]
        text = "".join(f"{part}{number}" for part, number in zip(parts, [*ranges, ""], strict=True))
        out.append((text, len(rows)))
    return out


def _range(words: Sequence[str]) -> str:
    low, high = min(words, key=float), max(words, key=float)
    return low if float(low) == float(high) else f"{low}–{high}"
