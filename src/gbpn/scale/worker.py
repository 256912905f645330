"""`ShardWorker`: one process that completes shards, with the single-frame code of `gbpn complete`.

Inputs come and outputs go in threads while frames are computed. A shard's record is written when all its
outputs are where they belong; whatever happens before that, the shard is done anew by somebody, with the same
bytes.
"""

from __future__ import annotations

import json
import os
import platform
import shutil
import tempfile
import time
import warnings
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

from gbpn import __version__
from gbpn.errors import GbpnError, InputError, StorageError
from gbpn.files.atomic import hidden_folder, remove_leftovers
from gbpn.files.contained import contained
from gbpn.formats.depth_files import DepthRangeWarning
from gbpn.how import How
from gbpn.inputs.frame import FrameInputs
from gbpn.jobs.run import FULL, Job, Outcome
from gbpn.jobs.sources import Sensor
from gbpn.jobs.written import parse_intrinsics
from gbpn.predict.completer import DepthCompleter
from gbpn.scale import records
from gbpn.scale.fetching import AHEAD, FetchedFrame, ahead, discard, fetch, following, of_sample
from gbpn.scale.instructions import Instructions, require_same
from gbpn.scale.phases import Phases, watched
from gbpn.scale.records import FrameRecord, ShardReport
from gbpn.scale.storage import Storage, address, joined, local_path
from gbpn.scale.tar_shards import TarWriter, samples
from gbpn.scale.worklist import ListedFrame, Worklist, own_file

__all__ = ["ShardWorker"]

_THREADS = 4
"""That talk to the storage."""
_SCRATCH_ROOM = 1 << 31
"""Bytes that must be free in memory before unfinished files are kept there instead of on the disk."""
_QUANTILES = (0.1, 0.5, 0.9)


