"""Counts what a reader passes who follows one frame: files, functions, changes of file, inferences, checks.

usage: python scripts/walk_of_a_frame.py [--sigma | --files] [--changes] [--weights WEIGHTS]

An embedded scene with 500 measurements goes through `DepthCompleter` (with --files: as a frame of a batch,
from files to files) once to warm up, and then once under a trace. Counted are calls of functions of gbpn;
comprehensions and lambdas belong to the function around them. A change of file is a call from one file of
gbpn into another.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np
import torch

import gbpn
from gbpn import scenes
from gbpn.formats.depth_files import write_depth
from gbpn.formats.images import write_image
from gbpn.jobs.pairing import plan
from gbpn.jobs.run import Run
from gbpn.jobs.sources import Sensor
from gbpn.sensors import patterns

PACKAGE = str(Path(gbpn.__file__).parent)
INNER = ("<listcomp>", "<genexpr>", "<dictcomp>", "<setcomp>", "<lambda>")
CHECKS = ("as_image", "as_camera", "as_measurements", "without_implausible", "require_finite", "require_size")


class Walk:
    """What was passed."""

    def __init__(self) -> None:
        self.calls: Counter[tuple[str, str]] = Counter()
        self.changes: Counter[tuple[str, str]] = Counter()

    def follow(self, frame: FrameType, event: str, _: Any) -> None:
        """A profile function, told of every call of a Python function."""
        code = frame.f_code
        if event != "call" or not code.co_filename.startswith(PACKAGE) or code.co_name in INNER:
            return
        file = code.co_filename.removeprefix(f"{PACKAGE}/")
        self.calls[file, code.co_qualname if sys.version_info >= (3, 11) else code.co_name] += 1
        back = frame.f_back
        while back is not None and not back.f_code.co_filename.startswith(PACKAGE):
            back = back.f_back
        if back is not None and (before := back.f_code.co_filename.removeprefix(f"{PACKAGE}/")) != file:
            self.changes[before, file] += 1

    @property
    def files(self) -> set[str]:
        """Files with a function that was called."""
        return {file for file, _ in self.calls}

    def times(self, name: str) -> int:
        """Calls of functions of that name."""
        return sum(count for (_, known), count in self.calls.items() if known.rpartition(".")[2] == name)


@contextmanager
def following(walk: Walk) -> Iterator[None]:
    sys.setprofile(walk.follow)
    try:
        yield
    finally:
        sys.setprofile(None)


def followed(work: Callable[[], Any]) -> Walk:
    """The walk of a call that was made once before."""
    work()
    walk = Walk()
    with following(walk):
        work()
    return walk


def of_a_call(completer: gbpn.DepthCompleter, *, sigma: bool) -> Walk:
    """From tensors to arrays."""
    sample, sparse = _frame()

    def one() -> object:
        result = completer(sample.image, sparse, sample.intrinsics, sigmas=sigma)
        return result.std if sigma else result.depth

    return followed(one)


def of_a_batch(completer: gbpn.DepthCompleter) -> Walk:
    """From the files of a frame to its results."""
    sample, sparse = _frame()
    with tempfile.TemporaryDirectory() as folder:
        image, depth = Path(folder) / "frame.png", Path(folder) / "frame.npy"
        write_image(image, sample.image)
        write_depth(depth, sparse)
        run = Run(completer=completer, sensor=Sensor(), output=Path(folder) / "completed", again=True)
        (job,), identity = plan(str(image), str(depth)), run.identity()
        return followed(lambda: run.one(job, identity))


def _frame() -> tuple[gbpn.Sample, torch.Tensor]:
    sample = scenes.load("kitchen")
    assert sample.target is not None
    return sample, patterns.random_points(sample.target, np.random.default_rng(0), 500)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--sigma", action="store_true", help="read sigma too, not depth alone")
    parser.add_argument("--files", action="store_true", help="a frame of a batch, from files to files")
    parser.add_argument("--changes", action="store_true", help="list the changes of file")
    parser.add_argument("--weights", default="default", help="as `gbpn complete` takes them")
    options = parser.parse_args()
    torch.set_num_threads(1)
    completer = gbpn.DepthCompleter.from_pretrained(options.weights, device="cpu")
    walk = of_a_batch(completer) if options.files else of_a_call(completer, sigma=options.sigma)
    print(
        f"{len(walk.files)} files, {len(walk.calls)} functions, {sum(walk.calls.values())} calls, "
        f"{sum(walk.changes.values())} changes of file"
    )
    print(", ".join(f"{name} {walk.times(name)}" for name in ("infer", *CHECKS)))
    if options.changes:
        for (left, right), count in walk.changes.most_common():
            print(f"{count:5d}  {left} → {right}")


if __name__ == "__main__":
    main()
