"""Right calls of every native operator at random sizes, layouts and values: only outputs are written.

Outputs lie between guards that must stay as they are; the sanitizers of scripts/run_sanitized.sh also see
reads outside of tensors.
"""

from __future__ import annotations

import os
import random
from typing import Any

import pytest
import torch
from torch import Tensor

native = pytest.importorskip("gbpn._native", reason="gbpn was installed without its C++ kernels")

from calls import OPERATORS, Call, Maker  # noqa: E402

CALLS = int(os.environ.get("GBPN_FUZZ_CALLS", "60"))
GUARD = 1234.5
PEAKS = (0.0, -0.0, 1e-42, -1e-30, 1e30, 3e38, float("inf"), float("-inf"), float("nan"))


def hard_values(m: Maker, shape: tuple[int, ...]) -> Tensor:
    """Mostly ordinary numbers of both signs, with zeros, tiny, huge and not finite ones among them."""
    plain = torch.randn(shape, generator=m.generator, dtype=torch.float64)
    peaks = torch.tensor(PEAKS, dtype=torch.float64)
    chosen = torch.randint(0, len(PEAKS), shape, generator=m.generator)
    mask = torch.rand(shape, generator=m.generator, dtype=torch.float64) < 0.1
    return torch.where(mask, peaks[chosen], plain)


def guarded(tensor: Tensor) -> tuple[Tensor, Tensor]:
    """The tensor in the same layout inside a larger memory, and that memory."""
    extra = 64
    memory = torch.full((tensor.numel() + 2 * extra,), GUARD, dtype=tensor.dtype)
    inside = memory.as_strided(tensor.shape, tensor.stride(), extra)
    inside.copy_(tensor)
    return inside, memory


def check_guards(call: Call) -> None:
    memories: list[tuple[str, Tensor, int]] = []
    for group, name in call.tensors():
        if call.written(group):
            tensor = call.groups[group][name]
            call.groups[group][name], memory = guarded(tensor)
            memories.append((call.label(group, name), memory, tensor.numel()))
    reads: list[tuple[str, Tensor, Any]] = [
        (call.label(g, n), call.groups[g][n], call.groups[g][n].clone())
        for g, n in call.tensors()
        if not call.written(g)
    ]
    call.run(native)
    for name, memory, count in memories:
        assert (memory[:64] == GUARD).all(), f"{name}: written before its start"
        assert (memory[64 + count :] == GUARD).all(), f"{name}: written beyond its end"
    for name, tensor, before in reads:
        assert torch.equal(tensor.nan_to_num(7.0), before.nan_to_num(7.0)), f"{name}: an input was changed"


@pytest.mark.parametrize("level", ["baseline", "avx2", "avx512"])
@pytest.mark.parametrize("operator", OPERATORS)
def test_only_outputs_are_written(operator: str, level: str) -> None:
    try:
        native.force_simd_level(level)
    except ValueError as error:
        pytest.skip(str(error))
    try:
        for seed in range(CALLS):
            rng = random.Random(f"{operator} {seed}")
            values = hard_values if seed % 2 else None
            check_guards(OPERATORS[operator](Maker(rng, largest=rng.choice((3, 17, 70)), values=values)))
    finally:
        native.force_simd_level("auto")
