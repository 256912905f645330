"""Attention in Triton: released numbers and twins in the interpreter, compilation for GPUs."""

from __future__ import annotations

from pathlib import Path

import pytest
import test_attention as laws
import torch
from torch.utils.flop_counter import FlopCounterMode

from ahead_of_time import assert_compiled, compiled
from device import DEVICE, INTERPRETED, on_device
from gbpn.errors import InputError
from gbpn.network.attention import neighbourhood_attention, reference

pytestmark = pytest.mark.usefixtures("interpreter")


def fast():
    import gbpn.network.attention.triton

    return gbpn.network.attention.triton


@pytest.fixture
def large_tiles(monkeypatch: pytest.MonkeyPatch) -> None:
    """The interpreter takes as long for a small tile as for a large one."""
    if INTERPRETED:
        monkeypatch.setattr(fast(), "PIXELS", 1024)


def assert_twins(
    batch: int, heads: int, size: int, height: int, width: int, kernel: int, dilation: int
) -> None:
    """Values, and gradients of every input from a random cotangent, equal those of the reference."""
    inputs = laws.random_inputs((batch, height, width), heads=heads, size=size, kernel=kernel, seed=height)
    cotangent = torch.randn(inputs[0].shape, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    results = []
    for backend, device in ((reference, "cpu"), (fast(), DEVICE)):
        leaves = [tensor.to(device).requires_grad_() for tensor in inputs]
        out = backend.neighbourhood_attention(*leaves, dilation=dilation, scale=size**-0.5)
        gradients = torch.autograd.grad(out, leaves, cotangent.to(device))
        results.append([part.detach().cpu() for part in (out, *gradients)])
    labels = ("out", *(f"gradient of {name}" for name in ("query", "key", "value", "bias")))
    for label, wanted, got in zip(labels, *results, strict=True):
        difference = float((got - wanted).abs().max() / wanted.abs().max().clamp(min=1))
        assert difference < 1e-12, f"{label}: {difference}"


@pytest.mark.usefixtures("poisoned", "large_tiles")
@pytest.mark.parametrize(
    ("batch", "heads", "size", "height", "width", "kernel", "dilation"),
    [
        (1, 1, 1, 1, 1, 7, 4),
        (1, 2, 3, 1, 7, 7, 1),
        (2, 2, 5, 9, 8, 3, 2),  # channels that are no power of two, axes that the dilation does not divide
        (1, 1, 4, 4, 15, 7, 2),  # rows below one window
        (1, 1, 4, 13, 10, 5, 3),  # columns shrink the dilation
        (1, 1, 2, 16, 18, 7, 1),  # inside and at all borders
        (1, 1, 2, 33, 49, 3, 16),
    ],
)
def test_twins(
    batch: int, heads: int, size: int, height: int, width: int, kernel: int, dilation: int
) -> None:
    assert_twins(batch, heads, size, height, width, kernel, dilation)


@pytest.mark.usefixtures("poisoned")
def test_twins_in_several_tiles() -> None:
    assert fast().PIXELS < 9 * 11
    assert_twins(1, 2, 4, 5, 8, 3, 1)


@pytest.mark.usefixtures("large_tiles")
@pytest.mark.parametrize("case", ["d1", "d3", "d4"])
def test_released_numbers(one_golden, case: str) -> None:
    laws.test_released_numbers(on_device(one_golden), "triton", case)


@pytest.mark.usefixtures("large_tiles")
def test_any_memory_layout_is_read_and_channels_last_comes_back() -> None:
    query, key, value, bias = (tensor.to(DEVICE) for tensor in laws.random_inputs((2, 4, 5), kernel=3))
    wanted = reference.neighbourhood_attention(query, key, value, bias, dilation=1)
    query, key = (tensor.contiguous(memory_format=torch.channels_last) for tensor in (query, key))
    both = torch.cat([value, value], 1)[:, : value.shape[1]]  # a channel slice
    got = neighbourhood_attention(query, key, both, bias.mT.contiguous().mT, backend="triton")
    torch.testing.assert_close(got, wanted, rtol=1e-12, atol=1e-12)
    assert got.is_contiguous(memory_format=torch.channels_last)


@pytest.mark.usefixtures("large_tiles")
def test_torch_accepts_the_operator_and_counts_its_cost() -> None:
    fast()
    inputs = [t.to(DEVICE).requires_grad_() for t in laws.random_inputs((1, 3, 4), size=2, kernel=3)]
    torch.library.opcheck(torch.ops.gbpn.triton_attention.default, (*inputs, 1, 0.5))
    with FlopCounterMode(display=False) as counter:
        neighbourhood_attention(*inputs, backend="triton").sum().backward()
    pairs = 3 * 4 * 9 * 2 * 2  # pixels · keys · heads · channels
    assert counter.get_total_flops() == 2 * (2 + 5) * pairs


def test_wrong_kinds_are_named() -> None:
    query, key, value, bias = laws.random_inputs((1, 3, 4), kernel=3)
    with pytest.raises(InputError, match=r"key must be torch\.float64"):
        neighbourhood_attention(query, key.float(), value, bias, backend="triton")


def test_every_kernel_compiles_for_gpus(tmp_path: Path) -> None:
    cases = [
        {
            "module": "gbpn.network.attention.triton_kernels",
            "kernel": kernel,
            "numbers": ["heads", "height", "width", "dilation_y", "dilation_x", "window_y", "window_x"],
            "constants": {"SCALE": 32**-0.5, "KERNEL": 7, "SIZE": 32, "BLOCK": 32, "PIXELS": 32},
            "warps": 4,
            "pointer": pointer,
        }
        for kernel, pointer in (
            ("attention_forward", "*fp32"),
            ("attention_query_gradient", "*fp64"),
            ("attention_key_gradient", "*fp32"),
        )
    ]
    assert_compiled(compiled(cases, tmp_path), cases)
