"""Measure what many frames cost: scaling, overhead, the scheduler alone, a hostile bucket.

    python scripts/measure_scale.py scaling --frames 1000 --size 128x96
    python scripts/measure_scale.py overhead --frames 60 --rounds 2
    python scripts/measure_scale.py scheduler --frames 10000
    python scripts/measure_scale.py hostile --frames 300 --size 64x48
    python scripts/measure_scale.py batches --frames 320 --size 64x48
    python scripts/measure_scale.py sizes
    python scripts/measure_scale.py plan

Rates are those of the steady state, from the end of the first shard to the end of the last; starts are told
apart. Ratios are of one run on one machine, and the best of interleaved rounds.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OMP_WAIT_POLICY", "passive")
os.environ.setdefault("RAY_worker_niceness", "0")
os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tests" / "scale"))

import torch  # noqa: E402
from hostile_bucket import Mood, hostile, s3_server, uri  # noqa: E402
from small_frames import fill, write_frames  # noqa: E402

import gbpn  # noqa: E402
import gbpn.scale  # noqa: E402
from gbpn.how import How  # noqa: E402
from gbpn.jobs.pairing import plan  # noqa: E402
from gbpn.jobs.run import Run  # noqa: E402
from gbpn.jobs.sources import Sensor  # noqa: E402
from gbpn.scale.instructions import Instructions  # noqa: E402
from gbpn.scale.simulation import Costs, simulate  # noqa: E402
from gbpn.scale.storage import Storage, joined  # noqa: E402
from gbpn.scale.summary import Summary  # noqa: E402

torch.set_num_threads(1)
INSTRUCTIONS = Instructions(how=How(device="cpu"), sensor=Sensor(scale=1000.0))


def folders(place: Path) -> tuple[str, str]:
    return str(place / "color"), str(place / "depth")


def steady(points: list[tuple[float, int]]) -> float:
    """Frames per second from the first report to the last."""
    (begun, first), (ended, last) = points[0], points[-1]
    return (last - first) / (ended - begun)


def engine(
    source: tuple[str, str],
    output: Path | str,
    workers: int,
    distributed: str,
    batch: int,
    opener: Callable[[], gbpn.DepthCompleter] | None = None,
) -> dict[str, Any]:
    """One run; its steady rate, its start and its phases."""
    points: list[tuple[float, int]] = []
    begun, own = time.perf_counter(), time.process_time()

    def follow(summary: Summary) -> None:
        points.append((time.perf_counter() - begun, summary.now))

    summary = gbpn.scale.complete(
        *source,
        str(output),
        instructions=INSTRUCTIONS,
        distributed=distributed,
        workers=workers,
        batch=batch,
        opener=opener,
        on_progress=follow,
    )
    assert summary.failed == 0, summary.problem
    work = sum(seconds for _, seconds, _ in summary.by_worker.values())
    return {
        "workers": workers,
        "rate": steady(points),
        "processor_per_frame_s": summary.processor / summary.now,
        "driver_processor_per_frame_s": (time.process_time() - own) / summary.now,
        "wall_s": time.perf_counter() - begun,
        "first_shard_s": points[0][0],
        "work_per_frame_s": work / summary.now,
        "in_phases_s": sum(summary.phases.values()) / summary.now,
        "phases": {name: value / summary.now for name, value in summary.phases.items()},
        "bytes_read": summary.bytes_read / summary.now,
        "bytes_written": summary.bytes_written / summary.now,
    }


def plain(source: tuple[str, str], output: Path) -> tuple[float, float]:
    """Frames per second, and processor seconds per frame, of `gbpn complete` in one process."""
    run = Run(completer=INSTRUCTIONS.open(), sensor=INSTRUCTIONS.sensor, output=output)
    frames = plan(*source)
    begun, processor = time.perf_counter(), time.process_time()
    outcomes = list(run.all(frames))
    assert all(outcome.state == "written" for outcome in outcomes)
    rate = len(frames) / (time.perf_counter() - begun)
    return rate, (time.process_time() - processor) / len(frames)


def predicted(one: dict[str, Any], two: dict[str, Any], frames: int, batch: int) -> dict[str, float]:
    """What the simulation says of both runs, from the figures of the first alone, over what was measured."""
    size = min(batch, frames)
    costs = Costs(
        frame=one["work_per_frame_s"], shard=0.0, start=one["first_shard_s"] - size * one["work_per_frame_s"]
    )
    return {
        f"simulated_over_measured_{run['workers']}": simulate(
            frames, run["workers"], costs, batch=batch
        ).seconds
        / run["wall_s"]
        for run in (one, two)
    }


def scaling(asked: argparse.Namespace, folder: Path) -> dict[str, Any]:
    """1 → 2 workers."""
    import ray

    source = folders(write_frames(folder / "f", asked.frames, asked.size))
    ray.init("local", num_cpus=4, log_to_driver=False, include_dashboard=False, logging_level="ERROR")
    found: dict[str, Any] = {"rounds": []}
    for number in range(asked.rounds):
        one, two = (engine(source, folder / f"o{number}{n}", n, "ray", asked.batch) for n in (1, 2))
        ratio = two["rate"] / one["rate"]
        simulated = predicted(one, two, asked.frames, asked.batch)
        found["rounds"].append({"ratio": ratio, "one": one, "two": two, **simulated})
        print(json.dumps(found["rounds"][-1], indent=1), flush=True)
    found["best_ratio"] = max(each["ratio"] for each in found["rounds"])
    return found


def overhead(asked: argparse.Namespace, folder: Path) -> dict[str, Any]:
    """One Ray worker against plain `gbpn complete`."""
    import ray

    source = folders(write_frames(folder / "f", asked.frames, asked.size))
    ray.init("local", num_cpus=4, log_to_driver=False, include_dashboard=False, logging_level="ERROR")
    rounds = []
    for number in range(asked.rounds):
        rate, processor = plain(source, folder / f"p{number}")
        found = {"plain": rate, "plain_processor_s": processor}
        for kind in ("here", "ray"):
            one = engine(source, folder / f"{kind}{number}", 1, kind, asked.batch)
            found |= {kind: one["rate"], f"{kind}_processor_s": one["processor_per_frame_s"]}
        rounds.append(found)
        print(json.dumps(found), flush=True)
    rates = {kind: max(each[kind] for each in rounds) for kind in ("plain", "here", "ray")}
    least = {kind: min(each[f"{kind}_processor_s"] for each in rounds) for kind in ("plain", "here", "ray")}
    return {
        "frames_per_s": rates,
        "processor_s_per_frame": least,
        "overhead_ray": rates["plain"] / rates["ray"] - 1,
        "overhead_ray_processor": least["ray"] / least["plain"] - 1,
    }


class StandIn(gbpn.DepthCompleter):
    """Answers every frame with the first one's: a network step that costs nothing."""

    answer: Any = None

    def complete(self, inputs: Any, **options: Any) -> Any:
        if self.answer is None:
            self.answer = super().complete(inputs, **options)
        return self.answer


