"""Images that are completed at a reduced size: every map of the answer comes back to its place."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from gbpn import DepthCompleter, build
from gbpn.distribution import DepthDistribution
from gbpn.engine import resizing
from gbpn.errors import InputError
from gbpn.inputs.frame import FrameInputs
from gbpn.model.pipeline import Pipeline
from gbpn.network.field_parameters import FieldParameters


def answer(height: int, width: int) -> DepthDistribution:
    ramp = torch.linspace(1, 3, width).expand(1, 1, height, width).clone()
    return DepthDistribution(mean=ramp, confidence_logit=ramp / 2, belief_precision=4 * ramp)


def test_only_what_is_too_large_is_reduced() -> None:
    assert resizing.reduction(1024, 2048) == 1.0
    assert resizing.reduction(2048, 4096) == 0.5
    assert resizing.reduction(3000, 3000) == pytest.approx(math.sqrt(resizing.MOST_PIXELS) / 3000)


def test_the_working_size_goes_with_focal_length_and_density() -> None:
    def scale(height: int, width: int, focal: float, count: int) -> float:
        return resizing.working_scale(height, width, focal, count, trained=260)

    assert scale(228, 304, 260, 500) == 1.0  # as trained
    assert scale(456, 608, 520, 500) == pytest.approx(0.6)
    assert scale(114, 152, 130, 500) == pytest.approx(2.0)
    assert scale(228, 304, 260, 1) == scale(228, 304, 260, 30) == 1.0
    assert scale(456, 608, 520, 1) == scale(456, 608, 520, 30) == pytest.approx(0.5)
    assert scale(114, 152, 130, 1) == pytest.approx(2.0)
    assert scale(456, 608, 520, 20000) == 1.0  # every measurement wants a pixel
    for count in (1, 30, 500, 3000):  # one scene, one working size, whatever size it comes in
        sizes = [side * scale(side, side * 2, focal, count) for side, focal in ((400, 520), (800, 1040))]
        assert sizes[0] == pytest.approx(sizes[1], rel=1e-9) or scale(400, 800, 520, count) == 1.0
    assert scale(2000, 3000, 9000, 1) * 2000 == pytest.approx(114)  # no side is reduced below that
    assert scale(100, 3000, 9000, 1) == 1.0
    assert scale(6000, 8000, 260, 500) == resizing.reduction(6000, 8000)  # memory has the last word


def test_a_completer_works_at_the_size_that_its_weights_ask_for() -> None:
    model = build("small", width=0.25)
    image, sparse = torch.rand(3, 228, 304), torch.zeros(1, 228, 304)
    sparse[0, 100, 120] = 2.0
    camera = (520.0, 520.0, 152.0, 114.0)
    plain = DepthCompleter(model)(image, sparse, camera)
    model.card = {"trained_for": {"focal": 260.0}}
    completer = DepthCompleter(model)
    seen: list[tuple[int, ...]] = []
    pipeline = completer.engine.answering
    assert isinstance(pipeline, Pipeline)
    original = pipeline.first.draw

    def noting(image: torch.Tensor, intrinsics: torch.Tensor) -> FieldParameters:
        seen.append(tuple(image.shape[2:]))
        return original(image, intrinsics)

    pipeline.first.draw = noting
    assert completer(image, sparse, camera).depth.shape == plain.depth.shape == (228, 304)
    assert seen == [(128, 160)]  # 114×152, padded
    own = DepthCompleter(model, working_size="own")(image, sparse, camera)
    assert np.array_equal(own.depth, plain.depth)
    with pytest.raises(InputError, match="auto or own"):
        DepthCompleter(model, working_size="half")


def test_a_dropped_measurement_is_marked_where_it_was() -> None:
    small = answer(6, 8)
    dropped = torch.zeros(1, 1, 6, 8, dtype=torch.bool)
    dropped[0, 0, 2, 5] = True
    large = resizing.enlarge(replace(small, dropped=dropped), 12, 16).dropped
    assert large is not None
    assert torch.nonzero(large[0, 0]).tolist() == [[4, 10], [4, 11], [5, 10], [5, 11]]
    assert resizing.enlarge(small, 12, 16).dropped is None
    less = resizing.enlarge(replace(small, dropped=dropped), 3, 4).dropped
    assert less is not None
    assert torch.nonzero(less[0, 0]).tolist() == [[1, 2]]


def test_what_was_not_observed_stays_so_and_all_else_is_interpolated() -> None:
    small = answer(6, 8)
    small.mean[0, 0, :, 0] = torch.nan
    large = resizing.enlarge(small, 12, 16)
    assert large.mean.shape == (1, 1, 12, 16)
    unknown = ~torch.isfinite(large.mean[0, 0])
    assert unknown[:, 0].all()
    assert not unknown[:, 4:].any()
    assert not large.belief_precision[0, 0][unknown].any()
    step = (large.mean[0, 0, 3, 6] - large.mean[0, 0, 3, 5]).item()
    assert step == pytest.approx(2 / 7 / 2, rel=1e-4)  # half a small pixel
    torch.testing.assert_close(large.confidence_logit[..., 4:] * 2, large.mean[..., 4:])


def test_measurements_and_camera_move_with_the_image() -> None:
    image, sparse = torch.rand(3, 40, 60), torch.zeros(1, 40, 60)
    sparse[0, 10, 21], sparse[0, 11, 20] = 2.0, 5.0  # one pixel at half the size: the nearer wins
    camera = torch.tensor([[50.0, 0, 29.5], [0, 50, 19.5], [0, 0, 1]])
    small, points, moved = resizing.reduce(image, sparse, camera, 0.5)
    assert small.shape == (3, 20, 30)
    assert torch.nonzero(points[0]).tolist() == [[5, 10]]
    assert float(points[0, 5, 10]) == 2.0
    torch.testing.assert_close(moved, torch.tensor([[25.0, 0, 14.5], [0, 25, 9.5], [0, 0, 1]]))


def test_sigma_and_weight_go_with_the_measurement_that_stays() -> None:
    rng = np.random.default_rng(0)
    sparse = torch.from_numpy(
        np.where(rng.random((1, 40, 60)) < 0.3, rng.uniform(1, 9, (1, 40, 60)), 0)
    ).float()
    camera = torch.tensor([[50.0, 0, 29.5], [0, 50, 19.5], [0, 0, 1]])
    inputs = FrameInputs(
        image=torch.rand(3, 40, 60), sparse=sparse, intrinsics=camera, std=sparse / 10, weight=sparse / 20
    )
    small = resizing.reduced(inputs, 0.37)
    assert small.size == (14, 22)
    assert int((small.sparse > 0).sum()) > 200
    torch.testing.assert_close(small.std, small.sparse / 10)
    torch.testing.assert_close(small.weight, small.sparse / 20)
    assert small.notices == ()
    plain = resizing.reduced(replace(inputs, std=None, weight=None), 0.37)
    assert (plain.std, plain.weight) == (None, None)
    torch.testing.assert_close(plain.sparse, small.sparse)


@given(st.integers(20, 70), st.integers(20, 70), st.floats(0.3, 3.0), st.integers(0, 69), st.integers(0, 69))
def test_a_measurement_keeps_its_ray_to_within_a_pixel_of_its_new_place(
    height: int, width: int, factor: float, row: int, column: int
) -> None:
    """At sizes that the factor does not meet exactly too, where both axes shrink by unlike amounts."""
    row, column = row % height, column % width
    sparse = torch.zeros(1, height, width)
    sparse[0, row, column] = 2.5
    camera = torch.tensor([[60.0, 0, 21.3], [0, 55.0, 17.9], [0, 0, 1]])
    small, points, moved = resizing.reduce(torch.rand(3, height, width), sparse, camera, factor)
    assert tuple(small.shape[1:]) == (int(height * factor), int(width * factor))
    assert points.shape[1:] == small.shape[1:]
    ((y, x),) = torch.nonzero(points[0]).tolist()
    assert float(points[0, y, x]) == 2.5
    ray = torch.tensor([(column - 21.3) / 60, (row - 17.9) / 55, 1.0])
    seen = moved @ ray
    assert abs(float(seen[0]) - x) <= 0.5 + 1e-3 or x in (0, small.shape[2] - 1)
    assert abs(float(seen[1]) - y) <= 0.5 + 1e-3 or y in (0, small.shape[1] - 1)
    # corners of the picture, half a pixel beyond the outermost centres, stay corners
    for size, before, axis in ((small.shape[2], width, 0), (small.shape[1], height, 1)):
        for end, wanted in ((-0.5, -0.5), (before - 0.5, size - 0.5)):
            share = (end - camera[axis, 2]) / camera[axis, axis]
            assert float(moved[axis, axis] * share + moved[axis, 2]) == pytest.approx(wanted, abs=1e-3)


@given(st.integers(60, 3000), st.integers(60, 3000), st.floats(50, 9000), st.integers(1, 100_000))
def test_a_working_size_is_never_without_reason(height: int, width: int, focal: float, count: int) -> None:
    trained = 260.0
    scale = resizing.working_scale(height, width, focal, count, trained)
    assert scale * scale * height * width <= resizing.MOST_PIXELS * (1 + 1e-9)
    if scale > 1:  # enlarged: to the focal length of training or the usual size, whichever comes first
        assert scale <= trained / focal * (1 + 1e-9)
        assert scale * scale * height * width <= 228 * 304 * (1 + 1e-9)
        assert scale >= 1.18
    elif scale < 1:  # reduced: never below the focal length of training nor the shortest side, but for memory
        memory = resizing.reduction(height, width)
        assert scale == pytest.approx(memory) or (
            scale <= 0.85
            and scale >= trained / focal * (1 - 1e-9)
            and scale * min(height, width) >= 114 - 1e-6
        )
    more = resizing.working_scale(height, width, focal, 2 * count, trained)
    assert more >= min(scale, 1.0) - 1e-9  # more measurements never want fewer pixels
    turned = resizing.working_scale(width, height, focal, count, trained)
    assert turned == pytest.approx(scale)
