"""At which size should a picture be completed? RMSE by working size, on held-out training frames.

python scripts/measure_sizes.py POOL [--weights default] [--focal 260] [--frames 8] [--points 1 10 50 500]

Every frame with the same points comes as it is, at half its size, and enlarged twice (streets: as they are,
and at half and a quarter), and is completed at several working sizes. A line shows the RMSE in metres at each
working focal length over that of training; then as `gbpn.DepthCompleter` does it with working_size="own" and
"auto", and how far the latter is from the best of all.
"""

from __future__ import annotations

import argparse
import zlib
from collections import defaultdict
from pathlib import Path

import numpy as np
import torch
from torch.nn.functional import interpolate

import gbpn
from gbpn.datasets import open_dataset
from gbpn.datasets.selection import evenly_spaced
from gbpn.engine import resizing
from gbpn.inputs.frame import FrameInputs
from gbpn.metrics import valid
from gbpn.sample import Sample
from gbpn.sensors.patterns import random_points

SCENES = ("nyuv2", "7scenes", "osd_tabletop", "kitti")
WORKING = (0.5, 0.7, 1.0, 1.4, 2.0)
"""Focal lengths over that of training."""


def sized(sample: Sample, factor: float) -> FrameInputs:
    image, sparse, camera = resizing.reduce(sample.image, sample.sparse, sample.intrinsics, factor)
    return FrameInputs(image=image.clamp(0, 1), sparse=sparse, intrinsics=camera)


def target_of(sample: Sample, size: tuple[int, int], factor: float) -> torch.Tensor:
    assert sample.target is not None
    if bool(valid(sample.target).float().mean() > 0.5):
        return interpolate(sample.target[None], size=size, mode="nearest-exact")
    return resizing.reduce(sample.image, sample.target, sample.intrinsics, factor)[1][None]


def rmse(mean: torch.Tensor, target: torch.Tensor) -> float:
    known = valid(target) & torch.isfinite(mean)
    return float((mean - target)[known].double().square().mean().sqrt())


def at(completer: gbpn.DepthCompleter, inputs: FrameInputs, factor: float) -> torch.Tensor:
    """[1, 1, H, W] at the picture's size, completed at `factor` of it."""
    seen = resizing.reduced(inputs, factor)
    distribution = completer.complete(seen).distribution
    return resizing.enlarge(distribution, *inputs.size).mean


def errors(completer: gbpn.DepthCompleter, sample: Sample, scale: float, focal: float) -> dict[str, float]:
    inputs = sized(sample, scale)
    target = target_of(sample, inputs.size, scale)
    own = float(inputs.intrinsics[0, 0])
    own_size = gbpn.DepthCompleter(completer.model, how=completer.how, working_size="own")
    out = {f"{w:g}": rmse(at(own_size, inputs, w * focal / own), target) for w in WORKING}
    out["own"] = rmse(own_size.complete(inputs).distribution.mean, target)
    out["auto"] = rmse(completer.complete(inputs).distribution.mean, target)
    return out


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("pool", type=Path)
    parser.add_argument("--weights", default="default")
    parser.add_argument("--focal", type=float, default=260.0)
    parser.add_argument("--frames", type=int, default=8)
    parser.add_argument("--scenes", nargs="+", default=SCENES)
    parser.add_argument("--points", type=int, nargs="+", default=[1, 10, 50, 500, 5000])
    options = parser.parse_args()
    completer = gbpn.DepthCompleter.from_pretrained(options.weights)
    trained = {**completer.model.card.get("trained_for", {}), "focal": options.focal}
    completer.model.card = {**completer.model.card, "trained_for": trained}
    for scene in options.scenes:
        frames = open_dataset("pool", options.pool, "validation", scenes=(scene,))
        for scale in (0.25, 0.5, 1.0) if scene == "kitti" else (0.5, 1.0, 2.0):
            for points in options.points:
                found = defaultdict(list)
                for index in evenly_spaced(len(frames), options.frames):
                    sample = frames.load(index)
                    assert sample.target is not None
                    rng = np.random.default_rng([points, zlib.crc32(sample.name.encode())])
                    source = sample.sparse if bool(sample.sparse.any()) else sample.target
                    measured = Sample(
                        image=sample.image,
                        sparse=random_points(source, rng, points),
                        intrinsics=sample.intrinsics,
                        target=sample.target,
                        name=sample.name,
                    )
                    for name, value in errors(completer, measured, scale, options.focal).items():
                        found[name].append(value)
                means = {name: float(np.mean(values)) for name, values in found.items()}
                texts = [f"{name} {value:.4f}" for name, value in means.items()]
                above = means["auto"] / min(means.values()) - 1
                print(
                    f"{scene} × {scale:g}, {points} points: {', '.join(texts)}; {100 * above:+.0f} %",
                    flush=True,
                )


if __name__ == "__main__":
    main()
