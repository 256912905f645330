"""Maps that grow bilinearly: the products that write planes at once are the plain layers."""

from __future__ import annotations

import pytest
import torch
from torch import nn
from torch.nn import functional

from gbpn.network.smooth_maps import doubled_adjoint, grown


@pytest.mark.parametrize("fine", [False, True])
@pytest.mark.parametrize("channels_last", [False, True])
def test_planes_at_once_are_the_plain_layers(fine: bool, channels_last: bool) -> None:
    torch.manual_seed(0)
    memory = torch.channels_last if channels_last else torch.contiguous_format
    x = torch.randn(2, 5, 6, 8, dtype=torch.float64).contiguous(memory_format=memory)
    features = torch.randn(2, 3, 12, 16, dtype=torch.float64).contiguous(memory_format=memory)
    weight, bias = torch.randn(7, 5, 1, 1, dtype=torch.float64), torch.randn(7, dtype=torch.float64)
    last = nn.Conv2d(3, 7, 1).double()
    given = (features, last) if fine else None
    wanted = functional.interpolate(functional.conv2d(x, weight, bias), scale_factor=2, mode="bilinear")
    wanted = wanted + last(features) if fine else wanted
    torch.testing.assert_close(grown(x, weight, bias, given), wanted)
    with torch.inference_mode():
        at_once = grown(x, weight, bias, given)
    torch.testing.assert_close(at_once, wanted)
    assert at_once.is_contiguous()


@pytest.mark.parametrize("fine", [False, True])
def test_gradients_are_those_of_the_plain_layers(fine: bool) -> None:
    torch.manual_seed(0)
    memory = torch.channels_last
    x = torch.randn(2, 5, 3, 7, dtype=torch.float64).contiguous(memory_format=memory).requires_grad_()
    features = torch.randn(2, 3, 6, 14, dtype=torch.float64).contiguous(memory_format=memory).requires_grad_()
    weight = torch.randn(7, 5, 1, 1, dtype=torch.float64, requires_grad=True)
    bias = torch.randn(7, dtype=torch.float64, requires_grad=True)
    last = nn.Conv2d(3, 7, 1).double()
    learned = [x, weight, bias, *([features, *last.parameters()] if fine else [])]
    plain = functional.interpolate(functional.conv2d(x, weight, bias), scale_factor=2, mode="bilinear")
    plain = plain + last(features) if fine else plain
    cotangent = torch.randn_like(plain)
    wanted = torch.autograd.grad(plain, learned, cotangent)
    got = torch.autograd.grad(grown(x, weight, bias, (features, last) if fine else None), learned, cotangent)
    torch.testing.assert_close(got, wanted)
    assert got[0].stride() == x.stride()


def test_half_precision_around_it_changes_nothing() -> None:
    torch.manual_seed(0)
    weight, bias = torch.randn(7, 5, 1, 1), torch.randn(7)
    x, given = torch.randn(1, 5, 4, 4), (torch.randn(1, 3, 8, 8), nn.Conv2d(3, 7, 1))
    wanted = grown(x, weight, bias, given)
    with torch.autocast("cpu", torch.bfloat16):
        assert torch.equal(grown(x, weight, bias, given), wanted)


def test_every_part_learns() -> None:
    torch.manual_seed(0)
    weight, bias = torch.randn(7, 5, 1, 1, requires_grad=True), torch.zeros(7, requires_grad=True)
    x, features = torch.randn(1, 5, 4, 4, requires_grad=True), torch.randn(1, 3, 8, 8, requires_grad=True)
    last = nn.Conv2d(3, 7, 1)
    grown(x, weight, bias, (features, last)).square().sum().backward()
    for tensor in (x, features, weight, bias, *last.parameters()):
        assert tensor.grad is not None
        assert tensor.grad.any()


@pytest.mark.parametrize("shape", [(1, 1, 1, 1), (2, 1, 1, 7), (1, 19, 3, 1), (2, 5, 33, 65)])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_adjoint_of_growing_planes_is_that_of_torch(
    level: str, shape: tuple[int, ...], dtype: torch.dtype
) -> None:
    x = torch.randn(shape, dtype=dtype, requires_grad=True)
    plain = functional.interpolate(x, scale_factor=2, mode="bilinear", align_corners=False)
    cotangent = torch.randn_like(plain)
    (wanted,) = torch.autograd.grad(plain, x, cotangent)
    tolerance = 4e-6 if dtype == torch.float32 else 1e-14
    torch.testing.assert_close(doubled_adjoint(cotangent), wanted, rtol=0, atol=tolerance)


def test_same_bits_with_any_number_of_threads(with_threads) -> None:
    cotangent = torch.randn(2, 3, 34, 18)
    alone, three = (with_threads(count, lambda: doubled_adjoint(cotangent)) for count in (1, 3))
    assert torch.equal(three, alone)
