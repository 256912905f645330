"""Data sets of drawn worlds: frames by several processes, kept when killed, the same whoever draws them."""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import islice
from multiprocessing import connection
from pathlib import Path

from gbpn.errors import BackendError, GbpnError, InputError
from gbpn.worlds.assets import Stock
from gbpn.worlds.frame import Wanted, frames_of, stock_for
from gbpn.worlds.pool_scene import PoolScene
from gbpn.worlds.tracing import require_packages

__all__ = ["Progress", "draw_worlds", "opened"]

_THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS")


@dataclass(kw_only=True)
class Progress:
    """How far a scene is."""

    kind: str
    frames: int
    """Wanted in all."""
    before: int
    """Done by earlier runs."""
    drawn: int = 0
    failures: list[str] = field(default_factory=list)
    """`frame 12: what went wrong`, by number."""
    seconds: float = 0.0

    @property
    def rate(self) -> float:
        """Frames a second, of this run."""
        return self.drawn / self.seconds if self.seconds > 0 else 0.0

    @property
    def left(self) -> float | None:
        """Seconds to go, once a rate is known."""
        rest = self.frames - self.before - self.drawn - len(self.failures)
        return rest / self.rate if self.drawn else None


def opened(out: Path, wanted: Wanted, role: str) -> PoolScene:
    """The scene of a kind below `out`, begun or gone on with; raises before anything is drawn."""
    require_packages()
    wanted = wanted.checked()
    scene = PoolScene(out / wanted.kind, wanted, role, stock_for(wanted))
    scene.begin()
    return scene


def draw_worlds(
    scene: PoolScene,
    frames: int,
    *,
    processes: int = 1,
    on_progress: Callable[[Progress], None] | None = None,
) -> Progress:
    """Draw frames 0 to `frames` − 1 as far as they are not there yet; credits are written at the end.

    Each world is the work of one process, of one thread. Frames that fail are told and left out; the next run
    tries them again.
    """
    if frames < 1 or processes < 1:
        raise InputError(f"frames and processes must be 1 or more; got {frames} and {processes}")
    scene.tidy()
    done = {number for number in scene.done() if number < frames}
    progress = Progress(kind=scene.wanted.kind, frames=frames, before=len(done))
    follow = on_progress or (lambda progress: None)
    follow(progress)
    start = time.monotonic()
    for ended in _spread(scene, _worlds(frames, scene.wanted.frames_of_a_world, done), processes):
        progress.drawn += len(ended.drawn)
        progress.failures += ended.failures
        progress.seconds = time.monotonic() - start
        follow(progress)
    scene.write_credits()
    return progress


@dataclass(frozen=True, kw_only=True)
class _Ended:
    """What a process tells of a world."""

    drawn: tuple[int, ...]
    failures: tuple[str, ...]


def _worlds(frames: int, views: int, done: set[int]) -> Iterator[tuple[int, tuple[int, ...]]]:
    """Numbers of worlds and of their frames that are still to be drawn."""
    for world in range(-(-frames // views)):
        own = range(world * views, min((world + 1) * views, frames))
        if left := tuple(number for number in own if number not in done):
            yield world, left


def _spread(
    scene: PoolScene, work: Iterator[tuple[int, tuple[int, ...]]], processes: int
) -> Iterator[_Ended]:
    """What becomes of the worlds, as they end."""
    with _one_thread_each():
        pool = ProcessPoolExecutor(
            processes, mp_context=multiprocessing.get_context("spawn"), initializer=_end_with_parent
        )
        try:
            waiting: set[Future[_Ended]] = set()
            while True:
                for world, numbers in islice(work, 2 * processes - len(waiting)):
                    waiting.add(pool.submit(_draw, scene.folder, scene.wanted, scene.role, world, numbers))
                if not waiting:
                    return
                ended, waiting = wait(waiting, return_when=FIRST_COMPLETED)
                yield from (future.result() for future in ended)
        except BrokenProcessPool as error:
            raise BackendError(
                "a drawing process was killed, most often for want of memory (up to 1.5 GB each): "
                "frames that are done are kept; run the same again with fewer --processes"
            ) from error
        finally:
            pool.shutdown(wait=True, cancel_futures=True)


def _draw(folder: Path, wanted: Wanted, role: str, world: int, numbers: Sequence[int]) -> _Ended:
    """One world in a process of its own: its frames are written here."""
    stock = _stock(wanted)
    scene = PoolScene(folder, wanted, role, stock)
    drawn: list[int] = []
    try:
        for frame in frames_of(wanted, world, numbers, stock):
            scene.add(frame)
            drawn.append(frame.number)
    except (GbpnError, ArithmeticError, IndexError, ValueError, KeyError) as error:
        lost = [number for number in numbers if number not in drawn]
        why = f"{type(error).__name__}: {error}"
        return _Ended(drawn=tuple(drawn), failures=tuple(f"frame {number}: {why}" for number in lost))
    return _Ended(drawn=tuple(drawn), failures=())


@lru_cache(maxsize=2)
def _stock(wanted: Wanted) -> Stock | None:
    """Catalogues are read once a process."""
    return stock_for(wanted)


def _end_with_parent() -> None:
    """A worker whose parent was killed would wait for ever."""
    parent = multiprocessing.parent_process()
    if parent is None:
        return
    sentinel = parent.sentinel

    def watch() -> None:
        connection.wait([sentinel])
        os.kill(os.getpid(), signal.SIGTERM)

    threading.Thread(target=watch, daemon=True).start()


@contextmanager
def _one_thread_each() -> Iterator[None]:
    """Processes that start inside take one thread in every library."""
    before = {name: os.environ.get(name) for name in _THREADS}
    os.environ.update(dict.fromkeys(_THREADS, "1"))
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value
