"""Wide pictures view by view: no seams, turns turn, and what views disagree about is told by σ."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
import torch

import gbpn
from gbpn.answer import CompletedDepth
from gbpn.camera.views import PinholeView, views_of
from gbpn.camera.wide import Panorama, WideCamera, inside
from gbpn.distribution import DepthDistribution
from gbpn.engine.views import completed_by_views
from gbpn.inputs.frame import FrameInputs

HEIGHT, WIDTH = 64, 128
Shown = Callable[[np.ndarray], np.ndarray]
"""Ranges of directions [..., 3]."""
WHOLE = Panorama().seen(HEIGHT, WIDTH)
LOW, HIGH = np.array([-3.0, -1.5, -2.0]), np.array([2.5, 1.2, 4.0])
"""Corners of the room, metres."""


def room(towards: np.ndarray) -> np.ndarray:
    """[...] ranges to the walls of a box from its inside."""
    with np.errstate(divide="ignore"):
        return np.asarray(np.where(towards > 0, HIGH / towards, LOW / towards).min(axis=-1))


def seen_by(views: list[PinholeView]) -> np.ndarray:
    """[H, W] how many views see a pixel."""
    towards = WHOLE.directions(HEIGHT, WIDTH)
    return np.asarray(np.sum([inside(*view.project(towards)[:2], *view.size) for view in views], axis=0))


def picture(towards: np.ndarray) -> torch.Tensor:
    """[3, H, W]: chequered walls."""
    places = towards * room(towards)[..., None]
    chequers = np.floor(places / 0.5).sum(axis=-1) % 2
    colour = 0.3 + 0.4 * chequers[..., None] + 0.1 * np.cos(places)
    return torch.from_numpy(colour.clip(0, 1)).permute(2, 0, 1).float()


def inputs_of(ranges: np.ndarray, count: int = 300, seed: int = 0, camera: WideCamera = WHOLE) -> FrameInputs:
    """`count` measurements, evenly over the sphere."""
    towards = camera.directions(*ranges.shape)
    level = np.hypot(towards[..., 0], towards[..., 2]).ravel()
    place = np.random.default_rng(seed).choice(ranges.size, count, replace=False, p=level / level.sum())
    sparse = np.zeros(ranges.size, np.float32)
    sparse[place] = ranges.ravel()[place]
    return FrameInputs(
        image=picture(towards),
        sparse=torch.from_numpy(sparse.reshape(1, *ranges.shape)),
        intrinsics=torch.from_numpy(camera.matrix(*ranges.shape)).float(),
        wide=camera,
    )


class Oracle:
    """Answers the views in their order with what they show, times a factor each, with a relative σ."""

    def __init__(self, shown: Shown, *, factors: float = 0.0, sigma: float = 0.01) -> None:
        self.shown, self.factors, self.sigma = shown, factors, sigma
        self.views: list[PinholeView] = views_of(WHOLE, HEIGHT, WIDTH)
        self.frames: list[FrameInputs] = []

    def __call__(self, frame: FrameInputs) -> DepthDistribution:
        view = self.views[len(self.frames)]
        self.frames.append(frame)
        factor = 1 + self.factors * (-1) ** len(self.frames)
        depth = self.shown(view.directions()) * view.rays()[..., 2] * factor
        mean = torch.from_numpy(depth).float()[None, None]
        return DepthDistribution.of_depth(mean, confidence=torch.zeros_like(mean), std=self.sigma * mean)


def constant(towards: np.ndarray) -> np.ndarray:
    return np.full(towards.shape[:-1], 2.5)


def test_a_sphere_of_one_range_comes_back_as_one() -> None:
    oracle = Oracle(constant)
    answer, told = completed_by_views(inputs_of(constant(WHOLE.directions(HEIGHT, WIDTH))), oracle)
    torch.testing.assert_close(answer.mean, torch.full((1, 1, HEIGHT, WIDTH), 2.5))
    torch.testing.assert_close(answer.std, torch.full((1, 1, HEIGHT, WIDTH), 0.025))
    assert told.startswith("completed through 12 views of 105°")


def test_measurements_are_in_the_views_that_see_them() -> None:
    """As z, at the pixels that look there."""
    frame = inputs_of(room(WHOLE.directions(HEIGHT, WIDTH)))
    oracle = Oracle(room)
    completed_by_views(frame, oracle)
    for view, seen in zip(oracle.views, oracle.frames, strict=True):
        depth = seen.sparse[0].numpy()
        rows, columns = np.nonzero(depth)
        ranges = depth[rows, columns] / view.rays()[rows, columns, 2]
        wanted = room(view.directions())[rows, columns]
        assert len(rows) > 10
        assert np.median(np.abs(ranges / wanted - 1)) < 0.03  # a pixel of the view is not one of the picture


def test_views_that_disagree_meet_without_a_step_and_with_a_larger_sigma() -> None:
    oracle = Oracle(constant, factors=0.02, sigma=0.001)
    answer, _ = completed_by_views(inputs_of(constant(WHOLE.directions(HEIGHT, WIDTH))), oracle)
    mean = answer.mean[0, 0].numpy()
    steps = np.abs(np.diff(mean, axis=1, append=mean[:, :1]))
    equator = steps[HEIGHT // 2 - 12 : HEIGHT // 2 + 12]
    assert mean.max() - mean.min() > 0.09  # as far as the views are apart: 4 % of 2.5 m
    assert equator.max() < 0.6 * 0.1  # a step of the whole, where views are put side by side
    sigma = answer.std[0, 0].numpy()
    assert sigma.max() == pytest.approx(0.05, rel=0.05)  # halfway between two that are 0.1 m apart
    assert sigma[seen_by(oracle.views) == 1].max() < 0.004


def relative_error(shown: Shown, eighths: int) -> np.ndarray:
    """[H, W] of a scene turned to the right by so many eighths, in the pixels of the scene that is not."""
    columns = eighths * WIDTH // 8
    angle = eighths * np.pi / 4
    back = np.array([[np.cos(angle), 0, -np.sin(angle)], [0, 1, 0], [np.sin(angle), 0, np.cos(angle)]])

    def turned(towards: np.ndarray) -> np.ndarray:
        return shown(towards @ back.T)

    towards = WHOLE.directions(HEIGHT, WIDTH)
    np.testing.assert_allclose(turned(towards), np.roll(shown(towards), columns, axis=1), rtol=1e-6)
    answer, _ = completed_by_views(inputs_of(turned(towards)), Oracle(turned))
    return np.roll(np.abs(answer.mean[0, 0].numpy() / turned(towards) - 1), -columns, axis=1)


def test_a_room_comes_back_through_exact_views_seams_as_well_as_the_rest() -> None:
    """The same places lie on the seams of the horizon's views, and after a turn in their middles."""
    on_seams, in_the_middle = relative_error(room, 0), relative_error(room, 1)
    assert on_seams.mean() < 0.001
    assert np.quantile(on_seams, 0.99) < 0.01  # at corners of the room, which pixels blur
    places = np.zeros((HEIGHT, WIDTH), bool)
    for seam in range(4):
        middle = WIDTH // 8 + seam * WIDTH // 4
        places[HEIGHT // 3 : -HEIGHT // 3, middle - 4 : middle + 4] = True
    assert on_seams[places].mean() < 1.1 * in_the_middle[places].mean()


@pytest.fixture(scope="module")
def straight(completer: gbpn.DepthCompleter) -> CompletedDepth:
    """The room as the small model sees it."""
    return completer.complete(inputs_of(room(WHOLE.directions(HEIGHT, WIDTH))))


def test_a_quarter_turn_of_the_panorama_turns_the_answer(
    completer: gbpn.DepthCompleter, straight: CompletedDepth
) -> None:
    frame = inputs_of(room(WHOLE.directions(HEIGHT, WIDTH)))
    turned = FrameInputs(
        image=frame.image.roll(WIDTH // 4, dims=-1),
        sparse=frame.sparse.roll(WIDTH // 4, dims=-1),
        intrinsics=frame.intrinsics,
        wide=WHOLE,
    )
    other = completer.complete(turned)
    for name in ("depth", "std", "confidence"):
        wanted = np.roll(getattr(straight, name), WIDTH // 4, axis=1)
        np.testing.assert_allclose(getattr(other, name), wanted, rtol=2e-3, atol=1e-4)
    np.testing.assert_array_equal(other.dropped, np.roll(straight.dropped, WIDTH // 4, axis=1))


def test_a_mirrored_panorama_has_the_mirrored_answer(model: gbpn.GBPN) -> None:
    """Where single pictures do, that is with both mirror images averaged."""
    both = gbpn.DepthCompleter(model, mirror="on", outliers="keep", check_sigma=False)
    frame = inputs_of(room(WHOLE.directions(HEIGHT, WIDTH)))
    flipped = FrameInputs(
        image=frame.image.flip(-1), sparse=frame.sparse.flip(-1), intrinsics=frame.intrinsics, wide=WHOLE
    )
    straight, other = both.complete(frame, sigmas=False), both.complete(flipped, sigmas=False)
    np.testing.assert_allclose(other.depth, straight.depth[:, ::-1], rtol=5e-3)


def test_depth_does_not_depend_on_whether_sigma_is_wanted(
    completer: gbpn.DepthCompleter, straight: CompletedDepth
) -> None:
    without = completer.complete(inputs_of(room(WHOLE.directions(HEIGHT, WIDTH))), sigmas=False)
    np.testing.assert_array_equal(without.depth, straight.depth)
    assert straight.calibrated
    assert not without.calibrated


def test_views_without_measurements_take_their_neighbours_answers(completer: gbpn.DepthCompleter) -> None:
    """All is completed from one point, and what was lent is not as sure as what it was lent from."""
    frame = inputs_of(constant(WHOLE.directions(HEIGHT, WIDTH)), count=1)
    answer = completer.complete(frame, sigmas=True)
    assert answer.observed.all()
    assert np.isfinite(answer.std).all()


def test_measured_pixels_can_be_kept(completer: gbpn.DepthCompleter) -> None:
    frame = inputs_of(room(WHOLE.directions(HEIGHT, WIDTH)))
    answer = completer.complete(frame, keep_measured=True)
    there = (frame.sparse[0].numpy() > 0) & ~answer.dropped
    np.testing.assert_array_equal(answer.depth[there], frame.sparse[0].numpy()[there])


def test_a_wrong_measurement_is_dropped_once_for_all_views(completer: gbpn.DepthCompleter) -> None:
    frame = inputs_of(constant(WHOLE.directions(HEIGHT, WIDTH)), count=600)
    row, column = np.argwhere(frame.sparse[0].numpy())[300]
    frame.sparse[0, row, column] *= 20
    answer = completer.complete(frame)
    assert answer.dropped[row, column]
    assert int(answer.dropped.sum()) < 60


def test_the_cloud_lies_on_the_rays_at_the_ranges(straight: CompletedDepth) -> None:
    answer = straight
    cloud = answer.cloud(answer.observed)
    np.testing.assert_allclose(
        np.linalg.norm(cloud.points, axis=-1), answer.depth[answer.observed], rtol=1e-5
    )
    x, y = WHOLE.pixels(cloud.points, HEIGHT, WIDTH)
    wanted_y, wanted_x = np.nonzero(answer.observed)
    np.testing.assert_allclose(x, wanted_x, atol=1e-3)
    np.testing.assert_allclose(y, wanted_y, atol=1e-3)
