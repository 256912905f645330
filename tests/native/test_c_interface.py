"""The C interface (`native/gbpn.h`): its numbers, its refusals, its example, under the address sanitizer."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest

from gbpn.kernels.backends import native

ROOT = Path(__file__).parents[2]
NATIVE = ROOT / "native"
CORE = ("gbp_inference", "gbpn", "guard", "simd", "threads")
KERNELS = ("gbp_bands", "gbp_sweep", "gbp_sweep_adjoint", "gbp_nonlocal")
WATCHED = ("-fsanitize=address,undefined", "-fno-sanitize-recover=all", "-O1", "-g")

pytestmark = pytest.mark.skipif(
    not (shutil.which("cc") and shutil.which("c++") and shutil.which("ar")), reason="needs a C compiler"
)


def run(*command: str | Path, **environment: str) -> str:
    done = subprocess.run(
        [str(part) for part in command], capture_output=True, text=True, env={**os.environ, **environment}
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The core as a static library with sanitizers, without Python or nanobind on its path."""
    folder = tmp_path_factory.mktemp("c")
    for name in (*CORE, *KERNELS):
        level = ("-DGBPN_LEVEL=baseline", "-fno-exceptions", "-fno-rtti") if name in KERNELS else ()
        effort = ("-O0",) if name == "gbp_sweep_adjoint" else ()  # linked, but never called from C
        run(
            "c++",
            "-std=c++17",
            *WATCHED,
            *level,
            *effort,
            "-c",
            NATIVE / f"{name}.cpp",
            "-o",
            folder / f"{name}.o",
        )
    run("ar", "rcs", folder / "libgbpn.a", *(folder / f"{name}.o" for name in (*CORE, *KERNELS)))
    return folder / "libgbpn.a"


def program(library: Path, source: Path) -> Path:
    """A C program with the library."""
    out = library.parent / source.stem
    strict = ("-std=c99", "-Wall", "-Wextra", "-Werror", "-pedantic-errors", *WATCHED, f"-I{NATIVE}")
    run("cc", *strict, source, library, "-lstdc++", "-lpthread", "-ldl", "-lm", "-o", out)
    return out


def test_wrong_calls_are_refused_by_name(library: Path) -> None:
    assert "0 failures" in run(
        program(library, ROOT / "tests/native/c_interface.c"), ASAN_OPTIONS="detect_leaks=1"
    )


def test_numbers_are_those_of_python(library: Path, tmp_path: Path) -> None:
    random = np.random.default_rng(5)
    height, width, times, edges, learned = 5, 7, 2, 3, 2

    def drawn(low: float, high: float, *shape: int) -> np.ndarray:
        return random.uniform(low, high, (1, *shape, height, width)).astype(np.float32)

    precision = drawn(0, 5, 1) * (drawn(0, 1, 1) > 0.6)
    field = {
        "unary_information": precision * drawn(1, 3, 1),
        "unary_precision": precision,
        "messages_local_information": drawn(0, 1, 8),
        "messages_local_precision": drawn(0, 1, 8),
        "messages_nonlocal_information": drawn(0, 1, 1),
        "messages_nonlocal_precision": drawn(0, 1, 1),
        "local_weight": drawn(0.5, 8, times, 4, edges),
        "local_difference": drawn(-0.1, 0.1, times, 4, edges),
        "local_damping": drawn(0.1, 0.5, times),
        "nonlocal_weight": drawn(0.5, 2, times, learned),
        "nonlocal_difference": drawn(-0.1, 0.1, times, learned),
        "nonlocal_offset": drawn(-3, 3, times, learned, 2),
        "nonlocal_damping": drawn(0.1, 0.5, times),
    }
    given, found = tmp_path / "field", tmp_path / "found"
    given.write_bytes(b"".join(values.tobytes() for values in field.values()))
    run(program(library, ROOT / "tests/native/c_interface.c"), given, found)

    kinds = ("information", "precision")
    shapes = {"belief": 1, "messages_local": 8, "messages_nonlocal": 1}
    wanted = {
        f"{name}_{kind}": np.empty((1, planes, height, width), np.float32)
        for name, planes in shapes.items()
        for kind in kinds
    }
    native().gbp_infer(
        field=field,
        outcome={**wanted, "tape": None},
        iterations=times,
        steps=2,
        reweighting=0.8,
        checkpoints=False,
        threads=2,
    )
    got = np.frombuffer(found.read_bytes(), np.float32)
    expected = np.concatenate([values.ravel() for values in wanted.values()])
    np.testing.assert_allclose(got, expected, rtol=2e-5, atol=1e-6)  # instruction sets may differ


def test_example_completes_a_field(library: Path) -> None:
    lines = run(program(library, ROOT / "examples/c/complete_field.c")).splitlines()
    depth = np.array([[float(word) for word in line.split()] for line in lines])
    assert depth.shape == (12, 32)
    assert abs(depth[:, :16] - 1.5).max() < 0.15
    assert abs(depth[:, 16:] - 4.0).max() < 0.15
