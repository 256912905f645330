"""The simulation obeys what can be told without it."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gbpn.errors import InputError
from gbpn.scale.simulation import Costs, simulate

EXACT = Costs(frame=0.5, spread=0.0, shard=1.0, start=10.0)


def test_a_run_that_can_be_counted_by_hand() -> None:
    """10 frames in shards of 4 (4, 4, 2): one worker has all, two workers the first two and then the last."""
    one = simulate(10, 1, EXACT, batch=4)
    assert one.seconds == pytest.approx(10 + 10 * 0.5 + 3 * 1.0)
    two = simulate(10, 2, EXACT, batch=4)
    assert two.seconds == pytest.approx(10 + (4 * 0.5 + 1) + (2 * 0.5 + 1))
    assert one.busy == pytest.approx(8 / 18)


@given(st.integers(1, 400), st.integers(1, 20), st.integers(1, 40), st.integers(0, 9))
@settings(max_examples=40, deadline=None)
def test_no_schedule_beats_the_work_divided_by_the_workers(
    frames: int, workers: int, batch: int, seed: int
) -> None:
    run = simulate(frames, workers, EXACT, batch=batch, seed=seed)
    shards = -(-frames // batch)
    work = frames * EXACT.frame + shards * EXACT.shard
    longest = min(frames, batch) * EXACT.frame + EXACT.shard
    bound = EXACT.start + work / workers
    assert bound - 1e-9 <= run.seconds <= bound + longest + 1e-9  # list scheduling
    assert run.frames == frames


def test_deaths_stragglers_and_a_narrow_storage_cost_time() -> None:
    calm = simulate(40000, 20, EXACT)
    dying = simulate(40000, 20, EXACT, deaths_per_hour=30)
    assert dying.deaths > 0
    assert dying.done_again > 0
    assert dying.seconds > calm.seconds
    assert simulate(40000, 20, EXACT, stragglers=0.3).seconds > calm.seconds
    narrow = Costs(frame=0.5, spread=0.0, requests=10, storage_rate=100)
    assert simulate(4000, 20, narrow).seconds == pytest.approx(4000 * 10 / 100, rel=0.01)
    assert simulate(40000, 20, EXACT, deaths_per_hour=30, seed=1) == simulate(
        40000, 20, EXACT, deaths_per_hour=30, seed=1
    )
    with pytest.raises(InputError, match="at least 1"):
        simulate(0, 1, EXACT)
