"""Many cases in a child process with limits of time and memory; the parent counts, and restarts it.

`campaign(..., child=Here)` runs them in this process and without limits instead, where a sanitizer is loaded.
"""

from __future__ import annotations

import json
import os
import resource
import select
import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
MEMORY = 2 << 30
"""Bytes that a child may take beyond what its libraries took."""
SECONDS = 20.0
"""Of processor time that one case may take; of waiting, six times that."""
BAD = ("traceback", "crash", "hang", "absurd")


@dataclass(kw_only=True)
class Tally:
    """What became of the cases."""

    seed: int
    outcomes: Counter[tuple[str, str]] = field(default_factory=Counter)
    """(kind, outcome) → how many."""
    reports: list[Path] = field(default_factory=list)

    def count(self, outcome: str) -> int:
        return sum(n for (_, what), n in self.outcomes.items() if what == outcome)

    def table(self) -> str:
        """Tries and outcomes per kind, and of all."""
        head = ("kind", "tries", "answered", "refused", "tracebacks", "crashes", "hangs", "absurd")
        columns = ("answered", "refused", "traceback", "crash", "hang", "absurd")
        kinds = sorted({kind for kind, _ in self.outcomes})
        lines = ["  ".join(f"{word:>10}" for word in head)]
        for kind in (*kinds, "all"):
            counts = [self.count(what) if kind == "all" else self.outcomes[kind, what] for what in columns]
            lines.append("  ".join(f"{word:>10}" for word in (kind, sum(counts), *counts)))
        return f"seed {self.seed}\n" + "\n".join(lines)


class Child:
    """A process that runs cases by number."""

    def __init__(self, seed: int, scratch: Path) -> None:
        self.scratch = scratch
        self.errors = tempfile.TemporaryFile()  # noqa: SIM115 (lives as long as the child)
        self.process = subprocess.Popen(
            [
                sys.executable,
                "-X",
                "faulthandler",
                "-m",
                "tests.fuzz",
                "--child",
                str(scratch),
                "--seed",
                str(seed),
            ],
            cwd=ROOT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self.errors,
            text=True,
        )
        self._answer(600)

    def run(self, number: int) -> tuple[str, str, str]:
        """(kind, outcome, detail) of one case."""
        assert self.process.stdin is not None
        try:
            self.process.stdin.write(f"{number}\n")
            self.process.stdin.flush()
        except BrokenPipeError:
            return "?", "crash", self._last_words()
        return self._answer(6 * SECONDS)

    def _answer(self, seconds: float) -> tuple[str, str, str]:
        assert self.process.stdout is not None
        if not select.select([self.process.stdout], [], [], seconds)[0]:
            self.stop()
            return "?", "hang", f"no answer within {seconds:g} s\n{self._last_words()}"
        line = self.process.stdout.readline()
        if not line:
            code = self.process.wait()
            return "?", "hang" if code == -24 else "crash", f"ended with {code}\n{self._last_words()}"
        kind, outcome, detail = json.loads(line)
        return kind, outcome, detail

    def _last_words(self) -> str:
        self.errors.seek(0)
        return self.errors.read()[-4000:].decode(errors="replace")

    def stop(self) -> None:
        self.process.kill()
        self.process.wait()


class Here:
    """The same in this process: a crash ends the campaign, as it should under a sanitizer."""

    def __init__(self, seed: int, scratch: Path) -> None:
        self.seed, self.scratch = seed, scratch

    def run(self, number: int) -> tuple[str, str, str]:
        """(kind, outcome, detail) of one case."""
        from . import cases

        return cases.run(self.seed, number, self.scratch)

    def stop(self) -> None:
        """Nothing to end."""


def serve(seed: int, scratch: Path) -> None:
    """The child: numbers in, outcomes out, one line each."""
    from . import cases

    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what the package prints is not an answer
    cases._completer()
    cases._seeds()
    taken = int(Path("/proc/self/statm").read_text().split()[0]) * os.sysconf("SC_PAGE_SIZE")
    resource.setrlimit(resource.RLIMIT_AS, (taken + MEMORY, taken + MEMORY))
    print(json.dumps(["", "ready", ""]), file=answers, flush=True)
    for line in sys.stdin:
        used = sum(resource.getrusage(resource.RUSAGE_SELF)[:2])
        resource.setrlimit(resource.RLIMIT_CPU, (int(used + SECONDS) + 1, resource.RLIM_INFINITY))
        print(json.dumps(cases.run(seed, int(line), scratch)), file=answers, flush=True)


def campaign(
    seed: int, *, tries: int | None, seconds: float | None, reports: Path, child: type[Child | Here] = Child
) -> Tally:
    """Cases 0, 1, … until `tries` are done or `seconds` have passed."""
    tally = Tally(seed=seed)
    with tempfile.TemporaryDirectory(prefix="gbpn-fuzz-") as folder:
        scratch = Path(folder) / "case"
        running = child(seed, scratch)
        end = None if seconds is None else time.monotonic() + seconds
        number = 0
        while (tries is None or number < tries) and (end is None or time.monotonic() < end):
            kind, outcome, detail = running.run(number)
            tally.outcomes[kind, outcome] += 1
            if outcome in BAD:
                tally.reports.append(_save(reports, seed, number, kind, outcome, detail, scratch))
            if outcome in ("crash", "hang"):
                running.stop()
                running = child(seed, scratch)
            number += 1
        running.stop()
    return tally


def _save(reports: Path, seed: int, number: int, kind: str, outcome: str, detail: str, scratch: Path) -> Path:
    """What is needed to see a case again: the command, what happened, and the files it read."""
    place = reports / f"{outcome}-{seed}-{number}"
    shutil.rmtree(place, ignore_errors=True)
    place.mkdir(parents=True)
    command = f"python -m tests.fuzz --seed {seed} --only {number}"
    (place / "report.txt").write_text(f"{command}\n{kind}: {outcome}\n{detail}\n", errors="replace")
    for file in scratch.rglob("*"):
        if file.is_file() and not file.is_symlink():
            target = place / "files" / file.relative_to(scratch)
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(file, target)
    return place
