"""Sigmas checked on the spot: some measurements are held out, completed from the rest, and compared.

The calibration stored with weights knows the frames it was fitted on, not this camera, this sensor or its
noise. The measurements of the image at hand do.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Callable
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from gbpn.distribution import LEVEL, LEVEL_QUANTILE, DepthDistribution, Widening
from gbpn.validity import measured

__all__ = ["SETTINGS", "DeferredCheck", "SigmaCheckSettings", "compare", "held_out"]


@dataclass(frozen=True, kw_only=True)
class SigmaCheckSettings:
    """The numbers of the check."""

    share: float = 0.2
    """Of the measurements that are held out."""
    fewest: int = 25
    """Measurements of an image from which on it is checked."""
    patches_from: int = 2000
    """From this many measurements on, all in a square patch are held out together: on a scan line, or around
    a hole, single points would be too easy to guess from their neighbours."""
    patch: float = 3.0
    """Side of such a patch, in mean distances between measurements."""
    calibration_weight: float = 20
    """Held-out measurements that weigh as much as the stored calibration."""
    largest_factor: float = 10.0
    """Sigmas are widened, or narrowed, by at most this factor."""
    noise_passed_on: float = 0.5
    """Share of the measurements' noise that is found in the answer."""
    factors_tried: int = 16
    """Factors on σ, from 1 to the largest, among which the likeliest is sought together with …"""
    noises: tuple[float, float, int] = (0.002, 0.2, 15)
    """… the noise relative to depth: none, or this many values from the first to the second …"""
    freedom: float = 3.0
    """… for errors that follow Student's t of this many degrees of freedom …"""
    gaussian_scale: float = 1.25
    """… whose likeliest scale for Gaussian noise is that noise's σ over this …"""
    doubt: float = 2.0
    """… where any noise at all must be this much better in log-likelihood than none …"""
    most_compared: int = 400
    """… for at most about this many held-out measurements."""


SETTINGS = SigmaCheckSettings()


class DeferredCheck:
    """A check that runs when its result is first asked for, once; what it needed is then let go."""

    def __init__(self, work: Callable[[], Widening | None]) -> None:
        self._work: Callable[[], Widening | None] | None = work
        self._found: Widening | None = None
        self._lock = threading.Lock()

    def __call__(self) -> Widening | None:
        with self._lock:
            if self._work is not None:
                self._found, self._work = self._work(), None
            return self._found


def held_out(sparse: Tensor, settings: SigmaCheckSettings = SETTINGS) -> Tensor | None:
    """Which of the measurements [B, 1, H, W] are held out, always the same ones; None if there are none."""
    held = torch.stack([_held_out_of_one(there, settings) for there in measured(sparse)])
    return held if bool(held.any()) else None


def _held_out_of_one(there: Tensor, settings: SigmaCheckSettings) -> Tensor:
    """Those of one image's measurements [1, H, W]."""
    count = int(there.sum())
    if count < settings.fewest:
        return torch.zeros_like(there)
    height, width = there.shape[-2:]
    in_patches = count >= settings.patches_from
    side = round(settings.patch * math.sqrt(height * width / count)) if in_patches else 1
    draw = torch.rand(
        math.ceil(height / side), math.ceil(width / side), generator=torch.Generator().manual_seed(0)
    )
    patches = (draw < settings.share).repeat_interleave(side, 0).repeat_interleave(side, 1)
    return there & patches[:height, :width].to(there.device)


def compare(
    answer: DepthDistribution, sparse: Tensor, held: Tensor, settings: SigmaCheckSettings = SETTINGS
) -> Widening:
    """What the measurements of `sparse` that are `held` out say of `answer`, which was found without them."""
    found = [
        _explain(*_errors(answer, sparse, index, there), settings)
        for index, there in enumerate(held & answer.observed)
    ]
    spread, noise = (answer.mean.new_tensor(values).view(-1, 1, 1, 1) for values in zip(*found, strict=True))
    return Widening(spread, noise)


def _errors(answer: DepthDistribution, sparse: Tensor, index: int, there: Tensor) -> tuple[Tensor, Tensor]:
    """Errors of one image at the pixels `there` and the sigmas stated, both relative to depth: [n] each."""
    here = replace(
        answer,
        mean=answer.mean[index][there],
        confidence_logit=answer.confidence_logit[index][there],
        belief_precision=answer.belief_precision[index][there],
    )
    metres = sparse[index][there]
    error, sigma = (here.mean - metres).abs() / metres, here.unchecked_std / metres
    return error.float().cpu(), sigma.float().cpu()


def _explain(error: Tensor, sigma: Tensor, settings: SigmaCheckSettings) -> tuple[float, float]:
    """The factor on σ, and the relative σ to add, that make errors at held-out measurements likely.

    An error there is that of the answer and that of the measurement. Only what is wider than stated can be
    noise. Noise shows at pixels that should be certain, sigmas that are too small show at all.
    """
    if not len(error):
        return 1.0, 0.0
    trust = len(error) / (len(error) + settings.calibration_weight)
    factor, noise = _needed_factor(error, sigma, 0.0), 0.0
    if factor > 1:
        noise = _likeliest_noise(error, sigma, settings)
        factor = max(_needed_factor(error, sigma, noise), 1.0)
    largest = settings.largest_factor
    return min(max(factor, 1 / largest), largest) ** trust, settings.noise_passed_on * noise * trust


def _needed_factor(error: Tensor, sigma: Tensor, noise: float) -> float:
    """The factor on σ with which a share LEVEL of the errors lies within its interval, besides `noise`."""
    beyond = ((error / LEVEL_QUANTILE).square() - noise**2).clamp(min=0).sqrt()
    return float((beyond / sigma).quantile(LEVEL))


def _likeliest_noise(error: Tensor, sigma: Tensor, settings: SigmaCheckSettings) -> float:
    step = max(1, len(error) // settings.most_compared)
    error, sigma = error[::step], sigma[::step]
    factors = torch.linspace(0, math.log(settings.largest_factor), settings.factors_tried).exp()
    low, high, count = settings.noises
    noises = torch.cat((torch.zeros(1), torch.linspace(math.log(low), math.log(high), count).exp()))
    scale = ((factors[:, None, None] * sigma).square() + noises[:, None].square()).sqrt()
    freedom = settings.freedom
    misfit = (error / scale).square() / freedom
    likelihood = (-scale.log() - (freedom + 1) / 2 * misfit.log1p()).sum(-1) - settings.doubt * (noises > 0)
    return settings.gaussian_scale * float(noises[likelihood.amax(0).argmax()])
