"""`gbpn doctor --gpu`: whether every kernel is right on this GPU, how fast it is, as a text to paste."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor

from gbpn.bench.gbp import field, parsed
from gbpn.gaussian import Gaussian
from gbpn.gbp import infer, reference
from gbpn.gbp.captured import CapturedInference, moved
from gbpn.mrf import NonLocalEdges
from gbpn.network.attention import neighbourhood_attention

__all__ = ["PUBLISHED", "SIZES", "Check", "checks", "speeds", "text"]

SIZES = ("256x320", "352x1216")
PUBLISHED = {"256x320": 23.35}
"""Milliseconds of belief propagation alone in the paper, on its GPU, with 13 iterations and learned edges."""
_LIMITS = {torch.float32: 1e-3, torch.float64: 1e-9}
"""Largest difference from plain torch on the CPU in float64, relative to the largest value."""
_HALF = {torch.bfloat16: 2e-2, torch.float16: 3e-3}
"""The same where attention multiplies half precision: about two roundings."""
_SHORT: dict[str, Any] = {"iterations": 2, "nonlocal_steps": 2}
_SMALL = (13, 70)


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
            inputs = _sweep_inputs(edges, *_SMALL)
            runs = [_swept(part, direction) for part in (triton, reference)]
            yield _check(f"sweep {direction}, {edges} edges", runs, inputs, device, dtype, limit)
        runs = [_stepped(part) for part in (triton, reference)]
        yield _check("learned edges", runs, _step_inputs(3, *_SMALL), device, dtype, limit)
        again = [_inferred("triton", "recompute"), _inferred("reference", "tape")]
        yield _check("recomputation", again, _step_inputs(3, *_SMALL)[4:], device, dtype, limit)
        yield _check("attention", _attentions(), _attention_inputs(9, 15), device, dtype, limit)
    for dtype, limit in _HALF.items():
        yield _check("attention", _attentions(), _attention_inputs(9, 15), device, dtype, limit)
    if torch.device(device).type == "cuda":
        yield _graph(device)


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


def _attentions() -> list[Callable[..., tuple[Tensor, ...]]]:
    return [_attended(name) for name in ("triton", "reference")]


def _inferred(backend: str, backward: str) -> Callable[..., tuple[Tensor, ...]]:
    """Two iterations of a field whose learned edges are the arguments; the rest is fixed."""

    def run(*x: Tensor) -> tuple[Tensor, ...]:
        mrf = moved(field(*x[0].shape[-2:], learned=x[0].shape[1]), x[0].device)
        far = dict(zip(("weight", "difference", "offset", "damping"), (t[:1, None] for t in x), strict=True))
        far["damping"] = far["damping"][:, :, 0]
        mrf = moved(replace(mrf, nonlocal_=NonLocalEdges(**far)), x[0].dtype)
        belief = infer(mrf, backend=backend, backward=backward, **_SHORT, check=False).belief
        return belief.information, belief.precision

    return run


def _graph(device: str) -> Check:
    """A replayed inference against the same without a graph, on another field than it was captured with."""
    height, width = 37, 70
    first, second = (moved(field(height, width, learned=3, seed=seed), device) for seed in (0, 1))
    got, wanted = CapturedInference(first, **_SHORT)(second), infer(second, **_SHORT).belief
    difference = (got.mean - wanted.mean).abs().max() / wanted.mean.abs().max()
    return Check(name="one graph", difference=float(difference), limit=1e-5)


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
        mrf = moved(field(height, width, learned=3), device)
        random = _random(0)
        image = random(1, 3, height, width).to(device)
        sparse = SparseDepth(depth=2.0 * (random(1, 1, height, width) < 0.006).to(device))
        camera = torch.tensor([[[width, 0, width / 2], [0, width, height / 2], [0, 0, 1.0]]], device=device)
        with torch.inference_mode():
            once = CapturedInference(mrf, eager=torch.device(device).type == "cpu", iterations=13)
            found[size] = {
                "inference": _least(lambda: infer(mrf, iterations=13, check=False), device, repeats),  # noqa: B023
                "graph": _least(lambda: once(mrf), device, repeats),  # noqa: B023
                "network": _least(lambda: answering.look(image, camera), device, repeats),  # noqa: B023
                "frame": _least(
                    lambda: answering.seen(answering.look(image, camera), sparse, sigmas=False),  # noqa: B023
                    device,
                    repeats,
                ),
            }
    return found


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
