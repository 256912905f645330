"""Attention in Triton: released numbers and twins in the interpreter, compilation for GPUs."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
import test_attention as laws
import torch
from torch.utils.flop_counter import FlopCounterMode

from ahead_of_time import ARCHITECTURES, assert_compiled, compiled
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
        monkeypatch.setattr(fast(), "TILE", (32, 32))
        monkeypatch.setattr(fast(), "OTHERS", 128)


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
        (1, 1, 2, 13, 18, 3, 4),
    ],
)
def test_twins(
    batch: int, heads: int, size: int, height: int, width: int, kernel: int, dilation: int
) -> None:
    assert_twins(batch, heads, size, height, width, kernel, dilation)


@pytest.mark.usefixtures("poisoned")
@pytest.mark.parametrize(
    ("height", "width", "kernel", "dilation"),
    [(9, 11, 7, 1), (5, 10, 3, 2), (1, 17, 3, 1), (11, 3, 5, 1)],
)
def test_twins_in_several_tiles(
    monkeypatch: pytest.MonkeyPatch, height: int, width: int, kernel: int, dilation: int
) -> None:
    """Keys in the middle and at the border of other tiles, in several rounds."""
    monkeypatch.setattr(fast(), "TILE", (4, 4))
    monkeypatch.setattr(fast(), "OTHERS", 64)
    assert_twins(1, 2, 4, height, width, kernel, dilation)


@pytest.mark.usefixtures("poisoned")
@pytest.mark.parametrize("kind", [torch.bfloat16, torch.float16])
def test_half_precision_is_the_twin_up_to_its_rounding(kind: torch.dtype) -> None:
    """Cross attention of odd sizes: factors as they are, sums in float32; the truth is float64."""
    *images, bias = laws.random_inputs((1, 9, 11), heads=2, size=20, kernel=5, seed=3)
    halves = [image.to(kind) for image in images]
    cotangent = torch.randn(halves[0].shape, generator=torch.Generator().manual_seed(1)).to(kind)
    results = []
    for tensors, device, backend in (
        ([*(half.double() for half in halves), bias.float().double()], "cpu", "reference"),
        ([*halves, bias.float()], DEVICE, "triton"),
    ):
        leaves = [tensor.to(device).requires_grad_() for tensor in tensors]
        out = neighbourhood_attention(*leaves, dilation=2, scale=20**-0.5, backend=backend)
        gradients = torch.autograd.grad(out, leaves, cotangent.to(device, out.dtype))
        results.append([part.detach().cpu() for part in (out, *gradients)])
    assert [part.dtype for part in results[1]] == [kind] * 4 + [torch.float32]
    step = torch.finfo(kind).eps
    for name, wanted, got in zip(("out", "query", "key", "value", "bias"), *results, strict=True):
        difference = float((got.double() - wanted).abs().max() / wanted.abs().max())
        assert 0 < difference < 2 * step, f"{name}: {difference / step} roundings"


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
    wide = ("bias", "logarithm", "delta", "bias_grad")
    constants = {"SCALE": 32**-0.5, "KERNEL": 7, "SIZE": 32, "BLOCK": 32, "OTHERS": fast().OTHERS}
    constants |= dict(zip(("TILE_Y", "TILE_X"), fast().TILE, strict=True))
    cases = [
        {
            "module": "gbpn.network.attention.triton_kernels",
            "kernel": kernel,
            "numbers": ["heads", "height", "width", "dilation_y", "dilation_x", "window_y", "window_x"],
            "constants": constants
            | {"PRECISION": precision}
            | ({"COPIES": fast().COPIES} if kernel == "attention_query_gradient" else {}),
            "warps": fast().WARPS,
            "pointer": pointer,
            "pointers": dict.fromkeys(wide, "*fp32") if pointer == "*bf16" else {},
        }
        for kernel, pointer, precision in (
            ("attention_forward", "*bf16", "ieee"),
            ("attention_forward", "*fp32", "ieee"),
            ("attention_query_gradient", "*bf16", "ieee"),
            ("attention_key_gradient", "*fp32", "tf32"),
            ("attention_key_gradient", "*bf16", "ieee"),
            ("attention_query_gradient", "*fp64", "ieee"),
            ("attention_query_gradient", "*fp32", "ieee"),
        )[: 7 if os.environ.get("GBPN_ALL_TESTS") else 4]
    ]
    report = compiled(cases, tmp_path)
    assert_compiled(report, cases)
    for case, entry in zip([case for case in cases for _ in ARCHITECTURES], report, strict=True):
        if case["pointer"] == "*bf16" or case["constants"]["PRECISION"] == "tf32":
            assert entry["matrices"], entry
