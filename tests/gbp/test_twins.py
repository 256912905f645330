"""Every fast backend against the plain torch definition: values and gradients, with random cotangents."""

from __future__ import annotations

from dataclasses import dataclass

import pytest
import torch
from backends import BACKENDS
from torch import Tensor

from gbpn import MRF, Gaussian, LocalEdges, Messages, NonLocalEdges, infer

SIZES = ((1, 1), (1, 7), (7, 1), (5, 6), (33, 65), (24, 40))
FAST = tuple(backend for backend in BACKENDS if backend != "reference")
BACKWARDS = {"cpu": ("tape", "recompute"), "triton": ("tape", "recompute")}
VALUE, GRADIENT = 1e-10, 1e-10
"""Largest difference in float64, relative to the largest value of the tensor."""
SINGLE = 1e-5
"""Largest relative difference of the mean between float32 and float64."""


@dataclass(frozen=True)
class Case:
    """One kind of field."""

    size: tuple[int, int]
    edges: int = 3
    iterations: int = 2
    dynamic: bool = True
    learned: int = 3
    reweighting: float = 1.0
    batch: int = 1

    def __str__(self) -> str:
        kind = "dynamic" if self.dynamic else "shared"
        height, width = self.size
        return f"{height}x{width}-E{self.edges}-{kind}-K{self.learned}-rho{self.reweighting}-B{self.batch}"


CASES = [
    *(Case(size) for size in SIZES),
    *(Case(size, edges=1, dynamic=False, learned=0, reweighting=0.5, batch=3) for size in SIZES),
    *(Case(size, dynamic=False, reweighting=0.5) for size in SIZES[3:]),
    *(Case(size, edges=1, learned=1, batch=3) for size in SIZES[:4]),
    Case((24, 40), learned=0, batch=3, iterations=3),
    Case((5, 6), learned=0, iterations=4, reweighting=0.3),
]


def inputs_of(case: Case, seed: int = 0, dtype: torch.dtype = torch.float64) -> dict[str, Tensor]:
    """Every differentiable input of an inference; a part of the messages and measurements is empty."""
    g = torch.Generator().manual_seed(seed)
    grid, batch = case.size, case.batch
    time = (batch, case.iterations if case.dynamic else 1)

    def uniform(low: float, high: float, *shape: int) -> Tensor:
        return low + (high - low) * torch.rand(*shape, *grid, generator=g, dtype=torch.float64)

    measured = (uniform(0, 1, batch, 1) < 0.4).double()
    filled = (uniform(0, 1, batch, 8) < 0.6).double()
    inputs = {
        "depth": uniform(1, 5, batch, 1) * measured,
        "weight": uniform(0.1, 2, batch, 1) * measured,
        "local.weight": uniform(0.05, 2, *time, 4, case.edges),
        "local.difference": uniform(-0.5, 0.5, *time, 4, case.edges),
        "local.damping": uniform(0, 0.9, *time),
        "messages.local.information": uniform(0, 3, batch, 8) * filled,
        "messages.local.precision": uniform(0.01, 1, batch, 8) * filled,
        "messages.nonlocal.information": uniform(0, 3, batch, 1),
        "messages.nonlocal.precision": uniform(0.01, 1, batch, 1),
    }
    if case.learned:
        inputs |= {
            "nonlocal.weight": uniform(0.05, 2, *time, case.learned),
            "nonlocal.difference": uniform(-0.5, 0.5, *time, case.learned),
            "nonlocal.offset": uniform(-9, 9, *time, case.learned, 2),
            "nonlocal.damping": uniform(0, 0.9, *time),
        }
    return {name: x.to(dtype) for name, x in inputs.items()}


def run(case: Case, x: dict[str, Tensor], backend: str, backward: str = "tape") -> dict[str, Tensor]:
    far = None
    if case.learned:
        far = NonLocalEdges(**{n: x[f"nonlocal.{n}"] for n in ("weight", "difference", "offset", "damping")})
    mrf = MRF(
        depth=x["depth"],
        weight=x["weight"],
        local=LocalEdges(**{n: x[f"local.{n}"] for n in ("weight", "difference", "damping")}),
        nonlocal_=far,
    )
    messages = Messages(
        Gaussian(x["messages.local.information"], x["messages.local.precision"]),
        Gaussian(x["messages.nonlocal.information"], x["messages.nonlocal.precision"]),
    )
    answer = infer(
        mrf,
        messages,
        iterations=case.iterations,
        backend=backend,
        backward=backward,
        reweighting=case.reweighting,
    )
    assert answer.backend == backend
    parts = {"belief": answer.belief, "local": answer.messages.local, "nonlocal": answer.messages.nonlocal_}
    return {f"{n}.{p}": getattr(g, p) for n, g in parts.items() for p in ("information", "precision")}


