"""Changes lines at random, one at a time, and reports the share of changes that the tests notice, per room.

usage: python scripts/mutate.py [network metrics data predict …] [--count 25] [--seed 0] [--to mutants.json]

The source tree is copied and changed there, never in place. First every test of a room runs once on the
unchanged copy, which tells how long it takes and which lines it passes. Then, for each changed line, the
tests that pass it run, quickest first, up to the first failure; for lines that run at import, also others
that name the module. What the unchanged copy did is kept beside the results until source or tests change.
Results are written after each change, and a run that was interrupted goes on where it
was. A survivor that no test could notice, because the changed program does the same, may be given the state
"equivalent" in that file by hand.
"""

from __future__ import annotations

import argparse
import ast
import difflib
import itertools
import json
import random
import tempfile
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import mutations
from watched_tests import ROOT, SOURCE, Baseline, baseline, copied, prepare, run_tests


@dataclass(frozen=True, kw_only=True)
class Room:
    """Files that are changed, and the tests that should notice; globs, relative to src/gbpn and tests."""

    files: tuple[str, ...]
    tests: tuple[str, ...]


DATA = ("augmentation", "datasets", "formats", "recordings", "sensors", "synthetic")
ROOMS = {
    "network": Room(
        files=("network/**/*.py",),
        tests=("network/test_*.py", "test_own_goldens.py", "model/test_defaults.py"),
    ),
    "metrics": Room(files=("metrics/*.py",), tests=("metrics/test_*.py", "model/test_defaults.py")),
    "data": Room(
        files=tuple(f"{room}/*.py" for room in DATA),
        tests=(
            *(f"{room}/test_*.py" for room in DATA),
            "predict/test_measurements.py",
            "predict/test_outputs.py",
            "predict/test_recorded.py",
            "test_own_goldens.py",
            "model/test_defaults.py",
        ),
    ),
    "predict": Room(
        files=("predict/*.py", "jobs/*.py", "model/pipeline.py", "sigma/check.py"),
        tests=("predict/test_*.py", "model/test_*.py", "measurements/test_*.py", "sigma/test_*.py"),
    ),
    "gbp": Room(files=("gbp/*.py", "gbp/exact/*.py"), tests=("gbp/test_*.py", "boxes/test_mrf.py")),
    "losses": Room(files=("train/losses.py",), tests=("train/test_losses.py", "train/test_loss_laws.py")),
    "evaluate": Room(files=("evaluate/*.py",), tests=("evaluate/test_*.py",)),
    "train": Room(files=("train/*.py",), tests=("train/test_*.py",)),
    "runtime": Room(files=("runtime/*.py",), tests=("runtime/test_*.py",)),
    "scale": Room(files=("scale/*.py",), tests=("scale/test_*.py",)),
    "studio": Room(files=("studio/*.py",), tests=("studio/test_*.py",)),
}
GENERAL = ("model/test_defaults.py",)
"""Tests that know every module without naming it."""
LEFT_OUT = ("triton*", "test_*_triton.py")
"""Kernels for GPUs: their interpreter is too slow to run them some hundred times."""
PER_TEST, EXTRA = 6.0, 120.0
"""Time limit of a change: so many times what its tests took, and so many seconds more."""
FIRST = 5
"""Tests that are asked first: most changes are noticed by the quickest."""
ENOUGH = 10.0
"""Seconds of tests that are asked about a line that runs at import, beyond those that pass it themselves."""


def matching(folder: Path, globs: tuple[str, ...]) -> list[Path]:
    """Files that any of the globs names, sorted."""
    found = {path for one in globs for path in folder.glob(one)}
    return sorted(path for path in found if not any(path.match(one) for one in LEFT_OUT))


def chosen(files: list[Path], count: int, seed: str) -> list[tuple[Path, mutations.Mutation]]:
    """`count` lines of all the files together, each with one of its changes; more continue fewer."""
    lines: dict[tuple[Path, int], list[mutations.Mutation]] = {}
    for path in files:
        for mutation in mutations.mutations(path.read_bytes()):
            lines.setdefault((path, mutation.line), []).append(mutation)
    keys = sorted(lines)
    random.Random(seed).shuffle(keys)
    return [(key[0], random.Random(f"{seed} {key}").choice(lines[key])) for key in keys[:count]]


