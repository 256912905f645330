"""How fast belief propagation runs, against the definition in plain torch and against memory itself.

All times are CPU time of one thread for one image, minima over repeats that are taken in turns, so that other
work on the machine disturbs them least and alike. An iteration is four 3-edge sweeps; its time is what one
more costs in a longer inference.

The yardstick is memcpy in the same cache regime: it moves as many bytes as an iteration must, by going round
and round over as much memory as the iteration works on. Field and yardstick lie on large pages both, where
the system has them.
"""

from __future__ import annotations

import ctypes
import mmap
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor

from gbpn.errors import BackendError, GbpnError, InputError
from gbpn.gaussian import Gaussian
from gbpn.gbp import Messages, cpu, exact, infer, reference
from gbpn.mrf import MRF, LocalEdges, NonLocalEdges, SymmetricEdges

__all__ = ["AIMS", "PER_PIXEL", "SIZES", "bench_gbp", "field", "parsed"]

SIZES = ("256x320", "352x1216", "1024x2048")
_TRAFFIC = 464
"""Bytes per pixel and iteration that must move, read and written: in each sweep 3 weights, 3 differences,
3 old and 3 reverse messages, base and damping are read, 3 messages and the belief written, in float32."""
_FOOTPRINT = 176
"""Bytes per pixel that an iteration works on: 24 planes of edges, damping, 16 of messages, base, belief."""
_MORE = 5
"""Iterations between the short and the long inference whose difference is divided by this."""
_LEARNED, _STEPS, _LONG = 3, 4, 13
"""K, T_n and T of the published network's whole inference."""
_RESIDUAL = 1e-4
"""Where conjugate gradients stop, relative to the right side."""
_MOST_SOLVED = 1_000_000
"""Pixels up to which the exact solvers are timed."""
_TOLERANCE = 1e-4
"""Largest difference between backends, relative to the largest value, that counts as agreement in float32."""


@dataclass(frozen=True)
class _Aim:
    """A ratio that the kernels are built for."""

    label: str
    above: str
    below: str
    limit: float
    at_most: bool = True

    def ratio(self, row: dict[str, Any]) -> float:
        return float(row[self.above]) / float(row[self.below])

    def met(self, row: dict[str, Any]) -> bool:
        return self.ratio(row) <= self.limit if self.at_most else self.ratio(row) >= self.limit


AIMS = (
    _Aim("forward / memcpy", "forward_ms", "memcpy_ms", 1.2),
    _Aim("reference / forward", "reference_ms", "forward_ms", 80, at_most=False),
    _Aim("adjoint / forward", "adjoint_ms", "forward_ms", 3),
    _Aim("grid_sample / non-local", "grid_sample_ms", "nonlocal_ms", 4, at_most=False),
)
PER_PIXEL = 1.2
"""Aim for the cost per pixel of the largest size over that of the smallest."""


def bench_gbp(
    sizes: list[str], *, repeats: int = 10, report: Callable[[str], None] = lambda line: None
) -> dict[str, Any]:
    """{"sizes": {size: {forward_ms, memcpy_ms, reference_ms, tape_ms, adjoint_ms, nonlocal_ms, …}}}."""
    with _one_thread():
        report("comparing the backends")
        _require_agreement(field(40, 56, learned=_LEARNED))
        return {
            "large_pages": _LARGE_PAGES,
            "sizes": {size: _bench_size(*parsed(size), repeats, report) for size in sizes},
        }


def parsed(size: str) -> tuple[int, int]:
    """ "256x320" → (256, 320)."""
    parts = size.split("x")
    if len(parts) != 2 or not all(p.isdigit() and int(p) > 0 for p in parts):
        raise InputError(f"a size is HEIGHTxWIDTH, such as 256x320; got {size!r}")
    return int(parts[0]), int(parts[1])


