"""What inference carries: messages between iterations, and the answer with its status."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum

import torch
from torch import Tensor

from gbpn.errors import InputError
from gbpn.gaussian import Gaussian
from gbpn.gbp.scheme import RELEASED, Scheme
from gbpn.kernels.checks import require_finite, require_shape
from gbpn.mrf import MRF

__all__ = ["Inference", "Messages", "Snapshot", "Status", "far_slots"]


@dataclass(frozen=True)
class Messages:
    """All messages of a field; hand them back to `infer` to continue from where it stopped."""

    local: Gaussian
    """[B, 8, H, W] by `gbpn.mrf.RING` slot, stored at the receiver."""
    nonlocal_: Gaussian
    """[B, 1, H, W] damped sum over the learned edges; [B, K, H, W] where each has a message of its own."""

    @classmethod
    def empty(cls, mrf: MRF, scheme: Scheme = RELEASED) -> Messages:
        nothing = torch.zeros_like(mrf.weight.detach())  # read by all of them, written by nobody
        slots, far = nothing.expand(-1, 8, -1, -1), nothing.expand(-1, far_slots(mrf, scheme), -1, -1)
        return cls(Gaussian(slots, slots), Gaussian(far, far))

    def belief(self, unary: Gaussian, reweighting: float = 1.0, *, in_order: bool = True) -> Gaussian:
        """unary × all messages, [B, 1, H, W].

        Slots are added in the order (0 + 1 + 2) + (3 + 4) + (5 + 6 + 7), as the kernels of CPUs do, or not
        `in_order`: in any, which takes one launch on a GPU.
        """

        def total(unary_term: Tensor, local: Tensor, far: Tensor) -> Tensor:
            far = far.sum(1, keepdim=True) if far.shape[1] > 1 else far
            if in_order:
                s = torch.split(local, 1, dim=1)
                heard = (s[0] + s[1] + s[2]) + (s[3] + s[4]) + (s[5] + s[6] + s[7])
            else:
                heard = local.sum(1, keepdim=True)
            return unary_term + reweighting * (heard + far)

        return Gaussian(
            total(unary.information, self.local.information, self.nonlocal_.information),
            total(unary.precision, self.local.precision, self.nonlocal_.precision),
        )

    def check(self, mrf: MRF, scheme: Scheme = RELEASED) -> None:
        """Raise unless these messages fit the field and how messages are passed."""
        batch, height, width = mrf.shape
        far = far_slots(mrf, scheme)
        for name, message, slots in (("local", self.local, 8), ("nonlocal_", self.nonlocal_, far)):
            for part in ("information", "precision"):
                tensor = getattr(message, part)
                label = f"messages.{name}.{part}"
                require_shape(label, tensor, (batch, slots, height, width), "start anew with messages=None")
                if tensor.dtype != mrf.weight.dtype or tensor.device != mrf.weight.device:
                    raise InputError(
                        f"{label} must be {mrf.weight.dtype} on {mrf.weight.device} like the field; "
                        f"got {tensor.dtype} on {tensor.device}"
                    )
                require_finite(**{label: tensor})


def far_slots(mrf: MRF, scheme: Scheme) -> int:
    """Messages along learned edges that are kept for each pixel."""
    return scheme.far_slots(0 if mrf.nonlocal_ is None else mrf.nonlocal_.weight.shape[2])


class Status(Enum):
    """How an inference ended, in words."""

    INFORMED = "every pixel was reached by a measurement"
    PARTIAL = "some pixels were reached by no measurement: they are marked as not observed"
    EMPTY = "there was no measurement: nothing is known at any pixel"

    def __str__(self) -> str:
        return self.value


@dataclass(frozen=True, kw_only=True)
class Snapshot:
    """The belief after one part of one iteration, for pictures."""

    iteration: int
    part: str
    """A sweep direction or 'nonlocal'."""
    belief: Gaussian


@dataclass(frozen=True, kw_only=True)
class Inference:
    """The answer of `infer`."""

    belief: Gaussian
    """[B, 1, H, W]."""
    messages: Messages
    iterations: int
    backend: str
    snapshots: list[Snapshot] = field(default_factory=list)

    @property
    def observed_fraction(self) -> float:
        return float(self.belief.informed.double().mean())

    @property
    def status(self) -> Status:
        """Worst over the batch."""
        informed = self.belief.informed.flatten(1)
        if bool(informed.all()):
            return Status.INFORMED
        return Status.EMPTY if not bool(informed.any(1).all()) else Status.PARTIAL
