"""Channels of the heads: the released table, and what a start means."""

from __future__ import annotations

import pytest
import torch

from gbpn import LocalEdges, SymmetricEdges
from gbpn.config import Start, named
from gbpn.network import ChannelLayout, HeadMaps


def test_channels_of_the_released_heads() -> None:
    config = named("gbpn-2")
    assert list(ChannelLayout.of(config, 0).channels.values()) == [77, 75, 10, 30]
    assert list(ChannelLayout.of(config, 1).channels.values()) == [122, 120, 16, 48]


def maps_of(layout: ChannelLayout, size: tuple[int, int] = (3, 4)) -> HeadMaps:
    """Every channel holds its own index."""
    counts = layout.channels

    def ramp(name: str) -> torch.Tensor:
        return torch.arange(counts[name], dtype=torch.float32).view(1, -1, 1, 1).expand(1, -1, *size)

    return HeadMaps(ramp("weight"), ramp("difference"), ramp("damping"), ramp("offset"))


def test_released_channel_order() -> None:
    """Pairwise channels of iteration t start at 15t, in five groups of three; offsets are (rows, columns)."""
    layout = ChannelLayout.of(named("gbpn-1"), 0)
    drawing = layout.read(maps_of(layout))
    t, direction, sender, k = 3, 2, 1, 2
    pixel = (0, 0)
    assert drawing.local.difference[0, t, direction, sender][pixel] == 15 * t + 3 * direction + sender
    assert drawing.nonlocal_.difference[0, t, k][pixel] == 15 * t + 12 + k
    assert drawing.nonlocal_.offset[0, t, k, 0][pixel] == 6 * t + 2 * k
    assert drawing.nonlocal_.offset[0, t, k, 1][pixel] == 6 * t + 2 * k + 1
    weight = torch.nn.functional.softplus(torch.tensor(2.0 + 15 * t + 3 * direction + sender))
    torch.testing.assert_close(drawing.local.weight[0, t, direction, sender][pixel], weight)
    torch.testing.assert_close(drawing.local.damping[0, t][pixel], torch.tensor(2.0 * t).sigmoid())
    torch.testing.assert_close(drawing.nonlocal_.damping[0, t][pixel], torch.tensor(2.0 * t + 1).sigmoid())
    assert drawing.residual[0, 0][pixel] == 1


@pytest.mark.parametrize("edges", ["directed", "symmetric"])
@pytest.mark.parametrize("neighbours", [4, 8])
@pytest.mark.parametrize("nonlocal_edges", [0, 3])
@pytest.mark.parametrize("relative", [False, True])
def test_a_start_is_what_the_field_says(
    edges: str, neighbours: int, nonlocal_edges: int, relative: bool
) -> None:
    start = Start(weight=8, diagonal=1.5, nonlocal_=2.5, unary=4, damping=0.6, residual=-3, difference=0.1)
    layout = ChannelLayout(
        sets=2,
        edges=edges,
        neighbours=neighbours,
        nonlocal_edges=nonlocal_edges,
        unit=start if relative else None,
    )
    maps = {name: bias.view(1, -1, 1, 1).expand(1, -1, 5, 6) for name, bias in layout.biases(start).items()}
    drawing = layout.read(HeadMaps(maps["weight"], maps["difference"], maps["damping"], maps.get("offset")))
    sparse = torch.ones(1, 1, 5, 6)
    field = drawing.field(sparse, sparse > 0)
    field.check()
    assert field.iterations == 2
    local = field.local.directed()
    assert isinstance(drawing.local, LocalEdges if edges == "directed" else SymmetricEdges)
    middle = local.weight[0, 0, :, :, 2, 3]  # [4, E]: a pixel with all its neighbours
    wanted = torch.tensor([1.5, 8, 1.5] if neighbours == 8 else [8.0]).expand(4, -1)
    torch.testing.assert_close(middle, wanted)
    torch.testing.assert_close(local.damping, torch.full_like(local.damping, 0.6))
    torch.testing.assert_close(field.weight, torch.full_like(field.weight, 4.0))
    assert float(drawing.residual.mean()) == -3
    if nonlocal_edges:
        torch.testing.assert_close(field.nonlocal_.weight, torch.full_like(field.nonlocal_.weight, 2.5))