def field(height: int, width: int, *, learned: int = 0, seed: int = 0) -> MRF:
    """A random symmetric field with 500 measurements, as smooth as trained ones are."""
    g = torch.Generator().manual_seed(seed)

    def uniform(low: float, high: float, *shape: int) -> Tensor:
        return low + (high - low) * torch.rand(1, *shape, height, width, generator=g)

    measured = (uniform(0, 1, 1) < 500 / (height * width)).float()
    measured[..., height // 2, width // 2] = 1
    far = NonLocalEdges(
        weight=uniform(0.1, 2, 1, learned),
        difference=uniform(-0.1, 0.1, 1, learned),
        offset=uniform(-16, 16, 1, learned, 2),
        damping=uniform(0.1, 0.6, 1),
    )
    return MRF(
        depth=uniform(1, 5, 1) * measured,
        weight=uniform(1, 3, 1) * measured,
        local=SymmetricEdges(
            weight=uniform(0.5, 4, 1, 4), difference=uniform(-0.1, 0.1, 1, 4), damping=uniform(0.1, 0.6, 1)
        ),
        nonlocal_=far if learned else None,
    )


def _require_agreement(mrf: MRF) -> None:
    """Raise unless the C++ kernels give the belief and gradients of plain torch: no speed without truth."""
    found = {}
    for backend in ("reference", "cpu"):
        copy = _trainable(mrf)
        answer = infer(copy, iterations=3, nonlocal_steps=_STEPS, backend=backend)
        gradients = torch.autograd.grad(answer.belief.mean.square().sum(), _parameters(copy))
        belief = answer.belief
        found[backend] = [belief.information.detach(), belief.precision.detach(), *gradients]
    for wanted, got in zip(found["reference"], found["cpu"], strict=True):
        difference = float((wanted - got).abs().max() / wanted.abs().max())
        if not difference <= _TOLERANCE:
            raise GbpnError(
                f"the C++ kernels differ from plain torch by {difference:.1e} (allowed {_TOLERANCE:.0e}): "
                "their speed means nothing, so none is printed; rebuild with scripts/build_native.sh"
            )


def _bench_size(height: int, width: int, repeats: int, report: Callable[[str], None]) -> dict[str, Any]:
    """Every time at one size, in ms."""
    plain, full = (_placed(field(height, width, learned=count).directed()) for count in (0, _LEARNED))
    label = f"{height}x{width}"
    report(f"{label}: sweeps and memcpy")
    row = _iteration_times(plain, repeats)
    report(f"{label}: plain torch")
    row["reference_ms"] = _fastest(lambda: _reference_iteration(plain), 1 + repeats // 10)
    report(f"{label}: learned edges")
    row |= _nonlocal_times(full, repeats)
    row["inference13_ms"] = _fastest(
        lambda: infer(full, iterations=_LONG, nonlocal_steps=_STEPS, backend="cpu", check=False),
        1 + repeats // 4,
    )
    for solver in ("exact", "cg", "amg"):
        report(f"{label}: {solver} solve")
        row[f"{solver}_ms"] = _solve_time(height, width, solver)
    return row


def _iteration_times(mrf: MRF, repeats: int) -> dict[str, Any]:
    """forward_ms, memcpy_ms, tape_ms and adjoint_ms, in turns."""
    messages, trainable = Messages.empty(mrf), _trainable(mrf)
    copy = _memcpy(_TRAFFIC * mrf.weight.numel(), _FOOTPRINT * mrf.weight.numel())
    best: dict[str, float] = {}

    def note(name: str, start: float) -> None:
        best[name] = min(best.get(name, float("inf")), 1e3 * (time.thread_time() - start))

    def run(field: MRF, iterations: int, name: str) -> Gaussian:
        start = time.thread_time()
        belief = infer(field, messages, iterations=iterations, backend="cpu", check=False).belief
        note(f"{name}{iterations}", start)
        return belief

    parameters = _parameters(trainable)
    cotangent = torch.ones_like(mrf.weight)
    for _ in range(repeats):
        start = time.thread_time()
        copy()
        note("memcpy", start)
        for iterations in (1, 1 + _MORE):
            with torch.no_grad():
                run(mrf, iterations, "forward")
            belief = run(trainable, iterations, "tape")
            start = time.thread_time()
            torch.autograd.grad((belief.information, belief.precision), parameters, (cotangent, cotangent))
            note(f"adjoint{iterations}", start)
    more = {n: (best[f"{n}{1 + _MORE}"] - best[f"{n}1"]) / _MORE for n in ("forward", "tape", "adjoint")}
    return {"memcpy_ms": best["memcpy"], **{f"{name}_ms": value for name, value in more.items()}}


def _reference_iteration(mrf: MRF) -> None:
    edges, unary = mrf.local, mrf.unary
    assert isinstance(edges, LocalEdges)
    messages = Messages.empty(mrf).local
    with torch.no_grad():
        for direction in range(4):
            weight, difference = edges.weight[:, 0, direction], edges.difference[:, 0, direction]
            messages = reference.sweep(
                unary, messages, weight, difference, edges.damping, direction=direction
            )


def _nonlocal_times(mrf: MRF, repeats: int) -> dict[str, Any]:
    """nonlocal_ms and grid_sample_ms of one step with K edges, checked against each other."""
    far = mrf.nonlocal_
    assert far is not None
    belief = infer(mrf, iterations=1, nonlocal_steps=0, backend="cpu", check=False).belief
    total = Gaussian(0.1 * belief.information, 0.1 * belief.precision)
    edges = (far.weight[:, 0], far.difference[:, 0], far.offset[:, 0], far.damping)
    base = _grid(*mrf.shape[1:])
    found = cpu.nonlocal_step(belief, total, *edges), _grid_sample_step(belief, total, *edges, base)
    if not torch.allclose(found[0].precision, found[1].precision, rtol=1e-3, atol=1e-3):
        raise GbpnError("the learned-edge step differs from grid_sample: no speed is printed")
    times = {"nonlocal_ms": float("inf"), "grid_sample_ms": float("inf")}
    with torch.no_grad():
        for _ in range(repeats):
            ours = _fastest(lambda: cpu.nonlocal_step(belief, total, *edges), 1)
            theirs = _fastest(lambda: _grid_sample_step(belief, total, *edges, base), 1)
            times["nonlocal_ms"] = min(times["nonlocal_ms"], ours)
            times["grid_sample_ms"] = min(times["grid_sample_ms"], theirs)
    return times


def _grid_sample_step(
    belief: Gaussian,
    total: Gaussian,
    weight: Tensor,
    difference: Tensor,
    offset: Tensor,
    damping: Tensor,
    base: Tensor,
) -> Gaussian:
    """The step as one would write it in torch: one call of grid_sample for all K edges."""
    sum_ = belief * total
    both = torch.cat((sum_.information, sum_.precision), 1)  # [B, 2, H, W]
    batch, count, _, height, width = offset.shape
    scale = torch.tensor([2 / height, 2 / width]).view(1, 1, 2, 1, 1)
    place = (offset * scale + base).flip(2).permute(0, 1, 3, 4, 2)  # [B, K, H, W, (x, y)]
    read = torch.nn.functional.grid_sample(
        both, place.reshape(batch, count * height, width, 2), align_corners=False, padding_mode="zeros"
    ).view(batch, 2, count, height, width)
    heard = Gaussian(read[:, 0], read[:, 1])
    message = heard.across(weight, difference)
    summed = Gaussian(message.information.sum(1, keepdim=True), message.precision.sum(1, keepdim=True))
    return summed.damped(total, damping)


def _grid(height: int, width: int) -> Tensor:
    """Pixel centres in the coordinates of grid_sample, [1, 1, 2, H, W] as (row, column)."""
    rows = (2 * torch.arange(height) + 1) / height - 1
    columns = (2 * torch.arange(width) + 1) / width - 1
    return torch.stack(torch.meshgrid(rows, columns, indexing="ij"))[None, None]


def _solve_time(height: int, width: int, solver: str) -> float | None:
    """ms of one solve of the same field without learned edges; None where the solver is not installed.

    None too for images whose factors would fill the memory.
    """
    if height * width > _MOST_SOLVED:
        return None
    mrf = field(height, width)
    try:
        exact.solve(field(8, 8), solver=solver)  # imports are not part of the time
        return _fastest(lambda: exact.solve(mrf, solver=solver, tolerance=_RESIDUAL), 1)
    except BackendError:
        return None


_LARGE_PAGES = hasattr(mmap, "MADV_HUGEPAGE")
"""Whether memory can be asked for on large pages."""


def _on_large_pages(tensor: Tensor) -> Tensor:
    """The same numbers in memory of their own, on large pages where there are any."""
    memory = mmap.mmap(-1, max(tensor.numel() * tensor.element_size(), 1))
    if _LARGE_PAGES:
        memory.madvise(mmap.MADV_HUGEPAGE)
    placed = torch.frombuffer(memory, dtype=tensor.dtype, count=tensor.numel()).view(tensor.shape)
    return placed.copy_(tensor)


def _placed(mrf: MRF) -> MRF:
    """The same directed field on large pages."""
    far = mrf.nonlocal_
    local = LocalEdges(**{name: _on_large_pages(x) for name, x in vars(mrf.local).items()})
    if far is not None:
        far = NonLocalEdges(**{name: _on_large_pages(x) for name, x in vars(far).items()})
    return replace(mrf, local=local, nonlocal_=far)


def _memcpy(traffic: int, footprint: int) -> Callable[[], None]:
    """Copies until `traffic` bytes were read and written in all, half each, within `footprint` bytes."""
    count = footprint // 8
    source = _on_large_pages(torch.rand(count, generator=torch.Generator().manual_seed(0)))
    target = _on_large_pages(torch.ones(count))
    rounds, rest = divmod(traffic // 2, 4 * count)

    def copy() -> None:
        for _ in range(rounds):
            ctypes.memmove(target.data_ptr(), source.data_ptr(), 4 * count)
        ctypes.memmove(target.data_ptr(), source.data_ptr(), rest)

    return copy


def _trainable(mrf: MRF) -> MRF:
    """The same directed field whose edge parameters want gradients."""
    mrf = mrf.directed()

    def leaf(x: Tensor) -> Tensor:
        return x.detach().clone().requires_grad_()

    names = ("weight", "difference", "damping")
    local = LocalEdges(**{n: leaf(getattr(mrf.local, n)) for n in names})
    far = mrf.nonlocal_
    if far is not None:
        far = NonLocalEdges(**{n: leaf(getattr(far, n)) for n in (*names, "offset")})
    return replace(mrf, local=local, nonlocal_=far)


def _parameters(mrf: MRF) -> list[Tensor]:
    return list(mrf._parameters().values())


def _fastest(work: Callable[[], object], repeats: int) -> float:
    """ms of the fastest of some runs."""
    best = float("inf")
    for _ in range(repeats):
        start = time.thread_time()
        work()
        best = min(best, time.thread_time() - start)
    return 1e3 * best


@contextmanager
def _one_thread() -> Iterator[None]:
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(threads)
