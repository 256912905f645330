"""The unit in which a field counts depth."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from gbpn.kernels.checks import values_are_known
from gbpn.measurements.validity import measured

__all__ = ["DepthUnit"]


@dataclass(frozen=True, kw_only=True)
class DepthUnit:
    """The unit in which a field counts depth: metres, or the frame's own scale."""

    kind: str
    """"metric", "median" or "log"; see `ModelConfig.depth_scale`."""
    metres: Tensor
    """[B, 1, 1, 1] metres in one unit."""

    @classmethod
    def of(cls, kind: str, sparse: Tensor) -> DepthUnit:
        """From measurements [B, 1, H, W]; a frame without any counts in metres."""
        batch = sparse.shape[0]
        metres = sparse.new_ones(batch)
        if kind != "metric":
            metres = _medians(sparse.detach())
        return cls(kind=kind, metres=metres.view(batch, 1, 1, 1))

    def into(self, depth: Tensor) -> Tensor:
        """Metres → the field's unit; 0 stays 0."""
        if self.kind == "metric":
            return depth
        relative = depth / self.metres
        if self.kind == "median":
            return relative
        return torch.where(measured(depth), relative, 1.0).log()

    def variance(self, depth: Tensor, std: Tensor) -> Tensor:
        """Of measurements `depth` with standard deviation `std`, both metres, in the field's unit squared."""
        if self.kind == "log":
            return (std / torch.where(measured(depth), depth, 1.0)).square()
        return (std / self.metres).square()

    def relative_to(self, other: DepthUnit, value: Tensor) -> Tensor:
        """The field's unit → what the second stage looks at: metres, or multiples of another unit."""
        if self.kind == "metric":
            return value
        ratio = self.metres / other.metres
        return (value + ratio.log()).exp() if self.kind == "log" else value * ratio

    def out(self, value: Tensor) -> Tensor:
        """The field's unit → metres."""
        if self.kind == "metric":
            return value
        return (value.exp() if self.kind == "log" else value) * self.metres


def _medians(sparse: Tensor) -> Tensor:
    """[B, 1, H, W] → [B]: the lower median of each image's measurements; 1 where there are none."""
    values = sparse.flatten(1)
    present = measured(values)
    if values_are_known():
        found = [each[there] for each, there in zip(values, present, strict=True)]
        one = sparse.new_ones(())
        return torch.stack([each.median() if each.numel() else one for each in found])
    # The same by sorting, which other runtimes have too.
    count = present.sum(1, keepdim=True)
    ordered = torch.where(present, values, torch.inf).sort(dim=1).values
    middle = ordered.gather(1, ((count - 1) // 2).clamp(min=0))
    return torch.where(count > 0, middle, 1.0)[:, 0]
