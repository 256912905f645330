"""The unit in which a field counts depth, in NumPy: the twin of `gbpn.measurements.unit`."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from gbpn.measurements.validity import measured

__all__ = ["Array", "DepthUnit"]

Array = np.ndarray


@dataclass(frozen=True, kw_only=True)
class DepthUnit:
    """Metres, or the frame's own scale."""

    kind: str
    """"metric", "median" or "log"; see `ModelConfig.depth_scale`."""
    metres: np.float32
    """In one unit."""

    @classmethod
    def of(cls, kind: str, sparse: Array) -> DepthUnit:
        """From measurements [H, W]; a frame without any counts in metres."""
        values = sparse[measured(sparse)]
        if kind == "metric" or not values.size:
            return cls(kind=kind, metres=np.float32(1))
        middle = (values.size - 1) // 2  # the lower median, as torch's
        return cls(kind=kind, metres=np.partition(values, middle)[middle])

    def into(self, depth: Array) -> Array:
        """Metres → the field's unit; 0 stays 0."""
        if self.kind == "metric":
            return depth
        relative = depth / self.metres
        if self.kind == "median":
            return relative
        there = measured(depth)
        return np.where(there, np.log(np.where(there, relative, np.float32(1))), np.float32(0))

    def seen(self, value: Array) -> Array:
        """The field's unit → what the second stage looks at: metres, or multiples of the unit."""
        return np.exp(value) if self.kind == "log" else value

    def out(self, value: Array) -> Array:
        """The field's unit → metres."""
        if self.kind == "metric":
            return value
        return (np.exp(value) if self.kind == "log" else value) * self.metres
