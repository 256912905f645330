"""What bfloat16 changes: errors, coverage and single pixels of weights in float32 and in bfloat16.

usage: python scripts/measure_precision.py DATA [--weights default] [--every 5] [--points 500] [-o FOLDER]

Prints one JSON object; with -o also writes the frames of the largest changes side by side: image, depth in
both precisions, and the absolute difference (white: 10 cm or more).
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

import numpy as np
import torch
from PIL import Image

import gbpn
from gbpn.datasets import open_dataset
from gbpn.distribution import DepthDistribution
from gbpn.evaluate.settings import Setting
from gbpn.measurements.validity import measured
from gbpn.sample import Sample

NORMAL_90 = 1.6448536
SHOWN = 4
WHITE = 0.1
"""Metres of difference that the picture shows as white."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("data", type=Path)
    parser.add_argument("--weights", default="default")
    parser.add_argument("--every", type=int, default=5)
    parser.add_argument("--points", type=int, default=500)
    parser.add_argument("-o", "--output", type=Path)
    given = parser.parse_args()
    weights = gbpn.load(given.weights)
    models = {name: weights.prepared(name, "cpu") for name in ("float32", "bfloat16")}
    dataset = open_dataset("pool", given.data, "evaluation")
    rows: list[dict[str, float]] = []
    shown: list[tuple[float, Image.Image]] = []
    for index in range(0, len(dataset), given.every):
        sample = Setting(points=given.points).measure(dataset.load(index))
        answers = {name: complete(model, sample) for name, model in models.items()}
        rows.append(compared(answers, sample))
        shown.append((rows[-1]["largest"], picture(answers, sample)))
        shown = sorted(shown, key=lambda one: -one[0])[:SHOWN]
    mean = {name: float(np.mean([row[name] for row in rows])) for name in rows[0]}
    mean |= {"frames": len(rows), "largest": max(row["largest"] for row in rows)}
    print(json.dumps({"weights": given.weights, **mean}, indent=1))
    if given.output is not None:
        given.output.mkdir(parents=True, exist_ok=True)
        for place, (_, drawn) in enumerate(shown):
            drawn.save(given.output / f"precision_{place}.png")


@torch.inference_mode()
def complete(model: gbpn.GBPN, sample: Sample) -> DepthDistribution:
    image, sparse, camera = (x[None] for x in (sample.image, sample.sparse, sample.intrinsics))
    return model.complete(image, sparse, camera)


def compared(answers: dict[str, DepthDistribution], sample: Sample) -> dict[str, float]:
    assert sample.target is not None
    target = sample.target[None]
    known = measured(target)
    row: dict[str, float] = {}
    for name, answer in answers.items():
        error = (answer.mean - target)[known]
        row[f"rmse_{name}"] = float(error.square().mean().sqrt())
        row[f"covered_{name}"] = float((error.abs() <= NORMAL_90 * answer.std[known]).float().mean())
        row[f"sigma_{name}"] = float(answer.std[known].mean())
    change = (answers["bfloat16"].mean - answers["float32"].mean).abs()
    row["largest"] = float(change.max())
    row["above_1_cm"] = float((change > 0.01).float().mean())
    row["above_10_cm"] = float((change > 0.1).float().mean())
    row["median_change"] = float(change.median())
    return row


def picture(answers: dict[str, DepthDistribution], sample: Sample) -> Image.Image:
    """Image, both depths and their difference, side by side."""
    image = sample.image.permute(1, 2, 0).numpy()
    depths = [answer.mean[0, 0].numpy() for answer in answers.values()]
    low, high = np.percentile(depths[0], (1, 99))
    maps = [(depth - low) / (high - low) for depth in depths]
    maps.append(np.abs(depths[1] - depths[0]) / WHITE)
    grey = [np.repeat(one[..., None], 3, axis=2) for one in maps]
    tiles = np.concatenate([image, *grey], axis=1)
    return Image.fromarray((255 * tiles.clip(0, 1)).astype(np.uint8))


if __name__ == "__main__":
    main()
