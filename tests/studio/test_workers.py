"""Computations take turns, and a place is free when its thread is."""

from __future__ import annotations

import asyncio
import threading
from functools import partial

from gbpn.studio.workers import Workers


def test_row_14_a_cancelled_computation_keeps_its_place_until_it_ends() -> None:
    """The thread computes on when the page goes away; nobody else may begin beside it."""
    may_end, running, most = threading.Event(), [0], [0]
    lock = threading.Lock()

    def work() -> None:
        with lock:
            running[0] += 1
            most[0] = max(most[0], running[0])
        may_end.wait(30)
        with lock:
            running[0] -= 1

    async def scenario() -> tuple[int, int]:
        workers = Workers(1)
        first = asyncio.create_task(workers.run(work))
        while not running[0]:
            await asyncio.sleep(0.01)
        first.cancel()
        second = asyncio.create_task(workers.run(work))
        await asyncio.sleep(0.1)
        seen = workers.busy, workers.waiting
        may_end.set()
        await asyncio.wait({first, second})
        assert first.cancelled()
        assert second.exception() is None
        assert workers.busy == 0
        workers.close()
        return seen

    assert asyncio.run(scenario()) == (1, 1)
    assert most == [1]
    assert running == [0]


def test_a_place_is_handed_on_after_an_error_and_after_the_end() -> None:
    async def scenario() -> list[object]:
        workers = Workers(1)
        divisions = (workers.run(partial(divmod, 1, by)) for by in (0, 1, 0, 1))
        answers = await asyncio.gather(*divisions, return_exceptions=True)
        assert workers.busy == 0
        workers.close()
        return answers

    first, second, third, fourth = asyncio.run(scenario())
    assert isinstance(first, ZeroDivisionError)
    assert isinstance(third, ZeroDivisionError)
    assert (second, fourth) == ((1, 0), (1, 0))
