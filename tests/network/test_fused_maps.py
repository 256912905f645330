"""Maps of a field in one pass: the compiled forms against the plain ones, in double precision."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest
import torch
from torch import Tensor

from gbpn.config import named
from gbpn.mrf import SYMMETRIC_RING
from gbpn.network import fused_maps
from gbpn.network.density import DensityResponse
from gbpn.network.field_parameters import ChannelLayout, FieldParameters, HeadMaps
from gbpn.network.iteration_corrections import IterationCorrections
from gbpn.network.refiner import cues
from gbpn.network.stage_inputs import SecondStageInput

native = pytest.importorskip("gbpn._native", reason="needs the compiled module gbpn._native")

SIZES = [(8, 8), (24, 40), (16, 104)]
CLOSE = {"rtol": 5e-6, "atol": 1e-6}
"""Places of far ends are rounded in float32, so steps to them differ by a little of their own size."""


def layout(learned: int) -> ChannelLayout:
    return replace(ChannelLayout.of(named("small-prior"), 0), nonlocal_edges=learned)


def head_maps(learned: int, height: int, width: int) -> tuple[HeadMaps, Tensor]:
    """Raw maps of a wide range, and an image."""
    torch.manual_seed(height * width + learned)
    batch = 2
    maps = {
        name: 8 * torch.randn(batch, count, height, width) for name, count in layout(learned).channels.items()
    }
    return HeadMaps(**maps), torch.rand(batch, 3, height, width)


def wide(maps: HeadMaps) -> HeadMaps:
    return HeadMaps(**{name: x.double() for name, x in maps.by_name().items()})


def both(step: Callable[[FieldParameters], FieldParameters], given: FieldParameters) -> None:
    """A step in float32, which is compiled, against the same in float64, which is not."""
    edges = (given.local, given.nonlocal_)
    double = [None if e is None else replace(e, **{n: x.double() for n, x in vars(e).items()}) for e in edges]
    prior = None if given.prior is None else given.prior.double()
    plain = replace(given, unary=given.unary.double(), local=double[0], nonlocal_=double[1], prior=prior)
    with torch.no_grad():
        same(step(given), step(plain))


def same(got: FieldParameters, wanted: FieldParameters, close: dict[str, float] = CLOSE) -> None:
    assert got.unary.dtype == torch.float32
    pairs = [(got.unary, wanted.unary)]
    for fast, plain in ((got.local, wanted.local), (got.nonlocal_, wanted.nonlocal_)):
        if plain is not None:
            pairs += [(getattr(fast, name), x) for name, x in vars(plain).items()]
    for fast, plain in pairs:
        torch.testing.assert_close(fast.double(), plain.double(), **close)


def counted(monkeypatch: pytest.MonkeyPatch, name: str) -> list[object]:
    """What the compiled form gave, each time it was asked."""
    given: list[object] = []
    fused = getattr(fused_maps, name)

    def count(*arguments: object, **options: object) -> object:
        given.append(fused(*arguments, **options))
        return given[-1]

    monkeypatch.setattr(fused_maps, name, count)
    return given


@pytest.mark.parametrize("size", [*SIZES, (1, 1), (3, 37)])
@pytest.mark.parametrize("learned", [0, 3])
def test_read(level: str, size: tuple[int, int], learned: int, monkeypatch: pytest.MonkeyPatch) -> None:
    given = counted(monkeypatch, "read")
    maps, image = head_maps(learned, *size)
    with torch.no_grad():
        tiny = {"rtol": 5e-6, "atol": 1e-13}  # weak edges too
        same(layout(learned).read(maps, image), layout(learned).read(wide(maps), image), tiny)
    assert [x is not None for x in given] == [True, False]


def drawn(learned: int, height: int, width: int) -> FieldParameters:
    maps, image = head_maps(learned, height, width)
    quiet = HeadMaps(**{name: x / 8 for name, x in maps.by_name().items()})
    assert quiet.prior is not None
    return layout(learned).read(quiet._replace(offset=maps.offset), image)


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("learned", [0, 3])
def test_corrected(level: str, size: tuple[int, int], learned: int, monkeypatch: pytest.MonkeyPatch) -> None:
    given = counted(monkeypatch, "corrected")
    part = IterationCorrections(6, 4, learned)
    features = 3 * torch.randn(2, 6, size[0] // 4, size[1] // 4).to(memory_format=torch.channels_last)
    both(lambda parameters: parameters.corrected(part, features), drawn(learned, *size))
    assert [x is not None for x in given] == [True, False]


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("learned", [0, 3])
def test_responding(level: str, size: tuple[int, int], learned: int, monkeypatch: pytest.MonkeyPatch) -> None:
    given = counted(monkeypatch, "responding")
    response = DensityResponse(4)
    for parameter in response.parameters():
        torch.nn.init.normal_(parameter, std=0.1)
    measured = torch.rand(2, 1, *size) < 0.1
    parameters = replace(drawn(learned, *size), responses=(response,))
    both(lambda one: one.responding(measured), parameters)
    assert [x is not None for x in given] == [True, False]


def test_gradients_take_the_plain_way(monkeypatch: pytest.MonkeyPatch) -> None:
    given = [counted(monkeypatch, name) for name in ("read", "corrected", "responding")]
    maps, image = head_maps(3, 16, 24)
    part, response, features = IterationCorrections(6, 2, 3), DensityResponse(4), torch.randn(2, 6, 4, 6)
    maps.weight.requires_grad_()
    parameters = replace(layout(3).read(maps, image).corrected(part, features), responses=(response,))
    made = parameters.responding(torch.rand(2, 1, 16, 24) < 0.1)
    assert made.nonlocal_ is not None
    (made.local.damping.sum() + made.nonlocal_.weight.sum()).backward()
    assert [calls == [None] for calls in given] == [True] * 3
    assert maps.weight.grad is not None
    assert maps.weight.grad.any()
    assert part.last.weight.grad is not None
    assert part.last.weight.grad.any()
    assert response.constant.grad is not None
    assert response.constant.grad.any()


@pytest.mark.parametrize("size", [(1, 1), (1, 7), (33, 65), (24, 40)])
def test_cues(level: str, size: tuple[int, int], monkeypatch: pytest.MonkeyPatch) -> None:
    given = counted(monkeypatch, "cues")
    torch.manual_seed(sum(size))
    one = (2, 1, *size)
    seen = SecondStageInput(
        image=torch.randn(2, 3, *size),
        intrinsics=torch.tensor([[50.0, 0.0, 3.0], [0.0, 60.0, 2.0], [0.0, 0.0, 1.0]]).repeat(2, 1, 1),
        depth=torch.randn(one).exp() * (torch.rand(one) < 0.9),
        confidence=torch.rand(one),
        measured=torch.randn(one).exp() * (torch.rand(one) < 0.3),
    )
    found, wanted = cues(seen), cues(SecondStageInput(*(x.double() for x in seen)))
    assert found.is_contiguous(memory_format=torch.channels_last)
    torch.testing.assert_close(found.double(), wanted, **CLOSE)
    assert [x is not None for x in given] == [True, False]


def test_same_bits_with_any_number_of_threads(with_threads) -> None:
    maps, image = head_maps(3, 40, 48)
    alone, three = (with_threads(n, lambda: layout(3).read(maps, image).local.weight) for n in (1, 3))
    assert torch.equal(three, alone)


def windows(x: Tensor | None) -> list[Tensor | None]:
    """The same maps as parts of larger ones: rows that are further apart, columns that are not neighbours."""
    if x is None:
        return [None, None, None]
    height, width = x.shape[-2:]
    wider, taller, finer = (
        x.new_full((*x.shape[:-2], *size), torch.nan)
        for size in ((height, width + 5), (height + 3, width), (height, 2 * width))
    )
    views = [wider[..., 2 : 2 + width], taller[..., 1 : 1 + height, :], finer[..., ::2]]
    for view in views:
        view.copy_(x)
    return list(views)


@pytest.mark.parametrize("which", [0, 1, 2])
@torch.no_grad()
def test_windows_into_larger_maps_are_read_as_they_are(which: int) -> None:
    maps, image = head_maps(3, 16, 24)
    part = HeadMaps(*(windows(x)[which] for x in maps))
    seen = windows(image)[which]
    assert seen is not None
    wanted, got = layout(3).read(maps, image), layout(3).read(part, seen)
    same(got, wanted, {"rtol": 0, "atol": 0})

    def windowed(given: FieldParameters) -> FieldParameters:
        assert given.nonlocal_ is not None
        local, far = (
            replace(edges, **{name: windows(x)[which] for name, x in vars(edges).items()})
            for edges in (given.local, given.nonlocal_)
        )
        unary, prior = windows(given.unary)[which], windows(given.prior)[which]
        assert unary is not None
        return replace(given, unary=unary, prior=prior, local=local, nonlocal_=far)

    torch.manual_seed(1)
    corrections, features = IterationCorrections(6, 4, 3), torch.randn(2, 6, 4, 6)
    same(
        windowed(wanted).corrected(corrections, features),
        wanted.corrected(corrections, features),
        {"rtol": 0, "atol": 0},
    )
    answering = replace(wanted, responses=(DensityResponse(4),))
    measured = torch.rand(2, 1, 16, 24) < 0.1
    same(windowed(answering).responding(measured), answering.responding(measured), {"rtol": 0, "atol": 0})


def test_what_is_no_number_stays_none() -> None:
    maps, image = head_maps(0, 8, 40)
    for at in (3, 39):  # in a whole pack, and in the rest of a row
        maps.weight[0, 2, 1, at] = torch.nan
        maps.damping[0, 0, 2, at] = torch.nan
    read = layout(0).read(maps, image)
    for at in (3, 39):
        assert read.local.weight[0, 0, 0, 1, at].isnan()
        assert read.local.damping[0, 0, 2, at].isnan()
    assert int(read.local.weight.isnan().sum()) == 2


def test_neighbours_are_those_of_python() -> None:
    assert layout(0).neighbour_of == SYMMETRIC_RING
    assert native.UNDIRECTED_RING == SYMMETRIC_RING
