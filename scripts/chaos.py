"""Kill actors, raylets and drivers at random while frames go from S3 to S3; nothing is lost or done twice.

    python scripts/chaos.py --frames 1000 --kills 20

A Ray cluster of a head and two worker raylets, and an S3 (moto, HTTP) on this machine. The same command runs
undisturbed first, then with kills spread over the run; a driver that died is started again with the same
command. At the end all objects are compared byte for byte, and the tables without their times.
"""

from __future__ import annotations

import argparse
import collections
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
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
from hostile_bucket import s3_server, uri  # noqa: E402
from small_frames import write_frames  # noqa: E402

import gbpn.scale  # noqa: E402
from gbpn.scale.storage import Storage, base_name, joined  # noqa: E402

DETECTION = {"health_check_period_ms": 3000, "health_check_failure_threshold": 4}
"""How fast Ray notices that a raylet is gone; not so fast that a busy machine counts as dead."""
TIMES = {"seconds", "seconds_read", "seconds_network", "seconds_inference", "seconds_write", "worker"}
FLAT = 0.15
"""A process may grow by this share of its memory between its first and its last third."""


class Memory:
    """Resident bytes of every process of the run, by role, over time."""

    def __init__(self) -> None:
        self.seen: dict[tuple[str, int], list[tuple[float, int]]] = collections.defaultdict(list)

    def sample(self, driver: int | None) -> None:
        for process in psutil.process_iter(["pid", "cmdline", "memory_info", "name"]):
            role = self.role(process, driver)
            if role and process.info["memory_info"]:
                self.seen[role, process.info["pid"]].append((time.time(), process.info["memory_info"].rss))

    @staticmethod
    def role(process: Any, driver: int | None) -> str:
        words = " ".join(process.info["cmdline"] or [])
        if process.info["pid"] == driver:
            return "driver"
        if "ray::MapWorker" in words:
            return "actor"
        if "raylet/raylet" in words:
            return "raylet"
        return "gcs" if "gcs_server" in words else ""

    def growth(self) -> list[dict[str, Any]]:
        """Of the processes that lived for a minute: megabytes in their second and last third."""
        found = []
        for (role, _), samples in self.seen.items():
            if samples[-1][0] - samples[0][0] < 60 or len(samples) < 12:
                continue
            third = len(samples) // 3
            middle = max(size for _, size in samples[third : 2 * third])
            last = max(size for _, size in samples[2 * third :])
            found.append(
                {"role": role, "seconds": round(samples[-1][0] - samples[0][0]),
                 "middle_mb": round(middle / 1e6), "last_mb": round(last / 1e6),
                 "growth": round(last / middle - 1, 3)}
            )  # fmt: skip
        return found


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
        return [
            process
            for process in psutil.process_iter(["cmdline"])
            if "ray::MapWorker" in " ".join(process.info["cmdline"] or [])
        ]

    def kill(self, what: str) -> bool:
        """Whether there was something to kill."""
        if what == "driver":
            if self.driver.poll() is not None:
                return False
            self.driver.send_signal(signal.SIGKILL)
        elif what == "raylet":
            node = self.random.choice(list(self.cluster.worker_nodes))
            self.cluster.remove_node(node, allow_graceful=False)
            self.cluster.add_node(num_cpus=2)
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
        cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 0, "_system_config": DETECTION})
        for _ in range(2):
            cluster.add_node(num_cpus=2)
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
            Campaign(cluster, command(quiet), quiet, shards, asked.seed).go([], asked.limit)
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
            growth = campaign.memory.growth()
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
                "growth": growth,
                "last_words": said[-1],
            }
        finally:
            cluster.shutdown()
    print(json.dumps(result, indent=1))
    good = result["objects_identical"] and result["records_identical"] and not result["duplicates"]
    good = good and not result["losses"] and sum(campaign.kills.values()) == asked.kills
    sys.exit(0 if good and all(one["growth"] < FLAT for one in growth) else 1)


if __name__ == "__main__":
    main()
