"""The heads' last layer: the compiled form against torch's transposed convolution."""

from __future__ import annotations

import pytest
import torch
from torch.utils.flop_counter import FlopCounterMode

import gbpn.model.cost  # noqa: F401 - tells torch's counter what the operator costs
from gbpn.network.upscale import Upscale

native = pytest.importorskip("gbpn._native", reason="needs the compiled module gbpn._native")


@pytest.mark.parametrize(
    "shape", [(1, 64, 7, 3, 161), (2, 33, 4, 5, 85), (1, 1, 1, 1, 1), (3, 16, 20, 4, 80)]
)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("memory", [torch.channels_last, torch.contiguous_format])
def test_twins(level: str, shape: tuple[int, ...], dtype: torch.dtype, memory: torch.memory_format) -> None:
    batch, channels, out, height, width = shape
    layer = Upscale(channels, out).to(dtype)
    x = torch.randn(batch, channels, height, width, dtype=dtype).to(memory_format=memory)
    with torch.no_grad():
        got = layer(x)
        layer.backend = "reference"
        wanted = layer.double()(x.double())
    assert got.is_contiguous()
    torch.testing.assert_close(got.double(), wanted, rtol=0, atol=2e-6 if dtype == torch.float32 else 1e-13)


def test_gradients_take_the_plain_way() -> None:
    layer = Upscale(3, 2)
    x = torch.randn(1, 3, 4, 5, requires_grad=True)
    layer(x).sum().backward()
    assert x.grad is not None
    assert layer.weight.grad is not None
    torch.testing.assert_close(x.grad, layer.weight.detach().sum((1, 2, 3)).view(1, 3, 1, 1).expand_as(x))


def test_operator_is_sound_and_costs_the_same() -> None:
    layer = Upscale(3, 5).requires_grad_(False)
    x = torch.randn(2, 3, 4, 6)
    torch.library.opcheck(torch.ops.gbpn.upscale.default, (x, layer.weight, layer.bias))
    costs = []
    for backend in ("cpu", "reference"):
        layer.backend = backend
        with FlopCounterMode(display=False) as counter, torch.no_grad():
            layer(x)
        costs.append(counter.get_total_flops())
    assert costs[0] == costs[1] > 0


def test_maps_in_bfloat16_are_multiplied_as_such_where_it_is_fast() -> None:
    layer = Upscale(8, 5).requires_grad_(False)
    x = torch.randn(2, 8, 3, 21).to(memory_format=torch.channels_last)
    wanted = layer(x.bfloat16())
    layer.prepare(torch.bfloat16)
    assert (layer.pairs is not None) == native.has_pairs()
    got = layer(x.bfloat16())
    assert got.dtype == torch.float32
    torch.testing.assert_close(got, wanted, rtol=0, atol=2e-2)  # of rounded weights
    assert torch.equal(got, wanted) != native.has_pairs()
    layer.backend = "reference"
    torch.testing.assert_close(layer(x.bfloat16()), wanted, rtol=0, atol=2e-6)
    layer.prepare(torch.float32)
    assert layer.pairs is None


def test_same_bits_with_any_number_of_threads(with_threads) -> None:
    layer, x = Upscale(8, 9).requires_grad_(False), torch.randn(2, 8, 33, 47)
    alone, three = (with_threads(count, lambda: layer(x)) for count in (1, 3))
    assert torch.equal(three, alone)
