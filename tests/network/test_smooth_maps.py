"""Maps that grow bilinearly: the products that write planes at once are the plain layers."""

from __future__ import annotations

import pytest
import torch
from torch import nn
from torch.nn import functional

from gbpn.network.smooth_maps import grown


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


def test_every_part_learns() -> None:
    torch.manual_seed(0)
    weight, bias = torch.randn(7, 5, 1, 1, requires_grad=True), torch.zeros(7, requires_grad=True)
    x, features = torch.randn(1, 5, 4, 4, requires_grad=True), torch.randn(1, 3, 8, 8, requires_grad=True)
    last = nn.Conv2d(3, 7, 1)
    grown(x, weight, bias, (features, last)).square().sum().backward()
    for tensor in (x, features, weight, bias, *last.parameters()):
        assert tensor.grad is not None
        assert tensor.grad.any()
