"""A fixed number of computations at a time; whoever has to wait is told."""

from __future__ import annotations

import asyncio
import contextlib
import heapq
import itertools
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

__all__ = ["AT_ONCE", "REFINED", "Answer", "Workers"]

Answer = TypeVar("Answer")
AT_ONCE, REFINED = 0, 1
"""Who waits shorter: what a person looks for under the finger, then all the rest."""


class Workers:
    """Threads behind a queue by urgency, then by arrival."""

    def __init__(self, count: int) -> None:
        self.count = count
        self.busy = 0
        self._pool = ThreadPoolExecutor(count, "gbpn-worker", initializer=_one_thread_each)
        self._queue: list[tuple[int, int, asyncio.Future[None]]] = []
        self._number = itertools.count()

    @property
    def waiting(self) -> int:
        """Computations that have not begun."""
        return sum(not turn.done() for *_, turn in self._queue)

    async def run(
        self,
        work: Callable[[], Answer],
        urgency: int = REFINED,
        told: Callable[[int], Awaitable[None]] | None = None,
    ) -> Answer:
        """`work` in a thread; `told` hears how many are ahead if it cannot begin at once."""
        await self._turn(urgency, told)
        loop = asyncio.get_running_loop()
        try:
            computing = self._pool.submit(work)
        except BaseException:
            self._next()
            raise
        # The place is free when the thread is: that computes on where whoever asked has gone.
        computing.add_done_callback(lambda _: _soon(loop, self._next))
        return await asyncio.wrap_future(computing)

    async def _turn(self, urgency: int, told: Callable[[int], Awaitable[None]] | None) -> None:
        if self.busy < self.count:
            self.busy += 1
            return
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        heapq.heappush(self._queue, (urgency, next(self._number), turn))
        try:
            if told is not None:
                await told(sum(place[:2] < (urgency, 1 << 60) for place in self._queue))
            await turn
        except BaseException:
            if turn.done() and not turn.cancelled():  # had its turn in the same moment
                self._next()
            turn.cancel()
            raise

    def _next(self) -> None:
        """Hand the freed place on."""
        while self._queue:
            *_, turn = heapq.heappop(self._queue)
            if not turn.done():
                turn.set_result(None)
                return
        self.busy -= 1

    def close(self) -> None:
        """Begin nothing more."""
        self._pool.shutdown(wait=False, cancel_futures=True)


def _soon(loop: asyncio.AbstractEventLoop, what: Callable[[], None]) -> None:
    with contextlib.suppress(RuntimeError):  # the loop has been closed: nobody waits any more
        loop.call_soon_threadsafe(what)


def _one_thread_each() -> None:
    import torch

    torch.set_num_threads(1)
