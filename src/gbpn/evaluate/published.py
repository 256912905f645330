"""Numbers printed in the paper, to stand beside ours: one data file, and nothing in it was measured here."""

from __future__ import annotations

import json
from functools import cache
from importlib import resources
from typing import Any

__all__ = ["beside", "family"]


@cache
def _tables() -> dict[str, dict[str, Any]]:
    """By name: the paper's table, the dataset and suites it belongs to, its frames, and its rows."""
    text = (resources.files("gbpn.evaluate") / "published.json").read_text(encoding="utf-8")
    found: dict[str, dict[str, Any]] = json.loads(text)["tables"]
    return found


def beside(suite: str, family: str) -> list[dict[str, Any]]:
    """Published rows for a suite on a family of data ("nyuv2", "kitti", "void"); each names its table."""
    return [
        {**row, "published": table["table"], "frames": table["frames"]}
        for table in _tables().values()
        if suite in table["suite"].split() and table["dataset"] == family
        for row in table["rows"]
    ]


def family(dataset: str, names: list[str]) -> str:
    """Which published data a run may stand beside; a pool of mixed scenes belongs to none."""
    if dataset != "pool":
        return dataset
    found = {name.partition("/")[0] for name in names}
    return found.pop() if len(found) == 1 else ""
