"""One numbered case: made from a seed, run against the package, and judged."""

from __future__ import annotations

import os
import shutil
import traceback
import warnings
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import torch

import gbpn
from gbpn.answer.completed import CompletedDepth
from gbpn.distribution import SigmaCalibration
from gbpn.errors import GbpnError
from gbpn.files.contained import contained
from gbpn.files.guard import LONGEST_MESSAGE
from gbpn.inputs.frame import FrameInputs
from gbpn.inputs.reading import as_intrinsics, frame_inputs
from gbpn.jobs.written import parse_intrinsics, parse_point

from .c_calls import call
from .corpus import colmap_text, seeds
from .making import HEIGHT, WIDTH, npz
from .mutations import NAMES, VALUES, WORDS, damaged, odd_array

KINDS = ("file", "array", "value", "camera", "name", "words", "c")
SHARES = (0.53, 0.14, 0.08, 0.08, 0.08, 0.04, 0.05)


def run(seed: int, number: int, scratch: Path) -> tuple[str, str, str]:
    """(kind, outcome, detail); outcome is "answered", "refused", "traceback" or "absurd"."""
    rng = np.random.default_rng([seed, number])
    kind = str(rng.choice(KINDS, p=SHARES))
    shutil.rmtree(scratch, ignore_errors=True)
    scratch.mkdir(parents=True)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            problem = CASES[kind](rng, scratch)
    except GbpnError as error:
        return kind, *_judged(error)
    except Exception:
        return kind, "traceback", traceback.format_exc()
    return (kind, "absurd", problem) if problem else (kind, "answered", "")


def _judged(error: GbpnError) -> tuple[str, str]:
    text = str(error)
    if len(text) > LONGEST_MESSAGE or "\n" in text:
        return "absurd", f"a message of {len(text)} characters or several lines: {text}"
    if "fit into memory" in text:
        return "absurd", f"memory was taken before the size was looked at: {text}"
    return "refused", text


@cache
def _seeds() -> list[Any]:
    return seeds()


def _file(rng: np.random.Generator, scratch: Path) -> str:
    """A damaged file of some format."""
    seed = _seeds()[int(rng.integers(len(_seeds())))]
    for name, content in ((seed.name, b""), *seed.beside):
        (scratch / name).parent.mkdir(parents=True, exist_ok=True)
        (scratch / name).write_bytes(content)
    content = damaged(seed.content[: seed.head], rng) + (seed.content[seed.head :] if seed.head else b"")
    if seed.name.endswith(".npz") and rng.random() < 0.5:
        inner = next(s.content for s in _seeds() if s.name == "d.npy")
        content = npz(damaged(inner, rng))
    (scratch / seed.name).write_bytes(content)
    return odd(seed.read(scratch / seed.name), seed.name)


def odd(answer: object, what: str) -> str:
    """What is wrong with the numbers that a reader gave."""
    for values in _arrays(answer):
        if values.dtype.is_floating_point and bool(torch.isnan(values).any() | torch.isinf(values).any()):
            return "" if what == "p.csv" else f"{what}: numbers that are not finite were read"
        if values.dim() == 3 and values.numel() and float(values.min()) < 0:
            return f"{what}: a map with negative values was read"
    return ""


def _arrays(answer: object) -> Iterator[torch.Tensor]:
    if isinstance(answer, torch.Tensor):
        yield answer
    elif isinstance(answer, np.ndarray):
        yield torch.from_numpy(answer)
    elif isinstance(answer, list | tuple):
        for part in answer:
            yield from _arrays(part)


def _array(rng: np.random.Generator, _: Path) -> str:
    """Odd things instead of an image, measurements, a camera or a scale."""
    image: Any = np.full((HEIGHT, WIDTH, 3), 100, np.uint8)
    sparse: Any = np.full((HEIGHT, WIDTH), 2.0, np.float32)
    camera: Any = None
    scale: Any = None
    place = int(rng.integers(5))
    if place in (0, 4):
        image = odd_array(rng)
    if place in (1, 4):
        sparse = odd_array(rng)
    if place in (2, 4):
        camera = odd_array(rng)
    if place == 3:
        scale = (*VALUES, "x", None, True, [], 1j, 10**400)[int(rng.integers(len(VALUES) + 6))]
    inputs = frame_inputs(image, sparse, camera, scale)
    return odd((inputs.image, inputs.sparse, inputs.intrinsics), "frame")


@cache
def _completer() -> gbpn.DepthCompleter:
    torch.manual_seed(0)
    torch.set_num_threads(1)
    model = gbpn.build("small-2", width=0.5)
    model.calibration = SigmaCalibration(knots=(-4.0, 4.0), log_std=(2.0, -4.0))
    return gbpn.DepthCompleter(model)


