"""Kill actors, raylets and drivers at random while frames go from S3 to S3; nothing is lost or done twice.

    python scripts/chaos.py --frames 1000 --kills 20

A Ray cluster of a head and two worker raylets, and an S3 (moto, HTTP) on this machine. The same command runs
undisturbed first, then with kills spread over the run; a driver that died is started again with the same
command. At the end all objects are compared byte for byte, and the tables without their times.

The resident memory of every process is looked at once a second: driver, actors, raylets, Ray's server and
agents, in both runs. It is flat if
- no process that lived for 30 s after its start has a tenth (or 16 MB) more in its last quarter than in its
  second (medians; a start ends where 80 % of the last are reached, or after a third of its life), and
- none of the disturbed run, however short its life, ever had a tenth (or 16 MB) more than the largest of its
  kind in the undisturbed run.
"""

from __future__ import annotations

import argparse
import collections
import json
import os
import random
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OMP_WAIT_POLICY", "passive")
os.environ.setdefault("RAY_worker_niceness", "0")
os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
os.environ.setdefault("RAY_raylet_start_wait_time_s", "300")  # a busy machine starts them slowly
os.environ.setdefault("RAY_gcs_server_request_timeout_seconds", "300")
ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tests" / "scale"))

import psutil  # noqa: E402
from hostile_bucket import free_port, s3_server, uri  # noqa: E402
from small_frames import write_frames  # noqa: E402

import gbpn.scale  # noqa: E402
from gbpn.scale.storage import Storage, base_name, joined  # noqa: E402

DETECTION = {"health_check_period_ms": 3000, "health_check_failure_threshold": 4}
"""How fast Ray notices that a raylet is gone; not so fast that a busy machine counts as dead."""
TIMES = {"seconds", "seconds_read", "seconds_network", "seconds_inference", "seconds_write", "worker"}
FLAT, SLACK = 0.1, 16e6
"""Share of its memory by which a process may grow, or bytes, for the small ones: Ray remembers the dead."""
LIFE = 30
"""Looks, one a second, after which a process is judged by its own past."""
STARTED = 0.8
"""Share of its last memory at which a process counts as started."""
ROLES = {
    "raylet/raylet": "raylet", "gcs_server": "gcs", "ray::MapWorker": "actor", "ray::": "other worker",
    "default_worker": "other worker", "agent": "agent", "log_monitor": "agent", "monitor.py": "agent",
    "dashboard": "agent",
}  # fmt: skip
"""What a process of Ray is, by a word of its command."""


def role(process: psutil.Process, driver: int) -> str:
    """What a process is; empty for the bucket's and unknown ones, of which there are none."""
    if process.pid == driver:
        return "driver"
    words = " ".join(process.info["cmdline"] or [])
    return next((kind for word, kind in ROLES.items() if word in words), "")


