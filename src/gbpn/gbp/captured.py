"""An inference for fields of one shape as one CUDA graph: captured once, replayed by a single launch.

Not yet run on a GPU: what is tested without one is what is refused, what is copied in and out, and the plain
call in its place.
"""

from __future__ import annotations

from dataclasses import fields, is_dataclass, replace
from typing import Any, Protocol

import torch
from torch import Tensor

from gbpn.errors import BackendError, InputError
from gbpn.gaussian import Gaussian
from gbpn.gbp.inference import infer
from gbpn.mrf import MRF

__all__ = ["CapturedInference", "moved", "tensors_of"]

_WARM_UP = 3
"""Runs before the capture: kernels are compiled and constants made in them."""


class _Replayable(Protocol):
    def replay(self) -> None:
        """Compute the outputs of the capture anew, from what its inputs hold now."""


class CapturedInference:
    """`infer` for fields of the example's shape, without the launches of its hundreds of kernels.

    example  a field on a GPU; its shapes and device are those of all that follow
    eager    True: call `infer` each time instead, on any device; nothing is captured
    options  of `infer`: iterations, nonlocal_steps, backend, reweighting, scheme

    Gradients are not captured. A replay reads parameters as they are given and never checks values.
    """

    def __init__(self, example: MRF, *, eager: bool = False, **options: Any) -> None:
        for name in ("messages", "record", "check", "backward", "solver", "variances"):
            if name in options:
                raise InputError(
                    f"a captured inference starts from nothing and is not recorded: leave out {name}"
                )
        example.check()
        self._options = {**options, "check": False}
        self._example = example
        self._graph: _Replayable | None = None
        if eager:
            return
        device = example.weight.device
        if device.type != "cuda":
            raise BackendError(
                f"a CUDA graph needs a field on a GPU; got {device}: move it with .to('cuda'), or pass "
                "eager=True to call infer itself"
            )
        self._example = moved(example, device, copy=True)
        self._graph, self._belief = self._captured()

    def __call__(self, mrf: MRF) -> Gaussian:
        """Belief of a field of the example's shapes; a new tensor each time."""
        given, wanted = tensors_of(mrf), tensors_of(self._example)
        for name in given.keys() | wanted.keys():
            got, expected = _kind(given.get(name)), _kind(wanted.get(name))
            if got != expected:
                raise InputError(
                    f"{name} must be {expected} as in the example; got {got}: "
                    "capture another inference for other shapes"
                )
        if torch.is_grad_enabled() and any(tensor.requires_grad for tensor in given.values()):
            raise InputError(
                "a captured inference has no gradient, and a tensor of this field wants one: use infer, "
                "or torch.inference_mode()"
            )
        if self._graph is None:
            return infer(mrf, **self._options).belief
        for name, tensor in given.items():
            wanted[name].copy_(tensor)
        self._graph.replay()
        return Gaussian(self._belief.information.clone(), self._belief.precision.clone())

    @torch.no_grad()
    def _captured(self) -> tuple[_Replayable, Gaussian]:
        """The graph, and where it writes its belief."""
        with torch.cuda.device(self._example.weight.device):
            aside = torch.cuda.Stream()  # type: ignore[no-untyped-call]
            aside.wait_stream(torch.cuda.current_stream())
            with torch.cuda.stream(aside):
                for _ in range(_WARM_UP):
                    infer(self._example, **self._options)
            torch.cuda.current_stream().wait_stream(aside)
            graph = torch.cuda.CUDAGraph()
            with torch.cuda.graph(graph):
                belief = infer(self._example, **self._options).belief
        return graph, belief


def tensors_of(box: Any, name: str = "mrf") -> dict[str, Tensor]:
    """All tensors of a field, or of a part of one, by name."""
    if isinstance(box, Tensor):
        return {name: box}
    if not is_dataclass(box):
        return {}
    found: dict[str, Tensor] = {}
    for one in fields(box):
        found |= tensors_of(getattr(box, one.name), f"{name}.{one.name}")
    return found


def moved(box: Any, where: torch.device | str | torch.dtype, *, copy: bool = False) -> Any:
    """A field, or a part of one, on another device or of another kind; `copy`: in memory of its own."""
    if isinstance(box, Tensor):
        return box.detach().to(where, copy=True) if copy else box.to(where)
    if not is_dataclass(box):
        return box
    parts = {one.name: moved(getattr(box, one.name), where, copy=copy) for one in fields(box)}
    return replace(box, **parts)  # type: ignore[type-var]


def _kind(tensor: Tensor | None) -> str:
    if tensor is None:
        return "nothing"
    return f"{str(tensor.dtype)[6:]} {list(tensor.shape)} on {tensor.device}"
