"""The compiled kernels (native/); tensors are CPU tensors, outputs are written in place."""

from typing import Any

from torch import Tensor

def simd_level() -> str: ...
def force_simd_level(name: str) -> None: ...
def scan(values: Tensor) -> tuple[float, float, int]: ...
def gbp_infer(
    inputs: list[Tensor],
    outputs: list[Tensor],
    iterations: int,
    steps: int,
    reweighting: float,
    checkpoints: bool,
    threads: int,
) -> None: ...
def gbp_infer_adjoint(
    inputs: list[Tensor],
    given: list[Tensor],
    gradients: list[Tensor],
    iterations: int,
    steps: int,
    reweighting: float,
    checkpoints: bool,
    threads: int,
) -> None: ...
def gbp_sweep(inputs: list[Tensor], messages: list[Tensor], direction: int, reweighting: float) -> None: ...
def gbp_sweep_adjoint(
    inputs: list[Tensor], outputs: list[Tensor], direction: int, reweighting: float
) -> None: ...
def gbp_nonlocal(inputs: list[Tensor], outputs: list[Tensor], reweighting: float) -> None: ...
def gbp_nonlocal_adjoint(inputs: list[Tensor], outputs: list[Tensor], reweighting: float) -> None: ...
def __getattr__(name: str) -> Any: ...
