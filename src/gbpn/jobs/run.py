"""Many frames in one run: which images go with which measurements, what is done already, what failed."""

from __future__ import annotations

import errno
import json
import os
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path, PurePosixPath
from typing import Any

import numpy as np

from gbpn.answer.completed import CompletedDepth, output_names
from gbpn.errors import GbpnError, InputError
from gbpn.files.atomic import checksum, remove_leftovers, write_text
from gbpn.formats.images import write_image
from gbpn.inputs.frame import FrameInputs
from gbpn.inputs.reading import UNDISTORTED
from gbpn.jobs.pairing import Job
from gbpn.jobs.sources import Sensor
from gbpn.measurements.validity import measured
from gbpn.predict.completer import DepthCompleter
from gbpn.sigma.limit import SigmaLimit

__all__ = ["FULL", "LONGEST_MESSAGE", "Glance", "Job", "Outcome", "Run"]

FULL = (errno.ENOSPC, errno.EDQUOT, errno.EROFS)
"""Errors of writing that every further frame would meet too."""
LONGEST_MESSAGE = 500
"""Characters that are told of a failure."""


@dataclass(frozen=True, kw_only=True)
class Glance:
    """A written frame in a few numbers, for people."""

    size: tuple[int, int]
    """Height and width."""
    points: int
    """Measurements that were used."""
    measured: tuple[float, float]
    """Nearest and farthest of them, metres."""
    focal: float
    """Pixels."""
    depth: tuple[float, float]
    """Nearest and farthest answer, metres."""
    sigma: float | None
    """Median, metres; None without a calibration."""
    seconds: float
    """Reading, completing and writing."""
    precision: str
    """Of the convolutions."""
    metric: bool = True
    """Whether depths are metres; else they have no unit."""
    wide: str = ""
    """A panorama or a fisheye lens in words; empty: a pinhole."""

    @classmethod
    def of(cls, result: CompletedDepth, seconds: float, *, metric: bool = True) -> Glance:
        points = result.sparse[measured(result.sparse)]
        known = result.depth[result.observed]
        near_far = (float(known.min()), float(known.max())) if known.size else (0.0, 0.0)
        return cls(
            size=(result.depth.shape[0], result.depth.shape[1]),
            points=int(points.numel()),
            measured=(float(points.min()), float(points.max())) if points.numel() else (0.0, 0.0),
            focal=float(result.intrinsics[0, 0]),
            depth=near_far,
            sigma=float(np.nanmedian(result.std)) if result.calibrated and known.size else None,
            seconds=seconds,
            precision=result.how.precision,
            metric=metric,
            wide="" if result.wide is None else str(result.wide),
        )


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """What became of a frame."""

    job: Job
    state: str
    """"written", "kept" (was there already), "left out" (there is nothing to complete it from) or
    "failed"."""
    message: str = ""
    notices: tuple[str, ...] = ()
    dropped: int = 0
    """Measurements that were not used, since the rest contradicts them."""
    files: tuple[Path, ...] = ()
    change: float = 0.0
    """Metres between a measurement and the depth given for it, at most; 0 where none was written."""
    glance: Glance | None = None
    """Where it was written now."""


