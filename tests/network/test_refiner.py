"""What the narrow second stage sees, and that it uses it."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

import gbpn
from gbpn.model.pipeline import SparseDepth
from gbpn.network import SecondStageInput
from gbpn.network.refiner import CUES, STEP, cues

HEIGHT, WIDTH = 8, 10
CAMERA = torch.tensor([[[10.0, 0, 4.5], [0, 10.0, 3.5], [0, 0, 1]]])


def seen(depth: Tensor, measured: Tensor) -> Tensor:
    image = torch.zeros(1, 3, HEIGHT, WIDTH)
    return cues(SecondStageInput(image, CAMERA, depth, torch.ones(1, 1, HEIGHT, WIDTH), measured))


def test_steps_of_depth_are_relative() -> None:
    depth = torch.full((1, 1, HEIGHT, WIDTH), 2.0)
    depth[..., 5:] *= 1 + STEP
    nothing = torch.zeros_like(depth)
    maps = seen(depth, nothing)
    assert maps.shape == (1, CUES, HEIGHT, WIDTH)
    to_the_right, below = maps[0, 9], maps[0, 10]
    torch.testing.assert_close(to_the_right[:, 4], torch.full((HEIGHT,), 0.5))
    assert not to_the_right[:, :4].any()
    assert not below[:-1].any()
    torch.testing.assert_close(seen(7 * depth, nothing)[:, 7:], maps[:, 7:])


def test_a_measurement_shows_how_far_it_lies_off() -> None:
    depth = torch.full((1, 1, HEIGHT, WIDTH), 2.0)
    measured = torch.zeros_like(depth)
    measured[..., 3, 3], measured[..., 4, 6] = 2.0, 2.0 * (1 - STEP)
    there, off = seen(depth, measured)[0, 7:9]
    assert there.nonzero().tolist() == [[3, 3], [4, 6]]
    torch.testing.assert_close(off[4, 6], torch.tensor(-0.5))
    assert off.count_nonzero() == 1


def test_nothing_found_yet_is_finite() -> None:
    nothing = torch.zeros(1, 1, HEIGHT, WIDTH)
    assert seen(nothing, nothing).isfinite().all()


def test_the_second_drawing_depends_on_single_measurements() -> None:
    torch.manual_seed(0)
    model: Any = gbpn.build("small-2", width=0.25).eval()
    torch.nn.init.normal_(model.second.last.weight)
    image, sparse = torch.rand(1, 3, 64, 64), torch.full((1, 1, 64, 64), 2.0)
    wrong = sparse.clone()
    wrong[..., 30, 31] = 4.0
    with torch.inference_mode():
        pipeline = model.pipeline()
        encoding = pipeline.encode(image)
        *_, one = pipeline.stages(encoding, SparseDepth(depth=sparse))
        *_, two = pipeline.stages(encoding, SparseDepth(depth=wrong))
    change = (one.parameters.unary - two.parameters.unary).abs()[0, 0]
    assert change[30, 31] > 0
    assert change[30, 31] > 10 * change[0, 0]


def test_a_second_stage_without_a_lattice_starts_as_the_first_one_and_learns() -> None:
    torch.manual_seed(0)
    model: Any = gbpn.build("small-smooth", width=0.25).eval()
    image, sparse = torch.rand(1, 3, 64, 64), torch.zeros(1, 1, 64, 64)
    sparse[..., ::9, ::7] = 2.0
    pipeline = model.pipeline()
    with torch.inference_mode():
        first, second = pipeline.stages(pipeline.encode(image), SparseDepth(depth=sparse))
    for name, maps in first.parameters.maps.by_name().items():
        assert torch.equal(second.parameters.maps.by_name()[name], maps)
    model.train()
    model(image, sparse).mean.square().mean().backward()
    assert model.second.last.weight.grad.any()
    assert model.second.detail.last.weight.grad.any()
