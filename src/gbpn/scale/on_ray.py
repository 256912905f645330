"""The same work by actors of a Ray cluster, through Ray Data.

The driver hands out ranges of shard numbers and counts reports; frames never pass through it. An actor loads
the model once. Ray restarts actors that die and repeats their ranges, of which finished shards are skipped.
"""

from __future__ import annotations

import os
import re
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from gbpn.errors import BackendError, GbpnError
from gbpn.files.guard import shown
from gbpn.predict.completer import DepthCompleter
from gbpn.scale.instructions import Instructions
from gbpn.scale.records import ShardReport
from gbpn.scale.storage import Storage
from gbpn.scale.worker import ShardWorker
from gbpn.scale.worklist import Worklist

__all__ = ["Cluster", "reports_of_cluster"]

_MOST_RANGES = 4096
"""Ranges that the driver hands out, whatever the number of shards: its memory does not grow with them."""
_IN_FLIGHT = 2
"""Ranges that wait at an actor or are done by it."""
_SENT = ("AWS_ENDPOINT_URL", "AWS_ENDPOINT_URL_S3", "AWS_REGION", "GBPN_MAX_MEGAPIXELS")
"""Variables of the driver that workers get too; keys are not sent, machines have their own."""
_PATIENCE = 20.0
"""Seconds that a cluster may take to answer."""
_STARTS = 2
"""Of a cluster of our own: Ray gives up if its helpers take 15 s to load; the second time they are warm."""
_SPARE_CPUS = 1
"""Logical processors of a cluster of our own besides those of the actors."""


@dataclass(frozen=True, kw_only=True)
class Cluster:
    """Where the actors are, and what each of them gets."""

    address: str | None = None
    """None: a cluster on this machine, for this run; else "auto" or ray://host:port."""
    workers: int = 1
    cpus_per_worker: float = 1.0
    gpus_per_worker: float = 0.0

    @property
    def threads(self) -> int:
        """Of each worker."""
        return max(1, int(self.cpus_per_worker))


class _Actor:
    """A worker as Ray Data calls it; what goes wrong is reported, since Ray would repeat it."""

    def __init__(
        self,
        instructions: Any,
        worklist: Worklist,
        storage: Storage,
        launch: str,
        threads: int,
        opener: Callable[[], DepthCompleter] | None,
    ) -> None:
        import ray
        import torch

        torch.set_num_threads(threads)
        self.problem = ""
        try:
            self.worker = ShardWorker(
                ray.get(instructions), worklist, storage=storage, launch=launch, opener=opener
            )
        except GbpnError as error:
            self.problem = str(error)

    def __call__(self, ranges: dict[str, Any]) -> dict[str, list[str]]:
        """Reports of the shards from `first` to before `last`."""
        reports = []
        for first, last in zip(ranges["first"], ranges["last"], strict=True):
            for shard in range(int(first), int(last)):
                report = (
                    ShardReport(shard=shard, state="fatal", message=self.problem)
                    if self.problem
                    else self.worker.shard(shard)
                )
                reports.append(report)
                if report.state == "fatal":
                    break
        return {"report": [report.as_json() for report in reports]}


def reports_of_cluster(
    cluster: Cluster,
    instructions: Instructions,
    worklist: Worklist,
    storage: Storage,
    launch: str,
    opener: Callable[[], DepthCompleter] | None = None,
) -> Iterator[ShardReport]:
    """Reports of all shards as they end."""
    with _connected(cluster) as ray:
        from ray.exceptions import RayError

        _quiet(ray)
        ranges = _ranges(worklist.shards, cluster.workers)
        dataset = ray.data.from_items(ranges, override_num_blocks=len(ranges)).map_batches(
            _Actor,
            fn_constructor_args=(
                ray.put(instructions.packed_up()),
                worklist,
                storage,
                launch,
                cluster.threads,
                opener,
            ),
            batch_size=None,
            compute=ray.data.ActorPoolStrategy(
                size=min(cluster.workers, len(ranges)), max_tasks_in_flight_per_actor=_IN_FLIGHT
            ),
            num_cpus=cluster.cpus_per_worker,
            num_gpus=cluster.gpus_per_worker,
        )
        rows = iter(dataset.iter_rows())
        try:
            for row in rows:
                yield ShardReport.of_json(row["report"])
        except RayError as error:
            raise GbpnError(
                f"Ray cannot go on ({shown(str(error).strip().splitlines()[-1], 300)}); what is finished is "
                "kept: the same command goes on"
            ) from error
        finally:
            close = getattr(rows, "close", None)
            if close is not None:
                close()


def _ranges(shards: int, workers: int) -> list[dict[str, int]]:
    """Ranges of shard numbers, at most `_MOST_RANGES`, yet several for every worker."""
    most = max(_MOST_RANGES, 4 * workers)
    size = -(-shards // most)
    return [{"first": first, "last": min(first + size, shards)} for first in range(0, shards, size)]


@contextmanager
def _connected(cluster: Cluster) -> Iterator[Any]:
    """Ray, connected to a cluster; one of our own ends with the block."""
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")
    try:
        import ray
        import ray.data
    except ImportError as error:
        raise BackendError(f"--distributed ray needs Ray ({error}): pip install 'gbpn[scale]'") from error
    if ray.is_initialized():
        yield ray
        return
    variables = {name: os.environ[name] for name in _SENT if name in os.environ}
    variables |= {"OMP_NUM_THREADS": str(cluster.threads), "OMP_WAIT_POLICY": "passive"}
    options: dict[str, Any] = {
        "runtime_env": {"env_vars": variables},
        "log_to_driver": False,
        "logging_level": "ERROR",
    }
    if cluster.address is None:
        options["num_cpus"] = max(
            os.cpu_count() or 1, int(-(-cluster.workers * cluster.cpus_per_worker // 1)) + _SPARE_CPUS
        )
    _begin(ray, cluster, options)
    try:
        yield ray
    finally:
        ray.shutdown()


def _begin(ray: Any, cluster: Cluster, options: dict[str, Any]) -> None:
    """Connect, or start a cluster; whatever Ray raises, plain exceptions too, is told in one sentence."""
    for left in reversed(range(1 if cluster.address else _STARTS)):
        try:
            _require_answer(cluster.address)
            ray.init(address=cluster.address or "local", **options)
            return
        except Exception as error:
            if left:
                continue
            reason = shown(str(error).strip(), 200)
            told = (
                f"Ray does not start on this machine ({reason}): is it busy? --distributed here needs no Ray"
            )
            if cluster.address:
                told = f"no Ray cluster at {cluster.address} ({reason}): start one with ray start --head, or "
                told += "leave out --address"
            raise BackendError(told) from error


def _require_answer(address: str | None) -> None:
    """Raise if nobody listens at host:port; Ray itself would go on asking for minutes."""
    if found := re.fullmatch(r"(?:ray://)?([^:/]+):(\d+)", address or ""):
        socket.create_connection((found[1], int(found[2])), timeout=_PATIENCE).close()


def _quiet(ray: Any) -> None:
    """One progress bar is enough, and it is ours."""
    import logging

    context = ray.data.DataContext.get_current()
    context.enable_progress_bars = False
    context.print_on_execution_start = False
    for name in ("ray.data", "ray"):
        logging.getLogger(name).setLevel(logging.ERROR)
