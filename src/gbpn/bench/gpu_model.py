"""What the Triton kernels should cost on a GPU that is not here: computed, not measured.

Registers, shared memory and instructions are the compiler's own, for the GPU's architecture; bytes, launches
and lines follow from the sizes. What a GPU needs for each of these are assumptions, which stand below.
"""

from __future__ import annotations

import re
import subprocess
import tempfile
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from gbpn.errors import BackendError

__all__ = [
    "BETWEEN",
    "RTX_4090",
    "STEP_LAUNCHES",
    "Gpu",
    "Resources",
    "compiled",
    "expected",
    "occupancy",
    "sweep_launches",
]


@dataclass(frozen=True, kw_only=True)
class Gpu:
    """Of the maker's data sheets."""

    name: str
    architecture: int
    multiprocessors: int
    hertz: float
    bandwidth: float
    """Bytes per second of its memory."""
    cache: float
    """Bytes that all multiprocessors share."""
    registers: int = 65536
    """Of a multiprocessor, as the following."""
    shared: int = 102400
    threads: int = 1536
    programs: int = 24


RTX_4090 = Gpu(
    name="RTX 4090", architecture=89, multiprocessors=128, hertz=2.52e9, bandwidth=1.008e12, cache=72 * 2**20
)
_LAUNCH = 2.5e-6
"""Assumed seconds from one small launch to the next."""
_CACHED = 300
"""Assumed cycles until a load from the shared cache is there …"""
_FETCHED = 600
"""… or from memory; all loads of a line are under way together."""
_BARRIER = 30
"""Assumed cycles until the warps of a program have met."""
_ISSUE = 2.0
"""Assumed cycles per instruction of a warp that has a scheduler to itself."""
_HANDOVER = 1500
"""Assumed cycles from one strip's release to the next one's acquire."""
_CACHE_SPEED = 3.0
"""Assumed bandwidth of the shared cache over that of memory."""

_MOVED = 116
"""Bytes per pixel that a sweep of three edges reads and writes in float32."""
_FIELD = 176
"""Bytes per pixel that all sweeps of an iteration work on."""
_COPIED = {"horizontal": 42, "vertical": 16}
"""Planes that are copied so that lines lie in memory as a sweep wants them."""
_STEP_MOVED = 40
"""Bytes per pixel of a non-local step, beside 16 for each learned edge."""
STEP_LAUNCHES = 5
"""Of a non-local step: messages added to the base, then the kernel."""
BETWEEN = 20
"""Launches before the sweeps and before the steps of an iteration: sums of messages."""


@dataclass(frozen=True, kw_only=True)
class Resources:
    """A kernel as the compiler made it."""

    registers: int
    """Per thread."""
    shared: int
    """Bytes per program."""
    barriers: int
    instructions: int
    warps: int


def compiled(gpu: Gpu, kernel: str = "sweep") -> Resources:
    """The forward kernel "sweep" (three edges, float32) or "step", for the GPU's architecture."""
    from gbpn.kernels.triton_launch import triton

    knobs = triton.knobs
    if knobs.runtime.interpret:
        raise BackendError("the cost model compiles kernels: start without TRITON_INTERPRET=1")
    from triton.backends.compiler import GPUTarget
    from triton.compiler import ASTSource

    function, numbers, constants, warps = _sources(kernel)
    kinds = dict.fromkeys(function.arg_names, "*fp32") | dict.fromkeys(numbers, "i32")
    kinds |= {name: "*i32" for name in ("progress", "counter") if name in kinds}
    kinds |= dict.fromkeys(constants, "constexpr")
    binary = triton.compile(
        ASTSource(function, kinds, constants),
        target=GPUTarget("cuda", gpu.architecture, 32),
        options={"num_warps": warps, "enable_fp_fusion": True},
    )
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "kernel.cubin"
        file.write_bytes(binary.asm["cubin"])
        usage = _said(knobs.nvidia.cuobjdump.path, "-res-usage", str(file))
        code = _said(knobs.nvidia.nvdisasm.path, "-c", str(file))
    found = re.search(r"REG:(\d+)", usage)
    if found is None:
        raise BackendError(f"cuobjdump names no registers; it says {usage[:200]!r}")
    return Resources(
        registers=int(found[1]),
        shared=binary.metadata.shared,
        barriers=code.count("BAR.SYNC"),
        instructions=len(re.findall(r"^\s+/\*[0-9a-f]{4,}\*/", code, re.MULTILINE)),
        warps=warps,
    )