class ShardWorker:
    """Completes shards of a list; `shard` never raises, but tells."""

    def __init__(
        self,
        instructions: Instructions,
        worklist: Worklist,
        *,
        storage: Storage | None = None,
        launch: str = "",
        opener: Callable[[], DepthCompleter] | None = None,
    ) -> None:
        """opener: what makes the completer, if not the instructions."""
        self.storage, self.worklist, self.launch = storage or Storage(), worklist, launch
        self.name = f"{platform.node()}:{os.getpid()}"
        self._closing = ExitStack()
        base = _scratch()
        remove_leftovers(base)
        self.scratch = self._closing.enter_context(hidden_folder(base))
        self._pool = self._closing.enter_context(ThreadPoolExecutor(_THREADS))
        self._line = self._closing.enter_context(ThreadPoolExecutor(1))
        unpacked = instructions.unpacked(self.scratch / "carried")
        self.instructions = replace(unpacked, how=How.of_json(worklist.identity["how"]))
        self.phases = Phases()
        self._retried_told = 0
        self._read_in_place = 0
        """Bytes of files of this machine, of the shard at hand."""
        self.completer = watched((opener or self.instructions.open)(), self.phases)
        here = local_path(worklist.output) if instructions.pack == "files" else None
        self.outside = here is None
        """Whether outputs are made in the scratch folder and sent from there."""
        self.run = self.instructions.run(self.completer, self.scratch / "out" if here is None else here)
        self._check()

    def close(self) -> None:
        """Remove what is on the disk."""
        self._closing.close()

    def shard(self, number: int) -> ShardReport:
        """Complete what is missing of a shard."""
        try:
            if (before := records.committed(self.worklist.output, number, self.storage)) is not None:
                return before
            return self._complete(number)
        except StorageError as error:
            state = "postponed" if error.passing else "fatal"
            return ShardReport(shard=number, state=state, message=str(error), worker=self.name)
        except Exception as error:
            return ShardReport(shard=number, state="fatal", message=self._told(error), worker=self.name)

    def _told(self, error: Exception) -> str:
        """What ended the run, and what to do where that is not said yet."""
        number = getattr(error, "errno", None)
        if isinstance(error, GbpnError) and number not in FULL:
            return str(error)
        if not isinstance(error, GbpnError | OSError):
            error = GbpnError(f"{type(error).__name__}: {error} (a fault of gbpn: please report it)")
        room = "make room, then " if number in FULL else ""
        return f"{self.name}: {error}; what was finished is kept: {room}the same command goes on"

    def _check(self) -> None:
        """Raise unless this machine has the run's weights and sees its output."""
        require_same(self.name, json.loads(json.dumps(self.run.identity())), self.worklist.identity)
        place = own_file(self.worklist.output, "run.json")
        if self.storage.find(place) is None:
            raise InputError(
                f"{self.name} does not see {address(place)}: with several machines the output is a bucket or "
                "a folder that all of them share"
            )

    def _complete(self, number: int) -> ShardReport:
        start, before = time.perf_counter(), self.phases.seconds.copy()
        processor = time.process_time()
        bytes_before = self.storage.bytes_read, self.storage.bytes_written
        self._read_in_place = 0
        tar = TarWriter(self.scratch / f"{number}.tar") if self.instructions.pack == "tar" else None
        rows = self._rows(number, tar)
        if tar is not None:
            packed = f"shard-{number:010d}.tar"
            with self.phases.of("write"):
                self.storage.write(joined(self.worklist.output, packed), tar.close())
            tar.path.unlink()
            rows = [replace(row, packed=packed) if row.files else row for row in rows]
        in_place = 0 if self.outside else sum(row.size for row in rows)
        states, retried = [row.state for row in rows], sum(self.storage.retried.values())
        report = ShardReport(
            shard=number,
            state="done",
            written=states.count("written"),
            left_out=states.count("left out"),
            failed=states.count("failed"),
            frames=len(rows),
            **self.phases.since(before),
            bytes_read=self.storage.bytes_read - bytes_before[0] + self._read_in_place,
            bytes_written=self.storage.bytes_written - bytes_before[1] + in_place,
            retried=retried - self._retried_told,
            worker=self.name,
            launch=self.launch,
            memory=_resident(),
            seconds=time.perf_counter() - start,
            processor=time.process_time() - processor,
            message=next((row.error for row in rows if row.state == "failed"), ""),
        )
        self._retried_told = retried  # those of the record are told with the next shard
        records.commit(self.worklist.output, rows, report, self.storage)
        return replace(report, seconds=time.perf_counter() - start)

    def _rows(self, number: int, tar: TarWriter | None) -> list[FrameRecord]:
        """All frames of a shard; their outputs are in place when this ends."""
        with self.phases.of("read"):
            listed = self.worklist.frames(number, self.storage)
        sending: deque[Future[None]] = deque()
        rows = []
        try:
            for frame, arriving in self._inputs(listed):
                row, files = self._frame(frame, arriving)
                if files and self.outside:
                    row = self._pack(row, files, tar, sending)
                rows.append(row)
            with self.phases.of("write"):
                while sending:
                    sending.popleft().result()
        finally:
            for future in sending:
                future.cancel()
            if self.outside:
                shutil.rmtree(self.scratch / "out", ignore_errors=True)
        return rows

    def _inputs(self, listed: list[ListedFrame]) -> Iterator[tuple[ListedFrame, Future[FetchedFrame]]]:
        if not self.worklist.tars:
            yield from ahead(
                self._pool, partial(fetch, self.storage, partial(self._folder, "in")), listed, discard
            )
            return
        for tar in listed:
            unpacking = self._unpacked(tar)
            nothing: Iterable[None] = iter(lambda: None, 1)
            for _, coming in ahead(self._line, partial(following, unpacking), nothing):
                with self.phases.of("read"):
                    pair = coming.result()
                if pair is None:
                    break
                done: Future[FetchedFrame] = Future()
                done.set_result(pair[1])
                yield pair[0], done

    def _unpacked(self, tar: ListedFrame) -> Iterator[tuple[ListedFrame, FetchedFrame]]:
        """The frames of a tar; where it breaks off, one more that says so."""
        folder = self.scratch / "in" / tar.name
        try:
            with self.storage.open(tar.image) as stream:
                for sample in samples(stream, folder):
                    yield of_sample(tar, sample)
        except (InputError, StorageError) as error:
            if isinstance(error, StorageError) and error.passing:
                raise
            problem = f"{address(tar.image)}: {error}"
            yield (
                ListedFrame(name=tar.name, image=tar.image),
                FetchedFrame(image=Path(tar.image), problem=problem),
            )

    def _frame(self, frame: ListedFrame, arriving: Future[FetchedFrame]) -> tuple[FrameRecord, list[Path]]:
        """One frame by the code of one machine; its record and its files."""
        start, before = time.perf_counter(), self.phases.seconds.copy()
        with self.phases.of("read"):
            fetched = arriving.result()
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", DepthRangeWarning)
                warnings.simplefilter("error", Image.DecompressionBombWarning)
                outcome = self._outcome(frame, fetched)
        finally:
            if fetched.folder is not None:
                shutil.rmtree(fetched.folder, ignore_errors=True)
        if fetched.folder is None:
            paths = (fetched.image, fetched.sparse)
            self._read_in_place += sum(path.stat().st_size for path in paths if path and path.is_file())
        spent = self.phases.since(before)
        seconds = time.perf_counter() - start
        rest = seconds - sum(spent.values())
        self.phases.seconds["write"] += rest
        facts = _facts(outcome, self.run.output)
        row = FrameRecord(
            frame=frame.name,
            state="written" if outcome.state == "kept" else outcome.state,
            image=address(frame.image),
            sparse=address(frame.sparse),
            error=outcome.message if outcome.state == "failed" else "",
            notices=facts.pop("notices", []) or ([outcome.message] if outcome.state == "left out" else []),
            seconds=seconds,
            seconds_read=spent["read"],
            seconds_network=spent["network"],
            seconds_inference=spent["inference"],
            seconds_write=rest,
            model=str(self.worklist.identity["model"]),
            weights=str(self.worklist.identity["weights"]),
            gbpn=__version__,
            worker=self.name,
            **facts,
        )
        return row, list(outcome.files)

    def _outcome(self, frame: ListedFrame, fetched: FetchedFrame) -> Outcome:
        settings = json.loads(frame.settings)
        run = self.run
        problem = frame.problem or fetched.problem
        if frame.camera:
            settings["camera"] = address(frame.camera)
        try:
            contained(run.output, frame.name, "_confidence.npy")
            if fetched.camera:
                run = replace(run, sensor=replace(run.sensor, intrinsics=parse_intrinsics(fetched.camera)))
        except GbpnError as error:
            problem = problem or str(error)

        def read(sensor: Sensor) -> FrameInputs:
            with self.phases.of("read"):
                return sensor.read(fetched.image, fetched.sparse)

        job = Job(
            image=fetched.image,
            sparse=fetched.sparse,
            name=frame.name,
            problem=problem,
            left_out=frame.left_out,
            read=read,
            settings=settings,
        )
        try:
            if not problem and not self.outside:
                run.check([job])
        except InputError as error:
            job = replace(job, problem=str(error))
        return run.one(job, self.worklist.identity)

    def _pack(
        self, row: FrameRecord, files: list[Path], tar: TarWriter | None, sending: deque[Future[None]]
    ) -> FrameRecord:
        """Send the files of a frame on their way, or into the tar or the table."""
        with self.phases.of("write"):
            if tar is not None:
                row = replace(row, files=tar.add(row.frame, files))
            elif self.instructions.pack == "parquet":
                row = replace(row, contents=[(file.name, file.read_bytes()) for file in files])
            else:
                while len(sending) >= AHEAD * len(files):
                    sending.popleft().result()
                for file, name in zip(files, row.files, strict=True):
                    sending.append(self._pool.submit(self._send, file, joined(self.worklist.output, name)))
                return row
            for file in files:
                file.unlink()
        return row

    def _send(self, file: Path, uri: str) -> None:
        self.storage.write(uri, file.read_bytes())
        file.unlink()

    def _folder(self, name: str) -> Path:
        folder = self.scratch / name
        folder.mkdir(exist_ok=True)
        return folder


