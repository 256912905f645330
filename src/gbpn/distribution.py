"""The answer of every method, learned or not: a depth distribution per pixel."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, NamedTuple

import torch
from torch import Tensor

from gbpn.errors import InputError
from gbpn.foreign.trust import Verdict

__all__ = ["DepthDistribution", "SigmaCalibration", "Widening", "stacked"]


@dataclass(frozen=True, kw_only=True)
class SigmaCalibration:
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
    surroundings: tuple[tuple[float, ...], ...] = ()
    """Of the network that finds `DepthDistribution.doubt`, see `gbpn.sigma.surroundings`; empty: none."""

    def std(self, mean: Tensor, confidence_logit: Tensor) -> Tensor:
        """σ in metres, in the shape of `mean`."""
        knots = torch.tensor(self.knots, dtype=mean.dtype, device=mean.device)
        values = torch.tensor(self.log_std, dtype=mean.dtype, device=mean.device)
        upper = torch.bucketize(confidence_logit.contiguous(), knots).clamp(1, len(self.knots) - 1)
        low, high = knots[upper - 1], knots[upper]
        share = ((confidence_logit - low) / (high - low)).clamp(0, 1)
        std = torch.lerp(values[upper - 1], values[upper], share).exp()
        return std * mean.abs() if self.relative else std


class Widening(NamedTuple):
    """What the image's own measurements say of its sigmas, see `gbpn.sigma.check`; [B, 1, 1, 1] each."""

    spread: Tensor
    """Factor on σ."""
    noise: Tensor
    """σ / depth that the noise of the measurements adds."""


