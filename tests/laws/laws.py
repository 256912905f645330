"""The laws: each takes a case and raises where it does not hold; "the same" is bit for bit."""

from __future__ import annotations

import json
import math
import pickle
from collections.abc import Callable
from functools import cache

import numpy as np
import torch

import gbpn
from gbpn.distribution import SigmaCalibration
from gbpn.how import How
from gbpn.sigma.surroundings import FEATURES, HIDDEN

from .case import Case

__all__ = ["LAWS", "UNIT"]

LAWS: dict[str, Callable[[Case], None]] = {}
UNIT = 2e-3
"""Relative: float32 rounds other logarithms of other units."""
_MIRRORED = 2e-3
"""Relative, with `mirror="on"`."""
_MAPS = ("depth", "confidence", "std", "observed", "dropped", "belief_precision")
_SIZES = (len(FEATURES) * HIDDEN, HIDDEN, HIDDEN * HIDDEN, HIDDEN, HIDDEN, 1)


def law(check: Callable[[Case], None]) -> Callable[[Case], None]:
    LAWS[check.__name__] = check
    return check


@cache
def completer(**options: object) -> gbpn.DepthCompleter:
    """A small calibrated model that looks at surroundings, with random weights."""
    torch.manual_seed(3)
    model = gbpn.build("small-2", width=0.5).eval()
    for part in model.modules():
        if isinstance(part, torch.nn.ConvTranspose2d):
            torch.nn.init.normal_(part.weight, std=0.03)
        if isinstance(part, torch.nn.BatchNorm2d):
            torch.nn.init.uniform_(part.weight, 0.8, 1.2)
    around = tuple(tuple(0.3 * math.sin(7 * k + size) for k in range(size)) for size in _SIZES)
    scale = ((0.0,) * len(FEATURES), (1.0,) * len(FEATURES))
    model.calibration = SigmaCalibration(
        knots=(-6.0, 0.0, 6.0), log_std=(0.0, -2.0, -4.0), relative=True, surroundings=(*scale, *around)
    )
    return gbpn.DepthCompleter(model, **options)


def answer(case: Case, **options: object) -> gbpn.CompletedDepth:
    return completer(**options)(case.picture, case.sparse, case.camera)


def same(one: gbpn.CompletedDepth, two: gbpn.CompletedDepth, *names: str) -> None:
    for name in names or _MAPS:
        np.testing.assert_array_equal(getattr(one, name), getattr(two, name), err_msg=name)


@law
def a_session_is_a_single_call(case: Case) -> None:
    session = completer().session(case.picture, case.camera)
    session.add(*case.points.T)
    same(session.result, completer(working_size="own")(case.picture, case.sparse, case.camera))


@law
def a_session_knows_no_order(case: Case) -> None:
    results = []
    for order in (np.arange(len(case.points)), case.rng.permutation(len(case.points))):
        session = completer().session(case.picture, case.camera)
        for part in np.array_split(order, 3):
            if part.size:
                session.add(*case.points[part].T)
        results.append(session.result)
    same(*results)


@law
def what_was_taken_back_leaves_no_trace(case: Case) -> None:
    session = completer().session(case.picture, case.camera)
    session.add(*case.points.T)
    before = session.result
    free = np.argwhere(case.sparse == 0)
    y, x = free[case.rng.integers(len(free))]
    session.add(int(x), int(y), 2.5)
    session.quick_depth()
    session.remove(int(x), int(y))
    same(session.result, before)


@law
def looking_changes_nothing(case: Case) -> None:
    session = completer().session(case.picture, case.camera)
    session.add(*case.points.T)
    before = session.result
    session.quick()
    session.suggest(1)
    session.outliers()
    same(session.result, before)
    np.testing.assert_array_equal(session.depth, before.depth)


@law
def a_batch_is_each_alone(case: Case) -> None:
    other = Case.drawn(case.law, case.seed + 1)
    cameras = [case.camera, other.camera]
    both = completer().batch([case.picture, other.picture], [case.sparse, other.sparse], cameras)
    same(both[0], answer(case))
    same(both[1], answer(other))


@law
def threads_change_nothing(case: Case) -> None:
    before = torch.get_num_threads()
    results = []
    try:
        for count in (1, 2):
            torch.set_num_threads(count)
            results.append(answer(case))
    finally:
        torch.set_num_threads(before)
    np.testing.assert_allclose(results[0].depth, results[1].depth, rtol=1e-5)
    np.testing.assert_allclose(results[0].std, results[1].std, rtol=1e-3)


