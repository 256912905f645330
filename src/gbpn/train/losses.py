"""What training minimises. All losses take a `DepthDistribution` and a target [B, 1, H, W] in metres."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional

from gbpn.distribution import DepthDistribution
from gbpn.kernels.checks import require_shape
from gbpn.measurements.validity import measured

__all__ = ["l1_loss", "l2_loss", "probability_loss", "scale_free_loss"]

_RELATIVE_SCALE = 0.05
"""Expected |relative error| where `scale_free_loss` wants the confidence logit to be 0."""
_LOGIT_LIMIT = 8.0
"""Confidence logits beyond this are not pushed further by `scale_free_loss`."""
_SMALLEST_ERROR = 1e-6
"""Metres; the largest error of an image, by which its errors are divided, is at least this."""


def probability_loss(
    distribution: DepthDistribution, target: Tensor, *, alpha1: float = 1.0, alpha2: float = 1.0
) -> Tensor:
    """The paper's loss: confident pixels pay for their error, and doubt has a price. Mean over the batch.

    Per image, over pixels with a known target that a measurement reached, with d = mean − target and
    c = confidence:  Σ [c · (alpha2·d² + alpha1·|d|) / max|d|  − log c] / n.  The maximum is a constant to
    the gradient. NYUv2 uses alpha1 = alpha2 = 1, KITTI alpha1 = 0.1.
    """
    error, valid = _errors(distribution, target)
    largest = error.detach().abs().amax(dim=(1, 2, 3), keepdim=True).clamp(min=_SMALLEST_ERROR)
    logit = torch.where(valid, distribution.confidence_logit, torch.zeros_like(error))
    cost = logit.sigmoid() * (alpha2 * error.square() + alpha1 * error.abs()) / largest
    doubt = functional.softplus(-logit)  # −log of the confidence
    return _mean_over_valid(cost + doubt, valid)


def scale_free_loss(
    distribution: DepthDistribution,
    target: Tensor,
    *,
    alpha1: float = 1.0,
    alpha2: float = 10.0,
    doubt: float = 0.03,
    balance: float = _RELATIVE_SCALE,
) -> Tensor:
    """Errors in units of each image's median known depth, so that rooms and streets weigh the same.

    mean(alpha1·|d| + alpha2·d²), less for images whose mean error is far above `balance` (those with a
    handful of measurements would drown the others), plus `doubt` times the negative log likelihood of the
    *relative* error under a Laplace distribution of scale `_RELATIVE_SCALE`·exp(−confidence logit). The
    likelihood does not move the error: it teaches the confidence to rank pixels, not to hide from hard ones.
    """
    error, valid = _errors(distribution, target)
    known = torch.where(valid, target.to(error), torch.full_like(error, torch.nan))
    unit = known.flatten(1).nanmedian(1).values.nan_to_num(1.0).view(-1, 1, 1, 1)
    scaled = error / unit
    far_off = _per_image(scaled.detach().abs(), valid)
    share = balance / (balance + far_off)
    depth = _per_image(alpha1 * scaled.abs() + alpha2 * scaled.square(), valid)

    relative = error.detach().abs() / torch.where(valid, known, torch.ones_like(known))
    logit = distribution.confidence_logit.clamp(-_LOGIT_LIMIT, _LOGIT_LIMIT)
    surprise = _per_image(relative / _RELATIVE_SCALE * logit.exp() - logit, valid)
    return (share * depth + doubt * surprise).mean()


def l2_loss(distribution: DepthDistribution, target: Tensor) -> Tensor:
    """Mean squared error in m² over known, reached pixels, then over the batch."""
    error, valid = _errors(distribution, target)
    return _mean_over_valid(error.square(), valid)


def l1_loss(distribution: DepthDistribution, target: Tensor) -> Tensor:
    """Mean absolute error in m over known, reached pixels, then over the batch."""
    error, valid = _errors(distribution, target)
    return _mean_over_valid(error.abs(), valid)


def _errors(distribution: DepthDistribution, target: Tensor) -> tuple[Tensor, Tensor]:
    """(mean − target, 0 where not valid; valid), [B, 1, H, W]. Safe for NaN where nothing is observed."""
    require_shape("target", target, tuple(distribution.mean.shape), "metres, 0 where unknown, like the mean")
    valid = measured(target) & distribution.observed
    nothing = torch.zeros_like(distribution.mean)
    mean = torch.where(valid, distribution.mean, nothing)
    return mean - torch.where(valid, target.to(mean), nothing), valid


def _mean_over_valid(values: Tensor, valid: Tensor) -> Tensor:
    return _per_image(values, valid).mean()


def _per_image(values: Tensor, valid: Tensor) -> Tensor:
    """[B] means over valid pixels; 0 where an image has none."""
    count = valid.sum(dim=(1, 2, 3)).clamp(min=1)
    return torch.where(valid, values, torch.zeros_like(values)).sum(dim=(1, 2, 3)) / count
