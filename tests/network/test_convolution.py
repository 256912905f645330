"""Convolutions with what follows them against the plain modules."""

from __future__ import annotations

import copy
import pickle
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from torch import nn
from torch.nn import functional

from gbpn.errors import BackendError
from gbpn.how import How
from gbpn.model.models import build
from gbpn.network import convolution as fused
from gbpn.network.blocks import ResidualBlock
from gbpn.network.convolution import ConvNorm, Convolution
from gbpn.network.efficientnet import InvertedBottleneck
from gbpn.network.unit import GatedAttention


def without_operators(monkeypatch: pytest.MonkeyPatch) -> None:
    """A torch whose private operators are gone, as they may be after any release."""
    monkeypatch.setattr(torch.ops, "mkldnn", SimpleNamespace())


def folded(module: nn.Module) -> nn.Module:
    """Random statistics and weights, merged, without gradients, as `Model.merged` does."""
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
    module.requires_grad_(False).to(memory_format=torch.channels_last)  # type: ignore[call-overload]
    return prepared(module, torch.float32)


def prepared(module: nn.Module, dtype: torch.dtype) -> nn.Module:
    for part in module.modules():
        if isinstance(part, ConvNorm | Convolution):
            part.prepare(dtype)
    return module


MODULES = [
    ConvNorm(8, 16, activation=functional.gelu),
    ConvNorm(8, 16, 1),
    ConvNorm(8, 16, stride=2, padding="same", activation=functional.relu6),
    ConvNorm(8, 8, 5, stride=2, groups=8, padding="same", activation=functional.relu6),
    ConvNorm(8, 16, padding="replicate", activation=functional.gelu),
    ConvNorm(8, 16, unshuffled=2, activation=functional.gelu),
    ConvNorm(8, 16, 2, transposed=True),
    Convolution(8, 16, 3),
    ResidualBlock(8),
    InvertedBottleneck(8, 8, 5, 1, 6),
    InvertedBottleneck(8, 12, 3, 2, 6),
    GatedAttention(8, 8, head_channels=4, window=3, dilation=1, drop_path=0.5),
]


@pytest.mark.parametrize("module", MODULES, ids=lambda module: type(module).__name__)
def test_fused_is_plain(module: nn.Module, monkeypatch: pytest.MonkeyPatch) -> None:
    module = folded(module)
    if isinstance(module, GatedAttention):
        nn.init.normal_(module.project.weight)
        module.project.prepare(torch.float32)
    x = torch.randn(2, 8, 12, 14).to(memory_format=torch.channels_last)
    before = x.clone()
    inputs = (x, x) if isinstance(module, GatedAttention) else (x,)
    calls = []
    one_pass = fused.in_one_pass

    def counted(*arguments: Any, **options: Any) -> torch.Tensor | None:
        done = one_pass(*arguments, **options)
        calls.extend([done] if done is not None else [])
        return done

    monkeypatch.setattr(fused, "in_one_pass", counted)
    got = module(*inputs)
    assert got.dtype == torch.float32
    narrow = prepared(module, torch.bfloat16)(*inputs)
    passes = len(calls)
    assert passes
    without_operators(monkeypatch)
    plain = module(*inputs)
    torch.testing.assert_close(got, plain, rtol=1e-5, atol=1e-5)
    assert len(calls) == passes
    assert torch.equal(x, before)
    assert narrow.dtype == torch.bfloat16
    assert 0 < float((narrow.float() - plain).abs().max() / plain.abs().max()) < 0.03
    assert module.state_dict().keys() == {n for n, _ in module.named_parameters()} | {
        n for n, _ in module.named_buffers()
    }


def test_a_sum_goes_with_plain_convolutions_only() -> None:
    x = torch.randn(1, 4, 8, 8)
    conv = fused.prepared(nn.Conv2d(4, 4, 3, padding=1), torch.float32)
    up = fused.prepared(nn.ConvTranspose2d(4, 4, 2, stride=2), torch.float32)
    for layer, activation in ((conv, functional.gelu), (up, None)):
        with pytest.raises(ValueError, match="a sum goes together"):
            fused.in_one_pass(layer, x, activation, add=x)


def test_last_layers_stay_wide() -> None:
    module = Convolution(4, 4, 3, wide=True).requires_grad_(False)
    module.prepare(torch.bfloat16)
    assert module(torch.randn(1, 4, 8, 8).bfloat16()).dtype == torch.float32


def test_precision_is_chosen_for_the_processor_and_the_weights(monkeypatch: pytest.MonkeyPatch) -> None:
    model = build("small", width=0.25)
    for checked in (False, True):
        model.card = {"bfloat16": {}} if checked else {}
        for able in (False, True):
            monkeypatch.setattr("gbpn.model.settling.has_bfloat16", lambda able=able: able)
            assert model.settled(How()).precision == ("bfloat16" if checked and able else "float32")
            if not able:
                with pytest.raises(BackendError, match="computes it itself"):
                    model.settled(How(precision="bfloat16"))
    for name, dtype in (("bfloat16", torch.bfloat16), ("float32", torch.float32)):
        fast = model.prepared(name, "cpu")
        assert fast.first.encoder.stem.layer.weight.dtype == dtype
        assert all(tensor.dtype == torch.float32 for tensor in fast.parameters())
    assert model.first.encoder.stem.layer is None


