"""The heads: shapes, the start, and the correction from the image's own pixels."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor

from gbpn.config import ModelConfig, named
from gbpn.network import ChannelLayout
from gbpn.network.heads import Heads

KINDS = pytest.mark.parametrize("kind", ["released", "light", "trunk", "smooth"])
CHANNELS = 12
"""Of the features; the heads are of another width, so that one cannot stand for the other."""


def made(kind: str, detail: int, **changes: Any) -> tuple[Heads, ChannelLayout, ModelConfig]:
    if kind == "smooth":
        kind, changes = "trunk", {"upsampling": "smooth", **changes}
    options = {"heads": kind, "head_width": 8, "detail": detail, "prior": True, "contrast": 1.0, **changes}
    config = named("small").overridden(options)
    layout = ChannelLayout.of(config, 0)
    torch.manual_seed(3)
    return Heads(config, CHANNELS, layout).eval(), layout, config


def seen() -> tuple[Tensor, Tensor]:
    """Features [2, C, 8, 6] and image [2, 3, 16, 12]."""
    draw = torch.Generator().manual_seed(5)
    return torch.randn(2, CHANNELS, 8, 6, generator=draw), torch.randn(2, 3, 16, 12, generator=draw)


@KINDS
@pytest.mark.parametrize("detail", [0, 4])
@torch.no_grad()
def test_before_training_heads_say_the_start_whatever_they_see(kind: str, detail: int) -> None:
    heads, layout, config = made(kind, detail)
    said = heads(*seen()).by_name()
    starts = layout.biases(config.start)
    assert list(said) == list(layout.channels) == list(starts)
    for name, maps in said.items():
        assert maps.shape == (2, layout.channels[name], 16, 12), name
        torch.testing.assert_close(maps, starts[name].view(1, -1, 1, 1).expand_as(maps), rtol=0, atol=0)


@KINDS
@torch.no_grad()
def test_detail_adds_what_it_says_to_each_map_and_starts_with_nothing(kind: str) -> None:
    """Every head trained a little: the start would hide what is added to what."""
    heads, layout, _ = made(kind, 4)
    for name in layout.channels:
        torch.nn.init.normal_(getattr(heads, name)[-1].weight)
    features, image = seen()
    plain = heads(features, image).by_name()
    assert heads.detail is not None
    torch.nn.init.normal_(heads.detail.last.weight)
    corrections = heads.detail(heads.trunk(features), image)
    for (name, maps), fine in zip(heads(features, image).by_name().items(), corrections, strict=True):
        torch.testing.assert_close(maps - plain[name], fine, rtol=1e-4, atol=1e-4)
        assert bool((fine != 0).any()), name


@KINDS
@torch.no_grad()
def test_a_pixel_of_the_image_moves_maps_around_it_only(kind: str) -> None:
    heads, _, _ = made(kind, 4)
    assert heads.detail is not None
    torch.nn.init.normal_(heads.detail.last.weight)
    features, image = seen()
    changed = image.clone()
    changed[0, :, 9, 3] += 1
    for before, after in zip(heads(features, image), heads(features, changed), strict=True):
        if before is None or after is None:
            continue
        rows, columns = torch.nonzero((before != after).any(dim=1)[0], as_tuple=True)
        assert not bool((before != after)[1].any())  # the other image of the batch
        reach = 3  # look, mix, last: one pixel each
        assert len(rows) > 0
        assert int((rows - 9).abs().max()) <= reach >= int((columns - 3).abs().max())


@torch.no_grad()
def test_smooth_heads_leave_no_lattice() -> None:
    """Where features and colours are the same everywhere, so is every map, with any weights."""
    heads, layout, _ = made("smooth", 4)
    for name in layout.channels:
        torch.nn.init.normal_(getattr(heads, name)[-1].weight)
    assert heads.detail is not None
    torch.nn.init.normal_(heads.detail.last.weight)
    features, image = torch.ones(1, CHANNELS, 24, 24), torch.ones(1, 3, 48, 48)
    for name, maps in heads(features, image).by_name().items():
        inner = maps[..., 12:-12, 12:-12]  # zeros around the picture are seen near its border
        torch.testing.assert_close(inner, inner[..., :1, :1].expand_as(inner), msg=name)
    taps, _, _ = made("trunk", 0)
    torch.nn.init.normal_(taps.weight[-1].weight)
    lattice = taps(features, image).weight[..., 12:-12, 12:-12]
    assert lattice.std() > 0.1
