"""One-dimensional Gaussians in information form, elementwise over tensors."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

__all__ = ["Gaussian"]


@dataclass(frozen=True)
class Gaussian:
    """N⁻¹(information, precision): information = precision · mean.

    Zero precision (with zero information) says nothing at all: it is the identity of the product,
    and it has no mean. Information without precision is not a Gaussian and never made here.
    """

    information: Tensor
    precision: Tensor

    @classmethod
    def identity_like(cls, like: Tensor) -> Gaussian:
        """The Gaussian that says nothing, in the shape, dtype and device of `like`."""
        return cls(torch.zeros_like(like), torch.zeros_like(like))

    @classmethod
    def observing(cls, value: Tensor, weight: Tensor) -> Gaussian:
        """A measurement `value` trusted with precision `weight`; weight 0 means not measured."""
        return cls(value * weight, weight)

    @property
    def informed(self) -> Tensor:
        """Where the Gaussian says anything: precision above zero."""
        return self.precision > 0

    @property
    def mean(self) -> Tensor:
        """information / precision where informed, NaN elsewhere: an unobserved value is not invented."""
        safe = torch.where(self.informed, self.precision, torch.ones_like(self.precision))
        return torch.where(self.informed, self.information / safe, torch.full_like(safe, torch.nan))

    @property
    def variance(self) -> Tensor:
        """1 / precision; infinite where not informed."""
        return self.precision.reciprocal()

    def __mul__(self, other: Gaussian) -> Gaussian:
        """Product of densities: both say what they know."""
        return Gaussian(self.information + other.information, self.precision + other.precision)

    def __truediv__(self, other: Gaussian) -> Gaussian:
        """Quotient of densities: what is left when `other` is taken back."""
        return Gaussian(self.information - other.information, self.precision - other.precision)

    def across(self, weight: Tensor, difference: Tensor) -> Gaussian:
        """The message this sender's belief becomes across an edge of precision `weight`.

        `difference` is the expected receiver − sender. One division, none by this precision:
        an uninformed sender sends exactly nothing, and the message is never more certain than the edge.
        """
        total = weight + self.precision
        gain = weight / torch.where(total > 0, total, torch.ones_like(total))
        return Gaussian(gain * (self.information + self.precision * difference), gain * self.precision)

    def damped(self, old: Gaussian, damping: Tensor) -> Gaussian:
        """Geometric mean of `old` (share `damping`) and this (the rest), in information form."""
        keep, take = damping, 1 - damping
        return Gaussian(
            keep * old.information + take * self.information, keep * old.precision + take * self.precision
        )

    def where(self, condition: Tensor, other: Gaussian) -> Gaussian:
        """This where `condition` holds, `other` elsewhere."""
        return Gaussian(
            torch.where(condition, self.information, other.information),
            torch.where(condition, self.precision, other.precision),
        )
