"""A small discrete-event simulation of a run: what more workers, stragglers and failures do to its time.

A worker that is free takes the next shard, as `on_ray` hands them out. A shard costs its frames plus an
overhead for its record. A worker may be slow from the beginning (a straggler), and may die at any moment:
then the shard it was at is lost, and it comes back after its start. The storage serves a bounded number of
requests a second, which is where many workers meet first.
"""

from __future__ import annotations

import heapq
from dataclasses import dataclass
from random import Random

from gbpn.errors import InputError

__all__ = ["Costs", "SimulatedRun", "simulate"]


@dataclass(frozen=True, kw_only=True)
class Costs:
    """Measured figures of one frame, one shard and one start; seconds."""

    frame: float
    """Of one worker with one thread, from inputs to outputs."""
    spread: float = 0.1
    """Standard deviation of a frame's cost over its mean."""
    shard: float = 0.0
    """List, record and scheduling, per shard."""
    start: float = 0.0
    """Until a worker takes its first shard."""
    requests: float = 0.0
    """To the storage, per frame; 0: none that count."""
    storage_rate: float = float("inf")
    """Requests a second that the storage serves in all."""


@dataclass(frozen=True, kw_only=True)
class SimulatedRun:
    """How a simulated run went."""

    seconds: float
    frames: int
    done_again: int
    """Frames that were computed once more, since their shard was lost with its worker."""
    deaths: int
    busy: float
    """Share of the workers' time that was spent on shards that count."""

    @property
    def rate(self) -> float:
        """Frames per second by the clock on the wall."""
        return self.frames / self.seconds


def simulate(
    frames: int,
    workers: int,
    costs: Costs,
    *,
    batch: int = 32,
    stragglers: float = 0.0,
    slowness: float = 3.0,
    deaths_per_hour: float = 0.0,
    seed: int = 0,
) -> SimulatedRun:
    """One run.

    stragglers       share of workers that are `slowness` times as slow
    deaths_per_hour  of one worker
    """
    if min(frames, workers, batch) < 1:
        raise InputError(f"frames, workers and batch must be at least 1; got {frames}, {workers}, {batch}")
    random = Random(seed)
    slow = [slowness if random.random() < stragglers else 1.0 for _ in range(workers)]
    shards = -(-frames // batch)
    ready = [(costs.start, worker) for worker in range(workers)]
    heapq.heapify(ready)
    taken, lost, deaths, useful, storage_free, end = 0, 0, 0, 0.0, 0.0, 0.0
    while taken < shards:
        now, worker = heapq.heappop(ready)
        size = min(batch, frames - taken * batch)
        mean = size * costs.frame * slow[worker]
        work = max(0.2 * mean, random.gauss(mean, mean * costs.spread / size**0.5)) + costs.shard
        storage_free = max(storage_free, now) + size * costs.requests / costs.storage_rate
        done = max(now + work, storage_free)
        death = now + random.expovariate(deaths_per_hour / 3600) if deaths_per_hour > 0 else float("inf")
        if death < done:  # the shard goes back; the worker starts anew
            deaths += 1
            lost += int(size * (death - now) / (done - now))
            heapq.heappush(ready, (death + costs.start, worker))
            continue
        taken += 1
        useful += done - now
        end = max(end, done)
        heapq.heappush(ready, (done, worker))
    return SimulatedRun(
        seconds=end, frames=frames, done_again=lost, deaths=deaths, busy=useful / (workers * end)
    )
