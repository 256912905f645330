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
from gbpn.gbp.inference import KEPT_PLANES

__all__ = [
    "BETWEEN",
    "RTX_4090",
    "SOURCES",
    "STEP_ADJOINT_LAUNCHES",
    "STEP_LAUNCHES",
    "Gpu",
    "Resources",
    "adjoint_launches",
    "attention",
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
    products: float
    """Operations per second of its tensor cores: bfloat16, sums in float32, dense."""
    registers: int = 65536
    """Of a multiprocessor, as the following."""
    shared: int = 102400
    threads: int = 1536
    programs: int = 24


RTX_4090 = Gpu(
    name="RTX 4090",
    architecture=89,
    multiprocessors=128,
    hertz=2.52e9,
    bandwidth=1.008e12,
    cache=72 * 2**20,
    products=165.2e12,
)
_LAUNCH = 2.5e-6
"""Assumed seconds from one small launch to the next …"""
_GRAPHED = 1.0e-6
"""… and from one kernel of a CUDA graph to the next."""
_CACHED = 300
"""Assumed cycles until a load from the shared cache is there …"""
_FETCHED = 600
"""… or from memory; all loads of a line are under way together."""
_BARRIER = 30
"""Assumed cycles until the warps of a program have met."""
_ISSUE = 2.0
"""Assumed cycles per instruction of a warp that has a scheduler to itself."""
_SCHEDULERS = 4
"""Of a multiprocessor: warps that issue at the same time."""
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
_ADJOINT_MOVED = 288
"""Bytes per pixel that the adjoint of a sweep reads and writes."""
_ADJOINT_COPIED = {"horizontal": 82, "vertical": 0}
_STEP_ADJOINT_MOVED = 72
"""Bytes per pixel of a step's adjoint, beside 32 for each learned edge."""
STEP_ADJOINT_LAUNCHES = 3
"""Two fields set to 0, then the kernel."""
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
    """A kernel of `SOURCES` for the GPU's architecture."""
    from gbpn.kernels.triton_launch import triton

    knobs = triton.knobs
    if knobs.runtime.interpret:
        raise BackendError("the cost model compiles kernels: start without TRITON_INTERPRET=1")
    from triton.backends.compiler import GPUTarget
    from triton.compiler import ASTSource

    function, numbers, constants, warps = _sources(kernel)
    kinds = dict.fromkeys(function.arg_names, "*bf16" if kernel.startswith("attention") else "*fp32")
    kinds |= {name: kind for name, kind in _OTHER_KINDS.items() if name in kinds}
    kinds |= dict.fromkeys(numbers, "i32") | dict.fromkeys(constants, "constexpr")
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


SOURCES = {
    "sweep": "sweep_forward",
    "sweep adjoint": "sweep_adjoint",
    "step": "nonlocal_forward",
    "step adjoint": "nonlocal_adjoint",
    "attention": "attention_forward",
    "attention, queries": "attention_query_gradient",
    "attention, keys": "attention_key_gradient",
}
"""Kernels by name: three edges and float32, attention in bfloat16 with heads of 32 channels."""
_OTHER_KINDS = dict.fromkeys(("progress", "counter"), "*i32")
_OTHER_KINDS |= dict.fromkeys(("bias", "logarithm", "delta", "bias_grad"), "*fp32")


def _sources(kernel: str) -> tuple[Any, tuple[str, ...], dict[str, Any], int]:
    """The function, its numbers, its constants and its warps."""
    from gbpn.gbp.triton import nonlocal_kernels, sweep_adjoint_kernels, sweep_kernels
    from gbpn.gbp.triton.nonlocal_operator import BLOCK
    from gbpn.gbp.triton.sweep_operator import ADJOINT_STRIP, EVERY, STRIP
    from gbpn.network.attention import triton as attention
    from gbpn.network.attention import triton_kernels

    name = SOURCES[kernel]
    constants: dict[str, Any]
    if kernel.startswith("sweep"):
        block = STRIP if kernel == "sweep" else ADJOINT_STRIP
        module = sweep_kernels if kernel == "sweep" else sweep_adjoint_kernels
        constants = {"RHO": 1.0, "EDGES": 3, "BACKWARDS": False, "BLOCK": block, "EVERY": EVERY}
        return getattr(module, name), ("batch", "strips", "lines", "positions"), constants, block // 32
    if kernel.startswith("step"):
        return getattr(nonlocal_kernels, name), ("edges", "height", "width"), {"RHO": 1.0, "BLOCK": BLOCK}, 4
    numbers = ("heads", "height", "width", "dilation_y", "dilation_x", "window_y", "window_x")
    rows, columns = attention.TILE
    constants = {"SCALE": 32**-0.5, "KERNEL": 7, "SIZE": 32, "BLOCK": 32, "TILE_Y": rows, "TILE_X": columns}
    constants |= {"OTHERS": attention.OTHERS, "PRECISION": "ieee"}
    constants |= {"COPIES": attention.COPIES} if kernel == "attention, queries" else {}
    return getattr(triton_kernels, name), numbers, constants, attention.WARPS


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


def adjoint_launches(horizontal: bool) -> int:
    """The same of a sweep's adjoint, whose inputs lie in memory as it wants them or have to be turned."""
    return 11 + 1 + 1 + 7 if horizontal else 1 + 1


def _sweep_seconds(
    gpu: Gpu, kernel: Resources, lines: int, positions: int, cached: bool, owned: int = 64
) -> float:
    """Of the kernel alone: when the last strip of `owned` positions is done, each behind the one before."""
    from gbpn.gbp.triton.sweep_operator import EVERY, strips_of

    cycles = (_CACHED if cached else _FETCHED) + _ISSUE * kernel.instructions + _BARRIER * kernel.barriers
    line, late = cycles / gpu.hertz, _HANDOVER / gpu.hertz
    before: dict[int, float] = {}
    done: dict[int, float] = {}
    for strip in range(strips_of(lines, positions, owned)):
        start = strip * owned
        clock, done = 0.0, {}
        for visited in range(max(start - positions + 1, 0), min(start + owned, lines)):
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
    graphed = total["seconds"] - (_LAUNCH - _GRAPHED) * total["launches"]
    gradient, adjoints = _gradient(gpu, height, width, iterations, steps, learned)
    return {
        "computed": True,
        "gpu": asdict(gpu),
        "size": f"{height}x{width}",
        "kernels": {
            name: asdict(one) | {"programs_per_multiprocessor": occupancy(gpu, one)}
            for name, one in {"sweep": sweep, "step": step, **adjoints}.items()
        },
        "parts": parts,
        "total": total,
        "as_one_graph_seconds": graphed,
        "gradient": {
            way: {
                **gradient,
                "seconds": gradient["seconds"] + (total["seconds"] if way == "recompute" else 0.0),
                "kept": 4 * planes * pixels * iterations,
            }
            for way, planes in KEPT_PLANES.items()
        },
    }


def _gradient(
    gpu: Gpu, height: int, width: int, iterations: int, steps: int, learned: int
) -> tuple[dict[str, float], dict[str, Resources]]:
    """Launches, bytes and seconds of all adjoints (without torch's sums of gradients), and their kernels."""
    from gbpn.gbp.triton.sweep_operator import ADJOINT_STRIP

    kernels = {name: compiled(gpu, name) for name in ("sweep adjoint", "step adjoint")}
    pixels, owned = height * width, ADJOINT_STRIP - 2
    cached = 2 * _FIELD * pixels < gpu.cache
    speed = gpu.bandwidth * (_CACHE_SPEED if cached else 1)
    moved = (_STEP_ADJOINT_MOVED + 32 * learned) * pixels
    launches: float = iterations * steps * STEP_ADJOINT_LAUNCHES
    bytes_: float = iterations * steps * moved
    seconds = iterations * steps * (moved / speed + _LAUNCH * STEP_ADJOINT_LAUNCHES)
    for name, (lines, positions) in {"horizontal": (width, height), "vertical": (height, width)}.items():
        copied, started = 8 * _ADJOINT_COPIED[name] * pixels, adjoint_launches(name == "horizontal")
        alone = _sweep_seconds(gpu, kernels["sweep adjoint"], lines, positions, cached, owned)
        kernel = max(alone, _ADJOINT_MOVED * pixels / speed)
        launches += 2 * iterations * started
        bytes_ += 2 * iterations * (copied + _ADJOINT_MOVED * pixels)
        seconds += 2 * iterations * (kernel + copied / speed + _LAUNCH * started)
    return {"launches": launches, "bytes": bytes_, "seconds": seconds}, kernels


def attention(gpu: Gpu, height: int, width: int) -> dict[str, Any]:
    """The same of all attention of the paper's network, cross and self, forward in bfloat16, batch 1."""
    from gbpn.config import CONFIGS
    from gbpn.network.attention.triton import OTHERS, TILE
    from gbpn.network.attention.window import fitting_dilation

    config, kernel = CONFIGS["gbpn-2"], compiled(gpu, "attention")
    side = config.window
    total = {"launches": 0.0, "bytes": 0.0, "operations": 0.0, "seconds": 0.0}
    for level, dilations in enumerate(config.dilations, 1):
        lengths, channels = (height >> level, width >> level), config.widths[level]
        for dilation in dilations:
            tiles, walked = 1, 1
            for length, tile in zip(lengths, TILE, strict=True):
                classes = fitting_dilation(length, side, dilation)
                members = -(-length // classes)
                tiles *= classes * -(-members // tile)
                walked *= min(tile + side - 1, max(members, side))
            programs, rounds = tiles * channels // config.head_channels, -(-walked // OTHERS)
            done = programs * rounds * 4 * TILE[0] * TILE[1] * OTHERS * config.head_channels
            busy = -(-programs // (gpu.multiprocessors * occupancy(gpu, kernel)))
            together = min(occupancy(gpu, kernel), -(-programs // gpu.multiprocessors))
            issued = kernel.instructions * rounds * kernel.warps * together * _ISSUE / _SCHEDULERS
            alone = busy * max(issued, rounds * 2 * _CACHED) / gpu.hertz
            moved = 2 * 4 * channels * lengths[0] * lengths[1]
            seconds = max(alone, done / gpu.products, moved / gpu.bandwidth) + _LAUNCH
            times = 3 if config.stages == 2 else 1  # self attention of both stages, cross attention of one
            for key, value in zip(total, (1, moved, done, seconds), strict=True):
                total[key] += times * value
    return total | {"kernel": asdict(kernel) | {"programs_per_multiprocessor": occupancy(gpu, kernel)}}