def _facts(outcome: Outcome, root: Path) -> dict[str, Any]:
    """What a frame's own record and its sigmas say: the table tells what is in the files."""
    if outcome.state not in ("written", "kept"):
        return {}
    files = list(outcome.files)
    place = root / f"{outcome.job.name}.json"
    stored = json.loads(place.read_text(encoding="utf-8"))
    if place not in files:
        files.append(place)
    sigmas: dict[str, float | None] = {}
    std = place.with_name(f"{place.stem}_std.npy")
    if std in files:
        values = np.load(std)
        values = values[np.isfinite(values)]
        levels = np.quantile(values, _QUANTILES) if values.size else np.full(len(_QUANTILES), np.nan)
        sigmas = {f"sigma_{100 * q:.0f}": float(level) for q, level in zip(_QUANTILES, levels, strict=True)}
    return {
        "files": [file.relative_to(root).as_posix() for file in files],
        "size": sum(file.stat().st_size for file in files),
        "height": stored["size"][0],
        "width": stored["size"][1],
        "measurements": stored["measurements"],
        "dropped": len(stored["dropped"]),
        "observed": stored["observed"],
        "notices": stored["notices"],
        **sigmas,
    }


def _scratch() -> Path:
    """Where unfinished files lie: in memory where there is room, else in the system's temporary folder."""
    if given := os.environ.get("GBPN_SCRATCH"):
        return Path(given)
    memory = Path("/dev/shm")
    if memory.is_dir() and os.access(memory, os.W_OK) and shutil.disk_usage(memory).free > _SCRATCH_ROOM:
        return memory
    return Path(tempfile.gettempdir())


def _resident() -> int:
    """Bytes of memory that this process has; 0 where the system does not say."""
    try:
        with open("/proc/self/statm", encoding="ascii") as file:
            return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except (OSError, IndexError, ValueError):
        return 0
