"""The paper's text and the release, switch by switch, against Algorithm 1 written out message by message."""

from __future__ import annotations

import itertools
from typing import Any

import pytest
import torch
from backends import BACKENDS
from literal_loop import LiteralLoop
from torch import Tensor

from gbpn import MRF, Gaussian, LocalEdges, Messages, NonLocalEdges, infer
from gbpn.config import CHOICES
from gbpn.errors import BackendError, InputError
from gbpn.gbp import Scheme
from gbpn.gbp.scheme import RELEASED, TEXT


def _serves(backend: str) -> bool:
    try:
        return Scheme(damped="always").backend(backend, backend) == backend
    except BackendError:
        return False


SERVING = [backend for backend in BACKENDS if _serves(backend)]
NAMES = ("damped", "edge_sets", "far_messages")
SCHEMES = [
    Scheme(**dict(zip(NAMES, values, strict=True)))
    for values in itertools.product(*(CHOICES[name] for name in NAMES))
]
SIZES = ((1, 1), (1, 4), (4, 1), (3, 4))
VALUE, GRADIENT = 1e-11, 1e-9
"""Largest difference relative to the largest value, in float64."""


def inputs_of(size: tuple[int, int], seed: int, edges: int = 3, iterations: int = 2) -> dict[str, Tensor]:
    g = torch.Generator().manual_seed(seed)

    def uniform(low: float, high: float, *shape: int) -> Tensor:
        return low + (high - low) * torch.rand(1, *shape, *size, generator=g, dtype=torch.float64)

    measured = (uniform(0, 1, 1) < 0.3).double()
    measured.view(-1)[0] = 1.0  # nowhere nothing at all
    return {
        "depth": uniform(1, 5, 1) * measured,
        "weight": uniform(0.1, 2, 1) * measured,
        "local.weight": uniform(0.05, 2, iterations, 4, edges),
        "local.difference": uniform(-0.5, 0.5, iterations, 4, edges),
        "local.damping": uniform(0.05, 0.9, iterations),
        "nonlocal.weight": uniform(0.05, 2, iterations, 2),
        "nonlocal.difference": uniform(-0.5, 0.5, iterations, 2),
        "nonlocal.offset": uniform(-2.2, 2.2, iterations, 2, 2),
        "nonlocal.damping": uniform(0.05, 0.9, iterations),
    }


def field_of(x: dict[str, Tensor]) -> MRF:
    def part(kind: str, *names: str) -> dict[str, Tensor]:
        return {name: x[f"{kind}.{name}"] for name in names}

    return MRF(
        depth=x["depth"],
        weight=x["weight"],
        local=LocalEdges(**part("local", "weight", "difference", "damping")),
        nonlocal_=NonLocalEdges(**part("nonlocal", "weight", "difference", "offset", "damping")),
    )


def close(got: Tensor, wanted: Tensor, tolerance: float) -> float:
    scale = float(wanted.detach().abs().max()) + 1e-12
    worst = float((got - wanted).detach().abs().max()) / scale
    assert worst <= tolerance, worst
    return worst


def label(scheme: Scheme) -> str:
    return "-".join(vars(scheme).values())


@pytest.mark.parametrize("size", SIZES, ids=str)
@pytest.mark.parametrize("scheme", SCHEMES, ids=label)
def test_inference_is_algorithm_1_message_by_message(scheme: Scheme, size: tuple[int, int]) -> None:
    for seed, edges in ((0, 3), (1, 1)):
        x = {name: tensor.requires_grad_() for name, tensor in inputs_of(size, seed, edges).items()}
        field = field_of(x)
        loop = LiteralLoop(field, scheme)
        loop.run(iterations=2, steps=2)
        wanted = loop.answer()
        cotangent = torch.randn(
            wanted.shape, generator=torch.Generator().manual_seed(seed), dtype=wanted.dtype
        )
        gradients = _gradients(wanted, x, cotangent)
        for backend in SERVING:
            answer = infer(field, iterations=2, nonlocal_steps=2, scheme=scheme, backend=backend).belief
            got = torch.stack((answer.information, answer.precision))[:, 0, 0]
            close(got, wanted, VALUE)
            for name, gradient in _gradients(got, x, cotangent).items():
                close(gradient, gradients[name], GRADIENT)


def _gradients(answer: Tensor, x: dict[str, Tensor], cotangent: Tensor) -> dict[str, Tensor]:
    found = torch.autograd.grad(answer, list(x.values()), cotangent, allow_unused=True, retain_graph=True)
    pairs = zip(x.items(), found, strict=True)
    return {name: torch.zeros_like(tensor) if g is None else g for (name, tensor), g in pairs}


