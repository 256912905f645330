"""The run itself: frames measured, completed by every method, scored; in several processes, and resumable.

Results are appended to one JSON-lines file by one process, a task at a time. A run that was interrupted
reads it and does only what is missing; lines that are torn or damaged are dropped. A frame that fails is a
line with an error: it is listed in the report and tried again by the next run.
"""

from __future__ import annotations

import hashlib
import json
import multiprocessing
import time
import zlib
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, TypeGuard

import torch

from gbpn.datasets import open_dataset
from gbpn.datasets.selection import evenly_spaced
from gbpn.datasets.training_view import Dataset
from gbpn.distribution import DepthDistribution
from gbpn.errors import GbpnError, InputError
from gbpn.evaluate.methods import Entry, Predictor
from gbpn.evaluate.settings import Setting
from gbpn.files.atomic import write_text
from gbpn.files.guard import shown
from gbpn.measurements.validity import measured
from gbpn.metrics import score
from gbpn.sample import Sample

__all__ = ["Line", "Plan", "Task", "Worker", "run"]

Line = dict[str, Any]


@dataclass(frozen=True, kw_only=True)
class Plan:
    """All that defines the numbers of a run."""

    dataset: str
    root: str
    split: str = "evaluation"
    options: dict[str, Any] = field(default_factory=dict)
    """Further options of the dataset's class."""
    entries: tuple[Entry, ...]
    settings: tuple[Setting, ...] = (Setting(),)
    seeds: int = 1
    """How often each frame is measured anew; averaged."""
    limit: int | None = None
    """At most this many frames, spread evenly over the dataset."""
    surfaces: bool = False
    """Whether normals, edges and patterns are measured too."""
    trust: bool = False
    """Whether intervals are held against the truth by place too, see `gbpn.metrics.trust`."""
    batch: int = 1
    """Frames given to a method at once; changes speed, not numbers."""

    def open(self, setting: Setting | None = None) -> Dataset:
        """The dataset as a setting reads it; by default the first one."""
        setting = setting or self.settings[0]
        options = self.options | dict(setting.data)
        return open_dataset(self.dataset, self.root, self.split, **options)

    def frames(self, dataset: Dataset, setting: Setting | None = None) -> list[int]:
        """Indices of the frames that take part."""
        setting = setting or self.settings[0]
        most = (self.limit, setting.frames, len(dataset))
        return evenly_spaced(len(dataset), min(count for count in most if count is not None))


@dataclass(frozen=True)
class Task:
    """Some frames in one setting and seed, for all methods that still lack them."""

    setting: int
    seed: int
    frames: tuple[tuple[int, str], ...]
    """Index and name."""
    missing: tuple[frozenset[int], ...]
    """Per frame the entries to run."""


def run(
    plan: Plan,
    store: Path,
    *,
    workers: int = 1,
    fresh: bool = False,
    progress: Callable[[int, int], None] | None = None,
) -> list[Line]:
    """All result lines of the plan; `store` is the JSON-lines file that makes it resumable."""
    datasets = {setting.data: plan.open(setting) for setting in plan.settings}
    frames = [_chosen(plan, datasets[setting.data], setting) for setting in plan.settings]
    names = [name for dataset in datasets.values() for name in dataset.names]
    lines = {} if fresh else _read(store, _identity(plan, names))
    if not lines:
        store.parent.mkdir(parents=True, exist_ok=True)
        store.write_text(json.dumps({"run": _identity(plan, names)}) + "\n")
    tasks = list(_tasks(plan, frames, set(lines)))
    total = plan.seeds * sum(len(chosen) for chosen in frames)
    done = total - sum(len(task.frames) for task in tasks)
    if progress:
        progress(done, total)
    with open(store, "a", encoding="utf-8") as file:
        for task, new in _results(plan, tasks, workers):
            for line in new:
                file.write(_text(line) + "\n")
                lines[_key(line)] = line
            file.flush()
            done += len(task.frames)
            if progress:
                progress(done, total)
    wanted = {key for task in _tasks(plan, frames, set()) for key in _keys(plan, task)}
    return [lines[key] for key in sorted(wanted & set(lines))]


def _chosen(plan: Plan, dataset: Dataset, setting: Setting) -> list[tuple[int, str]]:
    """Index and name of the frames of a setting."""
    return [(index, dataset.names[index]) for index in plan.frames(dataset, setting)]


