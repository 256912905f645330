"""Where the time of a frame goes: reading, the network, belief propagation, writing."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

from gbpn.model.pipeline import Pipeline
from gbpn.predict.completer import DepthCompleter

__all__ = ["Phases", "watched"]

_Answer = TypeVar("_Answer")


class Phases:
    """Seconds by name; the network's are part of those of `complete`."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = defaultdict(float)

    @contextmanager
    def of(self, name: str) -> Iterator[None]:
        """Count what happens inside."""
        start = time.perf_counter()
        try:
            yield
        finally:
            self.seconds[name] += time.perf_counter() - start

    def timed(self, name: str, function: Callable[..., _Answer]) -> Callable[..., _Answer]:
        """The same function, counted."""

        def call(*arguments: Any, **options: Any) -> _Answer:
            with self.of(name):
                return function(*arguments, **options)

        return call

    def since(self, before: dict[str, float]) -> dict[str, float]:
        """Seconds of read, network, inference and write since a copy of `seconds`."""
        spent = {name: self.seconds[name] - before.get(name, 0.0) for name in self.seconds}
        complete, network = spent.get("complete", 0.0), spent.get("network", 0.0)
        return {
            "read": spent.get("read", 0.0),
            "network": network,
            "inference": complete - network,
            "write": spent.get("write", 0.0),
        }


def watched(completer: DepthCompleter, phases: Phases) -> DepthCompleter:
    """The same completer, whose calls and whose network are counted.

    Belief propagation is what remains of a call: inference, outliers, the check of the sigmas. Of a model
    that is no GBPN all counts as network.
    """
    pipeline = completer.engine.answering
    if isinstance(pipeline, Pipeline):
        for part, method in ((pipeline.first, "draw"), (pipeline.second, "redraw")):
            if part is not None:
                setattr(part, method, phases.timed("network", getattr(part, method)))
        call = completer.complete
    else:
        call = phases.timed("network", completer.complete)
    completer.complete = phases.timed("complete", call)  # type: ignore[method-assign]
    return completer
