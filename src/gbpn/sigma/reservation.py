"""What is known of measurements beforehand and holding some of them out cannot show.

Measurements that are off together, as the points of a reconstruction by its drift, agree with each other when
some are held out. Features lie where a picture has texture: those held out are easier than the rest of it.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch

from gbpn.distribution import DepthDistribution, Widening

__all__ = ["FEATURES", "Reservation"]

FEATURES = 1.2
"""Factor on σ where measurements are features of the picture: what 15 frames of TUM fr1_desk ask for at
pixels that are 8 to 64 away from the next point of a reconstruction."""


@dataclass(frozen=True, kw_only=True)
class Reservation:
    """How much less sure an answer is than its measurements' agreement says."""

    common: float = 0.0
    """Share of the depth by which measurements may be off together."""
    spread: float = 1.0
    """Factor on σ."""

    def of(self, answer: DepthDistribution) -> DepthDistribution:
        """The answer with wider sigmas, checked as before."""
        if answer.calibration is None or answer.sigma_left_out:
            return answer
        one, none = (torch.full_like(answer.mean[:, :1, :1, :1], value) for value in (1.0, 0.0))
        found = answer.widening or Widening(one, none)
        noise = torch.hypot(found.noise, torch.full_like(found.noise, self.common))
        return replace(answer, widening=Widening(found.spread * self.spread, noise))
