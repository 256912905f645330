"""A small depth map made as large as its picture: RMSE beside bilinear enlargement.

python scripts/measure_upscaling.py SCENE [SCENE …] [--factor 5] [--frames 10]
python scripts/measure_upscaling.py --large

SCENE is a folder with color/, depth/ (16-bit millimetres) and meta.json (K). Depth is reduced to the means of
whole blocks of `factor` pixels; blocks with a hole are holes. Errors count where bilinear enlargement has an
answer from whole blocks only. --large completes 256×192 to 1920×1440 of an invented room, with its cost.
"""

from __future__ import annotations

import argparse
import json
import resource
import time
from pathlib import Path

import numpy as np
import torch
from PIL import Image
from torch import Tensor
from torch.nn import functional

import gbpn
from gbpn.distribution import DepthDistribution
from gbpn.measurements.areas import AreaGrid, agreeing
from gbpn.synthetic.dataset import SyntheticDataset

Frame = tuple[Tensor, Tensor, Tensor]
"""Image [3, H, W], depth [1, H, W], intrinsics [3, 3]."""


def frames(scene: Path, most: int) -> list[Frame]:
    camera = torch.tensor(json.loads((scene / "meta.json").read_text())["K"])
    names = sorted((scene / "color").iterdir())
    chosen = [names[k] for k in np.linspace(0, len(names) - 1, min(most, len(names))).astype(int)]
    return [(picture(path), metres(scene / "depth" / f"{path.stem}.png"), camera) for path in chosen]


def picture(path: Path) -> Tensor:
    return torch.from_numpy(np.array(Image.open(path))).permute(2, 0, 1).float() / 255


def metres(path: Path) -> Tensor:
    return torch.from_numpy(np.array(Image.open(path)).astype(np.float32) / 1000)[None]


def block_means(depth: Tensor, factor: int) -> Tensor:
    """[1, H, W] → [1, h, w], 0 where a block has a hole."""
    whole = functional.avg_pool2d((depth > 0).float(), factor) > 0.999
    return torch.where(whole, functional.avg_pool2d(depth, factor), 0.0)


def answers(completer: gbpn.DepthCompleter, frame: Frame, small: Tensor) -> tuple[dict[str, Tensor], Tensor]:
    """What each method says, and where errors count."""
    image, depth, camera = frame
    size = (depth.shape[1], depth.shape[2])
    grid = AreaGrid.of((small.shape[1], small.shape[2]), size)
    placed = grid.placed(small)
    counts = (grid.enlarged((small > 0).float()[None])[0] > 0.999) & (depth > 0)
    bilinear = grid.enlarged(small[None])[0]
    corrected = agreeing(grid, placed[None], DepthDistribution.of_depth(bilinear[None]))
    said = {
        "bilinear": bilinear,
        "bilinear, means corrected": corrected.mean[0],
        "each pixel as a point": torch.from_numpy(completer(image, placed, camera).depth)[None],
        "as areas": torch.from_numpy(completer(image, small[0], camera).depth)[None],
    }
    return said, counts


def table(scene: Path, completer: gbpn.DepthCompleter, factor: int, most: int) -> None:
    errors: dict[str, list[float]] = {}
    for frame in frames(scene, most):
        said, counts = answers(completer, frame, block_means(frame[1], factor))
        for name, mean in said.items():
            errors.setdefault(name, []).append(rmse(mean, frame[1], counts))
    count = len(errors["bilinear"])
    print(f"{scene.parent.name}/{scene.name}: {count} frames, areas of {factor}×{factor} pixels")
    for name, values in errors.items():
        better = sum(value < other for value, other in zip(values, errors["bilinear"], strict=True))
        share = float(np.mean(values) / np.mean(errors["bilinear"]))
        print(f"  {name:26} {np.mean(values):.4f} m  {share:.3f} × bilinear, better on {better} of {count}")


def rmse(mean: Tensor, depth: Tensor, counts: Tensor) -> float:
    there = counts & torch.isfinite(mean)
    return float((mean - depth)[there].square().mean().sqrt())


def large(completer: gbpn.DepthCompleter) -> None:
    sample = SyntheticDataset(split="evaluation", count=1, height=1440, width=1920, kinds=("room",)).load(0)
    assert sample.target is not None
    grid = AreaGrid.of((192, 256), (1440, 1920))
    small = grid.means(sample.target)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    wall, processor = time.perf_counter(), time.process_time()
    result = completer(sample.image, small[0], sample.intrinsics)
    depth = torch.from_numpy(result.depth)[None]
    wall, processor = time.perf_counter() - wall, time.process_time() - processor
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    everywhere = sample.target > 0
    bilinear = rmse(grid.enlarged(small[None])[0], sample.target, everywhere)
    mine = rmse(depth, sample.target, everywhere)
    print(f"256×192 → 1920×1440: bilinear {bilinear:.4f} m, as areas {mine:.4f} m ({mine / bilinear:.3f} ×)")
    print(f"  {processor:.1f} s of processor time ({wall:.1f} s by the clock), peak {peak / 2**20:.2f} GB, ")
    print(f"  of which {before / 2**20:.2f} GB before; {torch.get_num_threads()} threads")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("scenes", nargs="*", type=Path)
    parser.add_argument("--factor", type=int, default=5)
    parser.add_argument("--frames", type=int, default=10)
    parser.add_argument("--large", action="store_true")
    given = parser.parse_args()
    completer = gbpn.DepthCompleter.from_pretrained(device="cpu")
    for scene in given.scenes:
        table(scene, completer, given.factor, given.frames)
    if given.large:
        large(completer)


if __name__ == "__main__":
    main()
