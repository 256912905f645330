"""How well the sigmas of weights hold on frames of the training scenes, sensor by sensor.

python scripts/measure_sigmas.py POOL [WEIGHTS]

A row is the share of pixels within their 90 % intervals (mean ± deviation over frames) and the interval
score: width plus 20 × what lies outside, relative to depth; smaller is better.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import torch

import gbpn
from gbpn.datasets import open_dataset
from gbpn.metrics import valid
from gbpn.sample import Sample
from gbpn.sensors.sampling import sparsify
from gbpn.sigma.held_out import LEVEL, LEVEL_QUANTILE

SENSORS = (
    "points:50",
    "points:500",
    "points:5000",
    "points:500+noise:0.01",
    "points:500+noise:0.03",
    "points:500+noise:0.05",
    "corners:500",
    "holes:0.5",
    "lidar:16",
    "points:1",
    "points:2",
    "points:5",
    "points:10",
)
"""Of every fourth held-out NYUv2 frame."""
OTHERS = ("7scenes/redkitchen", "osd_tabletop/mosd")
"""Measured at 500 points, every tenth frame."""
STREET = "kitti/raw_2011_09_26"
"""Every fourth frame; half of the rings measure, the other half is the target."""


def frames(pool: Path) -> Iterator[tuple[str, list[Sample]]]:
    """By name, the frames of each row with their measurements."""
    rooms = open_dataset("pool", pool / "nyuv2" / "train", "validation", holdout=0.05)
    for number, sensor in enumerate(SENSORS):
        chosen = range(0, len(rooms), 4)
        yield sensor, [sparsify(rooms.load(i), sensor, np.random.default_rng([7, i, number])) for i in chosen]
    for scene in OTHERS:
        others = open_dataset("pool", pool / scene, "all")
        chosen = range(0, len(others), 10)
        yield scene, [sparsify(others.load(i), "points:500", np.random.default_rng([7, i])) for i in chosen]
    street = open_dataset("pool", pool / STREET, "all")
    yield STREET, [street.load(i) for i in range(0, len(street), 4)]


@torch.inference_mode()
def judge(model: gbpn.GBPN, sample: Sample) -> tuple[float, float]:
    """Share of the pixels within their intervals, and the interval score."""
    assert sample.target is not None
    answer = model(sample.image[None], sample.sparse[None], sample.intrinsics[None])
    known = valid(sample.target) & answer.observed[0]
    target = sample.target[known]
    error = (answer.mean[0][known] - target).abs()
    reach = LEVEL_QUANTILE * answer.std[0][known]
    score = (2 * reach + 2 / (1 - LEVEL) * (error - reach).clamp(min=0)) / target
    return float((error <= reach).float().mean()), float(score.mean())


def main(pool: str, weights: str = "default") -> None:
    model = gbpn.load(weights)
    for name, samples in frames(Path(pool)):
        covered, score = np.array([judge(model, sample) for sample in samples]).T
        print(
            f"{name:24} {100 * covered.mean():5.1f} ± {100 * covered.std():4.1f} %  {score.mean():.4f}",
            flush=True,
        )


if __name__ == "__main__":
    main(*sys.argv[1:])