class Memory:
    """Resident bytes of every process of a run, by role, once a second."""

    def __init__(self) -> None:
        self.seen: dict[tuple[str, int], list[int]] = collections.defaultdict(list)

    def sample(self, driver: int) -> None:
        for process in own_processes(["cmdline", "memory_info"]):
            size = process.info["memory_info"].rss if process.info["memory_info"] else 0
            if (kind := role(process, driver)) and size:  # the dead have nothing
                self.seen[kind, process.pid].append(size)

    def peaks(self) -> collections.defaultdict[str, int]:
        """The most that any process of a role had."""
        found = collections.defaultdict[str, int](int)
        for (kind, _), sizes in self.seen.items():
            found[kind] = max(found[kind], *sizes)
        return found

    def growth(self) -> dict[str, list[tuple[float, float]]]:
        """Of the processes that lived long: medians of their second and of their last quarter."""
        found = collections.defaultdict(list)
        for (kind, _), sizes in self.seen.items():
            last = statistics.median(sizes[-max(1, len(sizes) // 4) :])
            start = next(n for n, size in enumerate(sizes) if size >= STARTED * last)
            life = sizes[min(start, len(sizes) // 3) :]
            if len(life) >= LIFE:
                quarter = len(life) // 4
                early = statistics.median(life[quarter : 2 * quarter])
                found[kind].append((early, statistics.median(life[-quarter:])))
        return dict(found)


def judged(calm: Memory, disturbed: Memory) -> dict[str, Any]:
    """Memory of both runs by role, the most that anything grew, and whether it is flat."""
    before, after = calm.peaks(), disturbed.peaks()
    roles, flat = {}, True
    for kind in sorted({*before, *after}):
        lives = [*calm.growth().get(kind, []), *disturbed.growth().get(kind, [])]
        pairs = [*lives, (before.get(kind, after[kind]), after[kind])]
        flat = flat and all(late - early <= max(FLAT * early, SLACK) for early, late in pairs)
        roles[kind] = {
            "processes": [sum(k == kind for k, _ in run.seen) for run in (calm, disturbed)],
            "judged_by_own_past": len(lives),
            "largest_growth_in_a_life": max(
                (round(late / early - 1, 3) for early, late in lives), default=None
            ),
            "the_same_mb": max((round((late - early) / 1e6, 1) for early, late in lives), default=None),
            "peak_mb": [round(run.get(kind, 0) / 1e6) for run in (before, after)],
        }
    return {"roles": roles, "flat": flat}


def own_processes(wanted: list[str]) -> Iterator[psutil.Process]:
    """All that this process began, directly or not, with the facts that are asked for as `info`."""
    for process in psutil.Process().children(recursive=True):
        try:
            process.info = process.as_dict(wanted)
        except psutil.NoSuchProcess:
            continue
        yield process


def ports() -> dict[str, int]:
    """Ports of a node's helpers: a raylet that must find them out itself dies if they take more than 15 s."""
    names = ("metrics_agent_port", "metrics_export_port", "dashboard_agent_listen_port")
    return {name: free_port() for name in (*names, "runtime_env_agent_port")}


class Campaign:
    """One disturbed run."""

    def __init__(self, cluster: Any, command: list[str], output: str, shards: int, seed: int) -> None:
        self.cluster, self.command, self.output, self.shards = cluster, command, output, shards
        self.storage, self.random, self.memory = Storage(), random.Random(seed), Memory()
        self.driver = self.start()
        self.starts, self.kills = 1, collections.Counter[str]()

    def start(self) -> subprocess.Popen[str]:
        return subprocess.Popen(self.command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)

    def committed(self) -> int:
        try:
            return len(self.storage.files(joined(self.output, "gbpn/records")))
        except gbpn.GbpnError:
            return 0

    def actors(self) -> list[psutil.Process]:
        return [one for one in own_processes(["cmdline"]) if role(one, self.driver.pid) == "actor"]

    def kill(self, what: str) -> bool:
        """Whether there was something to kill."""
        if what == "driver":
            if self.driver.poll() is not None:
                return False
            self.driver.send_signal(signal.SIGKILL)
        elif what == "raylet":
            node = self.random.choice(list(self.cluster.worker_nodes))
            self.cluster.remove_node(node, allow_graceful=False)
            self.cluster.add_node(num_cpus=2, **ports())
        else:
            if not (actors := self.actors()):
                return False
            self.random.choice(actors).kill()
        self.kills[what] += 1
        return True

    def go(self, kills: list[str], limit: float) -> list[str]:
        """Kill at even distances of progress; what the drivers said."""
        said: list[str] = []
        begun, wanted = time.time(), list(kills)
        while time.time() - begun < limit:
            time.sleep(1)
            self.memory.sample(self.driver.pid)
            if self.driver.poll() is not None:
                said.append(f"exit {self.driver.returncode}: {self.driver.communicate()[0][-600:]}")
                if self.driver.returncode == 0:
                    return said
                self.driver, self.starts = self.start(), self.starts + 1
            done = self.committed()
            due = (len(kills) - len(wanted) + 1) * self.shards / (len(kills) + 1)
            if wanted and done >= due and self.kill(wanted[0]):
                print(
                    f"{time.time() - begun:6.0f} s  {done}/{self.shards} shards: killed {wanted.pop(0)}",
                    flush=True,
                )
        raise SystemExit(f"not finished within {limit:.0f} s: {said[-1:]}")


def objects(storage: Storage, output: str) -> dict[str, bytes]:
    return {base_name(entry.uri): storage.read(entry.uri) for entry in storage.files(output)}


def rows(output: str) -> list[dict[str, Any]]:
    table = gbpn.scale.read_records(output).to_pylist()
    return [{name: value for name, value in row.items() if name not in TIMES} for row in table]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--frames", type=int, default=1000)
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--size", default="128x96")
    parser.add_argument("--batch", type=int, default=8)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--weights", default="default")
    parser.add_argument("--limit", type=float, default=3600)
    asked = parser.parse_args()
    width, height = (int(word) for word in asked.size.split("x"))
    from ray.cluster_utils import Cluster

    with s3_server() as port, tempfile.TemporaryDirectory() as folder:
        storage = Storage()
        base = uri(port, "frames/in")
        for file in sorted(write_frames(Path(folder) / "f", asked.frames, (height, width)).rglob("*.png")):
            storage.write(joined(base, f"{file.parent.name}/{file.name}"), file.read_bytes())
        head = {"num_cpus": 0, "_system_config": DETECTION, **ports()}
        cluster = Cluster(initialize_head=True, head_node_args=head)
        for _ in range(2):
            cluster.add_node(num_cpus=2, **ports())
        shards = -(-asked.frames // asked.batch)

        def command(output: str) -> list[str]:
            words = [
                "complete",
                joined(base, "color"),
                joined(base, "depth"),
                "-o",
                output,
                "--scale",
                "1000",
            ]
            words += [
                "--distributed",
                "ray",
                "--address",
                cluster.address,
                "--workers",
                "2",
                "--device",
                "cpu",
            ]
            words += ["--batch", str(asked.batch), "--weights", asked.weights]
            return [sys.executable, "-m", "gbpn.cli", *words]

        quiet, disturbed = uri(port, "frames/quiet"), uri(port, "frames/disturbed")
        try:
            begun = time.time()
            undisturbed = Campaign(cluster, command(quiet), quiet, shards, asked.seed)
            undisturbed.go([], asked.limit)
            calm = time.time() - begun
            print(f"undisturbed: {calm:.0f} s", flush=True)
            kinds = ["actor", "actor", "raylet", "driver"] * asked.kills
            kills = random.Random(asked.seed).sample(kinds[: asked.kills], asked.kills)
            campaign = Campaign(cluster, command(disturbed), disturbed, shards, asked.seed)
            begun = time.time()
            said = campaign.go(kills, asked.limit)
            seconds = time.time() - begun
            before, after = objects(storage, quiet), objects(storage, disturbed)
            records = rows(disturbed)
            names = [row["frame"] for row in records]
            result = {
                "frames": asked.frames,
                "kills": dict(campaign.kills),
                "driver_starts": campaign.starts,
                "undisturbed_s": round(calm),
                "disturbed_s": round(seconds),
                "objects": len(after),
                "objects_identical": before == after,
                "records_identical": records == rows(quiet),
                "duplicates": len(names) - len(set(names)),
                "losses": asked.frames - len(set(names)),
                "memory": judged(undisturbed.memory, campaign.memory),
                "last_words": said[-1],
            }
        finally:
            cluster.shutdown()
    print(json.dumps(result, indent=1))
    good = result["objects_identical"] and result["records_identical"] and not result["duplicates"]
    good = good and not result["losses"] and sum(campaign.kills.values()) == asked.kills
    sys.exit(0 if good and result["memory"]["flat"] else 1)


if __name__ == "__main__":
    main()
