"""What a session tells about its answer, held against finite differences and against the answer itself."""

from __future__ import annotations

import numpy as np
import pytest

import gbpn
from gbpn.engine import explanation
from gbpn.engine.session import Session
from gbpn.errors import InputError


@pytest.fixture
def session(completer: gbpn.DepthCompleter, picture: np.ndarray, depth: np.ndarray) -> Session:
    session = completer.session(picture)
    rows, columns = np.nonzero(depth)
    session.add(columns, rows, depth[rows, columns])
    return session


def test_the_film_ends_with_the_answer(session: Session) -> None:
    stills = list(explanation.film(session))
    iterations = session.pipeline.iterations
    assert [still.stage for still in stills] == sorted(still.stage for still in stills)
    assert {(still.stage, still.iteration) for still in stills} == {
        (stage, i) for stage, count in enumerate(iterations, 1) for i in range(1, count + 1)
    }
    np.testing.assert_allclose(stills[-1].depth, session.depth, rtol=1e-6)
    reached = [np.isfinite(still.depth).mean() for still in stills]
    assert reached == sorted(reached)


def test_listening_is_the_derivative_of_the_answer(session: Session) -> None:
    """Moving a measurement by a little moves the answer by its share, if the drawn fields stay."""
    x, y = 20, 15
    heard = explanation.listening(session, x, y)
    assert heard.strength.shape == session.size
    assert heard.strength.max() == pytest.approx(1.0)
    assert heard.strength.min() >= 0
    # in logarithms a common factor on all depths is a common factor on the answer
    assert heard.shares.sum() == pytest.approx(1.0, abs=0.02)
    one_stage = Session(session.engine, session._image, stage="first")
    for one in session.measurements:
        one_stage.add(one.x, one.y, one.depth)
    shares = explanation.listening(one_stage, x, y).shares
    loudest = int(np.abs(shares).argmax())
    point, step = one_stage.measurements[loudest], 0.02
    before = one_stage.depth[y, x]
    one_stage.update(point.x, point.y, point.depth * np.exp(step))
    moved = np.log(one_stage.depth[y, x] / before) / step
    assert moved == pytest.approx(shares[loudest], rel=0.02)


def test_a_pixel_outside_has_nobody_to_listen_to(session: Session) -> None:
    with pytest.raises(InputError, match="inside"):
        explanation.listening(session, 1000, 0)


def test_the_first_stage_alone(session: Session, completer: gbpn.DepthCompleter, picture: np.ndarray) -> None:
    alone = completer.session(picture, stage="first")
    for one in session.measurements:
        alone.add(one.x, one.y, one.depth)
    np.testing.assert_allclose(explanation.first_stage(session), alone.depth, rtol=1e-6)


def test_the_exact_mean_is_where_sweeps_lead(session: Session) -> None:
    """Near it already after the trained iterations, and the mean of nothing else."""
    far = explanation.exact(session)
    assert np.isfinite(far).all()
    points = session.measurements
    at = far[[p.y for p in points], [p.x for p in points]]
    np.testing.assert_allclose(at, [p.depth for p in points], rtol=0.05)


def test_quick_is_the_first_stage_and_leaves_the_answer_alone(
    session: Session, completer: gbpn.DepthCompleter, picture: np.ndarray
) -> None:
    alone = completer.session(picture, stage="first")
    for one in session.measurements:
        alone.add(one.x, one.y, one.depth)
    before = session.depth.copy()
    quick = session.quick()
    np.testing.assert_array_equal(quick.depth, alone.depth)
    assert not quick.calibrated
    np.testing.assert_array_equal(session.quick_depth(), alone.depth)
    np.testing.assert_array_equal(session.depth, before)


def test_copies_are_independent(session: Session) -> None:
    before = session.depth.copy()
    other = session.copy()
    other.add(1, 1, 9.0)
    assert not np.array_equal(other.depth, before)
    assert len(session.measurements) == len(other.measurements) - 1
    np.testing.assert_array_equal(session.depth, before)
