"""Faults that come from outside, each injected for real: retried where that helps, told where it does not.

A killed actor, a killed worker node and a lost driver are in test_ray.py (scripts/chaos.py), since they need
a cluster; a process killed between its outputs and its record is in test_here.py.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections import Counter
from typing import Any

import pytest
from hostile_bucket import Mood, hostile, uri
from small_frames import COUNT, downloaded, fill

import gbpn.scale
from gbpn.errors import GbpnError
from gbpn.scale.storage import Patience, Storage, joined


def test_a_hostile_bucket_is_outlasted_and_its_errors_are_counted(
    frames, instructions, plain, bucket
) -> None:
    fill(Storage(), frames, uri(bucket, "frames/hostile"))
    mood = Mood(errors=0.15, slow=0.1, delay=0.05)
    with hostile(bucket, mood) as port:
        base = uri(port, "frames/hostile")
        storage = Storage(patience=Patience(first=0.01))
        summary = gbpn.scale.complete(
            joined(base, "color"), joined(base, "depth"), joined(base, "out"),
            instructions=instructions, batch=3, storage=storage,
        )  # fmt: skip
    assert (summary.written, summary.failed, summary.postponed) == (COUNT, 0, 0)
    injected = sum(mood.seen[kind] for kind in ("500", "503", "cut"))
    assert injected > 5
    assert sum(storage.retried.values()) == pytest.approx(injected, abs=2)
    assert summary.retried == sum(storage.retried.values())
    assert downloaded(Storage(), uri(bucket, "frames/hostile/out")) == plain


def test_refusals_are_told_at_once_and_outages_postpone(frames, instructions, bucket) -> None:
    fill(Storage(), frames, uri(bucket, "frames/refusing"))
    mood = Mood(forbidden="depth/0003")
    with hostile(bucket, mood) as port:
        base = uri(port, "frames/refusing")
        storage = Storage(patience=Patience(attempts=3, first=0.01))
        source = joined(base, "color"), joined(base, "depth"), joined(base, "out")
        call: dict[str, Any] = {"instructions": instructions, "batch": 3, "storage": storage}
        summary = gbpn.scale.complete(*source, **call)
        assert (summary.written, summary.failed, summary.retried) == (COUNT - 1, 1, 0)
        (row,) = gbpn.scale.read_quarantine(source[2]).to_pylist()
        assert "not allowed" in row["error"]
        assert "secret" not in row["error"]
        mood.forbidden = "out2/0"
        with pytest.raises(GbpnError, match=r"write is not allowed.*check the credentials"):
            gbpn.scale.complete(*source[:2], joined(base, "out2"), **call)
        mood.forbidden = ""
        mood.broken = "color/0001"
        summary = gbpn.scale.complete(*source[:2], joined(base, "out3"), **call)
        assert (summary.postponed, summary.written) == (1, COUNT - 3)
        assert any("the same command does them" in line for line in summary.sentences())
        mood.broken = ""
        after = gbpn.scale.complete(*source[:2], joined(base, "out3"), **call)
        assert (after.before, after.written, after.postponed) == (COUNT - 3, 3, 0)


def test_a_bucket_that_falls_silent_is_asked_again_then_postponed(
    frames, instructions, plain, bucket
) -> None:
    fill(Storage(), frames, uri(bucket, "frames/silent"))
    mood = Mood(silent=Counter({"color/0002": 2, "out/0004": 1}))
    with hostile(bucket, mood) as port:
        base = uri(port, "frames/silent")
        source = joined(base, "color"), joined(base, "depth")
        call: dict[str, Any] = {"instructions": instructions, "batch": 3}
        storage = Storage(patience=Patience(first=0.01, silence=1.0))
        summary = gbpn.scale.complete(*source, joined(base, "out"), storage=storage, **call)
        assert (summary.written, summary.failed, summary.postponed) == (COUNT, 0, 0)
        assert (mood.seen["silent"], summary.retried) == (3, 3)
        mood.silent["depth/0005"] = 100
        storage = Storage(patience=Patience(attempts=2, first=0.01, silence=1.0))
        summary = gbpn.scale.complete(*source, joined(base, "out2"), storage=storage, **call)
        assert (summary.written, summary.failed, summary.postponed) == (COUNT - 3, 0, 1)
        assert "Timeout was reached" in summary.problem
        mood.silent.clear()
        after = gbpn.scale.complete(*source, joined(base, "out2"), storage=storage, **call)
        assert (after.before, after.written, after.postponed) == (COUNT - 3, 3, 0)
    for out in ("out", "out2"):
        found = downloaded(Storage(), uri(bucket, f"frames/silent/{out}"))
        assert found == plain


FULL = """
import json, os, subprocess, sys
from pathlib import Path

import gbpn.scale
from gbpn.errors import GbpnError
from gbpn.how import How
from gbpn.jobs.sources import Sensor
from gbpn.scale.instructions import Instructions

frames, weights, place = Path(sys.argv[1]), sys.argv[2], Path(sys.argv[3])
found = {}
for what in ("files", "tar", "parquet", "scratch"):
    disk = place / what
    disk.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=200k", "tmpfs", disk], check=True)
    output = str(place / "out" if what == "scratch" else disk / "out")
    if what == "scratch":  # the output has room, the place of unfinished files has none
        os.environ["GBPN_SCRATCH"] = str(disk)
    pack = "tar" if what == "scratch" else what
    sensor = Sensor(scale=1000.0)
    call = {
        "instructions": Instructions(weights=weights, how=How(device="cpu"), sensor=sensor, pack=pack),
        "batch": 7 if what == "scratch" else 2,
    }
    told = ""
    try:
        gbpn.scale.complete(str(frames / "color"), str(frames / "depth"), output, **call)
    except GbpnError as error:
        told = str(error)
    kept = len(gbpn.scale.read_records(output))
    subprocess.run(["mount", "-o", "remount,size=16m", disk], check=True)
    after = gbpn.scale.complete(str(frames / "color"), str(frames / "depth"), output, **call)
    files = {path.name: path.read_bytes().hex() for path in Path(output).iterdir() if path.is_file()}
    counts = [after.before, after.written, after.failed]
    found[what] = {"told": told, "kept": kept, "after": counts, "files": files}
print(json.dumps(found))
"""
"""On disks of 200 kB, which this process alone sees and makes larger later."""


def test_a_full_disk_ends_the_run_and_the_same_command_goes_on(frames, weights, plain, tmp_path) -> None:
    alone = ["unshare", "--map-root-user", "--mount"]
    if not shutil.which("unshare") or subprocess.run([*alone, "true"], capture_output=True).returncode:
        pytest.skip("needs a system that lets users mount (unshare)")
    words = [sys.executable, "-c", FULL, str(frames), str(weights), str(tmp_path)]
    done = subprocess.run([*alone, *words], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr[-3000:]
    for what, found in json.loads(done.stdout).items():
        assert "No space left" in found["told"], what
        assert "what was finished is kept: make room" in found["told"], what
        assert found["after"] == [found["kept"], COUNT - found["kept"], 0], what
        assert found["kept"] == {"files": 2, "tar": 2, "parquet": 2, "scratch": 0}[what]
        if what == "files":
            assert {name: bytes.fromhex(data) for name, data in found["files"].items()} == plain
