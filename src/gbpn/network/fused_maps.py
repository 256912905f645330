"""The maps of a field in one pass each, compiled: for inference in float32 on CPUs.

Between the heads and belief propagation lie some forty small operations on whole maps. Where no gradient is
wanted, one compiled function a step does them row by row: `read` of the heads' maps, `corrected` by what each
iteration changes, `responding` to the density of the measurements; and `cues` of what a second stage sees.
Each gives None where the plain form must serve, which says what is computed: `gbpn.network.field_parameters`
and `gbpn.network.refiner` call both.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from typing import NamedTuple

import torch
from torch import Tensor

from gbpn.kernels import memory as kept_memory
from gbpn.kernels.backends import COMPILED, native
from gbpn.mrf import LocalEdges, NonLocalEdges, SymmetricEdges
from gbpn.network.depth_prior import LARGEST_STEP
from gbpn.network.stage_inputs import SecondStageInput

__all__ = ["Read", "corrected", "cues", "read", "responding"]

_Edges = tuple[LocalEdges | SymmetricEdges, NonLocalEdges | None]


class Read(NamedTuple):
    """What the heads say, as a field counts it."""

    precision: Tensor
    """[B, 2 + edges, H, W]: of a measurement, nothing, of the edges."""
    difference: Tensor
    """[B, edges, H, W]."""
    damping: Tensor
    """[B, 1 or 2, H, W]."""


@cache
def _built() -> bool:
    """Whether the kernels are there; those of a checkout may be older than its sources."""
    return COMPILED and hasattr(native(), "field_responding")


def _fit(*tensors: Tensor | None) -> bool:
    """Whether the compiled forms take these, and nobody wants their gradient or writes them down."""
    given = [x for x in tensors if x is not None]
    wanted = torch.is_grad_enabled() and any(x.requires_grad for x in given)
    return (
        not wanted
        and all(x.device.type == "cpu" and x.dtype == torch.float32 for x in given)
        and not torch.compiler.is_compiling()
        and not torch.jit.is_tracing()  # type: ignore[attr-defined, no-untyped-call]
        and _built()
    )


def _planes(tensors: Mapping[str, Tensor | None]) -> dict[str, Tensor | None]:
    """Rows and columns contiguous, as the compiled forms read them."""
    found: dict[str, Tensor | None] = {}
    for name, x in tensors.items():
        if x is not None:
            x = x.detach()
            width = x.shape[-1]
            kept = x.dim() < 2 or (x.stride(-1) == 1 and x.stride(-2) == width)
            x = x if kept else x.contiguous()
        found[name] = x
    return found


def read(
    weight: Tensor,
    difference: Tensor,
    damping: Tensor,
    *,
    local_edges: int,
    units: Tensor,
    difference_unit: float,
    least: float,
    contrast: Tensor | None,
    image: Tensor | None,
    strength: float,
    faintest: float,
    unlike: float,
) -> Read | None:
    """(softplus(weight) + `least`)·`units`, local edges weakened by `contrast` across colours of `image`;
    difference·`difference_unit`; sigmoid(damping)."""
    if not _fit(weight, difference, damping, contrast, image):
        return None
    drawn = Read(*(kept_memory.empty(x.shape, like=x) for x in (weight, difference, damping)))
    inputs: dict[str, Tensor | None] = {
        "weight": weight,
        "difference": difference,
        "damping": damping,
        "unit": units,
    }
    if contrast is not None:
        inputs |= {"contrast": contrast, "image": image}
    native().field_read(
        inputs=_planes(inputs),
        outputs=drawn._asdict(),
        local_edges=local_edges,
        difference_unit=difference_unit,
        least=least,
        contrast=strength,
        faintest=faintest,
        unlike=unlike,
        threads=torch.get_num_threads(),
    )
    return drawn


def corrected(
    local: LocalEdges | SymmetricEdges, far: NonLocalEdges | None, corrections: Tensor, iterations: int
) -> _Edges | None:
    """`corrections` [B, T·channels, H/4, W/4], as they are before they are enlarged."""
    damping = local.damping
    parts = (damping, corrections) if far is None else (damping, corrections, far.weight, far.damping)
    if not _fit(*parts) or any(x.shape[1] != 1 for x in (damping, *parts[2:])):
        return None
    batch, _, height, width = damping.shape
    sets = (batch, iterations, height, width)
    inputs, outputs = {"damping": damping}, {"damping": kept_memory.empty(sets, like=damping)}
    if far is not None:
        inputs |= {"far_weight": far.weight, "far_damping": far.damping}
        outputs["far_damping"] = kept_memory.empty(sets, like=damping)
        outputs["far_weight"] = kept_memory.empty((batch, iterations, *far.weight.shape[2:]), like=damping)
    native().field_corrected(
        inputs={"corrections": corrections.detach(), **_planes(inputs)},
        outputs=outputs,
        threads=torch.get_num_threads(),
    )
    local = replace(local, damping=outputs["damping"])
    if far is None:
        return local, None
    return local, replace(far, weight=outputs["far_weight"], damping=outputs["far_damping"])


def cues(seen: SecondStageInput, channels: int, step: float) -> Tensor | None:
    """`gbpn.network.refiner.cues`, the channels of a pixel side by side."""
    maps = {name: x for name, x in seen._asdict().items() if name != "intrinsics"}
    if not _fit(*seen) or not hasattr(native(), "stage_cues"):
        return None
    batch, _, height, width = seen.depth.shape
    pixels = kept_memory.empty((batch, height, width, channels), like=seen.depth)
    found = pixels.permute(0, 3, 1, 2)  # [B, channels, H, W]
    native().stage_cues(
        inputs={**_planes(maps), "intrinsics": seen.intrinsics.detach().contiguous()},
        outputs={"cues": found},
        step=step,
        threads=torch.get_num_threads(),
    )
    return found


def responding(
    unary: Tensor,
    local: LocalEdges | SymmetricEdges,
    far: NonLocalEdges | None,
    prior: Tensor | None,
    change: Tensor,
) -> tuple[Tensor, SymmetricEdges, NonLocalEdges | None] | None:
    """`change` [B, 5, H/8, W/8]: the response before it is enlarged, in the order of `density.Response`."""
    if prior is None or not isinstance(local, SymmetricEdges):
        return None
    inputs = {"unary": unary, "prior": prior, **vars(local)}
    if far is not None:
        if far.offset.shape[1] != far.difference.shape[1]:
            return None
        inputs |= {f"far_{name}": getattr(far, name) for name in ("weight", "difference", "offset")}
    if not _fit(change, *inputs.values()):
        return None
    read = ("prior", "far_offset")
    outputs = {name: kept_memory.empty(x.shape, like=x) for name, x in inputs.items() if name not in read}
    space: dict[str, Tensor] = {}
    if far is not None:
        batch, _, height, width = unary.shape
        steps = far.offset.shape[1] * far.offset.shape[2]
        half = (height // 2, width // 2)
        space["half"] = kept_memory.empty((batch, 1, *half), like=unary)
        space["far_steps"] = kept_memory.empty((batch, steps, *half), like=unary)
    native().field_responding(
        inputs={"change": change.detach(), **_planes(inputs)},
        outputs={**outputs, **space},
        largest_step=LARGEST_STEP,
        threads=torch.get_num_threads(),
    )
    edges = {name: outputs[name] for name in vars(local)}
    if far is not None:
        far = replace(far, weight=outputs["far_weight"], difference=outputs["far_difference"])
    return outputs["unary"], SymmetricEdges(**edges), far
