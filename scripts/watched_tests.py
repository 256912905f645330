"""Tests on a copy of the source, each run in a process of its own: who fails, who passes which line.

What `scripts/mutate.py` asks. A child is forked from a process that has loaded everything heavy.
"""

from __future__ import annotations

import contextlib
import hashlib
import importlib
import json
import os
import shutil
import signal
import subprocess
import sys
import time
import traceback
from collections import Counter
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
SOURCE = ROOT / "src"
SLOWEST = 60.0
"""Seconds; slower tests are not asked."""
EDITABLE = "ScikitBuild"
"""Part of the name of what an editable installation imports by, before any path."""
OPTIONS = ("-q", "-p", "no:cacheprovider", "-p", "no:randomly", "--hypothesis-seed=0", "--assert=plain")


@dataclass(frozen=True, kw_only=True)
class Baseline:
    """What the tests of a room do on unchanged source."""

    seconds: dict[str, float]
    """By test, those that fail without any change left out."""
    passing: dict[str, list[str]]
    """"file:line" → tests that pass the line in their own body."""
    at_import: list[str]
    """Lines that run when modules are imported or fixtures made."""
    modules: list[str]
    """What the tests import besides ours."""


class _Recorder:
    """A pytest plugin: how long tests take, which one failed; and tells `enter` whose lines run now."""

    def __init__(self, enter: Callable[[str], object]) -> None:
        self.enter = enter
        self.seconds: Counter[str] = Counter()
        self.failed: list[str] = []

    def pytest_runtest_logstart(self, nodeid: str) -> None:
        self.enter(f"setup of {nodeid}")

    def pytest_runtest_call(self, item: Any) -> None:
        self.enter(item.nodeid)

    def pytest_runtest_teardown(self, item: Any) -> None:
        self.enter(f"setup of {item.nodeid}")

    def pytest_runtest_logreport(self, report: Any) -> None:
        self.seconds[report.nodeid] += report.duration
        if report.failed:
            self.failed.append(report.nodeid)

    def pytest_collectreport(self, report: Any) -> None:
        if report.failed:
            self.failed.append(report.nodeid)


def copied(folder: Path) -> Path:
    """`folder` with a copy of the source that processes of tests take for gbpn, too."""
    shutil.copytree(SOURCE, folder / "src", ignore=shutil.ignore_patterns("__pycache__"))
    lines = [
        "import sys",
        f"sys.meta_path[:] = [f for f in sys.meta_path if {EDITABLE!r} not in type(f).__name__]",
    ]
    (folder / "src" / "sitecustomize.py").write_text("\n".join(lines) + "\n")
    if kernels := _kernels():
        shutil.copy(kernels, folder / "src" / "gbpn")
    return folder


def _kernels() -> str:
    """The compiled module that the installation uses; asked in another process, which may import gbpn."""
    ask = "import gbpn._native; print(gbpn._native.__file__)"
    found = subprocess.run([sys.executable, "-c", ask], capture_output=True, text=True, cwd=ROOT, check=False)
    return found.stdout.strip()


def run_tests(tree: Path, tests: list[str], limit: float, *, trace: bool = False) -> dict[str, Any] | None:
    """Outcome of pytest on `tree`/src in a process of its own; None if it took more than `limit` seconds."""
    report = tree / "report.json"
    report.unlink(missing_ok=True)
    child = os.fork()
    if child == 0:
        os.setsid()
        _child(tree, tests, report, trace)
    start = time.monotonic()
    while os.waitpid(child, os.WNOHANG) == (0, 0):
        if time.monotonic() - start > limit:
            os.killpg(child, signal.SIGKILL)
            os.waitpid(child, 0)
            return None
        time.sleep(0.05)
    if not report.is_file():
        return {"failed": ["the process died"], "lines": {}, "seconds": {}, "modules": []}
    outcome: dict[str, Any] = json.loads(report.read_text())
    return outcome


