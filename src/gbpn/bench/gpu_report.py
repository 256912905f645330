"""`gbpn doctor --gpu`: whether every kernel is right on this GPU, how fast it is, as a text to paste."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from gbpn.bench.gbp import field, parsed
from gbpn.gaussian import Gaussian
from gbpn.gbp import infer, reference
from gbpn.network.attention import neighbourhood_attention

__all__ = ["PUBLISHED", "SIZES", "Check", "checks", "speeds", "text"]

SIZES = ("256x320", "352x1216")
PUBLISHED = {"256x320": 23.35}
"""Milliseconds of belief propagation alone in the paper, on its GPU, with 13 iterations and learned edges."""
_LIMITS = {torch.float32: 1e-3, torch.float64: 1e-9}
"""Largest difference from plain torch on the CPU in float64, relative to the largest value."""


@dataclass(frozen=True, kw_only=True)
class Check:
    """One operator against its definition, values and gradients."""

    name: str
    difference: float
    limit: float

    @property
    def right(self) -> bool:
        """Not so for NaN."""
        return self.difference <= self.limit


def checks(device: str) -> Iterator[Check]:
    """Every operator of the GPU at odd sizes, in both precisions."""
    from gbpn.gbp import triton

    for dtype, limit in _LIMITS.items():
        for edges, direction in ((3, 0), (3, 3), (1, 1), (1, 2)):
            inputs = _sweep_inputs(edges, 13, 70)
            runs = [_swept(part, direction) for part in (triton, reference)]
            yield _check(f"sweep {direction}, {edges} edges", runs, inputs, device, dtype, limit)
        runs = [_stepped(part) for part in (triton, reference)]
        yield _check("learned edges", runs, _step_inputs(3, 13, 70), device, dtype, limit)
        attentions = [_attended(name) for name in ("triton", "reference")]
        yield _check("attention", attentions, _attention_inputs(9, 15), device, dtype, limit)


def _check(
    name: str,
    runs: list[Callable[..., tuple[Tensor, ...]]],
    inputs: list[Tensor],
    device: str,
    dtype: torch.dtype,
    limit: float,
) -> Check:
    """Of the first run there in `dtype` from the second here in float64."""
    found = []
    for run, where, kind in zip(runs, (device, "cpu"), (dtype, torch.float64), strict=True):
        leaves = [tensor.to(where, kind).requires_grad_() for tensor in inputs]
        outputs = run(*leaves)
        random = torch.Generator().manual_seed(1)
        up = [torch.randn(x.shape, generator=random, dtype=torch.float64).to(where, kind) for x in outputs]
        gradients = torch.autograd.grad(outputs, leaves, up, materialize_grads=True)
        found.append([x.detach().double().cpu() for x in (*outputs, *gradients)])
    worst = torch.stack(
        [(a - b).abs().max() / b.abs().max().clamp_min(1e-12) for a, b in zip(*found, strict=True)]
    )
    return Check(name=f"{name}, {str(dtype)[6:]}", difference=float(worst.max()), limit=limit)


def _swept(operators: Any, direction: int) -> Callable[..., tuple[Tensor, ...]]:
    def run(*x: Tensor) -> tuple[Tensor, ...]:
        out = operators.sweep(Gaussian(*x[:2]), Gaussian(*x[2:4]), *x[4:], direction=direction)
        return out.information, out.precision

    return run


def _stepped(operators: Any) -> Callable[..., tuple[Tensor, ...]]:
    def run(*x: Tensor) -> tuple[Tensor, ...]:
        out = operators.nonlocal_step(Gaussian(*x[:2]), Gaussian(*x[2:4]), *x[4:])
        return out.information, out.precision

    return run


def _attended(backend: str) -> Callable[..., tuple[Tensor, ...]]:
    return lambda *x: (neighbourhood_attention(*x, dilation=2, scale=0.5, backend=backend),)


def _random(seed: int) -> Callable[..., Tensor]:
    generator = torch.Generator().manual_seed(seed)
    return lambda *shape: torch.rand(*shape, generator=generator)


def _known(random: Callable[..., Tensor], *shape: int) -> list[Tensor]:
    """Information and precision; half of the pixels know nothing."""
    precision = random(*shape) * (random(*shape) > 0.5)
    return [precision * (4 * random(*shape) - 2), precision]


def _sweep_inputs(edges: int, height: int, width: int) -> list[Tensor]:
    random = _random(0)
    some, one = (2, edges, height, width), (2, 1, height, width)
    messages = _known(random, 2, 8, height, width)
    return [*_known(random, *one), *messages, 2 * random(*some), random(*some) - 0.5, random(*one)]


def _step_inputs(edges: int, height: int, width: int) -> list[Tensor]:
    random = _random(0)
    some, one = (2, edges, height, width), (2, 1, height, width)
    offset = 12 * random(2, edges, 2, height, width) - 6
    state = [*_known(random, *one), *_known(random, *one)]
    return [*state, random(*some), random(*some) - 0.5, offset, random(*one)]


def _attention_inputs(height: int, width: int) -> list[Tensor]:
    random = _random(0)
    images = [2 * random(2, 2 * 32, height, width) - 1 for _ in range(3)]
    return [*images, random(2, 13, 13) - 0.5]


def speeds(device: str, sizes: tuple[str, ...] = SIZES, repeats: int = 10) -> dict[str, dict[str, float]]:
    """{size: milliseconds of inference as in the paper, of the default weights, and of both without σ}."""
    from gbpn.engine import Engine
    from gbpn.model.loading import load
    from gbpn.model.pipeline import SparseDepth

    engine = Engine.of(load(), precision="float32", device=device, working_size="own")
    answering: Any = engine.answering
    found = {}
    for size in sizes:
        height, width = parsed(size)
        mrf = _moved(field(height, width, learned=3), device)
        random = _random(0)
        image = random(1, 3, height, width).to(device)
        sparse = SparseDepth(depth=2.0 * (random(1, 1, height, width) < 0.006).to(device))
        camera = torch.tensor([[[width, 0, width / 2], [0, width, height / 2], [0, 0, 1.0]]], device=device)
        with torch.inference_mode():
            found[size] = {
                "inference": _least(lambda: infer(mrf, iterations=13, check=False), device, repeats),  # noqa: B023
                "network": _least(lambda: answering.look(image, camera), device, repeats),  # noqa: B023
                "frame": _least(
                    lambda: answering.seen(answering.look(image, camera), sparse, sigmas=False),  # noqa: B023
                    device,
                    repeats,
                ),
            }
    return found


def _moved(box: Any, device: str) -> Any:
    from dataclasses import fields, is_dataclass, replace

    if isinstance(box, Tensor):
        return box.to(device)
    if not is_dataclass(box):
        return box
    parts = {one.name: _moved(getattr(box, one.name), device) for one in fields(box)}
    return replace(box, **parts)  # type: ignore[type-var]


def _least(work: Callable[[], Any], device: str, repeats: int) -> float:
    """Milliseconds of the fastest run after one to warm up, each until the device is idle."""
    best = float("inf")
    for run in range(1 + repeats):
        start = time.perf_counter()
        work()
        if torch.device(device).type == "cuda":
            torch.cuda.synchronize(device)
        best = min(best, time.perf_counter() - start) if run else best
    return 1000 * best


def text(name: str, found: list[Check], times: dict[str, dict[str, float]]) -> str:
    """What to paste into an issue."""
    from gbpn import __version__

    lines = [f"gbpn {__version__}, torch {torch.__version__}, {name}", ""]
    for one in found:
        verdict = "right" if one.right else "WRONG"
        lines.append(f"{verdict:<6} {one.name:<32} {one.difference:.1e} (at most {one.limit:.0e})")
    lines.append("")
    for size, row in times.items():
        told = ", ".join(f"{part} {ms:.2f} ms" for part, ms in row.items())
        paper = f"; the paper's inference: {PUBLISHED[size]} ms" if size in PUBLISHED else ""
        lines.append(f"{size}: {told}{paper}")
    if not times:
        lines.append("no speed is told while a kernel is wrong")
    return "\n".join(lines)
