"""A short campaign with a fixed seed; `python -m tests.fuzz --minutes N --seed S` runs longer ones."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

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


def test_what_is_damaged_was_valid(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Otherwise a reader would refuse every case for a reason that has nothing to do with the damage."""
    monkeypatch.syspath_prepend(ROOT)
    from tests.fuzz.cases import odd
    from tests.fuzz.corpus import seeds

    for number, seed in enumerate(seeds()):
        folder = tmp_path / str(number)
        for name, content in ((seed.name, seed.content), *seed.beside):
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_bytes(content)
        assert not odd(seed.read(folder / seed.name), seed.name), seed.name


def test_what_once_fell_is_held_by_a_test() -> None:
    named = re.findall(r"`([\w/]+\.py)::(\w+)`", (Path(__file__).parent / "README.md").read_text())
    assert len(named) > 50
    lost = [
        f"{file}::{test}"
        for file, test in named
        if f"def {test}(" not in (ROOT / "tests" / file).read_text(encoding="utf-8")
    ]
    assert not lost
