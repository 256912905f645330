"""The torch operators: tracing, compiling, exporting, gradients, and one result on every instruction set."""

from __future__ import annotations

import os
import subprocess
import sys
import warnings

import pytest
import torch
from test_twins import Case, inputs_of, run
from torch import Tensor

from gbpn import MRF, LocalEdges, NonLocalEdges, infer
from gbpn.errors import BackendError
from gbpn.gbp import inference

_native = pytest.importorskip("gbpn._native", reason="gbpn was installed without its C++ kernels")

from gbpn.gbp import operators  # noqa: E402

OPERATORS = {
    "infer": operators.infer,
    "sweep": operators.sweep,
    "nonlocal_step": operators.nonlocal_step,
}


def arguments(name: str, learned: bool = True, dtype: torch.dtype = torch.float64) -> tuple:
    """Inputs of an operator for a 4×5 image, with gradients."""
    case = Case((4, 5), iterations=1, learned=2 if learned else 0)
    x = {n: t.requires_grad_() for n, t in inputs_of(case, dtype=dtype).items()}
    unary = ((x["depth"] * x["weight"]).detach().requires_grad_(), x["weight"])
    local = (x["messages.local.information"], x["messages.local.precision"])
    far = (x["messages.nonlocal.information"], x["messages.nonlocal.precision"])
    edges = tuple(x[f"local.{n}"] for n in ("weight", "difference", "damping"))
    names = ("weight", "difference", "offset", "damping")
    learned_edges = tuple(x.get(f"nonlocal.{n}") for n in names)
    if name == "infer":
        return (*unary, *local, *far, *edges, *learned_edges, 1, 2, 0.8, "tape")
    if name == "sweep":
        planes = [t.detach()[:, 0] for t in edges]
        first = (planes[0][:, 0], planes[1][:, 0], planes[2][:, None])
        return (*unary, *local, *(t.clone().requires_grad_() for t in first), 2, 0.8)
    planes = [t.detach()[:, 0].clone() for t in learned_edges]
    planes[3] = planes[3][:, None]
    return (*unary, *far, *(t.requires_grad_() for t in planes), 0.8)


@pytest.mark.parametrize("name", OPERATORS)
def test_operator_is_well_formed(name: str) -> None:
    torch.library.opcheck(OPERATORS[name].overload, arguments(name))


def test_operator_without_learned_edges_is_well_formed() -> None:
    torch.library.opcheck(OPERATORS["infer"].overload, arguments("infer", learned=False))


@pytest.mark.parametrize("name", OPERATORS)
def test_gradients_equal_finite_differences(name: str) -> None:
    """Empty messages and unmeasured pixels sit on a kink of the rule, so all are filled here."""
    given = [
        t.detach().clamp_min(0.05).requires_grad_() if isinstance(t, Tensor) and n < 6 else t
        for n, t in enumerate(arguments(name))
    ]
    tensors = [t for t in given if isinstance(t, Tensor)]
    rest = given[len(tensors) :]

    def function(*inputs: Tensor) -> tuple[Tensor, ...]:
        return OPERATORS[name](*inputs, *rest)[:6]

    assert torch.autograd.gradcheck(function, tensors, eps=1e-6, atol=1e-6, fast_mode=True)


class Layer(torch.nn.Module):
    """A field drawn by one scale factor, inferred, as a network would use it."""

    def __init__(self) -> None:
        super().__init__()
        self.scale = torch.nn.Parameter(torch.tensor(1.5))

    def forward(
        self, depth: Tensor, weight: Tensor, edges: Tensor, damping: Tensor, offset: Tensor
    ) -> Tensor:
        mrf = MRF(
            depth=depth,
            weight=weight,
            local=LocalEdges(weight=edges * self.scale, difference=edges - 0.5, damping=damping),
            nonlocal_=NonLocalEdges(
                weight=edges[:, :, 0] * self.scale,
                difference=edges[:, :, 1] - 0.5,
                offset=offset,
                damping=damping,
            ),
        )
        belief = infer(mrf, iterations=2, nonlocal_steps=2, check=False).belief
        return belief.information / belief.precision.clamp_min(1e-6)


