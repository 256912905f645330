"""A completed depth map: what it says and how sure it is."""

from __future__ import annotations

from copy import copy

import numpy as np

from gbpn.errors import InputError
from gbpn.how import How
from gbpn.measurements.range_gates import out_of_reach
from gbpn.runtime.manifest import SigmaCalibration
from gbpn.sigma.checkerboard import without_checkerboard

__all__ = ["Array", "CompletedMaps", "sigmoid", "stated_std"]

Array = np.ndarray
_USUAL = How()


class CompletedMaps:
    """One image's depth and uncertainty; every map is [H, W]."""

    def __init__(
        self,
        mean: Array,
        confidence_logit: Array,
        belief_precision: Array,
        *,
        calibration: SigmaCalibration | None,
        doubt: Array | None = None,
        widening: tuple[float, float] | None = None,
        notices: tuple[str, ...] = (),
        how: How = _USUAL,
    ) -> None:
        self.depth = mean
        """Expected depth in metres; NaN where no measurement reached the pixel."""
        self.confidence_logit = without_checkerboard(confidence_logit, belief_precision > 0)
        """Before the sigmoid, everywhere."""
        self.belief_precision = belief_precision
        """Precision that belief propagation alone ends with."""
        self.notices = notices
        """What was assumed, in words."""
        self.doubt = doubt
        """Factor on σ for what a pixel's surroundings leave open, see `gbpn.sigma.surroundings`."""
        self.widening = widening
        """What the image's own measurements ask of σ: a factor, and σ / depth to add; None: not checked."""
        self.how = how
        """How it was completed."""
        self._calibration = calibration
        self._widest = np.inf

    def within_reach(self, sparse: Array, reach: float) -> CompletedMaps:
        """The same with depths out of reach of the measurements [H, W] marked as not observed."""
        broken = self.observed & out_of_reach(self.depth, sparse, reach)
        out = copy(self)
        out.depth = np.where(broken, np.float32(np.nan), self.depth)
        out.belief_precision = np.where(broken, np.float32(0), self.belief_precision)
        out._widest = float(sparse.max()) * reach
        return out

    @property
    def observed(self) -> Array:
        """[H, W] bool: where a measurement reached the pixel."""
        return self.belief_precision > 0

    @property
    def confidence(self) -> Array:
        """In [0, 1), for ranking pixels; 0 where unobserved."""
        return np.where(self.observed, sigmoid(self.confidence_logit), np.float32(0))

    @property
    def std(self) -> Array:
        """Standard deviation in metres, checked against held-out measurements; NaN where unobserved."""
        std = self.unchecked_std
        if (found := self.widening) is not None:
            std = np.hypot(std * np.float32(found[0]), np.float32(found[1]) * self.depth)
        return np.where(self.observed, np.minimum(std, np.float32(self._widest)), np.float32(np.nan))

    @property
    def unchecked_std(self) -> Array:
        """σ as the weights alone state it."""
        if self._calibration is None:
            raise InputError(
                "std needs weights that carry a calibration; here is none, or sigma was left out: "
                "use confidence, or ask with sigmas=True"
            )
        std = stated_std(self._calibration, self.depth, self.confidence_logit)
        return std if self.doubt is None else std * self.doubt


def stated_std(calibration: SigmaCalibration, mean: Array, confidence_logit: Array) -> Array:
    """As `gbpn.distribution.SigmaCalibration.std`."""
    log_std = np.interp(confidence_logit, calibration.knots, calibration.log_std)
    std: Array = np.exp(log_std).astype(np.float32)
    if calibration.relative:
        std *= np.abs(mean)
    return std


def sigmoid(value: Array) -> Array:
    """Without overflow."""
    small = np.exp(-np.abs(value))
    out: Array = np.where(value >= 0, np.float32(1), small) / (1 + small)
    return out