@law
def another_unit_is_the_same_scene(case: Case) -> None:
    unit = float(case.rng.choice([0.25, 0.3048, 3.0]))
    one = answer(case)
    other = completer()(case.picture, case.sparse * np.float32(unit), case.camera)
    np.testing.assert_allclose(other.depth, unit * one.depth, rtol=UNIT)
    np.testing.assert_allclose(other.std, unit * one.std, rtol=20 * UNIT)


@law
def answers_are_bounded(case: Case) -> None:
    wild = case.sparse * np.exp(case.rng.normal(0, 1, case.sparse.shape)).astype(np.float32)
    found = completer()(case.picture, wild, case.camera)
    there, known = found.observed, wild[wild > 0]
    assert np.isfinite(found.depth[there]).all()
    assert not np.isfinite(found.depth[~there]).any()
    assert (found.depth[there] >= known.min() / 10 * (1 - 1e-5)).all()
    assert (found.depth[there] <= known.max() * 10 * (1 + 1e-5)).all()
    assert (found.std[there] > 0).all()
    assert (found.std[there] <= known.max() * 10 * (1 + 1e-5)).all()


@law
def measured_pixels_are_kept(case: Case) -> None:
    found = answer(case, keep_measured=True)
    used = (case.sparse > 0) & ~found.dropped
    np.testing.assert_array_equal(found.depth[used], case.sparse[used])


@law
def sigma_moves_nothing_else(case: Case) -> None:
    without = completer()(case.picture, case.sparse, case.camera, sigmas=False)
    same(answer(case), without, "depth", "confidence", "observed", "dropped")
    assert not without.calibrated


@law
def an_answer_says_how_it_was_made(case: Case) -> None:
    found, how = answer(case, iterations=(2, 1), outliers="keep"), found_how()
    assert found.how == how
    assert How.of_json(json.loads(json.dumps(how.as_json()))) == how


def found_how() -> How:
    return completer(iterations=(2, 1), outliers="keep").how


@law
def an_answer_can_be_sent_away(case: Case) -> None:
    found = answer(case)
    same(pickle.loads(pickle.dumps(found)), found)


@law
def points_are_a_map(case: Case) -> None:
    same(completer()(case.picture, case.points, case.camera), answer(case))


@law
def nan_is_not_measured(case: Case) -> None:
    holes = np.where(case.sparse > 0, case.sparse, np.float32(np.nan))
    same(completer()(case.picture, holes, case.camera), answer(case))


@law
def pictures_may_be_tensors(case: Case) -> None:
    image = torch.from_numpy(case.picture.copy()).permute(2, 0, 1).float() / 255
    same(completer()(image, torch.from_numpy(case.sparse), case.camera), answer(case))


@law
def four_numbers_are_a_matrix(case: Case) -> None:
    fx, fy, cx, cy = case.camera
    matrix = np.array([[fx, 0, cx], [0, fy, cy], [0, 0, 1]])
    same(completer()(case.picture, case.sparse, matrix), answer(case))


@law
def arrays_are_the_askers_own(case: Case) -> None:
    found = answer(case)
    before = {name: getattr(found, name).copy() for name in _MAPS}
    for name in _MAPS:
        handed = getattr(found, name)
        if handed.flags.writeable:
            handed[...] = 0
    for name in _MAPS:
        np.testing.assert_array_equal(getattr(found, name), before[name], err_msg=name)


@law
def saturated_values_are_dropped_with_a_notice(case: Case) -> None:
    spoilt = case.sparse.copy()
    free = np.argwhere(spoilt == 0)
    y, x = free[case.rng.integers(len(free))]
    spoilt[y, x] = np.float32(case.rng.choice([65.535, 65535.0, np.inf]))
    found = completer()(case.picture, spoilt, case.camera)
    assert any("dropped" in notice for notice in found.notices)
    same(found, answer(case))


@law
def a_mirrored_scene_is_the_mirrored_answer(case: Case) -> None:
    fx, fy, cx, cy = case.camera
    one = answer(case, mirror="on", outliers="keep")
    turned = completer(mirror="on", outliers="keep")(
        case.picture[:, ::-1].copy(), case.sparse[:, ::-1].copy(), (fx, fy, case.width - 1 - cx, cy)
    )
    np.testing.assert_allclose(turned.depth[:, ::-1], one.depth, rtol=_MIRRORED)


@law
def the_first_frame_of_a_stream_is_a_single_call(case: Case) -> None:
    from gbpn.inputs.reading import frame_inputs

    stream = completer().stream()
    found = stream.frame(frame_inputs(case.picture, case.sparse, case.camera))
    alone = completer(working_size="own")(case.picture, case.sparse, case.camera)
    same(found, alone, "depth", "confidence", "observed", "dropped", "std")
