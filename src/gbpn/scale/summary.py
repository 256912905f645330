"""What became of a run, counted shard by shard: the driver keeps numbers, not frames."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass, field

from gbpn.scale.records import ShardReport

__all__ = ["Summary"]

_PHASES = ("read", "network", "inference", "write")


@dataclass(kw_only=True)
class Summary:
    """Counts of a run; grows with the number of workers, not of frames."""

    output: str
    shards: int
    frames: int | None
    """In all; None where they are counted only when their tar is opened."""
    launch: str = ""
    done_shards: int = 0
    written: int = 0
    left_out: int = 0
    failed: int = 0
    before: int = 0
    """Frames of shards that an earlier start had finished."""
    postponed: int = 0
    """Shards for which the storage failed; the same command does them."""
    retried: int = 0
    bytes_read: int = 0
    bytes_written: int = 0
    processor: float = 0.0
    """Seconds of processor time of all workers together."""
    phases: dict[str, float] = field(default_factory=lambda: dict.fromkeys(_PHASES, 0.0))
    """Seconds of all workers together."""
    by_worker: dict[str, list[float]] = field(default_factory=dict)
    """Frames, seconds of work and largest resident bytes."""
    problem: str = ""
    """The last thing that went wrong, in words."""
    started: float = field(default_factory=time.monotonic)
    seconds: float = 0.0

    def add(self, report: ShardReport) -> None:
        """Count one shard."""
        self.seconds = time.monotonic() - self.started
        if report.message:
            self.problem = report.message
        if report.state == "postponed":
            self.postponed += 1
            return
        self.done_shards += 1
        if report.launch != self.launch:
            self.before += report.frames
            return
        self.written += report.written
        self.left_out += report.left_out
        self.failed += report.failed
        self.retried += report.retried
        self.bytes_read += report.bytes_read
        self.bytes_written += report.bytes_written
        self.processor += report.processor
        for name in _PHASES:
            self.phases[name] += getattr(report, name)
        worker = self.by_worker.setdefault(report.worker, [0.0, 0.0, 0.0])
        worker[0] += report.frames
        worker[1] += report.seconds
        worker[2] = max(worker[2], report.memory)

    @property
    def now(self) -> int:
        """Frames of this start."""
        return self.written + self.left_out + self.failed

    @property
    def rate(self) -> float:
        """Frames per second of this start, by the clock on the wall."""
        return self.now / self.seconds if self.seconds > 0 else 0.0

    @property
    def remaining(self) -> float | None:
        """Seconds until the end, as far as can be told."""
        if not self.now or self.seconds <= 0:
            return None
        per_shard = self.now / max(1, self.done_shards - (self.before > 0))
        left = (self.shards - self.done_shards - self.postponed) * per_shard
        return left / self.rate

    def sentences(self) -> Iterator[str]:
        """What a person is told at the end."""
        parts = [f"{self.written} written"]
        parts += [f"{self.before} done before"] if self.before else []
        parts += [f"{self.left_out} left out"] if self.left_out else []
        parts += [f"{self.failed} failed"] if self.failed else []
        count = self.now + self.before
        yield f"{count} {'frame' if count == 1 else 'frames'}: {', '.join(parts)} → {self.output}"
        if self.now:
            workers = [frames / seconds for frames, seconds, _ in self.by_worker.values() if seconds]
            told = f"{min(workers):.2f} to {max(workers):.2f}" if len(workers) > 1 else f"{workers[0]:.2f}"
            yield (
                f"{self.rate:.2f} frames/s in {self.seconds:.0f} s by {len(workers)} "
                f"{'worker' if len(workers) == 1 else 'workers'}, {told} frames/s of work each"
            )
            total = sum(self.phases.values()) or 1.0
            names = {"inference": "belief propagation"}
            shares = (f"{names.get(name, name)} {value / total:.0%}" for name, value in self.phases.items())
            yield f"time: {', '.join(shares)}"
            megabytes = (self.bytes_read / 1e6, self.bytes_written / 1e6)
            if sum(megabytes) > 0:
                yield f"storage: {megabytes[0]:.1f} MB read, {megabytes[1]:.1f} MB written"
        if self.retried:
            yield f"{self.retried} requests to the storage were repeated"
        if self.postponed:
            yield (
                f"{self.postponed} of {self.shards} shards are not done, since the storage failed "
                f"({self.problem}): the same command does them"
            )
