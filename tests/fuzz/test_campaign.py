"""A short campaign with a fixed seed; `python -m tests.fuzz --minutes N --seed S` runs longer ones."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def test_hostile_input_is_answered_or_refused(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "tests.fuzz", "--tries", "1500", "--minutes", "1", "--seed", "1"]
    done = subprocess.run(
        [*command, "--reports", str(tmp_path)], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    counts = done.stdout.splitlines()[-1].split()
    assert counts[0] == "all"
    assert int(counts[1]) >= 50, "too few cases to say anything"
    assert min(int(counts[2]), int(counts[3])) > 0, "some are answered and some refused"
