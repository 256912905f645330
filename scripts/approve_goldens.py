"""Writes what our own networks and generators give now as the numbers that tests compare with.

usage: python scripts/approve_goldens.py [CASE …]
Cases are default_network, configurations, fresh_networks, seeds, pictures and defaults; without any, all.
To be run after a change of these numbers that is meant, such as new default weights.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))

import approved_defaults
import goldens
import own_goldens

MOST = 200
"""Values kept of each array."""


def main() -> None:
    names = sys.argv[1:] or [*own_goldens.CASES, "defaults"]
    if "defaults" in names:
        names.remove("defaults")
        text = json.dumps(approved_defaults.defaults(), indent=0, ensure_ascii=False, sort_keys=True)
        approved_defaults.PLACE.write_text(text + "\n", encoding="utf-8")
    for name in names:
        kept: dict[str, np.ndarray] = {}
        for key, array in own_goldens.CASES[name]().items():
            count = array.size if name == "fresh_networks" else min(MOST, array.size)
            at = np.sort(np.random.default_rng(0).choice(array.size, count, replace=False))
            kept |= goldens.sampled(key, array.astype(np.float64 if count == array.size else np.float32), at)
        path = goldens.COMPACT / f"{name}.npz"
        np.savez_compressed(path, **kept)
        print(f"{path.name:24s} {path.stat().st_size / 1e3:8.1f} KB")


if __name__ == "__main__":
    main()