def layer_inputs(height: int, width: int) -> tuple[Tensor, ...]:
    g = torch.Generator().manual_seed(0)
    shapes = ((1, 1), (1, 1), (1, 2, 4, 3), (1, 2), (1, 2, 3, 2))
    depth, weight, edges, damping, offset = (
        torch.rand(*shape, height, width, generator=g, dtype=torch.float64) for shape in shapes
    )
    return depth, weight, edges + 0.1, damping * 0.5, offset * 4 - 2


def test_compiles_into_one_graph_and_trains() -> None:
    layer, inputs = Layer().double(), layer_inputs(8, 11)
    wanted = layer(*inputs)
    (gradient,) = torch.autograd.grad(wanted.square().sum(), [*layer.parameters()])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the compiler's own notices
        compiled = torch.compile(layer, fullgraph=True, backend="aot_eager")
        got = compiled(*inputs)
        (compiled_gradient,) = torch.autograd.grad(got.square().sum(), [*layer.parameters()])
    torch.testing.assert_close(got, wanted)
    torch.testing.assert_close(compiled_gradient, gradient)


def test_exports_for_any_size() -> None:
    layer = Layer().double()
    height, width = torch.export.Dim("height", min=2, max=2048), torch.export.Dim("width", min=2, max=2048)
    inputs = layer_inputs(8, 11)
    axes = tuple({t.dim() - 2: height, t.dim() - 1: width} for t in inputs)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        program = torch.export.export(layer, inputs, dynamic_shapes=axes)
    for size in ((8, 11), (13, 6)):
        other = layer_inputs(*size)
        torch.testing.assert_close(program.module()(*other), layer(*other))


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_every_instruction_set_agrees(dtype: torch.dtype) -> None:
    case = Case((37, 51), iterations=2)
    x = inputs_of(case, dtype=dtype)
    best = _native.simd_level()
    wanted = run(case, x, "cpu")
    tolerance = 2e-5 if dtype == torch.float32 else 1e-12
    try:
        for level in ("baseline", "avx2", "avx512"):
            try:
                _native.force_simd_level(level)
            except ValueError:
                continue  # this CPU lacks it
            got = run(case, x, "cpu")
            for name, value in wanted.items():
                torch.testing.assert_close(got[name], value, rtol=tolerance, atol=tolerance)
    finally:
        _native.force_simd_level(best)


def test_instruction_set_can_be_forced_from_outside() -> None:
    # Loaded without the package around it, which would import torch.
    program = (
        "import importlib.util as u; "
        f"spec = u.spec_from_file_location('_native', {_native.__file__!r}); "
        "module = u.module_from_spec(spec); spec.loader.exec_module(module); print(module.simd_level())"
    )
    done = subprocess.run(
        [sys.executable, "-c", program],
        env={**os.environ, "GBPN_SIMD": "baseline"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.strip() == "baseline"


def test_threads_do_not_change_results(with_threads) -> None:
    case = Case((19, 23), batch=5)
    x = inputs_of(case)
    wanted, got = (with_threads(count, lambda: run(case, x, "cpu")) for count in (1, 3))
    for name, value in wanted.items():
        assert torch.equal(got[name], value), name


def test_batch_of_many_is_a_batch_of_one_each() -> None:
    case = Case((19, 23), batch=4)
    x = inputs_of(case)
    whole = run(case, x, "cpu")
    for b in range(4):
        one = run(case, {name: t[b : b + 1] for name, t in x.items()}, "cpu")
        for name, value in one.items():
            assert torch.equal(value, whole[name][b : b + 1]), name


def test_missing_kernels_are_told_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(inference, "COMPILED", False)
    monkeypatch.setattr(inference, "_told", False)
    cpu = torch.device("cpu")
    with pytest.warns(UserWarning, match="without its C\\+\\+ kernels"):
        assert inference.choose_backend("auto", cpu) == "reference"
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert inference.choose_backend("auto", cpu) == "reference"


def test_unknown_backend_is_named() -> None:
    with pytest.raises(BackendError, match="auto, reference, cpu, triton, scan; got 'gpu'"):
        inference.choose_backend("gpu", torch.device("cpu"))
