"""RMSE after 5, 10, 20 and 50 points: random ones, those of the largest sigma, and `session.suggest`.

python scripts/measure_suggestions.py POOL [FRAMES]      POOL in the layout of gbpn's `pool` dataset

Frames are held-out training frames of NYUv2. All three start from the same random point and add one at a
time; the dense depth answers each question without noise.
"""

from __future__ import annotations

import sys
from collections.abc import Callable

import numpy as np
import torch

import gbpn
from gbpn.datasets.mixed import MixedDataset
from gbpn.engine.session import Session
from gbpn.sample import Sample

COUNTS = (5, 10, 20, 50)
Chooser = Callable[[Session, np.random.Generator], tuple[int, int]]


def random(session: Session, rng: np.random.Generator) -> tuple[int, int]:
    height, width = session.depth.shape
    return int(rng.integers(width)), int(rng.integers(height))


def largest_sigma(session: Session, rng: np.random.Generator) -> tuple[int, int]:
    std = session.std.copy()
    for one in session.measurements:
        std[one.y, one.x] = 0
    y, x = divmod(int(np.nanargmax(std)), std.shape[1])
    return x, y


def suggested(session: Session, rng: np.random.Generator) -> tuple[int, int]:
    (best,) = session.suggest(1)
    return best.x, best.y


CHOOSERS: dict[str, Chooser] = {"random": random, "largest sigma": largest_sigma, "suggest": suggested}


def follow(completer: gbpn.DepthCompleter, sample: Sample, choose: Chooser, seed: int) -> dict[int, float]:
    """RMSE in metres by number of points."""
    assert sample.target is not None
    truth = sample.target[0].numpy()
    known = truth > 0
    rng = np.random.default_rng(seed)
    session = completer.session(sample.image, sample.intrinsics)
    y, x = divmod(int(rng.choice(np.flatnonzero(known))), truth.shape[1])
    found = {}
    while len(session.measurements) < max(COUNTS):
        if known[y, x]:
            session.add(x, y, float(truth[y, x]))
        if (count := len(session.measurements)) in COUNTS and count not in found:
            found[count] = float(np.sqrt(np.mean((session.depth - truth)[known] ** 2)))
        if count < max(COUNTS):
            x, y = choose(session, rng)
    return found


def main(root: str, frames: int = 20) -> None:
    torch.set_num_threads(1)
    completer = gbpn.DepthCompleter.from_pretrained(device="cpu")
    dataset = MixedDataset(root, "validation", scenes=("nyuv2",))
    chosen = [dataset.load(int(i)) for i in np.linspace(0, len(dataset) - 1, min(frames, len(dataset)))]
    rows = {
        name: [follow(completer, sample, choose, seed) for seed, sample in enumerate(chosen)]
        for name, choose in CHOOSERS.items()
    }
    print(f"{len(chosen)} frames; mean RMSE in metres, and in how many frames `suggest` is better")
    for name, found in rows.items():
        cells = []
        for count in COUNTS:
            mean = np.mean([one[count] for one in found])
            wins = sum(o[count] < f[count] for o, f in zip(rows["suggest"], found, strict=True))
            cells.append(f"{count} points {mean:.3f} ({wins})")
        print(f"{name:14}", *cells, sep="   ")


if __name__ == "__main__":
    main(sys.argv[1], *(int(word) for word in sys.argv[2:3]))