@dataclass(frozen=True, kw_only=True)
class DepthDistribution:
    """Per-pixel Gaussian depth, metres, all maps [B, 1, H, W]."""

    mean: Tensor
    """Expected depth; NaN where not `observed`."""
    confidence_logit: Tensor
    """Belief precision plus the network's learned residual, before the sigmoid; of other methods, whatever
    ranks pixels (larger is better), and NaN where nothing does."""
    belief_precision: Tensor
    """Precision of the belief propagation alone: larger than the true one on loopy fields. Of other methods,
    1 where there is a depth."""
    calibration: SigmaCalibration | None = None
    """How confidence becomes σ."""
    stated_std: Tensor | None = None
    """σ of methods that state it themselves."""
    doubt: Tensor | None = None
    """Factor on σ for what a pixel's surroundings leave open, see `gbpn.sigma.surroundings`."""
    widening: Widening | None = None
    """What the image's own measurements ask of σ; None where σ was not checked."""
    sigma_left_out: bool = False
    """Whether the caller did not want a σ, so that it was neither checked nor is it there."""
    dropped: Tensor | None = None
    """Bool: measurements that were not used since the rest contradicts them, see
    `gbpn.measurements.outliers`."""
    prior: Verdict | None = None
    """What became of a foreign depth map; None where none was given."""

    @classmethod
    def of_depth(
        cls, mean: Tensor, *, confidence: Tensor | None = None, std: Tensor | None = None
    ) -> DepthDistribution:
        """What a method without belief propagation says: [B, 1, H, W] metres, NaN where it says nothing."""
        for name, maps in (("mean", mean), ("confidence", confidence), ("std", std)):
            if maps is not None and (maps.dim() != 4 or maps.shape[1] != 1 or maps.shape != mean.shape):
                raise InputError(f"{name} must be [B, 1, H, W] like the mean; got {list(maps.shape)}")
        return cls(
            mean=mean,
            confidence_logit=torch.full_like(mean, torch.nan) if confidence is None else confidence,
            belief_precision=torch.isfinite(mean).to(mean.dtype),
            stated_std=std,
        )

    @property
    def ranked(self) -> bool:
        """Whether the confidence tells pixels apart at all."""
        return not bool(self.confidence_logit.isnan().all())

    @property
    def calibrated(self) -> bool:
        """Whether there is a σ."""
        return not self.sigma_left_out and (self.calibration is not None or self.stated_std is not None)

    @property
    def confidence(self) -> Tensor:
        """The paper's updated precision, in (0, 1)."""
        return self.confidence_logit.sigmoid()

    @property
    def observed(self) -> Tensor:
        """Where any measurement reached the pixel; elsewhere there is no depth, and `mean` is NaN."""
        return self.belief_precision > 0

    @property
    def spread(self) -> Tensor | None:
        """[B, 1, 1, 1] factor on σ that the image's own measurements ask for."""
        return None if (found := self.widening) is None else found.spread

    @property
    def noise(self) -> Tensor | None:
        """[B, 1, 1, 1] σ / depth that the noise of the measurements adds, found along with `spread`."""
        return None if (found := self.widening) is None else found.noise

    @property
    def std(self) -> Tensor:
        """Standard deviation in metres: as the weights state it, times `spread`, plus `noise`."""
        if self.stated_std is not None:
            return self.stated_std
        if self.sigma_left_out:
            raise InputError(
                "there is no std: sigma was left out when this was completed; ask for it with sigmas=True"
            )
        std, found = self.unchecked_std, self.widening
        return std if found is None else torch.hypot(std * found.spread, found.noise * self.mean)

    @property
    def unchecked_std(self) -> Tensor:
        """σ as the weights alone state it: the map of their confidence, times `doubt`."""
        if self.calibration is None:
            raise InputError(
                "std needs weights that carry a calibration; these have none: "
                "use confidence (unitless, for ranking) or load calibrated weights"
            )
        std = self.calibration.std(self.mean, self.confidence_logit)
        return std if self.doubt is None else std * self.doubt

    def plain(self) -> DepthDistribution:
        """The same as tensors of its own on the CPU, which anybody may change, pickle and send away."""
        with torch.inference_mode(False):
            maps: dict[str, Any] = {
                one.name: _own(value)
                for one in fields(self)
                if isinstance(value := getattr(self, one.name), Tensor)
            }
            found = self.widening
            return replace(self, **maps, widening=None if found is None else Widening(*map(_own, found)))

    def flipped(self) -> DepthDistribution:
        """Left becomes right."""
        return replace(
            self,
            mean=self.mean.flip(-1),
            confidence_logit=self.confidence_logit.flip(-1),
            belief_precision=self.belief_precision.flip(-1),
            doubt=None if self.doubt is None else self.doubt.flip(-1),
            dropped=None if self.dropped is None else self.dropped.flip(-1),
        )

    def averaged(self, other: DepthDistribution) -> DepthDistribution:
        """The mean of two answers for the same pixels; the rest, as the sigmas' check, is this one's."""
        both = self.observed & other.observed
        return replace(
            self,
            mean=(self.mean + other.mean) / 2,
            confidence_logit=(self.confidence_logit + other.confidence_logit) / 2,
            belief_precision=(self.belief_precision + other.belief_precision) / 2 * both,
        )


def _own(maps: Tensor) -> Tensor:
    return maps.detach().to("cpu", copy=True, memory_format=torch.contiguous_format)


def stacked(answers: Sequence[DepthDistribution]) -> DepthDistribution:
    """Answers of one image at a time as one batch; each method's σ as it is."""
    first = answers[0]
    stated = [answer.stated_std for answer in answers if answer.stated_std is not None]
    doubts = [answer.doubt for answer in answers if answer.doubt is not None]
    found = [answer.widening for answer in answers if answer.widening is not None]
    return DepthDistribution(
        mean=torch.cat([answer.mean for answer in answers]),
        confidence_logit=torch.cat([answer.confidence_logit for answer in answers]),
        belief_precision=torch.cat([answer.belief_precision for answer in answers]),
        calibration=first.calibration,
        stated_std=torch.cat(stated) if len(stated) == len(answers) else None,
        doubt=torch.cat(doubts) if len(doubts) == len(answers) else None,
        widening=Widening(*map(torch.cat, zip(*found, strict=True))) if len(found) == len(answers) else None,
        sigma_left_out=first.sigma_left_out,
    )