def _child(tree: Path, tests: list[str], report: Path, trace: bool) -> None:
    """Never returns."""
    import coverage
    import pytest

    if not os.environ.get("GBPN_MUTATE_VERBOSE"):
        quiet = os.open(os.devnull, os.O_WRONLY)
        os.dup2(quiet, 1)
        os.dup2(quiet, 2)
    sys.meta_path[:] = [finder for finder in sys.meta_path if EDITABLE not in type(finder).__name__]
    sys.path[:] = [str(tree / "src"), *(path for path in sys.path if Path(path or ".").resolve() != SOURCE)]
    os.environ["PYTHONPATH"] = str(tree / "src")
    os.chdir(ROOT)
    watch = coverage.Coverage(
        data_file=None, config_file=False, include=[f"{tree / 'src'}/*"], context="import"
    )
    recorder = _Recorder(watch.switch_context if trace else lambda _: None)
    try:
        if trace:
            watch.start()
            watch.switch_context("")
        pytest.main([*OPTIONS, *([] if trace else ["-x"]), *tests], plugins=[recorder])
    except BaseException:
        traceback.print_exc()
    finally:
        lines: dict[str, list[str]] = {}
        if trace:
            watch.stop()
            data = watch.get_data()
            for file in data.measured_files():
                lines |= {f"{file}:{n}": names for n, names in data.contexts_by_lineno(file).items()}
        found = {"failed": recorder.failed, "seconds": recorder.seconds, "lines": lines}
        temporary = report.with_suffix(".part")
        temporary.write_text(json.dumps(found | {"modules": _installed() if trace else []}))
        temporary.replace(report)
        sys.stdout.flush()
        os._exit(0)


def baseline(tree: Path, tests: list[str], kept: Path) -> Baseline:
    """Of these tests on the unchanged copy; read from `kept`, a folder, if nothing has changed since."""
    digest = hashlib.sha256(json.dumps(tests).encode())
    for file in sorted([*SOURCE.rglob("*.py"), *(ROOT / "tests").rglob("*.py")]):
        digest.update(file.read_bytes())
    place = kept / f"baseline-{digest.hexdigest()[:16]}.json"
    if place.is_file():
        known = Baseline(**json.loads(place.read_text()))
    else:
        known = _measured(tree, tests)
        place.write_text(json.dumps(asdict(known)))
    for name in known.modules:  # once for all children
        with contextlib.suppress(Exception):
            importlib.import_module(name)
    return known


def _measured(tree: Path, tests: list[str]) -> Baseline:
    outcome = run_tests(tree, tests, 3600, trace=True)
    if outcome is None or not outcome["seconds"]:
        raise SystemExit(f"the tests {tests} do not run: GBPN_MUTATE_VERBOSE=1 shows what they say")
    if not outcome["lines"]:
        raise SystemExit(f"the tests do not run on the copy in {tree}: another gbpn comes before it")
    broken = set(outcome["failed"])
    seconds = {
        name: took
        for name, took in outcome["seconds"].items()
        if took < SLOWEST and not {name, name.partition("::")[0]} & broken
    }
    quick = sorted(seconds, key=lambda name: seconds[name])[:50]
    again = run_tests(tree, quick, 3600)  # as changes are judged: what fails now fails without one
    if again is None or again["failed"]:
        raise SystemExit(f"without any change, {again and again['failed']} fails in the second run")
    passing, at_import = {}, []
    for line, contexts in outcome["lines"].items():
        line, names = line.removeprefix(f"{tree / 'src'}/"), {name.partition("|")[2] for name in contexts}
        if own := sorted(names & set(seconds)):
            passing[line] = own
        if any(name not in outcome["seconds"] for name in names):
            at_import.append(line)
    return Baseline(seconds=seconds, passing=passing, at_import=at_import, modules=outcome["modules"])


def _installed() -> list[str]:
    """Modules of this process that are neither ours nor tests."""
    files = {name: getattr(module, "__file__", None) or "" for name, module in sys.modules.items()}
    return [name for name, file in files.items() if "site-packages" in file or "/lib/python" in file]


def prepare() -> None:
    """One thread, and the heaviest packages."""
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    os.environ.setdefault("OMP_WAIT_POLICY", "passive")
    os.environ.setdefault("TRITON_INTERPRET", "1")
    import pytest  # noqa: F401
    import torch

    torch.set_num_threads(1)