def stand_in() -> gbpn.DepthCompleter:
    return StandIn.from_pretrained(device="cpu")


def resident() -> float:
    with open("/proc/self/statm", encoding="ascii") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 1e6


def scheduler(asked: argparse.Namespace, folder: Path) -> dict[str, Any]:
    """A long manifest through the whole path, with a stand-in for the network: driver and records only."""
    import ray

    write_frames(folder / "f", 1, asked.size)
    lines = [f"{n:08},f/color/0000.png,f/depth/0000.png" for n in range(asked.frames)]
    (folder / "m.csv").write_text("\n".join(["id,image,depth", *lines]))
    ray.init("local", num_cpus=4, log_to_driver=False, include_dashboard=False, logging_level="ERROR")
    points: list[tuple[float, int, float]] = []

    def follow(summary: Summary) -> None:
        points.append((time.perf_counter(), summary.now, resident()))

    before = resident()
    summary = gbpn.scale.complete(
        str(folder / "m.csv"),
        None,
        str(folder / "out"),
        instructions=replace(INSTRUCTIONS, pack="tar"),
        distributed="ray",
        workers=2,
        batch=asked.batch,
        opener=stand_in,
        on_progress=follow,
    )
    assert summary.written == asked.frames
    count = len(gbpn.scale.read_records(str(folder / "out")))
    tenth = max(1, len(points) // 10)
    return {
        "frames": asked.frames,
        "records": count,
        "records_per_s": steady([(t, n) for t, n, _ in points]),
        "driver_mb_before": before,
        "driver_mb_at_each_tenth": [round(m, 1) for _, _, m in points[::tenth]],
        "driver_growth_mb_from_first_tenth": points[-1][2] - points[tenth][2],
        "phases": {name: value / summary.now for name, value in summary.phases.items()},
    }


def hostile_bucket(asked: argparse.Namespace, folder: Path) -> dict[str, Any]:
    """5 % errors and 5 % slow answers, from S3 to S3."""
    mood = Mood(errors=0.05, slow=0.05, delay=0.5)
    with s3_server() as port, hostile(port, mood) as proxy:
        quiet = Storage()
        for file in sorted(write_frames(folder / "f", asked.frames, asked.size).rglob("*.png")):
            quiet.write(uri(port, f"frames/in/{file.parent.name}/{file.name}"), file.read_bytes())
        base = uri(proxy, "frames/in")
        begun = time.perf_counter()
        summary = gbpn.scale.complete(
            joined(base, "color"),
            joined(base, "depth"),
            uri(proxy, "frames/out"),
            instructions=INSTRUCTIONS,
            distributed=asked.engine,
            workers=2 if asked.engine == "ray" else 1,
            batch=asked.batch,
        )
        rows = gbpn.scale.read_records(uri(port, "frames/out"))
    return {
        "frames": asked.frames,
        "written": summary.written,
        "failed": summary.failed,
        "postponed": summary.postponed,
        "records": len(rows),
        "requests": dict(mood.seen),
        "retries_counted": summary.retried,
        "workers": len(summary.by_worker),
        "seconds": time.perf_counter() - begun,
    }


def batches(asked: argparse.Namespace, folder: Path) -> dict[str, Any]:
    """What a batch and a start cost beside the frames: one Ray worker, a stand-in for the network."""
    import ray

    files = write_frames(folder / "f", asked.frames, asked.size)
    begun = time.perf_counter()
    ray.init("local", num_cpus=4, log_to_driver=False, include_dashboard=False, logging_level="ERROR")
    found: dict[str, Any] = {"ray_start_s": time.perf_counter() - begun}
    with s3_server() as port:
        fill(Storage(), files, uri(port, "frames/in"))
        bucket = uri(port, "frames/in/color"), uri(port, "frames/in/depth")
        places = {"disk": (folders(files), str(folder / "out")), "s3": (bucket, uri(port, "frames/out"))}
        for kind, (source, output) in places.items():
            runs = {
                batch: engine(source, joined(output, str(batch)), 1, "ray", batch, stand_in)
                for batch in (1, FEW, MANY)
            }
            each = {batch: 1 / run["rate"] for batch, run in runs.items()}
            found[kind] = {
                "seconds_per_frame": each,
                "seconds_per_batch": (each[FEW] - each[MANY]) / (1 / FEW - 1 / MANY),
                "start_s": [
                    run["first_shard_s"] - batch * run["work_per_frame_s"] for batch, run in runs.items()
                ],
            }
            print(json.dumps({kind: found[kind]}), flush=True)
    return found


FEW, MANY = 2, 16
"""Frames of a batch, from which its own cost is told."""


def plan_table(asked: argparse.Namespace, folder: Path) -> dict[str, Any]:
    """The simulation's table of docs/scale-plan.md; nothing is measured."""
    small = Costs(frame=1 / 4.25, shard=0.05, start=30.0)
    calm: dict[str, Any] = {}
    slow, deaths = {"stragglers": 0.05}, {"deaths_per_hour": 1.0}
    cases = {
        "100, nothing": (100, small, calm),
        "1,000, nothing": (1000, small, calm),
        "1,000, stragglers": (1000, small, slow),
        "1,000, deaths": (1000, small, deaths),
        "1,000, both": (1000, small, slow | deaths),
        "1,000, both, one prefix": (1000, replace(small, requests=6, storage_rate=3500.0), slow | deaths),
    }
    found: dict[str, Any] = {}
    for frames in (10**6, 10**7):
        for name, (workers, costs, trouble) in cases.items():
            run = simulate(frames, workers, costs, batch=32, **trouble)
            found[f"{frames} frames, {name}"] = {
                "seconds": round(run.seconds), "rate": round(run.rate),
                "busy": round(run.busy, 2), "done_again": run.done_again,
            }  # fmt: skip
    return found


def sizes(asked: argparse.Namespace, folder: Path) -> dict[str, Any]:
    """Frames per core-second, and bytes, by size."""
    found = {}
    for width, height, count in ((128, 96, 24), (320, 240, 12), (640, 480, 6), (1216, 352, 4)):
        place = folder / f"{width}x{height}"
        one = engine(folders(write_frames(place, count, (height, width))), place / "o", 1, "here", 1)
        found[f"{width}x{height}"] = {
            "frames_per_core_s": 1 / one["processor_per_frame_s"], "phases": one["phases"],
            "bytes_read": one["bytes_read"], "bytes_written": one["bytes_written"],
        }  # fmt: skip
        print(json.dumps({f"{width}x{height}": found[f"{width}x{height}"]}), flush=True)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    what = {
        "scaling": scaling,
        "overhead": overhead,
        "scheduler": scheduler,
        "hostile": hostile_bucket,
        "batches": batches,
        "plan": plan_table,
        "sizes": sizes,
    }
    parser.add_argument("what", choices=what)
    parser.add_argument("--frames", type=int, default=1000)
    parser.add_argument("--size", default="320x240")
    parser.add_argument("--batch", type=int, default=8)
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--engine", default="ray", help="hostile: ray or here")
    asked = parser.parse_args()
    width, height = (int(word) for word in asked.size.split("x"))
    asked.size = height, width
    with tempfile.TemporaryDirectory(dir=os.environ.get("GBPN_SCRATCH")) as folder:
        print(json.dumps(what[asked.what](asked, Path(folder)), indent=1))


if __name__ == "__main__":
    main()