@pytest.mark.parametrize("name", NAMES)
def test_each_switch_changes_the_answer(name: str) -> None:
    field = field_of(inputs_of((7, 9), seed=3))
    released = infer(field).belief.mean
    other = infer(field, scheme=Scheme(**{name: CHOICES[name][1]})).belief.mean
    assert float((released - other).abs().max()) > 1e-3


@pytest.mark.parametrize("scheme", [RELEASED, TEXT], ids=["released", "text"])
def test_messages_are_handed_on(scheme: Scheme) -> None:
    """Two iterations at once are one and one."""
    field = field_of(inputs_of((5, 6), seed=4, iterations=1))
    whole = infer(field, iterations=2, scheme=scheme)
    first = infer(field, iterations=1, scheme=scheme)
    second = infer(field, first.messages, iterations=1, scheme=scheme)
    close(second.belief.precision, whole.belief.precision, VALUE)
    close(second.belief.information, whole.belief.information, VALUE)


def test_messages_of_another_scheme_are_refused() -> None:
    field = field_of(inputs_of((5, 6), seed=4))
    summed = infer(field)
    with pytest.raises(InputError, match=r"messages\.nonlocal_"):
        infer(field, summed.messages, scheme=TEXT)


def test_a_pixel_that_listens_to_itself_learns_nothing_from_it() -> None:
    """With offset 0 sender and receiver are one: only what it heard elsewhere may come back."""
    x = inputs_of((1, 1), seed=5)
    x["nonlocal.offset"] = torch.zeros_like(x["nonlocal.offset"])
    by_edge = infer(field_of(x), scheme=Scheme(far_messages="by-edge")).belief.precision
    summed = infer(field_of(x)).belief.precision
    assert float(by_edge) < float(summed)


def test_backends_serve_a_scheme_or_say_so() -> None:
    field = field_of(inputs_of((5, 6), seed=6))
    assert infer(field, scheme=TEXT).backend in SERVING
    for backend in ("triton", "scan"):
        with pytest.raises(BackendError, match="damped"):
            infer(field, scheme=TEXT, backend=backend)


@pytest.mark.parametrize(("name", "value"), [("damped", "never"), ("edge_sets", 5), ("far_messages", "")])
def test_unknown_schemes_are_refused(name: str, value: Any) -> None:
    with pytest.raises(InputError, match=f"scheme {name} must be one of"):
        Scheme(**{name: value})


def test_empty_messages_fit_the_scheme() -> None:
    field = field_of(inputs_of((2, 3), seed=7))
    assert Messages.empty(field).nonlocal_.precision.shape == (1, 1, 2, 3)
    assert Messages.empty(field, TEXT).nonlocal_.precision.shape == (1, 2, 2, 3)
    assert isinstance(Messages.empty(field, TEXT).belief(field.unary), Gaussian)


@pytest.mark.skipif("cpu" not in SERVING, reason="the C++ kernels were not built")
@pytest.mark.parametrize("edges", [1, 3])
@pytest.mark.parametrize("size", [(1, 1), (1, 7), (7, 1), (33, 65), (24, 40)], ids=str)
def test_compiled_sweeps_that_damp_always(size: tuple[int, int], edges: int) -> None:
    """Twins from messages of which a part is empty, also where no sender is: values and gradients."""
    g = torch.Generator().manual_seed(8)
    x = inputs_of(size, seed=9, edges=edges)
    filled = (torch.rand(1, 8, *size, generator=g, dtype=torch.float64) < 0.6).double()
    x["messages.information"] = torch.rand(1, 8, *size, generator=g, dtype=torch.float64) * filled
    x["messages.precision"] = (0.01 + torch.rand(1, 8, *size, generator=g, dtype=torch.float64)) * filled
    x = {name: tensor.requires_grad_() for name, tensor in x.items()}
    scheme = Scheme(damped="always", far_messages="by-edge")
    found = {}
    for backend in ("reference", "cpu"):
        far = Messages.empty(field_of(x), scheme).nonlocal_
        messages = Messages(Gaussian(x["messages.information"], x["messages.precision"]), far)
        answer = infer(field_of(x), messages, scheme=scheme, backend=backend)
        assert answer.backend == backend
        local = answer.messages.local
        found[backend] = torch.cat(
            (answer.belief.information, answer.belief.precision, local.information, local.precision), 1
        )
    close(found["cpu"], found["reference"], VALUE)
    cotangent = torch.randn(found["cpu"].shape, generator=g, dtype=torch.float64)
    wanted = _gradients(found["reference"], x, cotangent)
    for name, gradient in _gradients(found["cpu"], x, cotangent).items():
        close(gradient, wanted[name], GRADIENT)
