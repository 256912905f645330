"""The answer: a depth distribution per pixel."""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch
from torch import Tensor

from gbpn.errors import InputError

LEVEL, LEVEL_QUANTILE = 0.90, 1.6449
"""σ is such that a share LEVEL of the errors lies within LEVEL_QUANTILE·σ, as for a Gaussian."""


@dataclass(frozen=True, kw_only=True)
class Calibration:
    """Monotone map from the confidence logit to the standard deviation of the depth error.

    Piecewise linear in log σ between `knots`, constant beyond them; fitted on validation scenes and
    stored with the weights.
    """

    knots: tuple[float, ...]
    """Increasing confidence logits."""
    log_std: tuple[float, ...]
    """Natural log of σ at each knot, not increasing; of σ / depth if `relative`."""
    relative: bool = False
    """Whether σ is given as a fraction of the mean depth instead of metres."""

    def std(self, mean: Tensor, confidence_logit: Tensor) -> Tensor:
        """σ in metres, in the shape of `mean`."""
        knots = torch.tensor(self.knots, dtype=mean.dtype, device=mean.device)
        values = torch.tensor(self.log_std, dtype=mean.dtype, device=mean.device)
        upper = torch.bucketize(confidence_logit.contiguous(), knots).clamp(1, len(self.knots) - 1)
        low, high = knots[upper - 1], knots[upper]
        share = ((confidence_logit - low) / (high - low)).clamp(0, 1)
        std = torch.lerp(values[upper - 1], values[upper], share).exp()
        return std * mean.abs() if self.relative else std


@dataclass(frozen=True, kw_only=True)
class DepthDistribution:
    """Per-pixel Gaussian depth, metres, all maps [B, 1, H, W]."""

    mean: Tensor
    """Expected depth; NaN where not `observed`."""
    confidence_logit: Tensor
    """Belief precision plus the network's learned residual, before the sigmoid."""
    belief_precision: Tensor
    """Precision of the belief propagation alone: larger than the true one on loopy fields."""
    calibration: Calibration | None = None
    spread: Tensor | None = None
    """[B, 1, 1, 1] factor on σ that the image's own measurements ask for, see `gbpn.selfcheck`."""
    noise: Tensor | None = None
    """[B, 1, 1, 1] σ / depth that the noise of the measurements adds, found along with `spread`."""

    @property
    def confidence(self) -> Tensor:
        """The paper's updated precision, in (0, 1)."""
        return self.confidence_logit.sigmoid()

    @property
    def observed(self) -> Tensor:
        """Where any measurement reached the pixel; elsewhere there is no depth, and `mean` is NaN."""
        return self.belief_precision > 0

    def flipped(self) -> DepthDistribution:
        """Left becomes right."""
        return replace(
            self,
            mean=self.mean.flip(-1),
            confidence_logit=self.confidence_logit.flip(-1),
            belief_precision=self.belief_precision.flip(-1),
        )

    def averaged(self, other: DepthDistribution) -> DepthDistribution:
        """The mean of two answers for the same pixels; the rest, as `spread` and `noise`, is this one's."""
        both = self.observed & other.observed
        return replace(
            self,
            mean=(self.mean + other.mean) / 2,
            confidence_logit=(self.confidence_logit + other.confidence_logit) / 2,
            belief_precision=(self.belief_precision + other.belief_precision) / 2 * both,
        )

    @property
    def std(self) -> Tensor:
        """Standard deviation in metres: the map stored with the weights, times `spread`, plus `noise`."""
        if self.calibration is None:
            raise InputError(
                "std needs weights that carry a calibration; these have none: "
                "use confidence (unitless, for ranking) or load calibrated weights"
            )
        std = self.calibration.std(self.mean, self.confidence_logit)
        if self.spread is not None:
            std = std * self.spread
        return std if self.noise is None else torch.hypot(std, self.noise * self.mean)
