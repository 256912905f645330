"""The bricks: what folding, drop path and the start of training promise."""

from __future__ import annotations

from typing import TypeVar

import pytest
import torch
from torch import nn
from torch.nn import functional

from gbpn.network.blocks import DropPath, ResidualBlock, doubled
from gbpn.network.convolution import ConvNorm

AnyModule = TypeVar("AnyModule", bound=nn.Module)


def shaken(module: AnyModule) -> AnyModule:
    """Norms with statistics and scales as after training."""
    for part in module.modules():
        if isinstance(part, nn.BatchNorm2d):
            for tensor in (part.weight.data, part.running_var):
                tensor.uniform_(0.5, 1.5)
            for tensor in (part.bias.data, part.running_mean):
                tensor.normal_(0, 0.3)
    return module.eval()


LAYERS = pytest.mark.parametrize(
    "options",
    [
        {},
        {"stride": 2},
        {"padding": "replicate"},
        {"kernel": 5, "stride": 2, "groups": 4, "padding": "same", "activation": functional.relu6},
        {"kernel": 2, "transposed": True},
        {"kernel": 1, "activation": functional.gelu},
    ],
)


@LAYERS
@torch.no_grad()
def test_folding_keeps_the_function(options: dict) -> None:
    torch.manual_seed(0)
    block = shaken(ConvNorm(4, 8, **options).double())
    x = torch.randn(2, 4, 10, 14, dtype=torch.float64)
    before = block(x)
    block.fold()
    assert isinstance(block.norm, nn.Identity)
    torch.testing.assert_close(block(x), before, rtol=1e-12, atol=1e-12)
    block.fold()  # a second time changes nothing
    torch.testing.assert_close(block(x), before, rtol=1e-12, atol=1e-12)


@LAYERS
def test_a_norm_with_kept_statistics_learns_as_it_would_apart(options: dict) -> None:
    """Merged into the weights for speed: the same values and gradients as convolution, then norm."""
    torch.manual_seed(0)
    block = shaken(ConvNorm(4, 8, **options).double())
    x = torch.randn(2, 4, 10, 14, dtype=torch.float64, requires_grad=True)
    tensors = [x, *block.parameters()]
    merged = block(x)
    padded = functional.pad(x, block.margins) if block.margins else x
    apart = block.norm(block.conv(padded))
    apart = apart if block.activation is None else block.activation(apart)
    torch.testing.assert_close(merged, apart, rtol=1e-12, atol=1e-12)
    cotangent = torch.randn_like(merged)
    for one, other in zip(
        torch.autograd.grad(merged, tensors, cotangent),
        torch.autograd.grad(apart, tensors, cotangent),
        strict=True,
    ):
        torch.testing.assert_close(one, other, rtol=1e-10, atol=1e-10)


def test_replicate_padding_sees_no_border_on_a_constant_image() -> None:
    block = shaken(ConvNorm(3, 5, padding="replicate"))
    out = block(torch.full((1, 3, 6, 7), 0.7))
    torch.testing.assert_close(out, out[..., :1, :1].expand_as(out))


def test_residual_block_starts_as_the_identity() -> None:
    x = torch.randn(2, 6, 5, 4)
    torch.testing.assert_close(ResidualBlock(6)(x), x, rtol=0, atol=0)


def test_drop_path_keeps_the_mean_and_is_off_in_evaluation() -> None:
    torch.manual_seed(0)
    drop, ones = DropPath(0.25), torch.ones(40_000, 1, 1, 1)
    dropped = drop(ones)
    assert dropped.unique().tolist() == pytest.approx([0, 4 / 3])
    assert dropped.mean().item() == pytest.approx(1, abs=0.02)  # four standard errors
    assert drop.eval()(ones) is ones


@pytest.mark.parametrize("kept", [True, False])
@pytest.mark.parametrize("channels_last", [True, False])
def test_a_1x1_convolution_as_a_matrix_product_is_the_same(kept: bool, channels_last: bool) -> None:
    """Forward and every gradient, with statistics that are kept and with the batch's own."""
    torch.manual_seed(0)
    block = shaken(ConvNorm(4, 8, 1, activation=functional.relu6).double()).train(not kept)
    plain = ConvNorm(4, 8, 1, activation=functional.relu6).double().train(not kept)
    plain.load_state_dict(block.state_dict())
    x = torch.randn(2, 4, 6, 10, dtype=torch.float64)
    if channels_last:
        x = x.to(memory_format=torch.channels_last)
    one, other = x.clone().requires_grad_(), x.clone().requires_grad_()
    found = block(one)
    wanted = functional.relu6(plain.norm(functional.conv2d(other, plain.conv.weight)))
    torch.testing.assert_close(found, wanted)
    weight = torch.randn_like(wanted)
    gradients = torch.autograd.grad((found * weight).sum(), [one, *block.parameters()])
    again = torch.autograd.grad((wanted * weight).sum(), [other, *plain.parameters()])
    for a, b in zip(gradients, again, strict=True):
        torch.testing.assert_close(a, b)


def test_doubling_leaves_planes_flat_and_slopes_straight() -> None:
    slope = torch.arange(6.0).view(1, 1, 1, 6).expand(1, 1, 4, 6)
    twice = doubled(slope)
    assert twice.shape == (1, 1, 8, 12)
    torch.testing.assert_close(twice[..., 1:-1].diff(dim=-1), torch.full((1, 1, 8, 9), 0.5))
