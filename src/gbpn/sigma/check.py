"""Sigmas checked on the spot: some measurements are held out, completed from the rest, and compared.

The calibration stored with weights knows the frames it was fitted on, not this camera, this sensor or its
noise. The measurements of the image at hand do.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import torch
from torch import Tensor

from gbpn.distribution import DepthDistribution, Widening
from gbpn.measurements.validity import measured
from gbpn.sigma.held_out import SETTINGS, SigmaCheckSettings, drawn_patches, explain, factor_of_few

__all__ = ["Array", "compare", "held_out", "of_few"]

Array = np.ndarray


def held_out(sparse: Tensor, settings: SigmaCheckSettings = SETTINGS) -> Tensor | None:
    """Which of the measurements [B, 1, H, W] are held out, always the same ones; None if there are none."""
    held = torch.stack([_held_out_of_one(there, settings) for there in measured(sparse)])
    return held if bool(held.any()) else None


def _held_out_of_one(there: Tensor, settings: SigmaCheckSettings) -> Tensor:
    """Those of one image's measurements [1, H, W]."""
    patches = drawn_patches(there[0].cpu().numpy(), settings)
    return there & torch.from_numpy(patches).to(there.device)


def compare(
    answer: DepthDistribution, sparse: Tensor, held: Tensor, settings: SigmaCheckSettings = SETTINGS
) -> Widening:
    """What the measurements of `sparse` that are `held` out say of `answer`, which was found without them."""
    found = [
        explain(*_errors(answer, sparse, index, there), settings)
        if bool(there.any())
        else (factor_of_few(_count(sparse[index]), settings), 0.0)
        for index, there in enumerate(held & answer.observed)
    ]
    spread, noise = (answer.mean.new_tensor(values).view(-1, 1, 1, 1) for values in zip(*found, strict=True))
    return Widening(spread, noise)


def of_few(sparse: Tensor, settings: SigmaCheckSettings = SETTINGS) -> Widening:
    """Where none of the measurements [B, 1, H, W] could be held out: by their number alone."""
    factors = [factor_of_few(_count(one), settings) for one in sparse]
    spread = torch.tensor(factors, dtype=sparse.dtype, device=sparse.device).view(-1, 1, 1, 1)
    return Widening(spread, torch.zeros_like(spread))


def _count(sparse: Tensor) -> int:
    return int(measured(sparse).sum())


def _errors(answer: DepthDistribution, sparse: Tensor, index: int, there: Tensor) -> tuple[Array, Array]:
    """Errors of one image at the pixels `there` and the sigmas stated, both relative to depth: [n] each."""
    here = replace(
        answer,
        mean=answer.mean[index][there],
        confidence_logit=answer.confidence_logit[index][there],
        belief_precision=answer.belief_precision[index][there],
        doubt=None if answer.doubt is None else answer.doubt[index][there],
    )
    metres = sparse[index][there]
    error, sigma = (here.mean - metres).abs() / metres, here.unchecked_std / metres
    return error.float().cpu().numpy(), sigma.float().cpu().numpy()
