"""Clouds from Python, and the loop: the newest pair first, counted drops, no growth, no silent end."""

from __future__ import annotations

import threading
import time
from dataclasses import replace

import numpy as np
import pytest
import torch

import gbpn
from gbpn.errors import InputError
from gbpn.predict.live import Live
from gbpn.sensors.projection import project as project_map
from gbpn.sensors.projection import remove_see_through
from making_recordings import TO_CAMERA, scanned

NUMBERS = (60.0, 60.0, 28.0, 20.0)


def test_projecting_says_which_points_it_kept(picture: np.ndarray) -> None:
    rng = np.random.default_rng(0)
    points = rng.uniform((-3, -2, -1), (3, 2, 9), (4000, 3)) @ TO_CAMERA[:3, :3]
    points[7] = np.nan
    found = gbpn.project(points, NUMBERS, TO_CAMERA, picture.shape[:2])
    camera, transform = torch.tensor([[60.0, 0, 28], [0, 60, 20], [0, 0, 1]]), torch.from_numpy(TO_CAMERA)
    height, width, _ = picture.shape
    plain = project_map(points, camera, height, width, transform)
    np.testing.assert_array_equal(found.sparse, remove_see_through(plain)[0].numpy())
    assert len(found.kept) == (found.sparse > 0).sum() > 30
    depth = (points[found.kept] @ TO_CAMERA[2, :3]) + TO_CAMERA[2, 3]
    np.testing.assert_allclose(depth, found.sparse[found.sparse > 0], rtol=1e-6)
    everything = gbpn.project(points, NUMBERS, TO_CAMERA, picture.shape[:2], see_through=True)
    np.testing.assert_array_equal(everything.sparse, plain[0].numpy())


def test_a_cloud_is_completed_as_its_projection(completer, picture: np.ndarray, depth: np.ndarray) -> None:
    points = scanned(depth, NUMBERS)
    sparse = gbpn.project(points, NUMBERS, TO_CAMERA, picture.shape[:2]).sparse
    found = completer(picture, cloud=points, intrinsics=NUMBERS, transform=TO_CAMERA)
    np.testing.assert_array_equal(found.depth, completer(picture, sparse, NUMBERS).depth)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({}, "measurements are needed: sparse depth, or a cloud"),
        ({"cloud": [[0.0, 0, 2]]}, "a cloud needs the camera"),
        (
            {"cloud": [[0.0, 0, -2]], "intrinsics": NUMBERS},
            "none of the 1 points falls into the 56×40 picture",
        ),
        ({"cloud": [0.0, 0, 2], "intrinsics": NUMBERS}, r"points must be \[N, 3 or more\]"),
        (
            {"cloud": [[0.0, 0, 2]], "intrinsics": NUMBERS, "transform": np.eye(3)},
            "a finite 4×4 or 3×4 matrix",
        ),
        (
            {"cloud": [[0.0, 0, 2]], "intrinsics": NUMBERS, "transform": 2 * np.eye(4)},
            "must turn and move only",
        ),
    ],
)
def test_mistakes_with_clouds_are_told(completer, picture, arguments: dict, message: str) -> None:
    with pytest.raises(InputError, match=message):
        completer(picture, **arguments)


def test_the_loop_answers_with_the_depth_of_the_pair(completer, picture, depth) -> None:
    points = scanned(depth, NUMBERS)
    wanted = completer(picture, cloud=points, intrinsics=NUMBERS, transform=TO_CAMERA)
    with gbpn.Live(completer, NUMBERS, TO_CAMERA) as live:
        assert live.latest is None
        live.push_image(picture, 100.0)
        live.push_cloud(points + 1.0, 99.0)  # too old for this image
        live.push_cloud(points, 100.02)
        answer = live.wait(60, after=0)
        assert answer is not None
        np.testing.assert_array_equal(answer.depth, wanted.depth)
        assert answer.sigma is None, "these weights have no calibration"
        assert (answer.stamp, answer.number, answer.dropped) == (100.0, 1, 0)
        assert answer.apart == pytest.approx(0.02)
        assert 0 < answer.latency <= answer.age
        live.push_image(picture, 101.0)
        live.push_depth(depth, 101.0)
        second = live.wait(60, after=1)
        assert second is not None
        assert second.rate > 0
        np.testing.assert_array_equal(second.depth, completer(picture, depth, NUMBERS).depth)
        live.push_image(picture, 100.5)
        assert live.dropped == 1, "later than an answer that is out"