def _results(plan: Plan, tasks: Sequence[Task], workers: int) -> Iterator[tuple[Task, list[Line]]]:
    if workers <= 1 or len(tasks) <= 1:
        worker = Worker(plan) if tasks else None
        for task in tasks:
            assert worker is not None
            yield task, worker.work(task)
        return
    for entry in plan.entries:
        entry.load()  # what cannot be loaded is said here, not by a pool whose processes all died
    # Spawned, not forked: torch's thread pools do not survive a fork.
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(workers, context, initializer=_start, initargs=(plan,)) as pool:
        futures = {pool.submit(_work, task): task for task in tasks}
        try:
            for future in as_completed(futures):
                yield futures[future], future.result()
        except BrokenProcessPool as error:
            raise GbpnError(
                "a worker process died, perhaps for lack of memory; what was finished is kept: "
                "run the same command again with fewer --workers"
            ) from error
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise


class Worker:
    """One process's share: dataset and methods, opened once."""

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self.datasets = {setting.data: plan.open(setting) for setting in plan.settings}
        self.predictors: list[Predictor] = [entry.load() for entry in plan.entries]

    def work(self, task: Task) -> list[Line]:
        """The lines of a task; what fails becomes a line with an error."""
        setting = self.plan.settings[task.setting]
        lines: list[Line] = []
        ready: dict[tuple[int, ...], list[tuple[Sample, frozenset[int]]]] = {}
        for (index, name), missing in zip(task.frames, task.missing, strict=True):
            try:
                dataset = self.datasets[setting.data]
                sample = setting.measure(dataset.load(index), task.seed)
                sample = setting.pictured(sample, partial(_another, dataset, index))
                if sample.target is None:
                    raise InputError("no ground truth to compare with")
                ready.setdefault(tuple(sample.image.shape), []).append((sample, missing))
            except Exception as error:  # a broken frame must not end a long run
                lines += [self._line(task, name, k, error=error) for k in sorted(missing)]
        for group in ready.values():
            for k in range(len(self.predictors)):
                if samples := [sample for sample, missing in group if k in missing]:
                    lines += self._score(task, k, samples)
        return lines

    def _score(self, task: Task, entry: int, samples: list[Sample]) -> list[Line]:
        setting = self.plan.settings[task.setting]
        start = time.perf_counter()
        try:
            answer = self.predictors[entry](samples, setting)
            seconds = (time.perf_counter() - start) / len(samples)
            return self._scored(task, entry, samples, answer, seconds)
        except Exception as error:
            if len(samples) > 1:  # find out which frame it was
                return [line for sample in samples for line in self._score(task, entry, [sample])]
            return [self._line(task, samples[0].name, entry, error=error)]

    def _scored(
        self, task: Task, entry: int, samples: list[Sample], answer: DepthDistribution, seconds: float
    ) -> list[Line]:
        scores = score(
            answer.mean.cpu(),
            torch.stack([sample.target for sample in samples if sample.target is not None]),
            # The logit ranks pixels as the confidence does, without the sigmoid's rounding to 1.
            confidence=answer.confidence_logit.cpu() if answer.ranked else None,
            std=answer.std.cpu() if answer.calibrated else None,
            cameras=torch.stack([sample.intrinsics for sample in samples]) if self.plan.surfaces else None,
            names=[f"{sample.name}#{task.seed}" for sample in samples],
            measurements=torch.stack([sample.sparse for sample in samples]) if self.plan.trust else None,
        )
        return [
            self._line(task, sample.name, entry)
            | {
                "scores": found.to_json(),
                "measurements": int(measured(sample.sparse).sum()),
                "seconds": round(seconds, 6),
            }
            for sample, found in zip(samples, scores, strict=True)
        ]

    def _line(self, task: Task, name: str, entry: int, error: Exception | None = None) -> Line:
        line: Line = {
            "setting": self.plan.settings[task.setting].key,
            "seed": task.seed,
            "frame": name,
            "method": self.plan.entries[entry].name,
        }
        return line if error is None else line | {"error": f"{type(error).__name__}: {error}"}