@dataclass(frozen=True, kw_only=True)
class Run:
    """Complete frames into a folder."""

    completer: DepthCompleter
    sensor: Sensor
    output: Path
    cloud: bool = False
    again: bool = False
    """Whether frames that were completed before are done anew."""
    also: tuple[str, ...] = ()
    """Further files, of `output_files.FORMATS`."""
    max_sigma: SigmaLimit | None = None
    """Of pixels that are trusted; None: the usual."""

    def check(self, frames: Sequence[Job]) -> None:
        """Raise if an output would replace an input, or the folder cannot be one."""
        if self.output.exists() and not self.output.is_dir():
            raise InputError(f"{self.output} is a file: -o wants a folder")
        # realpath, since resolve() raises on the loop of links that one frame may be
        place = os.path.realpath(self.output)
        if len(frames) > 1 and any(os.path.realpath(frame.image.parent) == place for frame in frames):
            raise InputError(f"{self.output} holds the images: another -o keeps results from becoming inputs")
        inputs = {os.path.realpath(path) for frame in frames for path in (frame.image, frame.sparse) if path}
        calibrated = self.completer.model.calibration is not None
        for frame in frames:
            names = output_names(frame.name, calibrated=calibrated, cloud=self.cloud, also=self.also)
            for name in (*names, f"{frame.name}.json"):
                if os.path.realpath(self.output / name) in inputs:
                    raise InputError(f"{self.output / name} is an input and would be overwritten: other -o")

    def all(self, frames: Sequence[Job], workers: int = 1) -> Iterator[Outcome]:
        """Outcomes as frames end; at most `workers` frames are in memory at a time."""
        identity = self.identity()
        for folder in {(self.output / frame.name).parent for frame in frames}:
            remove_leftovers(folder)
        if workers == 1:
            for frame in frames:
                yield self.one(frame, identity)
            return
        with ThreadPoolExecutor(workers) as pool:
            waiting: set[Future[Outcome]] = set()
            rest = list(reversed(frames))
            try:
                while True:
                    while rest and len(waiting) < workers:
                        waiting.add(pool.submit(self.one, rest.pop(), identity))
                    if not waiting:
                        return
                    ended, waiting = wait(waiting, return_when=FIRST_COMPLETED)
                    for future in ended:
                        yield future.result()
            finally:
                for future in waiting:
                    future.cancel()

    def one(self, job: Job, identity: dict[str, Any]) -> Outcome:
        """One frame; what is wrong with it is an outcome, a disk that takes no more an error."""
        try:
            return self._one(job, identity)
        except _NoRoom as error:
            raise GbpnError(
                f"{error}; what was finished is kept: make room and run the same command again"
            ) from error
        except GbpnError as error:
            return Outcome(job=job, state="failed", message=_short(str(error)))
        except Exception as error:  # whatever it is, the other frames are not to blame
            lacks = isinstance(error, MemoryError) or "not enough memory" in str(error)
            reason = "not enough memory" if lacks else f"{type(error).__name__}: {error}"
            return Outcome(job=job, state="failed", message=_short(f"{job.image}: {reason}"))

    def _one(self, job: Job, identity: dict[str, Any]) -> Outcome:
        if job.problem:
            raise InputError(f"{job.image}: {job.problem}")
        if job.left_out:
            return Outcome(job=job, state="left out", message=job.left_out)
        picture = _recorded_state(job.image) if job.recorded else _state(job.image)
        depths = [] if job.sparse is None else [_state(job.sparse)]
        record = {**identity, **job.settings, "inputs": [picture, *depths]}
        record["inputs"] += [_state(p) for p in self.sensor.rating_files(job.image, job.sparse)]
        place = self.output / f"{job.name}.json"
        if not self.again and (files := _finished(place, record)):
            return Outcome(job=job, state="kept", files=tuple(files))
        start = time.perf_counter()
        inputs = self.sensor.read(job.image, job.sparse) if job.read is None else job.read()
        if not job.recorded:
            record["place"] = self.sensor.place(job.image, *inputs.size)
        result = self._complete(inputs)
        result = replace(result, max_sigma=self.max_sigma)
        try:
            files = self._write(result, job.name, place, record)
        except OSError as error:
            kind = _NoRoom if error.errno in FULL else GbpnError
            raise kind(f"cannot write to {self.output}: {error.strerror or error}") from error
        return Outcome(
            job=job,
            state="written",
            notices=tuple(notice for notice in result.notices if notice != result.outlier_notice),
            dropped=int(result.dropped.sum()),
            change=_change(result).get("largest", 0.0),
            files=(*files, place),
            glance=Glance.of(result, time.perf_counter() - start, metric=inputs.metric),
        )

    def _write(self, result: CompletedDepth, name: str, place: Path, record: dict[str, Any]) -> list[Path]:
        """The old record goes first and the new one comes last: there is none beside files of two runs."""
        place.unlink(missing_ok=True)
        files = result.save(place.parent, PurePosixPath(name).name, cloud=self.cloud, also=self.also)
        if any(UNDISTORTED in notice for notice in result.notices):  # depth is of no use without its picture
            files.append(place.parent / f"{PurePosixPath(name).name}_undistorted.png")
            write_image(files[-1], result.image)
        facts = {
            "measurements": int(measured(result.sparse).sum()),
            "dropped": _points(result),
            "observed": float(result.observed.mean()),
            "intrinsics": result.intrinsics.tolist(),
            "camera": {"kind": "pinhole"} if result.wide is None else result.wide.as_json(),
            "size": list(result.depth.shape),
            "change": _change(result),
            "prior": None if result.distribution.prior is None else result.distribution.prior.as_json(),
            "notices": result.notices,
            "files": {file.name: _contents(file) for file in files},
        }
        write_text(place, json.dumps({**facts, **record}, indent=1) + "\n", durable=True)
        return files

    @cached_property
    def _complete(self) -> Callable[[FrameInputs], CompletedDepth]:
        """One frame after the other: of a video, or each by itself."""
        completer = self.completer
        return completer.stream().frame if completer.how.stream else completer.complete

    def identity(self) -> dict[str, Any]:
        """What an answer depends on besides its own inputs."""
        return {
            **self.completer.engine.record(),
            "cloud": self.cloud,
            "also": list(self.also),
            "max_sigma": str(self.max_sigma),
            "settings": self.sensor.settings(),
        }


def _state(path: Path) -> list[Any]:
    """Name, size and checksum of a file: what changes when it does, whatever its time says."""
    try:
        if not path.is_file():
            raise InputError(f"{path}: no ordinary file")
        return [path.name, *_contents(path).values()]
    except OSError as error:
        raise InputError(f"{path}: {error.strerror or error}") from error


def _recorded_state(path: Path) -> list[Any]:
    """Names, sizes and times of the files of a recording or video: too large to be read for each frame."""
    files = sorted(path.iterdir()) if path.is_dir() else [path]
    return [[file.name, file.stat().st_size, file.stat().st_mtime_ns] for file in files]


def _points(result: CompletedDepth) -> list[str]:
    """The measurements that were not used, each as --points takes it: x,y,depth."""
    depth = result.sparse[0].numpy()
    return [f"{x},{y},{depth[y, x]:g}" for y, x in np.argwhere(result.dropped)]


def _change(result: CompletedDepth) -> dict[str, float]:
    """Metres between the depth and the measurements: in the median, and at most."""
    change = result.change
    return {"median": float(np.median(change)), "largest": float(change.max())} if len(change) else {}


def _contents(file: Path) -> dict[str, Any]:
    """Size and checksum."""
    return {"bytes": file.stat().st_size, "crc32": checksum(file)}


def _finished(place: Path, record: dict[str, Any]) -> list[Path]:
    """The files of an earlier run that says it did the same; empty if it did not, or if they have changed."""
    try:
        stored = json.loads(place.read_text(encoding="utf-8"))
        same = all(stored[key] == value for key, value in json.loads(json.dumps(record)).items())
        files = {place.parent / Path(name).name: contents for name, contents in stored["files"].items()}
        whole = same and all(_contents(file) == contents for file, contents in files.items())
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return []
    return list(files) if whole else []


def _short(text: str) -> str:
    return text if len(text) <= LONGEST_MESSAGE else f"{text[:LONGEST_MESSAGE]}…"


class _NoRoom(GbpnError):
    """Nothing more can be written."""