def test_no_processor_without_the_question(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch, "cpu", SimpleNamespace())
    assert not fused.has_bfloat16()
    monkeypatch.setattr(torch, "cpu", SimpleNamespace(_is_avx512_bf16_supported=lambda: True))
    assert fused.has_bfloat16()
    without_operators(monkeypatch)
    assert not fused.has_bfloat16()


def test_what_does_not_fit_takes_the_plain_way() -> None:
    x = torch.randn(1, 4, 8, 8)
    layer = fused.prepared(nn.Conv2d(4, 4, 3), torch.float32)
    assert fused.in_one_pass(layer, x) is not None
    assert fused.in_one_pass(None, x) is None
    assert fused.in_one_pass(layer, x.clone().requires_grad_()) is None
    with torch.no_grad():
        assert fused.in_one_pass(layer, x.clone().requires_grad_()) is not None
        assert fused.in_one_pass(layer, x.double()) is None
        assert fused.in_one_pass(layer, x, torch.sin) is None
    assert ConvNorm(4, 4).layer is None  # which learns


@pytest.mark.parametrize("left", ["nothing", "default", "binary", "no oneDNN"])
def test_a_torch_without_the_private_operators_takes_the_plain_way(
    left: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    x = torch.randn(1, 4, 8, 8)
    layer = fused.prepared(nn.Conv2d(4, 4, 3), torch.float32)
    assert fused.in_one_pass(layer, x) is not None
    if left == "no oneDNN":
        monkeypatch.setattr(torch.backends.mkldnn, "is_available", lambda: False)
    elif left == "nothing":
        without_operators(monkeypatch)
    else:  # only one of the two forms
        form = SimpleNamespace(**{left: torch.relu})
        monkeypatch.setattr(torch.ops, "mkldnn", SimpleNamespace(_convolution_pointwise=form))
    assert fused.in_one_pass(layer, x) is None


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
        quick = model.prepared("float32", "cpu")(image, sparse)
        narrow = model.prepared("bfloat16", "cpu")(image, sparse)
        off = (narrow.mean - plain.mean).abs() / plain.mean
        assert narrow.mean.dtype == torch.float32
        assert float(off.max()) > 0
        assert float(off.median()) < 1e-2
        without_operators(monkeypatch)
        without = model.prepared("float32", "cpu")(image, sparse)
    for answer in (quick, without):
        off = (answer.mean - plain.mean).abs() / plain.mean
        assert float(off.max()) < 1e-2  # rounding grows where an untrained field is nearly singular
        assert float((off > 1e-4).float().mean()) < 5e-3
        torch.testing.assert_close(answer.confidence_logit, plain.confidence_logit, rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize("conv", [nn.Conv2d(6, 20, 3, padding=1), nn.ConvTranspose2d(6, 20, 2, stride=2)])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_packed_weights_give_the_same_bits_at_any_size(conv: Any, dtype: torch.dtype) -> None:
    layer = fused.prepared(conv.requires_grad_(False), dtype)
    assert layer.packed is not None
    sizes = [(1, 6, 8, 9), (2, 6, 8, 9), (1, 6, 33, 65), (1, 6, 1, 1), (1, 6, 1, 7), (1, 6, 8, 9)]
    threads = torch.get_num_threads()
    try:
        for count in (1, 3):
            torch.set_num_threads(count)
            for size in sizes:
                x = torch.randn(size).to(dtype).to(memory_format=torch.channels_last)
                with torch.inference_mode(size[0] == 1):
                    got, wanted = (
                        fused.in_one_pass(layer, x),
                        fused.in_one_pass(layer._replace(packed=None), x),
                    )
                assert got is not None
                assert wanted is not None
                assert torch.equal(got, wanted)
    finally:
        torch.set_num_threads(threads)
    assert len(layer.packed._by_size) == 4
    assert list(layer.packed._by_size)[-1] == sizes[-1]


def test_packed_weights_are_not_copied_with_a_model() -> None:
    layer = fused.prepared(nn.Conv2d(4, 4, 3), torch.float32)
    x = torch.randn(1, 4, 8, 8)
    assert layer.packed is not None
    assert fused.in_one_pass(layer, x) is not None
    assert layer.packed._by_size
    for twin in (copy.deepcopy(layer), pickle.loads(pickle.dumps(layer))):
        assert not twin.packed._by_size
        torch.testing.assert_close(fused.in_one_pass(twin, x), fused.in_one_pass(layer, x), rtol=0, atol=0)


@pytest.mark.parametrize("left", ["nothing", "an error"])
def test_weights_that_cannot_be_packed_serve_as_they_are(left: str, monkeypatch: pytest.MonkeyPatch) -> None:
    x = torch.randn(1, 4, 8, 8)
    layer = fused.prepared(nn.Conv2d(4, 4, 3), torch.float32)
    wanted = fused.in_one_pass(layer._replace(packed=None), x)

    def refuse(*_: Any) -> None:
        raise RuntimeError("this processor computes no bfloat16")

    packer = {"_reorder_convolution_weight": SimpleNamespace(default=refuse)} if left == "an error" else {}
    operators = torch.ops.mkldnn
    kept = {
        name: getattr(operators, name)
        for name in ("_convolution_pointwise", "_convolution_transpose_pointwise")
    }
    monkeypatch.setattr(torch.ops, "mkldnn", SimpleNamespace(**kept, **packer))
    got = fused.in_one_pass(layer, x)
    assert got is not None
    assert wanted is not None
    assert torch.equal(got, wanted)
    assert layer.packed is not None
    assert layer.packed._by_size[x.shape] is layer.weight
