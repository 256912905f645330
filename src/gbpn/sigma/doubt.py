"""Answers with the doubt that their surroundings leave, see `gbpn.sigma.surroundings`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import torch
from torch import Tensor

from gbpn.distribution import DepthDistribution
from gbpn.measurements.validity import measured
from gbpn.sigma.surroundings import doubt, features, grey

__all__ = ["features_of", "greys", "with_doubt"]

_Maps = tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, np.ndarray]


def with_doubt(
    answer: DepthDistribution, sparse: Tensor, pictures: Sequence[np.ndarray]
) -> DepthDistribution:
    """The answer to measurements [B, 1, H, W] over `pictures` of brightness [H, W], if calibrated for it."""
    if answer.calibration is None or not (numbers := answer.calibration.surroundings):
        return answer
    parts = [np.asarray(part, dtype=np.float32) for part in numbers]
    ones = np.ones(tuple(answer.mean.shape[-2:]), dtype=np.float32)
    maps = [
        doubt(*_maps(answer, sparse, picture, index), parts) if bool(measured(sparse[index]).any()) else ones
        for index, picture in enumerate(pictures)
    ]
    return replace(answer, doubt=torch.from_numpy(np.stack(maps))[:, None].to(answer.mean))


def features_of(answer: DepthDistribution, sparse: Tensor, picture: np.ndarray) -> np.ndarray:
    """What the doubt of a single image's answer is found from, [F, ⌈H/2⌉, ⌈W/2⌉]."""
    return features(*_maps(answer, sparse, picture, 0))


def greys(images: Tensor, mean: Sequence[float], std: Sequence[float]) -> list[np.ndarray]:
    """[H, W] in 0 to 1 of each normalised picture of [B, 3, H, W]."""
    return [grey(image, mean, std) for image in images.detach().float().cpu().numpy()]


def _maps(answer: DepthDistribution, sparse: Tensor, picture: np.ndarray, index: int) -> _Maps:
    """What `surroundings.features` takes, of one image of a batch."""
    assert answer.calibration is not None
    depth = answer.mean[index]
    one = torch.ones_like(depth)  # of a relative calibration, σ over the depth
    log_std = answer.calibration.std(one, answer.confidence_logit[index]).log()
    given = torch.where(measured(sparse[index]), sparse[index], 0.0)
    mean, precision, stated, points = (
        maps[0].detach().float().cpu().numpy()
        for maps in (depth, answer.belief_precision[index], log_std, given)
    )
    return mean, precision, stated, points, picture
