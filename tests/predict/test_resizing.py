"""Images that are completed at a reduced size: every map of the answer comes back to its place."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
import torch

from gbpn import DepthCompleter, build
from gbpn.distribution import DepthDistribution
from gbpn.errors import InputError
from gbpn.predict import resizing
from gbpn.predict.inputs import FrameInputs


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
    model = build("small", width=0.25).eval()
    seen: list[tuple[int, ...]] = []
    completer = DepthCompleter(model)
    original = completer._of_model

    def noting(inputs: FrameInputs, sigmas: bool) -> DepthDistribution:
        seen.append(inputs.size)
        return original(inputs, sigmas)

    completer._of_model = noting
    image, sparse = torch.rand(3, 228, 304), torch.zeros(1, 228, 304)
    sparse[0, 100, 120] = 2.0
    camera = (520.0, 520.0, 152.0, 114.0)
    plain = completer(image, sparse, camera)
    model.card = {"trained_for": {"focal": 260.0}}
    assert completer(image, sparse, camera).depth.shape == plain.depth.shape == (228, 304)
    own = DepthCompleter(model, working_size="own")(image, sparse, camera)
    assert seen == [(228, 304), (114, 152)]
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