def _another(dataset: Dataset, index: int) -> Sample:
    """The frame half a list away."""
    return dataset.load((index + len(dataset) // 2) % len(dataset))


_worker: Worker | None = None


def _start(plan: Plan) -> None:
    global _worker
    torch.set_num_threads(1)
    _worker = Worker(plan)


def _work(task: Task) -> list[Line]:
    assert _worker is not None
    return _worker.work(task)


def _tasks(plan: Plan, frames: Sequence[list[tuple[int, str]]], done: set[tuple[Any, ...]]) -> Iterator[Task]:
    """Chunks of `batch` frames, those of each setting, that lack some method."""
    everything = frozenset(range(len(plan.entries)))
    learned = frozenset(k for k in everything if plan.entries[k].kind == "weights")
    for s, setting in enumerate(plan.settings):
        entries = learned if setting.weights_only else everything
        for seed in range(plan.seeds):
            lacking = []
            for frame in frames[s]:
                key = (setting.key, seed, frame[1])
                missing = frozenset(k for k in entries if (*key, plan.entries[k].name) not in done)
                if missing:
                    lacking.append((frame, missing))
            for start in range(0, len(lacking), plan.batch):
                chunk = lacking[start : start + plan.batch]
                yield Task(s, seed, tuple(f for f, _ in chunk), tuple(m for _, m in chunk))


def _keys(plan: Plan, task: Task) -> Iterator[tuple[Any, ...]]:
    for (_, name), missing in zip(task.frames, task.missing, strict=True):
        for k in missing:
            yield (plan.settings[task.setting].key, task.seed, name, plan.entries[k].name)


def _key(line: Line) -> tuple[Any, ...]:
    return (line["setting"], line["seed"], line["frame"], line["method"])


def _identity(plan: Plan, names: list[str]) -> dict[str, Any]:
    """What must be equal for old results to count."""
    from gbpn import __version__

    return {
        "gbpn": __version__,
        "dataset": plan.dataset,
        "split": plan.split,
        "options": {k: list(v) if isinstance(v, tuple) else v for k, v in plan.options.items()},
        "frames": hashlib.sha256("\n".join(names).encode()).hexdigest(),
        "methods": {entry.name: entry.identity for entry in plan.entries},
        **({"surfaces": True} if plan.surfaces else {}),
        **({"trust": True} if plan.trust else {}),
    }


def _text(line: Line) -> str:
    """A line of the store; its last entry is a checksum of the others."""
    text = json.dumps(line, separators=(",", ":"))
    return f'{text[:-1]},"crc32":{zlib.crc32(text.encode())}}}'


def _line_of(text: str) -> Line | None:
    """What `_text` wrote; None where a run was interrupted in it or the file was damaged."""
    head, _, tail = text.rpartition(',"crc32":')
    whole = f"{head}}}"
    return json.loads(whole) if tail == f"{zlib.crc32(whole.encode())}}}" else None


def _read(store: Path, identity: dict[str, Any]) -> dict[tuple[Any, ...], Line]:
    """Finished lines of an earlier run of the same thing; failed and damaged ones are computed again."""
    if not store.is_file():
        return {}
    head, *rest = store.read_text(encoding="utf-8", errors="replace").splitlines() or [""]
    try:
        stored = json.loads(head)
    except (ValueError, RecursionError):
        stored = None
    found = stored.get("run") if isinstance(stored, dict) else None
    if not _compatible(found, identity):
        raise InputError(
            f"{shown(store)} holds the results of another run (other data, weights or version): "
            "choose another output folder, or add --fresh to replace it"
        )
    lines: dict[tuple[Any, ...], Line] = {}
    for text in rest:
        line = _line_of(text)
        if line is not None and "error" not in line:
            lines[_key(line)] = line
    # Written anew without torn and failed lines, under a head that knows all methods of both runs.
    identity["methods"] = found["methods"] | identity["methods"]
    whole = [_text(line) for line in lines.values()]
    write_text(store, "\n".join([json.dumps({"run": identity}), *whole]) + "\n")
    return lines


def _compatible(found: Any, wanted: dict[str, Any]) -> TypeGuard[dict[str, Any]]:
    """Equal but for the methods, which may differ as long as a name means the same thing."""
    if not isinstance(found, dict) or not isinstance(methods := found.get("methods"), dict):
        return False
    rest = {k: v for k, v in wanted.items() if k != "methods"}
    same = all(methods.get(name, value) == value for name, value in wanted["methods"].items())
    return same and rest == {k: v for k, v in found.items() if k != "methods"}
