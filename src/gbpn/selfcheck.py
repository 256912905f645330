"""Sigmas checked on the spot: some measurements are held out, completed from the rest, and compared.

The calibration stored with weights knows the frames it was fitted on, not this camera, this sensor or its
noise. The measurements of the image at hand do.
"""

from __future__ import annotations

from dataclasses import replace

import torch
from torch import Tensor

from gbpn.depth import LEVEL, LEVEL_QUANTILE, DepthDistribution

SHARE = 0.2
"""Of the measurements that are held out."""
FEWEST = 25
"""Measurements of an image from which on it is checked."""
BELIEF = 20
"""Held-out measurements that weigh as much as the stored calibration."""
LARGEST = 10.0
"""Sigmas are widened, or narrowed, by at most this factor."""


def choose(sparse: Tensor) -> Tensor | None:
    """Which of the measurements [B, 1, H, W] are held out, always the same ones; None if all are too few."""
    measured = sparse > 0
    enough = measured.flatten(1).sum(1) >= FEWEST
    if not bool(enough.any()):
        return None
    draw = torch.rand(sparse.shape[-2:], generator=torch.Generator().manual_seed(0))
    return measured & (draw < SHARE).to(sparse.device) & enough.view(-1, 1, 1, 1)


def spread(answer: DepthDistribution, sparse: Tensor, held: Tensor) -> Tensor:
    """[B, 1, 1, 1]: how much wider errors are in each image than the calibration says.

    `answer` was found without the measurements of `sparse` that are `held` out.
    """
    counted = held & answer.observed
    factors = []
    for index, there in enumerate(counted):
        values = _surprise(answer, sparse, index, there)
        if not len(values):
            factors.append(1.0)
            continue
        found = float(values.float().quantile(LEVEL)) / LEVEL_QUANTILE
        share = len(values) / (len(values) + BELIEF)
        factors.append(min(max(found, 1 / LARGEST), LARGEST) ** share)
    return answer.mean.new_tensor(factors).view(-1, 1, 1, 1)


def _surprise(answer: DepthDistribution, sparse: Tensor, index: int, there: Tensor) -> Tensor:
    """Errors of one image in sigmas, at the pixels `there` only: [n]."""
    here = replace(
        answer,
        mean=answer.mean[index][there],
        confidence_logit=answer.confidence_logit[index][there],
        belief_precision=answer.belief_precision[index][there],
    )
    return (here.mean - sparse[index][there]).abs() / here.std
