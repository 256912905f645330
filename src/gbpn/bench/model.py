"""How long each stage of a model takes, what attention and memory cost, and how near it comes to a matmul.

Times are minima over repeats, so that other work on the machine disturbs them least. On a busy machine count
processor time instead, with one thread.
"""

from __future__ import annotations

import ctypes
import gc
import multiprocessing
import re
import resource
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn

from gbpn.config import CONFIGS
from gbpn.errors import InputError
from gbpn.model import cost
from gbpn.model.loading import load
from gbpn.model.models import GBPN, build, from_config
from gbpn.model.pipeline import SparseDepth
from gbpn.network.attention import neighbourhood_attention
from gbpn.network.unit import GatedAttention

__all__ = [
    "MODELS",
    "POINTS",
    "SIZES",
    "Clock",
    "bench_model",
    "bench_models",
    "matmul_rate",
    "parsed",
    "peak_memory",
]

Clock = Callable[[], float]

MODELS = ("default", "gbpn-1", "gbpn-2", "small")
SIZES = ("256x320", "352x1216")
_CLOCKS: dict[str, Clock] = {"wall": time.perf_counter, "cpu": time.process_time}
POINTS = 500
"""Measurements in the image; inference takes as long with any other number."""


@dataclass(frozen=True)
class _AttentionCall:
    """The size of one attention."""

    channels: int
    heads: int
    window: int
    dilation: int
    height: int
    width: int

    @property
    def multiply_adds(self) -> int:
        keys = min(self.window, self.height) * min(self.window, self.width)
        return 2 * keys * self.channels * self.height * self.width


def bench_models(
    names: list[str],
    sizes: list[str],
    *,
    repeats: int = 5,
    clock: str = "wall",
    report: Callable[[str], None] = lambda line: None,
) -> dict[str, Any]:
    """{"matmul_gflops", "threads", "models": {name: {size: {…_ms, peak_mb, params, macs, …}}}}."""
    seconds = _CLOCKS[clock]
    rates = [matmul_rate(seconds)]
    models: dict[str, dict[str, Any]] = {}
    for name in names:
        for size in sizes:
            report(f"{name} at {size}")
            height, width = parsed(size)
            models.setdefault(name, {})[size] = bench_model(name, height, width, repeats, seconds)
            rates.append(matmul_rate(seconds))  # the best of several moments, as for every other time
    rate = max(rates)
    for row in (row for sizes_ in models.values() for row in sizes_.values()):
        gigaflops = 2e-6 * row["macs"] / row["gmcn_ms"]
        row["matmul_share"] = gigaflops / rate
        convolutions = row["macs"] - row["attention_macs"]
        row["convolution_matmul_share"] = 2e-6 * convolutions / (row["gmcn_ms"] - row["attention_ms"]) / rate
    return {"matmul_gflops": rate, "threads": torch.get_num_threads(), "models": models}


def bench_model(
    name: str, height: int, width: int, repeats: int, seconds: Clock = time.perf_counter
) -> dict[str, Any]:
    """One model at one size, batch 1, fused for inference: embedded weights with their calibration, or a
    configuration with random ones."""
    model = _built(name)
    inputs = _inputs(height, width)
    calls = _attention_calls(model, inputs)
    stages, total = _stage_times(model, inputs, repeats, seconds)
    macs = list(cost.multiply_adds(from_config(model.config), height, width).values())
    for stage, count in zip(stages, macs, strict=True):
        stage["macs"] = count
    return {
        "inside": _inside(model, name),
        "total_ms": total,
        "with_sigma_ms": _sigma_time(model, inputs, repeats, seconds),
        "gmcn_ms": sum(stage["gmcn_ms"] for stage in stages),
        "gbp_ms": sum(stage["gbp_ms"] for stage in stages),
        "attention_ms": _attention_time(calls, "auto", repeats, seconds),
        "attention_reference_ms": _attention_time(calls, "reference", 1, seconds),
        "peak_mb": peak_memory(name, height, width),
        "params": cost.parameters(from_config(model.config)),
        "macs": sum(macs),
        "attention_macs": sum(call.multiply_adds * count for call, count in calls.items()),
        "stages": stages,
    }