class Gate:
    """A completer that waits until it is let go, so that a test decides what arrives meanwhile."""

    def __init__(self, completer) -> None:
        self.completer, self.let_go, self.begun = completer, threading.Event(), threading.Semaphore(0)
        self.engine = completer.engine

    def complete(self, inputs, *, sigmas: bool = False):
        self.begun.release()
        assert self.let_go.wait(60)
        return self.completer.complete(inputs, sigmas=sigmas)


def test_the_newest_pair_is_next_and_the_others_are_counted(completer, picture, depth) -> None:
    gate = Gate(completer)
    with Live(gate, NUMBERS) as live:
        live.push_depth(depth, 0.0)
        live.push_image(picture, 0.0)
        assert gate.begun.acquire(timeout=60)
        for stamp in (1.0, 2.0, 3.0, 4.0):
            live.push_image(picture, stamp)
        live.push_depth(depth, 1.0)
        live.push_depth(depth, 3.0)
        gate.let_go.set()
        answer = live.wait(60, after=1)
        assert answer is not None
        assert (answer.stamp, answer.dropped) == (3.0, 2), "4 has no measurement yet, 1 and 2 are passed over"
        live.push_depth(depth, 4.0)
        last = live.wait(60, after=2)
        assert last is not None
        assert (last.stamp, last.dropped, live.failed) == (4.0, 2, 0)


def test_what_waits_is_bounded(completer, picture) -> None:
    with Live(completer, NUMBERS) as live:
        for stamp in range(100):
            live.push_image(picture, stamp)
            live.push_depth(picture[..., 0], stamp + 0.5)
        assert live.dropped == 92
        assert len(live._images) == 8
        assert len(live._measurements) == 16


@pytest.mark.parametrize("stamp", [float("nan"), float("inf"), -float("inf"), "soon", 10**400])
def test_a_stamp_that_no_time_can_be_compared_with_is_refused(completer, picture, depth, stamp) -> None:
    """NaN would pair with every image and displace the right measurements; infinity would drop all images."""
    with Live(completer, NUMBERS) as live:
        for push, content in ((live.push_image, picture), (live.push_depth, depth), (live.push_cloud, depth)):
            with pytest.raises(InputError, match="a stamp must be finite seconds, or None for now"):
                push(content, stamp)
        live.push_image(picture, 1.0)
        live.push_depth(depth, 1.0)
        answer = live.wait(60, after=0)
        assert answer is not None
        assert answer.stamp == 1.0


def test_a_bad_pair_does_not_end_the_loop_and_a_fault_is_told(completer, picture, depth) -> None:
    with Live(completer, NUMBERS) as live:
        live.push_image(picture, 0.0)
        live.push_cloud([[0.0, 0, -1]], 0.0)
        deadline = time.monotonic() + 60
        while not live.failed and time.monotonic() < deadline:
            time.sleep(0.01)
        assert live.problem is not None
        assert "none of the 1 points falls into" in live.problem
        live.push_image(picture, 1.0)
        live.push_depth(depth, 1.0)
        assert live.wait(60, after=0) is not None
    with pytest.raises(InputError, match="this loop is closed"):
        live.push_image(picture, 2.0)

    class Broken:
        engine = completer.engine

        def complete(self, inputs, *, sigmas: bool = False):
            raise RuntimeError("out of memory")

    with Live(Broken(), NUMBERS) as live:
        live.push_image(picture, 0.0)
        live.push_depth(depth, 0.0)
        with pytest.raises(RuntimeError, match="out of memory"):
            live.wait(60)


def test_sigma_comes_with_calibrated_weights(completer, picture, depth) -> None:
    from gbpn.distribution import SigmaCalibration

    model = gbpn.build("small-2", width=0.5)
    model.calibration = SigmaCalibration(knots=(-5.0, 5.0), log_std=(0.0, -3.0))
    with Live(gbpn.DepthCompleter(model), NUMBERS) as live:
        live.push_image(picture, 0.0)
        live.push_depth(depth, 0.0)
        answer = live.wait(60, after=0)
        assert answer is not None
        assert answer.sigma is not None
        assert (answer.sigma > 0).all()
        assert replace(answer, number=2).confidence.shape == picture.shape[:2]


def test_a_closed_loop_has_no_worker_and_nobody_waits_for_it(completer, picture) -> None:
    live = Live(completer, NUMBERS)
    live.push_image(picture, 1.0)
    found: list[object] = []
    waiting = threading.Thread(target=lambda: found.append(live.wait(60)))
    waiting.start()
    before = threading.active_count()
    live.close()
    waiting.join(30)
    assert found == [None]
    assert threading.active_count() == before - 2
    with pytest.raises(InputError, match="is closed"):
        live.push_depth(np.ones((40, 56), np.float32), 1.0)