def _value(rng: np.random.Generator, _: Path) -> str:
    """Extreme values among good ones, through a model, against the contract of its answers."""
    depth = np.zeros((HEIGHT * 3, WIDTH * 2), np.float32)
    places = rng.choice(depth.size, int(rng.integers(1, 60)), replace=False)
    depth.reshape(-1)[places] = rng.uniform(0.5, 5, len(places)) * 10.0 ** rng.integers(-5, 6)
    for place in places[: int(rng.integers(0, 1 + len(places) // 4))]:
        depth.reshape(-1)[place] = VALUES[int(rng.integers(len(VALUES) - 2))]
    image = rng.choice((0, 255, 128, 7), (*depth.shape, 3)).astype(np.uint8)
    camera = None if rng.random() < 0.5 else [10.0 ** rng.uniform(0, 4), 10.0 ** rng.uniform(0, 4), 16, 12]
    inputs: FrameInputs = frame_inputs(image, np.abs(depth), camera)
    return broken_contract(_completer().complete(inputs))


def broken_contract(result: CompletedDepth) -> str:
    """What an answer breaks of its promise; empty if nothing."""
    known = result.sparse[result.sparse > 0]
    reach = result.how.answers_reach
    low, high = float(known.min()) / reach, float(known.max()) * reach
    depth = result.depth[result.observed]
    if not (np.isfinite(depth).all() and (depth >= low).all() and (depth <= high).all()):
        return f"observed depths from {depth.min()} to {depth.max()}; promised {low:g} to {high:g}"
    if np.isfinite(result.depth[~result.observed]).any():
        return "a depth where nothing was observed"
    if result.distribution.calibration is not None:
        std = result.std[result.observed]
        if not (np.isfinite(std).all() and (std > 0).all() and (std <= high).all()):
            return f"sigmas from {std.min()} to {std.max()}; promised above 0 and up to {high:g}"
    confidence = result.confidence
    return "" if ((confidence >= 0) & (confidence <= 1)).all() else "confidence outside [0, 1]"


def _camera(rng: np.random.Generator, _: Path) -> str:
    """Numbers that are no camera."""
    numbers = [
        VALUES[int(rng.integers(len(VALUES)))] if rng.random() < 0.4 else float(10 ** rng.uniform(-2, 4))
        for _ in range(int(rng.choice((4, 4, 4, 9, 9, 12, 3))))
    ]
    if len(numbers) == 9 and rng.random() < 0.8:
        numbers[6:] = 0.0, 0.0, 1.0
    matrix, _notice = as_intrinsics(numbers, None, HEIGHT, WIDTH)
    rays = gbpn.camera.pinhole.rays(matrix[None], HEIGHT, WIDTH)
    largest = float(rays.abs().max())
    return "" if np.isfinite(largest) and largest < 1e4 else f"a camera {numbers} with rays up to {largest:g}"


def _name(rng: np.random.Generator, scratch: Path) -> str:
    """Names from files: nothing may appear outside of the output folder."""
    from gbpn.cli.project import project

    name = NAMES[int(rng.integers(len(NAMES)))]
    if rng.random() < 0.5:
        name = damaged(name.encode("utf-8", "surrogateescape"), rng).decode("utf-8", "surrogateescape")
    output, outside, model = scratch / "box" / "out", scratch / "box" / "outside", scratch / "model"
    for folder in (output / "sparse", outside, model):
        folder.mkdir(parents=True)
    (outside / "kept.txt").write_text("kept")
    (output / "sparse" / "link").symlink_to(outside, target_is_directory=True)
    (output / "sparse" / "line.npy").symlink_to(outside / "kept.txt")
    os.mkfifo(output / "sparse" / "pipe.npy")
    if rng.random() < 0.5:
        path = contained(output, name, ".npy")
        return "" if path.resolve().is_relative_to(output.resolve()) else f"{name!r} leads to {path}"
    for file, content in colmap_text(name).items():
        (model / file).write_bytes(content)
    before = {p for p in scratch.rglob("*") if not p.is_relative_to(output)}
    try:
        project(model, output)
    finally:
        after = {p for p in scratch.rglob("*") if not p.is_relative_to(output)}
        escaped = after - before
    whole = (outside / "kept.txt").read_text() == "kept"
    return "" if whole and not escaped else f"{name!r} wrote outside: {sorted(map(str, escaped))}"


def _words(rng: np.random.Generator, _: Path) -> str:
    """Arguments of the command line."""
    from gbpn.cli.project import _parse_size

    texts = [WORDS[int(rng.integers(len(WORDS)))].decode("latin-1") for _ in range(int(rng.integers(1, 5)))]
    joined = str(rng.choice((",", " ", "x", "×"))).join(texts)
    reader = (parse_point, parse_intrinsics, _parse_size)[int(rng.integers(3))]
    reader(joined)
    return ""


def _c(rng: np.random.Generator, _: Path) -> str:
    """Calls of the C interface with tensors that are not as it wants them."""
    return call(rng)


CASES = {
    "file": _file, "array": _array, "value": _value, "camera": _camera, "name": _name, "words": _words,
    "c": _c,
}  # fmt: skip
