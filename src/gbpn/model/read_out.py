"""What a belief says, in one pass each: depth and confidence, and what a second stage looks at.

The plain forms say what is computed. In float32 on CPUs, of fields that count log depth, and where no
gradient is wanted, one compiled function does all of it row by row.
"""

from __future__ import annotations

from functools import cache
from typing import NamedTuple

import torch
from torch import Tensor

from gbpn.gaussian import Gaussian
from gbpn.kernels import memory as kept_memory
from gbpn.kernels.backends import COMPILED, native
from gbpn.measurements.unit import DepthUnit

__all__ = ["Seen", "answer", "confidence_logit", "seen"]

_FAINTEST = 1e-9
"""No logarithm of a precision is taken below this."""


class Seen(NamedTuple):
    """What a second stage looks at, [B, 1, H, W] each, in metres or multiples of the median measurement."""

    depth: Tensor
    confidence: Tensor
    measured: Tensor


def confidence_logit(belief: Gaussian, residual: Tensor, kind: str) -> Tensor:
    """Precision ("sum") or its logarithm ("log"), and what the network adds to it."""
    precision = belief.precision.clamp(min=_FAINTEST).log() if kind == "log" else belief.precision
    return precision + residual


def answer(
    belief: Gaussian, mean: Tensor | None, residual: Tensor, unit: DepthUnit, kind: str
) -> tuple[Tensor, Tensor]:
    """Depth in metres, NaN where nothing is known, and `confidence_logit`; both [B, 1, H, W].

    mean  in the unit of the field, if not the belief's own
    """
    given = (belief.information, belief.precision, residual)
    if mean is not None or not _fit(unit, kind, *given):
        return unit.out(belief.mean if mean is None else mean), confidence_logit(belief, residual, kind)
    outputs = {name: kept_memory.empty(residual.shape, like=residual) for name in ("mean", "logit")}
    native().belief_out(
        inputs={**_planes(*given), "metres": unit.metres.view(-1).contiguous()},
        outputs=outputs,
        threads=torch.get_num_threads(),
    )
    return outputs["mean"], outputs["logit"]


def seen(
    belief: Gaussian,
    residual: Tensor,
    measurement: Tensor,
    weight: Tensor,
    unit: DepthUnit,
    seen_unit: DepthUnit,
    kind: str,
) -> Seen:
    """`measurement` in the unit of the field counts where `weight` is above 0; all maps [B, 1, H, W]."""
    given = (belief.information, belief.precision, residual)
    if not _fit(unit, kind, *given, measurement, weight):
        return Seen(
            depth=unit.relative_to(seen_unit, belief.mean.nan_to_num(0.0)),  # 0 where nothing reached
            confidence=confidence_logit(belief, residual, kind).sigmoid(),
            measured=torch.where(weight > 0, unit.relative_to(seen_unit, measurement), 0.0),
        )
    maps = Seen(*(kept_memory.empty(residual.shape, like=residual) for _ in Seen._fields))
    inputs = {**_planes(*given), "measurement": measurement.contiguous(), "weight": weight.contiguous()}
    inputs["shift"] = (unit.metres / seen_unit.metres).log().view(-1).contiguous()
    native().belief_seen(inputs=inputs, outputs=maps._asdict(), threads=torch.get_num_threads())
    return maps


@cache
def _built() -> bool:
    """Whether the kernels are there; those of a checkout may be older than its sources."""
    return COMPILED and hasattr(native(), "belief_seen")


def _fit(unit: DepthUnit, kind: str, *tensors: Tensor) -> bool:
    """Whether the compiled forms take these, and nobody wants their gradient or writes them down."""
    wanted = torch.is_grad_enabled() and any(x.requires_grad for x in tensors)
    return (
        unit.kind == "log"
        and kind == "log"
        and not wanted
        and all(x.device.type == "cpu" and x.dtype == torch.float32 for x in (*tensors, unit.metres))
        and not torch.compiler.is_compiling()
        and not torch.jit.is_tracing()  # type: ignore[attr-defined, no-untyped-call]
        and _built()
    )


def _planes(information: Tensor, precision: Tensor, residual: Tensor) -> dict[str, Tensor]:
    maps = {"information": information, "precision": precision, "residual": residual}
    return {name: x.detach().contiguous() for name, x in maps.items()}
