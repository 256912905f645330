"""Time, memory and parameters of weights, with the network and belief propagation measured apart."""

from __future__ import annotations

import contextlib
import re
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import torch
from torch.nn.functional import interpolate

from gbpn.gbp import Scheme, infer
from gbpn.measurements.validity import measured
from gbpn.model import cost
from gbpn.model.models import GBPN, Model
from gbpn.model.pipeline import SparseDepth
from gbpn.network import MULTIPLE
from gbpn.sample import Sample

__all__ = ["PUBLISHED_SIZES", "peak_memory", "resized", "spent", "split"]

_REPEATS = 3
_CLEAR_PEAK, _STATUS = Path("/proc/self/clear_refs"), Path("/proc/self/status")
PUBLISHED_SIZES = ((256, 320), (352, 1216))
"""Rows and columns of the paper's table of times."""


@torch.inference_mode()
def split(model: Model, sample: Sample, repeats: int = _REPEATS) -> dict[str, Any]:
    """Milliseconds a frame (least of `repeats`), in all and of belief propagation; the rest is the network.

    All without the check of the sigmas, which stands apart. Operations are those at the padded size:
    multiply-adds of the network, and about ten for each message. Memory is the process's peak on a CPU (so it
    includes the interpreter; counted anew here where the system can, Linux), and torch's own peak on a GPU.
    """
    device = next(model.parameters()).device
    _forget_peak(device)
    image, sparse, intrinsics = (t[None].to(device) for t in (sample.image, sample.sparse, sample.intrinsics))
    total = _least(lambda: model.complete(image, sparse, intrinsics, sigmas=False), repeats, device)
    checked = _least(lambda: model.complete(image, sparse, intrinsics, sigmas=True), repeats, device)
    padded = tuple(-(-side // MULTIPLE) * MULTIPLE for side in sample.image.shape[1:])
    propagation = 0.0
    if isinstance(model, GBPN):
        messages, pipeline = None, model.pipeline()
        stages = pipeline.stages(pipeline.encode(image, intrinsics), SparseDepth(depth=sparse))
        for stage, iterations in zip(stages, pipeline.iterations, strict=True):
            once = partial(
                infer,
                stage.field,
                messages,
                iterations=iterations,
                nonlocal_steps=model.config.nonlocal_steps,
                backend=model.backend,
                reweighting=model.config.reweighting,
                scheme=Scheme.of(model.config),
                check=False,
            )
            propagation += _least(once, repeats, device)
            carried = model.config.second_start == "carried"
            messages = stage.inference.messages if carried else None
    return {
        "size": f"{sample.image.shape[1]}×{sample.image.shape[2]}",
        "milliseconds": round(1000 * total, 2),
        "network_milliseconds": round(1000 * max(total - propagation, 0.0), 2),
        "gbp_milliseconds": round(1000 * propagation, 2),
        "with_checked_sigmas_milliseconds": round(1000 * checked, 2),
        "network_gigamacs": round(sum(cost.multiply_adds(model, *padded).values()) / 1e9, 3),
        "gbp_gigaflops": round(cost.FLOPS_PER_MESSAGE * cost.messages(model.config, *padded) / 1e9, 3),
        "megabytes": round(peak_memory(device) / 2**20, 1),
        "million_parameters": round(sum(p.numel() for p in model.parameters()) / 1e6, 3),
        "device": str(device),
        "threads": torch.get_num_threads(),
    }


@torch.inference_mode()
def spent(
    model: Model, sample: Sample, iterations: tuple[int, ...], repeats: int = _REPEATS
) -> dict[str, Any]:
    """Milliseconds (least of `repeats`) and memory of one frame with so many iterations of each stage."""
    device = next(model.parameters()).device
    _forget_peak(device)
    image, sparse, intrinsics = (t[None].to(device) for t in (sample.image, sample.sparse, sample.intrinsics))

    def once() -> Any:
        if not isinstance(model, GBPN):
            return model.complete(image, sparse, intrinsics, sigmas=False)
        return model.complete(image, sparse, intrinsics, sigmas=False, iterations=iterations)

    seconds = _least(once, repeats, device)
    return {"milliseconds": round(1000 * seconds, 2), "megabytes": round(peak_memory(device) / 2**20, 1)}


def resized(sample: Sample, height: int, width: int) -> Sample:
    """The frame at another size, for time alone: its picture is stretched, measurements move along."""
    _, old_height, old_width = sample.image.shape
    rows, columns = torch.nonzero(measured(sample.sparse[0]), as_tuple=True)
    sparse = torch.zeros(1, height, width)
    sparse[0, rows * height // old_height, columns * width // old_width] = sample.sparse[0, rows, columns]
    intrinsics = sample.intrinsics.clone()
    intrinsics[0] *= width / old_width
    intrinsics[1] *= height / old_height
    image = interpolate(sample.image[None], size=(height, width), mode="bilinear", align_corners=False)[0]
    return Sample(image=image, sparse=sparse, intrinsics=intrinsics, target=None, name=sample.name)


def _forget_peak(device: torch.device) -> None:
    """Count the peak anew: a GPU's, or that of a process on Linux."""
    if device.type == "cuda":
        torch.cuda.reset_peak_memory_stats(device)
    elif _CLEAR_PEAK.exists():
        with contextlib.suppress(OSError):  # a container may forbid it: then it is the peak of the whole run
            _CLEAR_PEAK.write_text("5")


def _least(work: Callable[[], Any], repeats: int, device: torch.device) -> float:
    """Seconds of the fastest of `repeats` runs after one to warm up, until the device is idle."""
    best = float("inf")
    for run in range(1 + repeats):
        start = time.perf_counter()
        work()
        if device.type == "cuda":
            torch.cuda.synchronize(device)
        best = min(best, time.perf_counter() - start) if run else best
    return best


def peak_memory(device: torch.device) -> int:
    """Bytes."""
    if device.type == "cuda":
        return torch.cuda.max_memory_allocated(device)
    if _STATUS.exists():
        found = re.search(r"^VmHWM:\s+(\d+) kB", _STATUS.read_text(), re.MULTILINE)
        if found:
            return 1024 * int(found[1])
    import resource

    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else 1024 * peak