def judge(
    tree: Path, path: Path, mutation: mutations.Mutation, tests: list[str], known: Baseline
) -> dict[str, Any]:
    """Apply one change, run the tests that could notice, take it back."""
    copy = tree / "src" / path.relative_to(SOURCE)
    source = path.read_bytes()
    changed = mutation.apply(source)
    place = f"{path.relative_to(SOURCE)}:{mutation.line}"
    diff = difflib.unified_diff(source.decode().splitlines(), changed.decode().splitlines(), lineterm="", n=0)
    record: dict[str, Any] = {"at": place, "kind": mutation.kind, "diff": list(diff)[2:]}
    try:
        ast.parse(changed)
    except SyntaxError:
        return record | {"state": "not compilable"}
    copy.write_bytes(changed)
    try:
        return record | _noticed(tree, place, path, tests, known)
    finally:
        copy.write_bytes(source)


def _noticed(tree: Path, place: str, path: Path, tests: list[str], known: Baseline) -> dict[str, Any]:
    quick = sorted(known.seconds, key=lambda name: known.seconds[name])
    covering = set(known.passing.get(place, ()))
    files = {name.partition("::")[0] for name in covering}
    if place in known.at_import or not covering:  # everything that names the module may depend on it
        module = path.stem if path.stem != "__init__" else path.parent.name
        files |= {test for test in tests if module in (ROOT / test).read_text()} or set(tests)
        files |= {test for test in tests if Path(test).name in GENERAL}
    direct = [name for name in quick if name in covering]
    others = [name for name in quick if name not in covering and name.partition("::")[0] in files]
    others = others if place in known.at_import or not covering else []
    spent = itertools.accumulate(known.seconds[name] for name in others)
    others = [name for name, total in zip(others, spent, strict=True) if total < ENOUGH]
    for group in (direct[:FIRST], direct[FIRST:], others):
        if not group:
            continue
        outcome = run_tests(tree, group, EXTRA + PER_TEST * sum(known.seconds[name] for name in group))
        if outcome is None:
            return {"state": "timeout"}
        if outcome["failed"]:
            return {"state": "killed", "by": outcome["failed"][0]}
    return {"state": "survived", "tests": len(direct)}


def report(results: dict[str, dict[str, Any]]) -> str:
    """The table, and the changes that nobody noticed."""
    lines = [
        f"{'room':10s} {'changes':>8s} {'killed':>7s} {'timeout':>8s} {'survived':>9s} "
        f"{'equivalent':>11s}  share"
    ]
    for room in dict.fromkeys(one["room"] for one in results.values()):
        states = Counter(one["state"] for one in results.values() if one["room"] == room)
        noticed, total = states["killed"] + states["timeout"], sum(states.values()) - states["not compilable"]
        share = noticed / max(total - states["equivalent"], 1)
        lines.append(
            f"{room:10s} {total:8d} {states['killed']:7d} {states['timeout']:8d} {states['survived']:9d} "
            f"{states['equivalent']:11d}  {share:.0%}"
        )
    for one in results.values():
        if one["state"] == "survived":
            lines += [
                "",
                f"survived: {one['at']} ({one['kind']}, {one['tests']} tests pass the line)",
                *one["diff"],
            ]
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("rooms", nargs="*", default=["gmcn", "metrics", "data", "predict"], metavar="ROOM")
    parser.add_argument("--count", type=int, default=25, help="changed lines per room")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--to", type=Path, default=ROOT / "build" / "mutants.json")
    options = parser.parse_args()
    if unknown := set(options.rooms) - set(ROOMS):
        parser.error(f"no room {sorted(unknown)}: choose from {', '.join(ROOMS)}")
    prepare()
    options.to.parent.mkdir(parents=True, exist_ok=True)
    results = json.loads(options.to.read_text()) if options.to.is_file() else {}
    with tempfile.TemporaryDirectory(prefix="gbpn-mutants-") as folder:
        tree = copied(Path(folder))
        work = []
        for name in options.rooms:
            files = matching(SOURCE / "gbpn", ROOMS[name].files)
            picked = chosen(files, options.count, f"{name} {options.seed}")
            work += [(number, name, *one) for number, one in enumerate(picked)]
        known: dict[str, Baseline] = {}
        for number, name, path, mutation in sorted(work, key=lambda one: one[0]):  # rooms take turns
            key = f"{name} {options.seed} {number}"
            if key in results:
                continue
            tests = [str(test.relative_to(ROOT)) for test in matching(ROOT / "tests", ROOMS[name].tests)]
            if name not in known:
                known[name] = baseline(tree, tests, options.to.parent)
                took = sum(known[name].seconds.values())
                print(f"{name}: {len(known[name].seconds)} tests, {took:.0f} s", flush=True)
            results[key] = {"room": name} | judge(tree, path, mutation, tests, known[name])
            print(f"{key}: {results[key]['state']:9s} {results[key]['at']} {mutation.kind}", flush=True)
            options.to.write_text(json.dumps(results, indent=1) + "\n")
    print(report(results))


if __name__ == "__main__":
    main()
