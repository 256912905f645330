"""Convolutions with what follows them against the plain modules."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
import torch
from torch import nn
from torch.nn import functional

from gbpn.gmcn import fused_convolution as fused
from gbpn.gmcn.blocks import ConvNorm, ResidualBlock
from gbpn.gmcn.efficientnet import InvertedBottleneck
from gbpn.gmcn.unit import GatedAttention
from gbpn.model import build


def without_operators(monkeypatch: pytest.MonkeyPatch) -> None:
    """A torch whose private operators are gone, as they may be after any release."""
    monkeypatch.setattr(torch.ops, "mkldnn", SimpleNamespace())


def folded(module: nn.Module) -> nn.Module:
    """Random statistics and weights, merged, without gradients, as `Model.fuse` does."""
    torch.manual_seed(0)
    for part in module.modules():
        if isinstance(part, nn.BatchNorm2d):
            nn.init.normal_(part.running_mean)
            nn.init.uniform_(part.running_var, 0.5, 2.0)
            nn.init.normal_(part.weight)
            nn.init.normal_(part.bias)
    for part in module.eval().modules():
        if isinstance(part, ConvNorm):
            part.fold()
    module.to(memory_format=torch.channels_last)  # type: ignore[call-overload]
    return module.requires_grad_(False)


@pytest.mark.parametrize(
    "module",
    [
        ConvNorm(8, 16, activation=functional.gelu),
        ConvNorm(8, 16, 1),
        ConvNorm(8, 16, stride=2, padding="same", activation=functional.relu6),
        ResidualBlock(8),
        InvertedBottleneck(8, 8, 5, 1, 6),
        GatedAttention(8, 8, head_channels=4, window=3, dilation=1, drop_path=0.5),
    ],
    ids=lambda module: type(module).__name__,
)
def test_fused_is_plain(module: nn.Module, monkeypatch: pytest.MonkeyPatch) -> None:
    module = folded(module)
    if isinstance(module, GatedAttention):
        nn.init.normal_(module.project.weight)
    x = torch.randn(2, 8, 12, 14).to(memory_format=torch.channels_last)
    before = x.clone()
    inputs = (x, x) if isinstance(module, GatedAttention) else (x,)
    calls = []
    one_pass = fused.convolution

    def counted(*arguments: Any, **options: Any) -> torch.Tensor | None:
        done = one_pass(*arguments, **options)
        calls.extend([done] if done is not None else [])
        return done

    monkeypatch.setattr(fused, "convolution", counted)
    got = module(*inputs)
    passes = len(calls)
    assert passes
    without_operators(monkeypatch)
    torch.testing.assert_close(got, module(*inputs), rtol=1e-5, atol=1e-5)
    assert len(calls) == passes
    assert torch.equal(x, before)


def test_what_does_not_fit_takes_the_plain_way() -> None:
    x = torch.randn(1, 4, 8, 8)
    replicated = nn.Conv2d(4, 4, 3, padding_mode="replicate", padding=1).requires_grad_(False)
    assert fused.convolution(replicated, x) is None
    assert fused.convolution(nn.Conv2d(4, 4, 3), x) is None  # wants gradients
    assert fused.convolution(nn.Conv2d(4, 4, 3).requires_grad_(False), x.clone().requires_grad_()) is None
    with torch.no_grad():
        assert fused.convolution(nn.Conv2d(4, 4, 3), x) is not None
        assert fused.convolution(nn.Conv2d(4, 4, 3).double(), x.double()) is None
        assert fused.convolution(nn.Conv2d(4, 4, 3), x, torch.sin) is None
        assert fused.convolution(nn.ConvTranspose2d(4, 4, 2), x) is None


@pytest.mark.parametrize("left", ["nothing", "default", "binary", "no oneDNN"])
def test_a_torch_without_the_private_operators_takes_the_plain_way(
    left: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    conv, x = nn.Conv2d(4, 4, 3).requires_grad_(False), torch.randn(1, 4, 8, 8)
    assert fused.convolution(conv, x) is not None
    if left == "no oneDNN":
        monkeypatch.setattr(torch.backends.mkldnn, "is_available", lambda: False)
    elif left == "nothing":
        without_operators(monkeypatch)
    else:  # only one of the two forms
        form = SimpleNamespace(**{left: torch.relu})
        monkeypatch.setattr(torch.ops, "mkldnn", SimpleNamespace(_convolution_pointwise=form))
    assert fused.convolution(conv, x) is None


@pytest.mark.parametrize("name", ["gbpn-2", "small-2"])
def test_a_fused_model_answers_like_the_plain_one(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    torch.manual_seed(0)
    options = {"width": 0.25} if name == "gbpn-2" else {}
    model = build(name, **options).eval()
    for part in model.modules():  # heads that say something
        if isinstance(part, nn.ConvTranspose2d):
            nn.init.normal_(part.weight, std=0.05)
    image, sparse = torch.rand(1, 3, 64, 96), torch.zeros(1, 1, 64, 96)
    sparse[..., ::9, ::7] = 2.0 + torch.rand(1, 1, 8, 14)
    with torch.no_grad():
        plain = model(image, sparse)
        quick = model.fuse()(image, sparse)
        without_operators(monkeypatch)
        without = model(image, sparse)
    for answer in (quick, without):
        off = (answer.mean - plain.mean).abs() / plain.mean
        assert float(off.max()) < 1e-2  # rounding grows where an untrained field is nearly singular
        assert float((off > 1e-4).float().mean()) < 5e-3
        torch.testing.assert_close(answer.confidence_logit, plain.confidence_logit, rtol=1e-3, atol=1e-3)
