"""`complete`: any number of frames from any storage, each exactly once, in this process or on Ray."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from gbpn import __version__
from gbpn.errors import GbpnError, InputError
from gbpn.predict.completer import DepthCompleter
from gbpn.scale import records
from gbpn.scale.instructions import Instructions
from gbpn.scale.listing import listed, source_facts, tar_shards
from gbpn.scale.records import ShardReport
from gbpn.scale.storage import Storage, address, is_remote, local_path, require_arrow
from gbpn.scale.summary import Summary
from gbpn.scale.worker import ShardWorker
from gbpn.scale.worklist import Worklist, begin

__all__ = ["ENGINES", "complete"]

ENGINES = ("here", "ray")
"""Where the work is done: in this process, or by actors of a Ray cluster."""


def complete(
    source: str,
    sparse: str | None = None,
    output: str = "completed",
    *,
    instructions: Instructions | None = None,
    distributed: str = "here",
    address_of_cluster: str | None = None,
    workers: int = 1,
    cpus_per_worker: float = 1.0,
    gpus_per_worker: float = 0.0,
    batch: int = 32,
    max_failures: int | None = None,
    retry_failed: bool = False,
    pairing: dict[str, Any] | None = None,
    opener: Callable[[], DepthCompleter] | None = None,
    storage: Storage | None = None,
    on_progress: Callable[[Summary], None] | None = None,
) -> Summary:
    """Complete all frames of a source into an output; what an earlier start finished is not done again.

    source              folder, glob, manifest (.csv, .parquet) or tar shards; a path or an address
    sparse              folder with one file of measurements per image, where the source does not say
    output              folder or address; one output has results of one kind only
    instructions        weights, sensor and files, as the options of `gbpn complete`
    distributed         "here" or "ray"
    address_of_cluster  of Ray: None starts one on this machine; "auto" or "ray://host:10001" uses one
    batch               frames that are committed together
    max_failures        failed frames (and shards that the storage refused) after which the run ends
    retry_failed        do shards with failed frames anew
    opener              what makes the completer of each worker, if not the instructions
    on_progress         called after each shard
    """
    require_arrow()
    if distributed not in ENGINES:
        raise InputError(f"distributed must be one of {', '.join(ENGINES)}; got {distributed!r}")
    if batch < 1 or workers < 1:
        raise InputError(f"batch and workers must be at least 1; got {batch} and {workers}")
    instructions, storage = instructions or Instructions(), storage or Storage()
    asked_before = sum(storage.retried.values())
    output = output if is_remote(output) else str((local_path(output) or Path()).absolute())
    worklist = _worklist(source, sparse, output, instructions, storage, batch, pairing or {}, opener)
    if retry_failed:
        records.uncommit(output, storage)
    launch = uuid.uuid4().hex
    summary = Summary(
        output=address(output),
        shards=worklist.shards,
        frames=None if worklist.tars else worklist.lines,
        launch=launch,
    )
    if distributed == "ray":
        from gbpn.scale.on_ray import Cluster, reports_of_cluster

        cluster = Cluster(
            address=address_of_cluster,
            workers=workers,
            cpus_per_worker=cpus_per_worker,
            gpus_per_worker=gpus_per_worker,
        )
        reports = reports_of_cluster(cluster, instructions, worklist, storage, launch, opener)
    else:
        reports = _reports_here(instructions, worklist, storage, launch, opener)
    _count(reports, summary, max_failures, on_progress)
    own = sum(storage.retried.values()) - asked_before  # in one process those of the worker too
    summary.retried = own if distributed == "here" else summary.retried + own
    return summary


def _worklist(
    source: str,
    sparse: str | None,
    output: str,
    instructions: Instructions,
    storage: Storage,
    batch: int,
    pairing: dict[str, Any],
    opener: Callable[[], DepthCompleter] | None,
) -> Worklist:
    if not is_remote(output) and Path(output).exists() and not Path(output).is_dir():
        raise InputError(f"{output} is a file: -o wants a folder")
    tars = tar_shards(source, storage) is not None
    completer = (opener or instructions.open)()
    facts = {
        "gbpn": __version__,
        "identity": instructions.run(completer, Path("output")).identity(),
        "pack": instructions.pack,
        "tars": tars,
        **source_facts(source, sparse, storage),
    }
    frames = listed(source, sparse, storage, others=bool(instructions.sensor.points), **pairing)
    return begin(output, frames, facts, storage, batch=1 if tars else batch)


def _reports_here(
    instructions: Instructions,
    worklist: Worklist,
    storage: Storage,
    launch: str,
    opener: Callable[[], DepthCompleter] | None,
) -> Iterator[ShardReport]:
    worker = ShardWorker(instructions, worklist, storage=storage, launch=launch, opener=opener)
    try:
        for shard in range(worklist.shards):
            yield worker.shard(shard)
    finally:
        worker.close()


def _count(
    reports: Iterator[ShardReport],
    summary: Summary,
    max_failures: int | None,
    on_progress: Callable[[Summary], None] | None,
) -> None:
    """Follow a run to its end, or to where it makes no sense to go on."""
    try:
        for report in reports:
            if report.state == "fatal":
                raise GbpnError(report.message)
            summary.add(report)
            if on_progress is not None:
                on_progress(summary)
            failures = summary.failed + summary.postponed
            if max_failures is not None and failures > max_failures:
                raise GbpnError(
                    f"{failures} failures, more than --max-failures {max_failures}; the last: "
                    f"{summary.problem}; see gbpn/quarantine in {summary.output}; what is finished is kept"
                )
    finally:
        close = getattr(reports, "close", None)
        if close is not None:
            close()
