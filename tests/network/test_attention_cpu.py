"""The compiled attention against its plain twin, and as an operator that torch's machinery accepts."""

from __future__ import annotations

import sys

import pytest
import torch
from torch import Tensor
from torch.utils.flop_counter import FlopCounterMode

from gbpn.errors import BackendError, InputError
from gbpn.network.attention import neighbourhood_attention, reference

native = pytest.importorskip("gbpn._native", reason="needs the compiled module gbpn._native")
from gbpn.network.attention import cpu  # noqa: E402  (registers the operators)

TOLERANCE = {torch.float64: 1e-12, torch.float32: 3e-6}
"""Largest difference, relative to the largest number of the reference."""

SHAPES = [  # heads, size, height, width, kernel, dilation
    (2, 32, 33, 29, 7, 1),
    (2, 32, 113, 19, 7, 16),  # rows just fit 7 · 16, columns shrink the dilation
    (1, 32, 30, 15, 7, 2),  # last strip of one row
    (3, 16, 23, 26, 7, 3),
    (2, 8, 41, 17, 5, 4),
    (1, 8, 10, 9, 3, 3),
    (2, 5, 21, 22, 7, 3),
    (1, 1, 9, 8, 3, 1),
    (2, 32, 1, 7, 7, 1),
    (2, 32, 1, 1, 7, 4),
    (1, 16, 3, 70, 7, 8),
]


def draw(shape: tuple[int, ...], dtype: torch.dtype, batch: int = 2) -> tuple[list[Tensor], Tensor]:
    """(query, key, value, bias), and a random gradient of the result."""
    heads, size, height, width, kernel, _ = shape
    generator = torch.Generator().manual_seed(height * width)
    images = [
        torch.randn(batch, heads * size, height, width, generator=generator, dtype=torch.float64)
        for _ in range(4)
    ]
    bias = torch.randn(heads, 2 * kernel - 1, 2 * kernel - 1, generator=generator, dtype=torch.float64)
    inputs = [tensor.to(dtype).requires_grad_() for tensor in (*images[:3], bias)]
    return inputs, images[3].to(dtype)


def assert_twins(shape: tuple[int, ...], dtype: torch.dtype) -> None:
    inputs, cotangent = draw(shape, dtype)
    exact = [tensor.detach().double().requires_grad_() for tensor in inputs]
    options = {"dilation": shape[-1], "scale": shape[1] ** -0.5}
    wanted = reference.neighbourhood_attention(*exact, **options)
    got = cpu.neighbourhood_attention(*inputs, **options)
    pairs = [("out", got.detach(), wanted.detach())]
    gradients = torch.autograd.grad(got, inputs, cotangent)
    wanted_gradients = torch.autograd.grad(wanted, exact, cotangent.double())
    pairs += zip(("query", "key", "value", "bias"), gradients, wanted_gradients, strict=True)
    for name, ours, theirs in pairs:
        scale = max(1.0, float(theirs.abs().max()))
        error = float((ours - theirs).abs().max()) / scale
        assert error < TOLERANCE[dtype], f"{name}: {error}"


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
def test_twins(shape: tuple[int, ...], dtype: torch.dtype) -> None:
    assert_twins(shape, dtype)


