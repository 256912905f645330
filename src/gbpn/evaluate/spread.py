"""What σ costs nothing to state: how far simple baselines are from each other."""

from __future__ import annotations

import torch

from gbpn.baselines import METHODS
from gbpn.distribution import DepthDistribution
from gbpn.sample import Sample

__all__ = ["MEMBERS", "spread"]

MEMBERS = ("nearest", "linear", "ip_basic", "guided")
_LEAST = 1e-3
"""σ over depth is at least this: at measurements all of them agree."""


def spread(sample: Sample) -> DepthDistribution:
    """The mean of `MEMBERS` and their standard deviation; pixels that any of them leaves out are left out."""
    answers = torch.stack([METHODS[name](sample).mean for name in MEMBERS])
    mean = answers.mean(0)
    std = torch.maximum(answers.std(0), _LEAST * mean)
    return DepthDistribution.of_depth(mean, confidence=-std, std=std)