def gradients(outputs: dict[str, Tensor], inputs: dict[str, Tensor]) -> dict[str, Tensor]:
    g = torch.Generator().manual_seed(1)
    cotangents = [torch.randn(y.shape, generator=g, dtype=torch.float64).to(y) for y in outputs.values()]
    live = [(y, c) for y, c in zip(outputs.values(), cotangents, strict=True) if y.requires_grad]
    found = torch.autograd.grad(
        [y for y, _ in live], list(inputs.values()), [c for _, c in live], allow_unused=True
    )
    return {
        n: torch.zeros_like(x) if d is None else d for (n, x), d in zip(inputs.items(), found, strict=True)
    }


def assert_same(wanted: dict[str, Tensor], got: dict[str, Tensor], tolerance: float) -> None:
    for name, value in wanted.items():
        scale = float(value.detach().abs().max()) + 1e-6
        difference = float((got[name] - value).detach().abs().max())
        assert difference <= tolerance * scale, f"{name}: {difference:.2e} of {scale:.2e}"


@pytest.mark.parametrize("backend", FAST)
@pytest.mark.parametrize("case", CASES, ids=str)
def test_values_and_gradients(backend: str, case: Case) -> None:
    x = {name: t.requires_grad_() for name, t in inputs_of(case).items()}
    wanted = run(case, x, "reference")
    wanted_gradients = gradients(wanted, x)
    for backward in BACKWARDS[backend]:
        got = run(case, x, backend, backward)
        assert_same(wanted, got, VALUE)
        assert_same(wanted_gradients, gradients(got, x), GRADIENT)


@pytest.mark.parametrize("backend", FAST)
@pytest.mark.parametrize("size", SIZES, ids=str)
def test_single_precision_stays_close(backend: str, size: tuple[int, int]) -> None:
    case = Case(size, iterations=5)
    double = inputs_of(case)
    single = {name: x.float() for name, x in double.items()}
    wanted = run(case, {name: x.double() for name, x in single.items()}, "reference")
    got = run(case, single, backend)
    mean = wanted["belief.information"] / wanted["belief.precision"]
    single_mean = (got["belief.information"] / got["belief.precision"]).double()
    assert float(((single_mean - mean).abs() / mean.abs()).max()) <= SINGLE


@pytest.mark.parametrize("backend", FAST)
def test_strided_inputs_and_sliced_gradients(backend: str) -> None:
    """What a network hands over: slices of one head map, transposed and expanded tensors."""
    case = Case((12, 17), batch=2)
    x = inputs_of(case)
    head = torch.cat((x["local.weight"], x["local.weight"]), 2)
    strided = {name: t.transpose(-1, -2).contiguous().transpose(-1, -2) for name, t in x.items()}
    strided["local.weight"] = head[:, :, 4:]
    strided["local.damping"] = x["local.damping"][:, :, :1, :1].expand_as(x["local.damping"])
    plain = {name: t.clone().contiguous().requires_grad_() for name, t in strided.items()}
    strided = {name: t.detach().requires_grad_() for name, t in strided.items()}
    wanted, got = run(case, plain, "reference"), run(case, strided, backend)
    assert_same(wanted, got, VALUE)
    assert_same(gradients(wanted, plain), gradients(got, strided), GRADIENT)


@pytest.mark.parametrize("backend", FAST)
def test_recorded_steps_end_where_the_whole_inference_ends(backend: str) -> None:
    case = Case((9, 14))
    x = inputs_of(case)
    far = NonLocalEdges(**{n: x[f"nonlocal.{n}"] for n in ("weight", "difference", "offset", "damping")})
    edges = LocalEdges(**{n: x[f"local.{n}"] for n in ("weight", "difference", "damping")})
    mrf = MRF(depth=x["depth"], weight=x["weight"], local=edges, nonlocal_=far)
    whole, steps = infer(mrf, backend=backend), infer(mrf, backend=backend, record=True)
    assert len(steps.snapshots) == 5 * case.iterations
    torch.testing.assert_close(steps.belief.mean, whole.belief.mean, rtol=1e-12, atol=1e-12)
    torch.testing.assert_close(steps.belief.precision, whole.belief.precision, rtol=1e-12, atol=1e-12)


def test_recomputation_keeps_messages_alone() -> None:
    """The gradients of a tape, without any message of a sweep being kept; also in plain torch."""
    case = Case((5, 6), iterations=3)
    plane = 5 * 6 * 8 * case.iterations  # bytes
    found, kept = {}, {}
    for backward in ("tape", "recompute"):
        x = {name: t.requires_grad_() for name, t in inputs_of(case).items()}
        own = {t.untyped_storage().data_ptr() for t in x.values()}
        bytes_: dict[int, int] = {}

        def pack(t: Tensor, own: set[int] = own, bytes_: dict[int, int] = bytes_) -> Tensor:
            if t.untyped_storage().data_ptr() not in own:
                bytes_[t.untyped_storage().data_ptr()] = t.untyped_storage().nbytes()
            return t

        with torch.autograd.graph.saved_tensors_hooks(pack, lambda t: t):
            answer = run(case, x, "reference", backward)
        kept[backward] = sum(bytes_.values())
        found[backward] = gradients(answer, x)
    assert_same(found["tape"], found["recompute"], 1e-14)
    assert kept["tape"] > 66 * plane
    assert kept["recompute"] < kept["tape"] / 4  # the last belief's sums; messages before are arguments