def test_a_start_may_differ_from_the_unit_of_the_heads() -> None:
    """Weights that go on training in other units begin where they are told."""
    unit = Start(weight=2, diagonal=0.7, nonlocal_=5, unary=50, difference=0.02)
    layout = ChannelLayout(sets=1, edges="symmetric", neighbours=8, nonlocal_edges=2, unit=unit)
    start = Start(weight=8, diagonal=1.5, nonlocal_=2.5, unary=4)
    maps = {name: bias.view(1, -1, 1, 1).expand(1, -1, 5, 6) for name, bias in layout.biases(start).items()}
    drawing = layout.read(HeadMaps(maps["weight"], maps["difference"], maps["damping"], maps["offset"]))
    torch.testing.assert_close(drawing.unary, torch.full_like(drawing.unary, 4.0))
    torch.testing.assert_close(drawing.local.weight[0, 0, :, 2, 3], torch.tensor([8, 8, 1.5, 1.5]))
    torch.testing.assert_close(drawing.nonlocal_.weight, torch.full_like(drawing.nonlocal_.weight, 2.5))


def test_the_released_start_is_exactly_zero() -> None:
    for bias in ChannelLayout.of(named("gbpn-2"), 1).biases(Start()).values():
        assert not bias.any()


def test_relative_heads_speak_in_multiples_of_the_start() -> None:
    """The same output means a weak axial edge and a strong measurement, each for its own kind."""
    start = Start(weight=8, diagonal=1.5, unary=300, difference=0.02)
    layout = ChannelLayout(sets=1, edges="symmetric", neighbours=8, nonlocal_edges=0, unit=start)
    maps = {name: torch.full((1, count, 5, 6), 2.0) for name, count in layout.channels.items()}
    drawing = layout.read(HeadMaps(maps["weight"], maps["difference"], maps["damping"], None))
    said = torch.nn.functional.softplus(torch.tensor(2.0))
    torch.testing.assert_close(drawing.unary, (300 * said).expand_as(drawing.unary))
    weight = drawing.local.weight[0, 0, :, 2, 3]
    torch.testing.assert_close(weight, said * torch.tensor([8, 8, 1.5, 1.5]))
    torch.testing.assert_close(drawing.local.difference, torch.full_like(drawing.local.difference, 0.04))
    assert float(drawing.residual.mean()) == 2.0  # a logit, not a precision


@pytest.mark.parametrize("edges", ["directed", "symmetric"])
@pytest.mark.parametrize("neighbours", [4, 8])
def test_edges_across_a_colour_step_are_weak_and_others_are_not(edges: str, neighbours: int) -> None:
    start = Start(weight=8, diagonal=8)
    layout = ChannelLayout(sets=1, edges=edges, neighbours=neighbours, nonlocal_edges=0, contrast=1.0)
    maps = {name: bias.view(1, -1, 1, 1).expand(1, -1, 5, 6) for name, bias in layout.biases(start).items()}
    image = torch.zeros(1, 3, 5, 6)
    image[..., 3:] = 9.0  # columns 3 to 5 are of another colour
    local = layout.read(HeadMaps(**maps), image).local.directed()
    left_right, top_bottom = local.weight[0, 0, 0], local.weight[0, 0, 1]  # [E, H, W] each
    middle = 1 if neighbours == 8 else 0
    torch.testing.assert_close(left_right[:, 2, 3], torch.full_like(left_right[:, 2, 3], 0.08))  # FAINTEST
    torch.testing.assert_close(left_right[:, 2, 2], torch.full_like(left_right[:, 2, 2], 8.0))
    torch.testing.assert_close(top_bottom[middle, 2, 3], torch.tensor(8.0))


def test_a_contrast_of_nothing_leaves_every_edge() -> None:
    layout = ChannelLayout(sets=1, edges="symmetric", neighbours=8, nonlocal_edges=0, contrast=1.0)
    maps = {name: torch.zeros(1, count, 5, 6) for name, count in layout.channels.items()}
    maps["contrast"] = torch.full_like(maps["contrast"], -100.0)
    image = torch.rand(1, 3, 5, 6, generator=torch.Generator().manual_seed(0))
    plain = layout.read(HeadMaps(maps["weight"], maps["difference"], maps["damping"]))
    assert torch.equal(layout.read(HeadMaps(**maps), image).local.weight, plain.local.weight)