def _sources(kernel: str) -> tuple[Any, tuple[str, ...], dict[str, Any], int]:
    if kernel == "sweep":
        from gbpn.gbp.triton.sweep_kernels import sweep_forward
        from gbpn.gbp.triton.sweep_operator import EVERY, STRIP

        constants = {"RHO": 1.0, "EDGES": 3, "BACKWARDS": False, "BLOCK": STRIP, "EVERY": EVERY}
        return sweep_forward, ("batch", "strips", "lines", "positions"), constants, STRIP // 32
    from gbpn.gbp.triton.nonlocal_kernels import nonlocal_forward
    from gbpn.gbp.triton.nonlocal_operator import BLOCK

    return nonlocal_forward, ("edges", "height", "width"), {"RHO": 1.0, "BLOCK": BLOCK}, 4


def _said(*command: str) -> str:
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def occupancy(gpu: Gpu, kernel: Resources) -> int:
    """Programs that a multiprocessor holds at once."""
    registers = -(-kernel.registers // 8) * 8 * 32 * kernel.warps
    return min(
        gpu.programs,
        gpu.threads // (32 * kernel.warps),
        gpu.registers // registers,
        gpu.shared // max(kernel.shared + 1024, 1),  # a kilobyte of each program is the system's
    )


def sweep_launches(horizontal: bool) -> int:
    """Kernels that one sweep starts: copies in and out, the counters set to 0, the sweep."""
    return 7 + 1 + 1 + 2 if horizontal else 2 + 1 + 1


def _sweep_seconds(gpu: Gpu, kernel: Resources, lines: int, positions: int, cached: bool) -> float:
    """Of the kernel alone: when the last strip is done, each behind the one on its left."""
    from gbpn.gbp.triton.sweep_operator import EVERY, STRIP, strips_of

    cycles = (_CACHED if cached else _FETCHED) + _ISSUE * kernel.instructions + _BARRIER * kernel.barriers
    line, late = cycles / gpu.hertz, _HANDOVER / gpu.hertz
    before: dict[int, float] = {}
    done: dict[int, float] = {}
    for strip in range(strips_of(lines, positions, STRIP)):
        start = strip * STRIP
        clock, done = 0.0, {}
        for visited in range(max(start - positions + 1, 0), min(start + STRIP, lines)):
            if before and visited > 0:
                told = min(-(-visited // EVERY) * EVERY - 1, max(before))
                clock = max(clock, before.get(told, 0.0) + late * (visited % EVERY == 1))
            clock += line
            done[visited] = clock
        before = done
    return max(done.values())


def expected(
    gpu: Gpu, height: int, width: int, *, iterations: int = 13, steps: int = 4, learned: int = 3
) -> dict[str, Any]:
    """Launches, bytes and milliseconds of one inference in float32, batch 1, 3 edges; all computed."""
    sweep, step = compiled(gpu, "sweep"), compiled(gpu, "step")
    pixels = height * width
    cached = _FIELD * pixels < gpu.cache
    speed = gpu.bandwidth * (_CACHE_SPEED if cached else 1)
    parts: dict[str, dict[str, float]] = {}
    for name, (lines, positions) in {"horizontal": (width, height), "vertical": (height, width)}.items():
        copied = 8 * _COPIED[name] * pixels
        launches = sweep_launches(name == "horizontal")
        kernel = max(_sweep_seconds(gpu, sweep, lines, positions, cached), _MOVED * pixels / speed)
        parts[f"{name} sweeps"] = {
            "launches": 2 * iterations * launches,
            "bytes": 2 * iterations * (copied + _MOVED * pixels),
            "seconds": 2 * iterations * (kernel + copied / speed + _LAUNCH * launches),
        }
    moved = (_STEP_MOVED + 16 * learned) * pixels
    parts["learned edges"] = {
        "launches": iterations * (steps * STEP_LAUNCHES + BETWEEN),
        "bytes": iterations * steps * moved,
        "seconds": iterations * (steps * (moved / speed + _LAUNCH * STEP_LAUNCHES) + _LAUNCH * BETWEEN),
    }
    total = {key: sum(part[key] for part in parts.values()) for key in ("launches", "bytes", "seconds")}
    return {
        "computed": True,
        "gpu": asdict(gpu),
        "size": f"{height}x{width}",
        "kernels": {
            name: asdict(one) | {"programs_per_multiprocessor": occupancy(gpu, one)}
            for name, one in (("sweep", sweep), ("step", step))
        },
        "parts": parts,
        "total": total,
    }