def matmul_rate(seconds: Clock = time.perf_counter, side: int = 1536, repeats: int = 8) -> float:
    """Gflop/s of this machine's float32 matrix product, with the threads that torch uses now."""
    matrix = torch.randn(side, side, generator=torch.Generator().manual_seed(0))
    return 2e-6 * side**3 / _fastest(lambda: matrix @ matrix, repeats, seconds)


def parsed(size: str) -> tuple[int, int]:
    """ "256x320" → (256, 320); the network's own sizes, multiples of 32."""
    match = re.fullmatch(r"(\d+)x(\d+)", size)
    if match is None or int(match[1]) % 32 or int(match[2]) % 32 or not int(match[1]) or not int(match[2]):
        raise InputError(f"a size is HEIGHTxWIDTH with multiples of 32, such as 256x320; got {size!r}")
    return int(match[1]), int(match[2])


def peak_memory(name: str, height: int, width: int) -> float:
    """Megabytes that one inference needs on top of the loaded model, measured in a process of its own."""
    context = multiprocessing.get_context("spawn")
    with context.Pool(1) as pool:
        return float(pool.apply(_peak_here, (name, height, width, torch.get_num_threads())))


def _peak_here(name: str, height: int, width: int, threads: int) -> float:
    torch.set_num_threads(threads)
    model, inputs = _built(name), _inputs(height, width)
    gc.collect()
    if sys.platform == "linux":
        ctypes.CDLL(None).malloc_trim(0)
        with open("/proc/self/clear_refs", "w") as reset:
            reset.write("5")  # the high-water mark starts again at what is used now
        before = _status("VmRSS")
        with torch.no_grad():
            model.complete(*inputs, sigmas=False)
        return (_status("VmHWM") - before) / 1024
    unit = 2**20 if sys.platform == "darwin" else 1024
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with torch.no_grad():
        model.complete(*inputs, sigmas=False)
    return (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / unit


def _status(field: str) -> int:
    """Kilobytes, from the kernel's account of this process."""
    with open("/proc/self/status") as status:
        return next(int(line.split()[1]) for line in status if line.startswith(field))


def _inside(model: GBPN, name: str) -> str:
    """What `total_ms` times, in words."""
    name, _, precision = name.partition(":")
    weights = "random weights" if name in CONFIGS else f"weights {name!r}"
    return (
        f"{model.config.name}, {weights}, convolutions in {precision or 'float32'}; depth and confidence of "
        f"an image with {POINTS} measurements, all {model.config.stages} stages, without the check "
        "of the sigmas"
    )


@torch.no_grad()
def _sigma_time(
    model: GBPN, inputs: tuple[Tensor, Tensor, Tensor], repeats: int, seconds: Clock
) -> float | None:
    """Milliseconds of a call that also states checked sigmas; None without a calibration."""
    if model.calibration is None:
        return None
    return _fastest(lambda: model.complete(*inputs, sigmas=True).std, repeats, seconds)


def _built(name: str) -> GBPN:
    """A configuration with random weights, or embedded weights; ":bfloat16" behind it sets the precision."""
    name, _, precision = name.partition(":")
    with torch.random.fork_rng(devices=[]):  # the caller's random state stays as it is
        torch.manual_seed(0)
        model = build(name) if name in CONFIGS else load(name)
    if not isinstance(model, GBPN):
        raise InputError(f"{name} has no belief propagation to measure; choose a gbpn or small configuration")
    return model.prepared(precision or "float32", "cpu")


def _inputs(height: int, width: int) -> tuple[Tensor, Tensor, Tensor]:
    """Image, measurements and intrinsics."""
    generator = torch.Generator().manual_seed(0)
    sparse = torch.zeros(height * width)
    chosen = torch.randperm(height * width, generator=generator)[:POINTS]
    sparse[chosen] = 1 + 4 * torch.rand(len(chosen), generator=generator)
    intrinsics = torch.tensor([[width, 0.0, width / 2], [0.0, width, height / 2], [0.0, 0.0, 1.0]])
    image = torch.rand(1, 3, height, width, generator=generator)
    return image, sparse.view(1, 1, height, width), intrinsics[None]


@torch.no_grad()
def _stage_times(
    model: GBPN, inputs: tuple[Tensor, Tensor, Tensor], repeats: int, seconds: Clock
) -> tuple[list[dict[str, Any]], float]:
    """Milliseconds of network and inference in each stage, and of all that a call of the model does."""
    image, sparse, intrinsics = inputs
    fastest: dict[tuple[int, str], float] = {}
    total = float("inf")

    def keep(stage: int, part: str, taken: float) -> None:
        fastest[stage, part] = min(1e3 * taken, fastest.get((stage, part), float("inf")))

    pipeline = model.pipeline()
    with _stopwatch(model.second, seconds) as second_network:
        for _ in range(repeats):
            start = seconds()
            encoding = pipeline.encode(image, intrinsics)
            keep(0, "gmcn_ms", seconds() - start)
            stages = pipeline.stages(encoding, SparseDepth(depth=sparse))
            for stage in range(model.config.stages):
                second_network.clear()
                began = seconds()
                next(stages)
                network = sum(second_network)
                keep(stage, "gbp_ms", seconds() - began - network)
                if stage:
                    keep(stage, "gmcn_ms", network)
            total = min(total, 1e3 * (seconds() - start))
    parts = ("gmcn_ms", "gbp_ms")
    return [{part: fastest[stage, part] for part in parts} for stage in range(model.config.stages)], total


@contextmanager
def _stopwatch(module: nn.Module | None, seconds: Clock) -> Iterator[list[float]]:
    """Seconds of every `redraw` of the module, as they happen."""
    taken: list[float] = []
    if module is None:
        yield taken
        return
    redraw: Callable[..., Any] = module.redraw  # type: ignore[assignment]

    def timed(*args: Any) -> Any:
        start = seconds()
        parameters = redraw(*args)
        taken.append(seconds() - start)
        return parameters

    module.redraw = timed  # type: ignore[assignment]
    try:
        yield taken
    finally:
        del module.redraw


@torch.no_grad()
def _attention_calls(model: GBPN, inputs: tuple[Tensor, Tensor, Tensor]) -> Counter[_AttentionCall]:
    """Every attention of a forward pass; its own run also warms up."""
    calls: Counter[_AttentionCall] = Counter()

    def note(layer: nn.Module, args: tuple[Tensor, ...]) -> None:
        assert isinstance(layer, GatedAttention)
        window = (layer.bias.shape[-1] + 1) // 2
        calls[_AttentionCall(layer.channels, layer.heads, window, layer.dilation, *args[0].shape[-2:])] += 1

    layers = [layer for layer in model.modules() if isinstance(layer, GatedAttention)]
    hooks = [layer.register_forward_pre_hook(note) for layer in layers]
    model.complete(*inputs, sigmas=False)
    for hook in hooks:
        hook.remove()
    return calls


@torch.no_grad()
def _attention_time(calls: Counter[_AttentionCall], backend: str, repeats: int, seconds: Clock) -> float:
    """Milliseconds of all these calls on channels-last tensors."""
    total = 0.0
    draw = partial(torch.randn, generator=torch.Generator().manual_seed(0))
    for call, count in calls.items():
        shape = (1, call.channels, call.height, call.width)
        query, key, value = (draw(shape).to(memory_format=torch.channels_last) for _ in range(3))
        bias = draw(call.heads, 2 * call.window - 1, 2 * call.window - 1)

        attend = partial(
            neighbourhood_attention, query, key, value, bias, dilation=call.dilation, backend=backend
        )
        total += count * _fastest(attend, repeats, seconds)
    return total


def _fastest(work: Callable[[], Any], repeats: int, seconds: Clock) -> float:
    """Milliseconds of the fastest of `repeats` calls."""
    taken = []
    for _ in range(repeats):
        start = seconds()
        work()
        taken.append(seconds() - start)
    return 1e3 * min(taken)
