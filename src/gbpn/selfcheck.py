"""Sigmas checked on the spot: some measurements are held out, completed from the rest, and compared.

The calibration stored with weights knows the frames it was fitted on, not this camera, this sensor or its
noise. The measurements of the image at hand do.
"""

from __future__ import annotations

import math
from dataclasses import replace

import torch
from torch import Tensor

from gbpn.depth import LEVEL, LEVEL_QUANTILE, DepthDistribution

SHARE = 0.2
"""Of the measurements that are held out."""
FEWEST = 25
"""Measurements of an image from which on it is checked."""
MANY, PATCH = 2000, 3.0
"""From MANY measurements on, all in a square patch are held out together, PATCH mean distances wide: on a
scan line, or around a hole, single points would be too easy to guess from their neighbours."""
BELIEF = 20
"""Held-out measurements that weigh as much as the stored calibration."""
LARGEST = 10.0
"""Sigmas are widened, or narrowed, by at most this factor."""
PASSED_ON = 0.5
"""Share of the measurements' noise that is found in the answer."""
WIDENINGS = torch.linspace(0, math.log(LARGEST), 16).exp()
NOISES = torch.cat((torch.zeros(1), torch.linspace(math.log(0.002), math.log(0.2), 15).exp()))
"""Factors on σ and noises relative to depth, among which the likeliest pair is sought …"""
FREEDOM, GAUSSIAN = 3.0, 1.25
"""… for errors that follow Student's t of FREEDOM degrees, whose likeliest scale for Gaussian noise is that
noise's σ / GAUSSIAN …"""
DOUBT = 2.0
"""… where any noise at all must be this much better in log-likelihood than none …"""
MOST = 400
"""… for at most about this many held-out measurements."""


def choose(sparse: Tensor) -> Tensor | None:
    """Which of the measurements [B, 1, H, W] are held out, always the same ones; None if there are none."""
    held = torch.stack([_drawn(measured) for measured in sparse > 0])
    return held if bool(held.any()) else None


def _drawn(measured: Tensor) -> Tensor:
    """Those of one image's measurements [1, H, W]."""
    count = int(measured.sum())
    if count < FEWEST:
        return torch.zeros_like(measured)
    height, width = measured.shape[-2:]
    side = round(PATCH * math.sqrt(height * width / count)) if count >= MANY else 1
    draw = torch.rand(
        math.ceil(height / side), math.ceil(width / side), generator=torch.Generator().manual_seed(0)
    )
    patches = (draw < SHARE).repeat_interleave(side, 0).repeat_interleave(side, 1)
    return measured & patches[:height, :width].to(measured.device)


def compare(answer: DepthDistribution, sparse: Tensor, held: Tensor) -> tuple[Tensor, Tensor]:
    """`spread` and `noise` of a `DepthDistribution`, [B, 1, 1, 1] each.

    `answer` was found without the measurements of `sparse` that are `held` out.
    """
    found = [
        _explain(*_errors(answer, sparse, index, there)) for index, there in enumerate(held & answer.observed)
    ]
    spread, noise = (answer.mean.new_tensor(values).view(-1, 1, 1, 1) for values in zip(*found, strict=True))
    return spread, noise


def _errors(answer: DepthDistribution, sparse: Tensor, index: int, there: Tensor) -> tuple[Tensor, Tensor]:
    """Errors of one image at the pixels `there` and the sigmas stated, both relative to depth: [n] each."""
    here = replace(
        answer,
        mean=answer.mean[index][there],
        confidence_logit=answer.confidence_logit[index][there],
        belief_precision=answer.belief_precision[index][there],
    )
    measured = sparse[index][there]
    error, sigma = (here.mean - measured).abs() / measured, here.std / measured
    return error.float().cpu(), sigma.float().cpu()


def _explain(error: Tensor, sigma: Tensor) -> tuple[float, float]:
    """The factor on σ, and the relative σ to add, that make errors at held-out measurements likely.

    An error there is that of the answer and that of the measurement. Only what is wider than stated can be
    noise. Noise shows at pixels that should be certain, sigmas that are too small show at all.
    """
    if not len(error):
        return 1.0, 0.0
    belief = len(error) / (len(error) + BELIEF)
    widening, noise = _needed(error, sigma, 0.0), 0.0
    if widening > 1:
        noise = _likeliest_noise(error, sigma)
        widening = max(_needed(error, sigma, noise), 1.0)
    return min(max(widening, 1 / LARGEST), LARGEST) ** belief, PASSED_ON * noise * belief


def _needed(error: Tensor, sigma: Tensor, noise: float) -> float:
    """The factor on σ with which a share LEVEL of the errors lies within its interval, besides `noise`."""
    beyond = ((error / LEVEL_QUANTILE).square() - noise**2).clamp(min=0).sqrt()
    return float((beyond / sigma).quantile(LEVEL))


def _likeliest_noise(error: Tensor, sigma: Tensor) -> float:
    step = max(1, len(error) // MOST)
    error, sigma = error[::step], sigma[::step]
    scale = ((WIDENINGS[:, None, None] * sigma).square() + NOISES[:, None].square()).sqrt()
    misfit = (error / scale).square() / FREEDOM
    likelihood = (-scale.log() - (FREEDOM + 1) / 2 * misfit.log1p()).sum(-1) - DOUBT * (NOISES > 0)
    return GAUSSIAN * float(NOISES[likelihood.amax(0).argmax()])
