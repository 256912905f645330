"""Where the paper's text and its authors' release pass messages differently: what decides."""

from __future__ import annotations

from dataclasses import dataclass

from gbpn.config import CHOICES, ModelConfig
from gbpn.errors import BackendError, InputError
from gbpn.kernels.backends import native

__all__ = ["RELEASED", "TEXT", "Scheme"]


@dataclass(frozen=True, kw_only=True)
class Scheme:
    """How messages are passed; `gbpn.config.ModelConfig` explains the fields, which have its names."""

    damped: str = "present"
    edge_sets: str = "overlapping"
    far_messages: str = "summed"

    def __post_init__(self) -> None:
        for name, value in vars(self).items():
            if value not in CHOICES[name]:
                wanted = ", ".join(repr(choice) for choice in CHOICES[name])
                raise InputError(f"scheme {name} must be one of {wanted}; got {value!r}")

    @classmethod
    def of(cls, config: ModelConfig) -> Scheme:
        return cls(damped=config.damped, edge_sets=config.edge_sets, far_messages=config.far_messages)

    def far_slots(self, learned: int) -> int:
        """Messages along learned edges that are kept for each pixel."""
        return max(learned, 1) if self.far_messages == "by-edge" else 1

    def backend(self, asked: str, usual: str) -> str:
        """The backend that serves, where `usual` would: sweeps that damp always are compiled for CPUs only,
        and into no export. Messages by edge are plain torch on every backend."""
        if self.damped == "present" or usual == "reference" or (usual == "cpu" and _compiled()):
            return usual
        if asked == "auto":
            return "reference"
        raise BackendError(
            f'backend={asked!r} has no sweep with damped="always": use backend="auto" or "reference"'
        )


def _compiled() -> bool:
    """Whether the sweeps in C++ know `always`; the module of a checkout may be older than its sources."""
    return "always" in (native().gbp_sweep.__doc__ or "")


RELEASED = Scheme()
"""What the authors' release does."""
TEXT = Scheme(damped="always", edge_sets="disjoint", far_messages="by-edge")
"""What the paper says."""
