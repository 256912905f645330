"""What gross errors among the measurements cost, with them kept and with them dropped.

python scripts/measure_outliers.py SCENES [--frames 40] [--seed 0]

SCENES is a folder in the layout of gbpn's `pool` dataset. Each frame has 500 random points; a share of them
is multiplied by 0.3 or by 3, or one single point is given an absurd depth. RMSE and MAE are means over
frames, in metres, of `gbpn.DepthCompleter` with `outliers="keep"` and `"drop"`.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
import torch

import gbpn
from gbpn.datasets import open_dataset
from gbpn.metrics import valid
from gbpn.predict.completer import DepthCompleter
from gbpn.sample import Sample
from gbpn.sensors.patterns import random_points

POINTS = 500
SHARES = (0.0, 0.002, 0.01, 0.05, 0.1)
FACTORS = (0.3, 3.0)
ABSURD = (65.5, 655.0, 6553.0, 1e10)
"""Metres of a single point."""


def spoilt(sparse: torch.Tensor, share: float, single: float, rng: np.random.Generator) -> torch.Tensor:
    """A share of the measurements [1, H, W] times one of FACTORS; or one of them `single` metres."""
    out = sparse.clone()
    places = torch.from_numpy(rng.permutation(np.flatnonzero(sparse.numpy() > 0)))
    if single:
        out.view(-1)[places[0]] = single
    else:
        chosen = places[: round(share * len(places))]
        out.view(-1)[chosen] *= torch.from_numpy(rng.choice(FACTORS, len(chosen)).astype(np.float32))
    return out


def errors(completer: DepthCompleter, sample: Sample, sparse: torch.Tensor) -> tuple[float, float]:
    """RMSE and MAE over the pixels with a known depth."""
    assert sample.target is not None
    depth = torch.from_numpy(completer(sample.image, sparse[0], sample.intrinsics).depth)
    known = valid(sample.target)[0]
    difference = torch.nan_to_num(depth[known], nan=0.0).double() - sample.target[0][known].double()
    return float(difference.square().mean().sqrt()), float(difference.abs().mean())


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("scenes", type=Path)
    parser.add_argument("--frames", type=int, default=40)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    frames = open_dataset("pool", options.scenes, "all")
    chosen = np.unique(np.linspace(0, len(frames) - 1, options.frames).round().astype(int))
    model = gbpn.load("default")
    completers = {choice: DepthCompleter(model, outliers=choice) for choice in ("keep", "drop")}
    rows: dict[str, list[tuple[float, ...]]] = {}
    for index in map(int, chosen):
        sample = frames.load(index)
        assert sample.target is not None
        clean = random_points(sample.target, np.random.default_rng([options.seed, index]), POINTS)
        for name, share, single in (
            *((f"{share:.1%}", share, 0.0) for share in SHARES),
            *((f"one at {metres:g} m", 0.0, metres) for metres in ABSURD),
        ):
            sparse = spoilt(clean, share, single, np.random.default_rng([options.seed, index, 1]))
            row = (errors(completers["keep"], sample, sparse), errors(completers["drop"], sample, sparse))
            rows.setdefault(name, []).append((*row[0], *row[1]))
    untouched = np.mean(rows[f"{0:.1%}"], axis=0)[0]
    print(f"{len(chosen)} frames of {options.scenes.name}, seed {options.seed}")
    print(f"{'spoilt':>16} {'RMSE keep':>10} {'drop':>8} {'cost':>8} {'MAE keep':>9} {'drop':>8}")
    for name, values in rows.items():
        kept, kept_mae, dropped, dropped_mae = np.mean(values, axis=0)
        cost = dropped / untouched - 1
        print(f"{name:>16} {kept:10.4f} {dropped:8.4f} {cost:8.1%} {kept_mae:9.4f} {dropped_mae:8.4f}")


if __name__ == "__main__":
    main()
