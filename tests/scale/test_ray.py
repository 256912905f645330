"""Real Ray clusters on this machine: the bytes of one process, also when actors, nodes and drivers die."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from small_frames import COUNT, contents, write_frames

import gbpn.scale
from gbpn.errors import GbpnError
from gbpn.jobs.sources import Sensor
from gbpn.scale.instructions import Instructions

pytest.importorskip("ray", reason="needs pip install gbpn[scale]")
ROOT = Path(__file__).resolve().parents[2]
CALM = {"OMP_NUM_THREADS": "1", "OMP_WAIT_POLICY": "passive", "RAY_worker_niceness": "0"}


def run(words: list[str], seconds: float = 900) -> subprocess.CompletedProcess[str]:
    """In a process of its own: Ray leaves threads behind, and warnings are errors here."""
    return subprocess.run(
        [sys.executable, *words], env={**os.environ, **CALM}, capture_output=True, text=True, timeout=seconds
    )


def complete(*words: str) -> subprocess.CompletedProcess[str]:
    return run(["-m", "gbpn.cli", "complete", *words])


def test_two_workers_write_what_one_machine_writes(frames: Path, weights: Path, tmp_path: Path) -> None:
    source = [str(frames / "color"), str(frames / "depth"), "--scale", "1000", "--device", "cpu"]
    source += ["--weights", str(weights)]
    plain, spread = tmp_path / "plain", tmp_path / "spread"
    assert complete(*source, "-o", str(plain)).returncode == 0
    many = ["--distributed", "ray", "--workers", "2", "--batch", "2", "-o", str(spread)]
    answer = complete(*source, *many)
    assert answer.returncode == 0, answer.stdout + answer.stderr
    assert f"{COUNT} written" in answer.stdout
    assert contents(spread) == contents(plain)
    again = complete(*source, *many)
    assert f"{COUNT} done before" in again.stdout, again.stdout + again.stderr
    other = complete(*source, *many, "--iterations", "1,1")
    assert other.returncode == 2
    assert "begun with other options" in other.stderr


def test_what_is_wrong_with_workers_or_frames_is_told(weights: Path, tmp_path: Path) -> None:
    data = write_frames(tmp_path / "data", 6)
    for name in ("0001", "0003", "0005"):
        (data / "depth" / f"{name}.png").write_bytes(b"broken")
    source = [str(data / "color"), str(data / "depth"), "--scale", "1000", "--weights", str(weights)]
    many = ["--distributed", "ray", "--batch", "1", "-o", str(tmp_path / "out")]
    answer = complete(*source, *many, "--max-failures", "1")
    assert answer.returncode == 2, answer.stdout
    assert "more than --max-failures 1" in answer.stderr
    nowhere = complete(*source, *many, "--address", "127.0.0.1:1")
    assert nowhere.returncode == 2
    assert "no Ray cluster at 127.0.0.1:1" in nowhere.stderr


def test_killed_actors_raylets_and_drivers_change_nothing() -> None:
    """scripts/chaos.py, small: from S3 to S3, four kills of all three kinds."""
    pytest.importorskip("moto")
    pytest.importorskip("psutil")
    answer = run([str(ROOT / "scripts" / "chaos.py"), "--frames", "80", "--kills", "4", "--batch", "4"])
    assert answer.returncode == 0, answer.stdout[-3000:] + answer.stderr[-3000:]
    result = json.loads(answer.stdout[answer.stdout.index("{") :])
    assert result["kills"] == {"actor": 2, "raylet": 1, "driver": 1}
    assert result["objects_identical"]
    assert (result["duplicates"], result["losses"]) == (0, 0)
    assert {"driver", "actor", "raylet", "gcs"} <= set(result["memory"]["roles"])


def test_the_driver_hands_out_a_bounded_number_of_ranges() -> None:
    from gbpn.scale.on_ray import _ranges

    for shards, workers in ((1, 1), (5, 2), (4096, 8), (4097, 8), (10**9, 1000)):
        ranges = _ranges(shards, workers)
        assert len(ranges) <= max(4096, 4 * workers)
        assert ranges[0]["first"] == 0
        assert ranges[-1]["last"] == shards
        assert all(a["last"] == b["first"] for a, b in pairwise(ranges))


def test_ray_errors_are_one_sentence(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, weights: Path) -> None:
    """A package that is missing says how to get it."""
    data = write_frames(tmp_path / "data", 1)
    monkeypatch.setitem(sys.modules, "ray", None)
    call: dict[str, Any] = {"instructions": Instructions(weights=str(weights), sensor=Sensor(scale=1000.0))}
    with pytest.raises(GbpnError, match=r"needs Ray.*pip install 'gbpn\[scale\]'"):
        gbpn.scale.complete(
            str(data / "color"), str(data / "depth"), str(tmp_path / "out"), distributed="ray", **call
        )
