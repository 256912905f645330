"""Holes of a depth camera filled, with and without keeping what was measured.

python scripts/measure_keeping.py SCENE [SCENE …] [--frames 8]

SCENE is a folder as for measure_upscaling.py. A third of each frame is taken away in blobs, as shiny and far
surfaces are by depth cameras; the rest is given. Errors in the holes, and changes of the given pixels.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
import torch
from measure_upscaling import frames

import gbpn
from gbpn.inputs.reading import frame_inputs

HOLES = 0.33
"""Share of the picture in holes."""


def holes(height: int, width: int, rng: np.random.Generator) -> np.ndarray:
    """[H, W] bool: ellipses of 4 to 20 % of the height, until their share is reached."""
    y, x = np.mgrid[:height, :width]
    out = np.zeros((height, width), bool)
    while out.mean() < HOLES:
        row, column = rng.uniform(0, height), rng.uniform(0, width)
        tall, wide = rng.uniform(0.04, 0.2, 2) * height
        out |= ((y - row) / tall) ** 2 + ((x - column) / wide) ** 2 < 1
    return out


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("scenes", nargs="+", type=Path)
    parser.add_argument("--frames", type=int, default=8)
    given = parser.parse_args()
    completer = gbpn.DepthCompleter.from_pretrained(device="cpu")
    for scene in given.scenes:
        rows: dict[bool, list[tuple[float, float, float, float]]] = {False: [], True: []}
        for number, (image, depth, camera) in enumerate(frames(scene, given.frames)):
            gone = torch.from_numpy(holes(*depth.shape[1:], np.random.default_rng(number)))[None]
            inputs = frame_inputs(image, torch.where(gone, 0.0, depth), camera)
            edge = torch.nn.functional.max_pool2d((~gone).float()[None], 7, 1, 3)[0] > 0
            for keep in (False, True):
                result = completer.complete(inputs, keep_measured=keep)
                error = torch.from_numpy(result.depth)[None] - depth
                known = (depth > 0) & torch.isfinite(error)
                parts = (known & gone, known & gone & edge, known)
                numbers = [float(error[part].square().mean().sqrt()) for part in parts]
                rows[keep].append((numbers[0], numbers[1], numbers[2], float(result.change.max())))
        place = f"{scene.parent.name}/{scene.name}"
        print(f"{place}: {len(rows[True])} frames, {HOLES:.0%} in holes; RMSE in metres")
        print(f"{'':19} in holes   their outer 3 pixels   everywhere   largest change of a measurement")
        for keep, name in ((False, "as inferred"), (True, "--keep-measured")):
            inside, rim, all_, _ = np.mean(rows[keep], axis=0)
            largest = max(row[3] for row in rows[keep])
            print(f"  {name:17} {inside:8.4f} {rim:16.4f} {all_:18.4f} {largest:16.3f}")


if __name__ == "__main__":
    main()
