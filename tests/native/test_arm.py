"""The kernels on ARM: compiled with vectors of 128 bits, run by an emulator, compared with this machine.

Correctness only; an emulator says nothing of speed. Attention is compiled, and not run.
"""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

HERE = Path(__file__).parent
NATIVE = HERE.parents[1] / "native"
KERNELS = (
    "attention",
    "doubling",
    "field_maps",
    "gbp_bands",
    "gbp_nonlocal",
    "gbp_sweep",
    "gbp_sweep_adjoint",
    "head_planes",
    "upscale",
)
CORE = ("gbp_inference", "guard", "simd", "threads")
ARM = "aarch64-linux-gnu"
TOOLS = ("c++", f"{ARM}-g++", f"{ARM}-objdump", "qemu-aarch64")
RELATIVE = {8: 1e-13, 4: 5e-6}
"""Largest difference, as a share of the largest number of a result, by bytes of a number."""

pytestmark = pytest.mark.skipif(
    any(shutil.which(tool) is None for tool in TOOLS), reason=f"needs {', '.join(TOOLS)}"
)


def run(*command: str | Path) -> str:
    done = subprocess.run([str(part) for part in command], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


def built(folder: Path, compiler: str) -> Path:
    """The program of arm_kernels.cpp; its objects lie beside it."""
    folder.mkdir()

    def compiled(name: str) -> Path:
        kernel = ("-DGBPN_LEVEL=baseline", "-O2", "-fno-exceptions", "-fno-rtti", "-Wno-psabi")
        flags = (*kernel, "-fno-math-errno", "-fno-trapping-math") if name in KERNELS else ("-O1",)
        out = folder / f"{name}.o"
        run(compiler, "-std=c++17", *flags, "-c", NATIVE / f"{name}.cpp", "-o", out)
        return out

    with ThreadPoolExecutor() as pool:
        objects = list(pool.map(compiled, (*KERNELS, *CORE)))
    program = folder / "arm_kernels"
    source = HERE / "arm_kernels.cpp"
    run(compiler, "-std=c++17", "-O1", f"-I{NATIVE}", "-static", source, *objects, "-lpthread", "-o", program)
    return program


def results(file: Path) -> Iterator[tuple[int, np.ndarray]]:
    """(bytes of a number, numbers) of every result."""
    values = np.fromfile(file)
    at = 0
    while at < len(values):
        kind, count = int(values[at]), int(values[at + 1])
        yield kind, values[at + 2 : at + 2 + count]
        at += 2 + count


def test_kernels_compute_on_arm_what_they_compute_here(tmp_path: Path) -> None:
    here, there = built(tmp_path / "host", "c++"), built(tmp_path / "arm", f"{ARM}-g++")
    run(here, tmp_path / "here")
    run("qemu-aarch64", there, tmp_path / "there")
    pairs = list(zip(results(tmp_path / "here"), results(tmp_path / "there"), strict=True))
    assert len(pairs) > 500
    for n, ((kind, wanted), (_, got)) in enumerate(pairs):
        scale = np.abs(wanted).max(initial=1e-3)
        np.testing.assert_allclose(got, wanted, rtol=0, atol=RELATIVE[kind] * scale, err_msg=f"result {n}")
    for name in KERNELS:
        code = run(f"{ARM}-objdump", "-d", there.parent / f"{name}.o")
        assert re.search(r"\sf(mla|mul|add)\s+v\d+\.4s", code), f"{name} computes number by number"