@pytest.mark.parametrize("dilation", range(1, 17))
def test_twins_at_every_dilation(dilation: int) -> None:
    assert_twins((1, 8, 7 * dilation + dilation // 2, 31, 7, dilation), torch.float32)


@pytest.mark.parametrize("shape", [SHAPES[0], SHAPES[3], SHAPES[4], SHAPES[6]], ids=str)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
def test_every_instruction_set(level: str, shape: tuple[int, ...], dtype: torch.dtype) -> None:
    assert_twins(shape, dtype)


def test_weights_survive_extreme_scores() -> None:
    """Scores far apart: the largest takes all, nothing overflows, a distant pixel's NaN stays away."""
    inputs, _ = draw((1, 32, 20, 20, 7, 1), torch.float32, batch=1)
    query, key, value, bias = (tensor.detach() for tensor in inputs)
    got = neighbourhood_attention(1e4 * query, key, value, bias, backend="cpu")
    wanted = neighbourhood_attention(1e4 * query, key, value, bias, backend="reference")
    torch.testing.assert_close(got, wanted, rtol=0, atol=1e-2)
    key[0, 3, 0, 0] = torch.nan
    spoiled = neighbourhood_attention(query, key, value, bias, backend="cpu").isnan().any(1)[0]
    assert spoiled[:4, :4].all()
    assert spoiled.sum() == 16


@pytest.mark.parametrize("layout", ["planes", "channels_last", "slices"])
def test_any_memory_layout(layout: str) -> None:
    (query, key, value, bias), _ = draw((2, 8, 12, 13, 7, 1), torch.float64)
    wanted = reference.neighbourhood_attention(query, key, value, bias, dilation=1)
    if layout == "slices":
        both = torch.cat([query, key, value], 1).contiguous(memory_format=torch.channels_last)
        query, key, value = both.split(16, 1)
    elif layout == "channels_last":
        query, key, value = (x.contiguous(memory_format=torch.channels_last) for x in (query, key, value))
    got = cpu.neighbourhood_attention(query, key, value, bias, dilation=1)
    assert got.is_contiguous(memory_format=torch.channels_last)
    torch.testing.assert_close(got, wanted)


def test_gradcheck() -> None:
    inputs, _ = draw((2, 3, 7, 8, 3, 2), torch.float64, batch=1)
    assert torch.autograd.gradcheck(
        lambda *tensors: cpu.neighbourhood_attention(*tensors, dilation=2, scale=0.7), inputs
    )


def test_opcheck() -> None:
    inputs, cotangent = draw((2, 8, 9, 10, 3, 2), torch.float32)
    torch.library.opcheck(torch.ops.gbpn.neighbourhood_attention.default, (*inputs, 2, 0.5))
    detached = [tensor.detach() for tensor in inputs]
    torch.library.opcheck(
        torch.ops.gbpn.neighbourhood_attention_backward.default, (cotangent, *detached, 2, 0.5)
    )


def test_exports_as_one_operator() -> None:
    class Layer(torch.nn.Module):
        def forward(self, query: Tensor, key: Tensor, value: Tensor, bias: Tensor) -> Tensor:
            return neighbourhood_attention(query, key, value, bias, dilation=2)

    inputs = tuple(tensor.detach() for tensor in draw((2, 8, 16, 15, 7, 2), torch.float32)[0])
    program = torch.export.export(Layer(), inputs)
    assert "gbpn.neighbourhood_attention" in program.graph_module.code
    torch.testing.assert_close(program.module()(*inputs), Layer()(*inputs), rtol=0, atol=0)


def test_compiles_without_a_break() -> None:
    inputs, cotangent = draw((2, 8, 16, 15, 7, 2), torch.float32)

    def layer(query: Tensor, key: Tensor, value: Tensor, bias: Tensor) -> Tensor:
        return 2 * neighbourhood_attention(query, key, value, bias, dilation=2)

    compiled = torch.compile(layer, fullgraph=True, backend="aot_eager")(*inputs)
    plain = layer(*inputs)
    torch.testing.assert_close(compiled, plain, rtol=0, atol=0)
    for ours, theirs in zip(
        torch.autograd.grad(compiled, inputs, cotangent),
        torch.autograd.grad(plain, inputs, cotangent),
        strict=True,
    ):
        torch.testing.assert_close(ours, theirs, rtol=0, atol=0)


def test_same_bits_again_and_with_any_number_of_threads(with_threads) -> None:
    inputs, cotangent = draw((2, 32, 61, 40, 7, 2), torch.float32)

    def bits() -> list[Tensor]:
        out = cpu.neighbourhood_attention(*inputs, dilation=2)
        return [out, *torch.autograd.grad(out, inputs, cotangent)]

    runs = [with_threads(count, bits) for count in (1, 1, 2, 5)]
    for run in runs[1:]:
        for ours, first in zip(run, runs[0], strict=True):
            assert torch.equal(ours, first)


def test_cost_counts_scores_and_weighted_sum() -> None:
    heads, size, height, width, kernel, dilation = shape = (2, 8, 16, 21, 7, 2)
    inputs, cotangent = draw(shape, torch.float32, batch=3)
    one_product = 2 * 3 * heads * size * height * width * kernel**2  # two operations per multiply-add
    for module in (cpu, reference):
        with FlopCounterMode(display=False) as counter, torch.no_grad():
            module.neighbourhood_attention(*inputs, dilation=dilation)
        assert counter.get_total_flops() == 2 * one_product
    with FlopCounterMode(display=False) as counter:
        cpu.neighbourhood_attention(*inputs, dilation=dilation).backward(cotangent)
    assert counter.get_total_flops() == 7 * one_product


@pytest.mark.parametrize(("height", "width"), [(9, 11), (3, 20), (20, 5), (2, 3), (7, 7)])
@pytest.mark.parametrize("kernel", [3, 7])
def test_the_cost_is_that_of_the_products_of_the_definition(height: int, width: int, kernel: int) -> None:
    """As torch counts the reference, windows that do not fit included; five products on the way back."""
    shape = (2, 4, height, width, kernel, 2)
    inputs, cotangent = draw(shape, torch.float64, batch=2)
    counts = []
    for module in (reference, cpu):
        with FlopCounterMode(display=False) as counter, torch.no_grad():
            module.neighbourhood_attention(*inputs, dilation=2)
        counts.append(counter.get_total_flops())
    assert counts[0] == counts[1] > 0
    with FlopCounterMode(display=False) as counter:
        cpu.neighbourhood_attention(*inputs, dilation=2).backward(cotangent)
    assert counter.get_total_flops() == counts[0] * (2 + 5) // 2


def test_half_precision_is_attended_in_single() -> None:
    half = [tensor.detach().bfloat16() for tensor in draw((1, 8, 8, 8, 3, 1), torch.float32)[0]]
    attended = neighbourhood_attention(*half, backend="cpu")
    assert attended.dtype == torch.bfloat16
    single = neighbourhood_attention(*(tensor.float() for tensor in half), backend="cpu")
    assert torch.equal(attended, single.bfloat16())


def test_other_dtypes_say_what_to_do() -> None:
    whole = [tensor.detach().round().int() for tensor in draw((1, 8, 8, 8, 3, 1), torch.float32)[0]]
    with pytest.raises(InputError, match="backend='reference'"):
        neighbourhood_attention(*whole, backend="cpu")


def test_without_the_compiled_module_it_says_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    inputs, _ = draw((1, 8, 8, 8, 3, 1), torch.float32)
    monkeypatch.setitem(sys.modules, "gbpn._native", None)
    with pytest.raises(BackendError, match="compiler"):
        neighbourhood_attention(*inputs, backend="cpu")
