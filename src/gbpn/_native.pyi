"""The compiled kernels (native/). Tensors are CPU tensors and go by name; outputs are written in place.

Every call is checked: what does not fit raises `gbpn.errors.InputError` with the name of the tensor.
"""

from typing import Any

from torch import Tensor

SENDERS: tuple[tuple[int, int, int], ...]
UNDIRECTED_RING: tuple[tuple[int, int], ...]
MESSAGE_SLOTS: int
MOST_LEARNED_EDGES: int

_Tensors = dict[str, Tensor] | dict[str, Tensor | None]

def simd_level() -> str: ...
def force_simd_level(name: str) -> None: ...
def scan(values: Tensor) -> tuple[float, float, int]: ...
def kept_floats(count: int) -> Tensor: ...
def tape_planes(*, edges: int, learned: bool, steps: int, checkpoints: bool) -> int: ...
def gbp_infer(
    *,
    field: _Tensors,
    outcome: _Tensors,
    iterations: int,
    steps: int,
    reweighting: float,
    checkpoints: bool,
    threads: int,
) -> None: ...
def gbp_infer_adjoint(
    *,
    field: _Tensors,
    outcome: _Tensors,
    cotangents: _Tensors,
    gradients: _Tensors,
    iterations: int,
    steps: int,
    reweighting: float,
    checkpoints: bool,
    threads: int,
) -> None: ...
def gbp_sweep(
    *, inputs: _Tensors, messages: _Tensors, direction: int, reweighting: float, always: bool = False
) -> None: ...
def gbp_sweep_adjoint(
    *,
    inputs: _Tensors,
    after: _Tensors,
    cotangents: _Tensors,
    gradients: _Tensors,
    direction: int,
    reweighting: float,
    always: bool = False,
) -> None: ...
def gbp_nonlocal_step(*, inputs: _Tensors, result: _Tensors, reweighting: float, threads: int) -> None: ...
def gbp_nonlocal_step_adjoint(
    *, inputs: _Tensors, cotangents: _Tensors, gradients: _Tensors, reweighting: float
) -> None: ...
def attention_forward(
    *, inputs: _Tensors, outputs: _Tensors, dilation: int, scale: float, threads: int
) -> None: ...
def attention_backward(
    *, inputs: _Tensors, cotangents: _Tensors, gradients: _Tensors, dilation: int, scale: float, threads: int
) -> None: ...
def doubled_adjoint(*, inputs: _Tensors, outputs: _Tensors, threads: int) -> None: ...
def field_read(
    *,
    inputs: _Tensors,
    outputs: _Tensors,
    local_edges: int,
    difference_unit: float,
    least: float,
    contrast: float,
    faintest: float,
    unlike: float,
    threads: int,
) -> None: ...
def field_corrected(*, inputs: _Tensors, outputs: _Tensors, threads: int) -> None: ...
def field_responding(*, inputs: _Tensors, outputs: _Tensors, largest_step: float, threads: int) -> None: ...
def field_directed(*, inputs: _Tensors, outputs: _Tensors, threads: int) -> None: ...
def belief_out(*, inputs: _Tensors, outputs: _Tensors, threads: int) -> None: ...
def belief_seen(*, inputs: _Tensors, outputs: _Tensors, threads: int) -> None: ...
def stage_cues(*, inputs: _Tensors, outputs: _Tensors, step: float, threads: int) -> None: ...
def upscale(*, inputs: _Tensors, outputs: _Tensors, threads: int) -> None: ...
def __getattr__(name: str) -> Any: ...
