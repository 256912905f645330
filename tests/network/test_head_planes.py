"""All maps of the heads at once: the compiled form against the plain layers, one after the other."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn

from gbpn.model.models import build
from gbpn.network import head_planes

native = pytest.importorskip("gbpn._native", reason="needs the compiled module gbpn._native")

COUNTS = (9, 4, 1, 15)
SIZES = [(1, 1, 2, 2), (3, 37, 6, 4), (5, 80, 32, 16), (2, 33, 7, 3)]
"""Rows, columns, channels and channels at full resolution."""


def plain(heads: list[nn.ConvTranspose2d], fine: nn.Conv2d, x: Tensor, finer: Tensor) -> Tensor:
    """In double precision, of float32 weights."""
    up = [
        nn.functional.conv_transpose2d(x.double(), head.weight.double(), head.bias.double(), stride=2)
        for head in heads
        if head.bias is not None
    ]
    assert fine.bias is not None
    add = nn.functional.conv2d(finer.double(), fine.weight.double(), fine.bias.double(), padding=1)
    return torch.cat(up, dim=1) + add


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_twins(level: str, size: tuple[int, int, int, int], dtype: torch.dtype) -> None:
    rows, columns, channels, finer_channels = size
    torch.manual_seed(rows)
    heads = [nn.ConvTranspose2d(channels, count, 2, stride=2).requires_grad_(False) for count in COUNTS]
    fine = nn.Conv2d(finer_channels, sum(COUNTS), 3, padding=1).requires_grad_(False)
    x = torch.randn(2, channels, rows, columns).to(dtype)
    finer = torch.randn(2, finer_channels, 2 * rows, 2 * columns).to(dtype)
    x, finer = (maps.to(memory_format=torch.channels_last) for maps in (x, finer))
    old = [torch.randn(2, count, 2 * rows, 2 * columns) for count in (10, sum(COUNTS) - 10)]
    layers = head_planes.last_layers(heads, fine, dtype)
    assert layers is not None
    got = head_planes.drawn(layers, x, finer, add=old)
    if layers.pairs:  # the only further rounding is that of the weights
        for part in (*heads, fine):
            part.weight.copy_(part.weight.bfloat16())
    wanted = plain(heads, fine, x, finer) + torch.cat(old, dim=1).double()
    assert got.dtype == torch.float32
    assert got.is_contiguous()
    torch.testing.assert_close(got.double(), wanted, rtol=0, atol=1e-5)


def test_pairs_need_bfloat16_even_channels_and_the_processor() -> None:
    heads = [nn.ConvTranspose2d(4, 3, 2, stride=2)]
    odd = [nn.ConvTranspose2d(5, 3, 2, stride=2)]
    for given, dtype, pairs in (
        (heads, torch.float32, False),
        (odd, torch.bfloat16, False),
        (heads, torch.bfloat16, native.has_pairs()),
    ):
        layers = head_planes.last_layers(given, None, dtype)
        assert layers is not None
        assert layers.pairs == pairs
    try:
        native.force_simd_level("baseline")
        assert not native.has_pairs()
    finally:
        native.force_simd_level("auto")


def test_same_bits_with_any_number_of_threads() -> None:
    layers = head_planes.last_layers([nn.ConvTranspose2d(8, 9, 2, stride=2)], None, torch.float32)
    assert layers is not None
    x, threads, found = torch.randn(2, 8, 33, 47), torch.get_num_threads(), []
    try:
        for count in (1, 3):
            torch.set_num_threads(count)
            found.append(head_planes.drawn(layers, x))
        assert torch.equal(*found)
    finally:
        torch.set_num_threads(threads)


@pytest.mark.parametrize("kept", [True, False])
def test_what_does_not_fit(kept: bool) -> None:
    x = torch.randn(1, 4, 3, 3)
    heads = [nn.ConvTranspose2d(4, 3, 2, stride=2)]
    layers, narrow = (head_planes.last_layers(heads, None, d) for d in (torch.float32, torch.bfloat16))
    assert layers is not None
    assert narrow is not None
    assert head_planes.fit(layers, "auto", x, x.bfloat16())
    assert head_planes.fit(layers, "cpu", x.bfloat16())
    assert head_planes.fit(narrow, "auto", x.bfloat16())
    assert head_planes.fit(narrow, "auto", x) != narrow.pairs
    assert not head_planes.fit(layers, "reference", x)
    assert not head_planes.fit(layers, "auto", x.double())
    assert not head_planes.fit(layers, "auto", x, x.to("meta"))
    with torch.set_grad_enabled(kept):
        assert head_planes.fit(layers, "auto", x, x.clone().requires_grad_()) != kept


@pytest.mark.parametrize("older", ["nothing compiled", "older kernels"])
def test_without_the_kernel_the_plain_layers_serve(older: str, monkeypatch: pytest.MonkeyPatch) -> None:
    head_planes._built.cache_clear()
    if older == "nothing compiled":
        monkeypatch.setattr(head_planes, "COMPILED", False)
    else:
        monkeypatch.setattr(head_planes, "native", lambda: object())
    try:
        assert head_planes.last_layers([nn.ConvTranspose2d(4, 3, 2, stride=2)], None, torch.float32) is None
    finally:
        head_planes._built.cache_clear()


@pytest.mark.parametrize("name", ["small-prior", "small-2"])
def test_a_model_draws_the_same_either_way(name: str) -> None:
    torch.manual_seed(0)
    model = build(name, width=0.5).eval()
    for part in model.modules():  # last layers that say something
        if isinstance(part, nn.ConvTranspose2d | nn.Conv2d) and not part.weight.any():
            nn.init.normal_(part.weight, std=0.02)
    model = model.prepared("float32", "cpu")
    stages = (model.first.heads, model.second)
    assert all(stage.last_layers is not None for stage in stages)
    image, sparse = torch.rand(2, 3, 64, 96), torch.zeros(2, 1, 64, 96)
    sparse[..., ::9, ::7] = 2.0 + torch.rand(2, 1, 8, 14)
    with torch.no_grad():
        quick = model(image, sparse).mean
        for stage in stages:
            stage.backend = "reference"
        slow = model(image, sparse).mean
    off = (quick - slow).abs() / slow
    assert float((off > 1e-4).float().mean()) < 5e-3
    assert float(off.max()) < 1e-2  # rounding grows where an untrained field is nearly singular
