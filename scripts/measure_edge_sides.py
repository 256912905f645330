"""On which side of things a depth camera errs: colour edges beside depth steps, nearer left or nearer right.

python scripts/measure_edge_sides.py POOL/nyuv2/train

A row is the mean colour step at −6 … 6 pixels from a depth step. Rows of a camera that errs alike on both
sides would be mirror images of each other.
"""

from __future__ import annotations

import sys

import torch
from torch import Tensor

from gbpn.datasets import open_dataset

STEP = 0.08
"""Of the logarithm of depth, between neighbours, from which it is a depth step."""
REACH = 6


def profile(colour: Tensor, steep: Tensor) -> Tensor:
    """[2·REACH + 1]: sum of the colour steps [H, W] around the places `steep` [H, W]."""
    rows, columns = torch.nonzero(steep[:, REACH:-REACH], as_tuple=True)
    return torch.stack([colour[rows, columns + REACH + k].sum() for k in range(-REACH, REACH + 1)])


def main(folder: str) -> None:
    dataset = open_dataset("pool", folder, "train", holdout=0.05)
    sums = {
        (axis, side): torch.zeros(2 * REACH + 1)
        for axis in ("left and right", "top and bottom")
        for side in ("nearer first", "nearer second")
    }
    counts = dict.fromkeys(sums, 0)
    for index in range(0, len(dataset), 5):
        sample = dataset.load(index)
        assert sample.target is not None
        for axis in ("left and right", "top and bottom"):
            turned = axis == "top and bottom"
            image = sample.image.mT if turned else sample.image
            depth = (sample.target.mT if turned else sample.target)[0].clamp(min=0.1)
            colour = image.diff(dim=2).abs().amax(0)
            step = depth.log().diff(dim=1)
            for side, steep in (("nearer first", step > STEP), ("nearer second", step < -STEP)):
                sums[axis, side] += profile(colour, steep)
                counts[axis, side] += int(steep[:, REACH:-REACH].sum())
    for key, total in sums.items():
        means = " ".join(f"{value:.3f}" for value in total / counts[key])
        print(f"{key[0]:15} {key[1]:14} {counts[key]:7}  {means}")


if __name__ == "__main__":
    main(sys.argv[1])
