"""Belief propagation in Triton: golden numbers and twins in the interpreter, compilation for GPUs."""

from __future__ import annotations

import dataclasses
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import test_parity as parity
import torch
from torch import Tensor

from ahead_of_time import assert_compiled, compiled
from device import DEVICE, INTERPRETED, on_device
from fields import directed_field
from gbpn import Gaussian, infer
from gbpn.errors import BackendError, InputError
from gbpn.gbp import reference

pytestmark = pytest.mark.usefixtures("interpreter")

KERNELS = "gbpn.gbp.triton."
SWEEP_NAMES = ("base.η", "base.Λ", "messages.η", "messages.Λ", "weight", "difference", "damping")
NONLOCAL_NAMES = ("base.η", "base.Λ", "total.η", "total.Λ", "weight", "difference", "offset", "damping")


def fast():
    import gbpn.gbp.triton

    return gbpn.gbp.triton


def known(generator: torch.Generator, *shape: int, empty: float) -> tuple[Tensor, Tensor]:
    """Information and precision of random Gaussians, a share `empty` of which say nothing."""
    lam = torch.rand(*shape, generator=generator, dtype=torch.float64)
    lam = lam * (torch.rand(*shape, generator=generator) > empty)
    return lam * torch.randn(*shape, generator=generator, dtype=torch.float64), lam


def sweep_inputs(batch: int, edges: int, height: int, width: int, seed: int = 0) -> list[Tensor]:
    g = torch.Generator().manual_seed(seed)
    grid = (height, width)

    def uniform(*shape: int) -> Tensor:
        return torch.rand(*shape, generator=g, dtype=torch.float64)

    weight = 2 * uniform(batch, edges, *grid)
    return [
        *known(g, batch, 1, *grid, empty=0.6),
        *known(g, batch, 8, *grid, empty=0.5),
        weight,
        uniform(batch, edges, *grid) - 0.5,
        uniform(batch, 1, *grid),
    ]


def nonlocal_inputs(batch: int, edges: int, height: int, width: int, seed: int = 0) -> list[Tensor]:
    g = torch.Generator().manual_seed(seed)
    grid = (height, width)
    offset = 3 * torch.randn(batch, edges, 2, *grid, generator=g, dtype=torch.float64)
    offset[:, 0] = offset[:, 0].round()  # exactly on a pixel, on the border and just outside
    offset[:, 0, 0, 0, 0] = -1.0
    offset[:, -1, 0, -1, -1] = 1e30
    return [
        *known(g, batch, 1, *grid, empty=0.5),
        *known(g, batch, 1, *grid, empty=0.5),
        torch.rand(batch, edges, *grid, generator=g, dtype=torch.float64),
        torch.rand(batch, edges, *grid, generator=g, dtype=torch.float64) - 0.5,
        offset,
        torch.rand(batch, 1, *grid, generator=g, dtype=torch.float64),
    ]


def assert_twins(step: str, names: tuple[str, ...], inputs: list[Tensor], **options: float) -> None:
    """Values, and gradients of every input from random cotangents, equal those of the reference."""
    results = []
    for backend, device in ((reference, "cpu"), (fast(), DEVICE)):
        run: Callable[..., Gaussian] = getattr(backend, step)
        leaves = [tensor.detach().to(device).requires_grad_() for tensor in inputs]
        out = run(Gaussian(*leaves[:2]), Gaussian(*leaves[2:4]), *leaves[4:], **options)
        g = torch.Generator().manual_seed(1)
        cotangents = [
            torch.randn(part.shape, generator=g, dtype=part.dtype) for part in (out.information,) * 2
        ]
        gradients = torch.autograd.grad(
            (out.information, out.precision), leaves, cotangents, materialize_grads=True
        )
        results.append([part.detach().cpu() for part in (out.information, out.precision, *gradients)])
    labels = ("information", "precision", *(f"gradient of {name}" for name in names))
    for label, wanted, got in zip(labels, *results, strict=True):
        torch.testing.assert_close(got, wanted, rtol=1e-11, atol=1e-12, msg=f"{label}: {{}}".format)


TWINS = [  # batch, edges, height, width, directions, reweighting
    (1, 3, 1, 1, (0, 3), 1.0),
    (1, 3, 1, 7, (0, 1, 2), 1.0),
    (1, 1, 7, 1, (1, 2, 3), 0.3),
    (2, 3, 5, 6, (0, 1, 2, 3), 1.0),
    (1, 3, 5, 6, (0, 1, 2, 3), 0.3),
    (1, 1, 5, 6, (0, 1, 2, 3), 1.0),
    (1, 1, 5, 6, (1, 2), 0.3),
    (1, 3, 24, 40, (3,), 1.0),
    (1, 3, 33, 65, (2,), 1.0),
]


@pytest.mark.usefixtures("poisoned")
@pytest.mark.parametrize(
    ("batch", "edges", "height", "width", "direction", "reweighting"),
    [(*case[:4], direction, case[5]) for case in TWINS for direction in case[4]],
)
def test_sweep_is_the_references_twin(
    batch: int, edges: int, height: int, width: int, direction: int, reweighting: float
) -> None:
    inputs = sweep_inputs(batch, edges, height, width)
    assert_twins("sweep", SWEEP_NAMES, inputs, direction=direction, reweighting=reweighting)


@pytest.mark.usefixtures("poisoned")
@pytest.mark.parametrize(("strip", "every"), [(2, 1), (4, 3)])
@pytest.mark.parametrize(
    ("batch", "edges", "height", "width", "reweighting"),
    [(1, 3, 1, 9, 1.0), (2, 3, 9, 1, 0.3), (2, 3, 5, 7, 1.0), (1, 1, 7, 5, 0.3)],
)
def test_strips_hand_over(
    monkeypatch: pytest.MonkeyPatch,
    strip: int,
    every: int,
    batch: int,
    edges: int,
    height: int,
    width: int,
    reweighting: float,
) -> None:
    """Narrow strips, of which many run over each image, in every direction, forward and back."""
    fast()
    from gbpn.gbp.triton import sweep_operator as module

    assert module.strips_of(height, width, strip) >= (height + width - 1) / strip
    monkeypatch.setattr(module, "STRIP", strip)
    monkeypatch.setattr(module, "ADJOINT_STRIP", 2 * strip)
    monkeypatch.setattr(module, "EVERY", every)
    inputs = sweep_inputs(batch, edges, height, width)
    for direction in range(4):
        assert_twins("sweep", SWEEP_NAMES, inputs, direction=direction, reweighting=reweighting)


@pytest.mark.usefixtures("poisoned")
@pytest.mark.parametrize(
    ("batch", "edges", "height", "width", "reweighting"),
    [(1, 3, 1, 1, 1.0), (1, 2, 1, 7, 1.0), (1, 1, 7, 1, 0.3), (2, 3, 5, 6, 0.3), (1, 3, 33, 65, 1.0)],
)
def test_nonlocal_step_is_the_references_twin(
    batch: int, edges: int, height: int, width: int, reweighting: float
) -> None:
    inputs = nonlocal_inputs(batch, edges, height, width)
    assert_twins("nonlocal_step", NONLOCAL_NAMES, inputs, reweighting=reweighting)


@pytest.mark.usefixtures("poisoned")
@pytest.mark.parametrize("case", ["c0", "c1"])
def test_golden_sweeps(one_golden, case: str) -> None:
    parity.test_sweeps_one_by_one(on_device(one_golden), "triton", case)


@pytest.fixture
def one_program_per_image(monkeypatch: pytest.MonkeyPatch) -> None:
    """The interpreter takes as long for a small block as for a large one."""
    fast()
    from gbpn.gbp.triton import nonlocal_operator

    if INTERPRETED:
        monkeypatch.setattr(nonlocal_operator, "BLOCK", 1024)


def test_golden_nonlocal_steps(one_golden) -> None:
    parity.test_nonlocal_steps(on_device(one_golden), "triton")


@pytest.mark.usefixtures("one_program_per_image")
def test_golden_inference_of_both_stages(one_golden) -> None:
    parity.test_whole_inference_of_both_stages(on_device(one_golden), "triton")


def moved(box: Any, device: str) -> Any:
    """A field, or a part of one, on another device."""
    if isinstance(box, Tensor):
        return box.to(device)
    parts = {field.name: getattr(box, field.name) for field in dataclasses.fields(box)}
    return dataclasses.replace(box, **{name: moved(part, device) for name, part in parts.items()})


def test_gradients_of_a_whole_inference() -> None:
    """Two iterations with learned edges, against the reference, for every parameter of the field."""
    results = []
    for backend, device in (("reference", "cpu"), ("triton", DEVICE)):
        mrf = moved(directed_field(3, 4, iterations=2), device)
        edges, far = mrf.local, mrf.nonlocal_
        leaves = [mrf.weight, edges.weight, edges.difference, edges.damping]
        leaves += [far.weight, far.difference, far.offset, far.damping]
        for leaf in leaves:
            leaf.requires_grad_()
        belief = infer(mrf, nonlocal_steps=2, backend=backend).belief
        cotangent = torch.linspace(-1, 1, 12, dtype=torch.float64, device=device).view(1, 1, 3, 4)
        loss = (belief.information * cotangent - belief.precision).sum()
        results.append([gradient.cpu() for gradient in torch.autograd.grad(loss, leaves)])
    for wanted, got in zip(*results, strict=True):
        torch.testing.assert_close(got, wanted, rtol=1e-11, atol=1e-12)


@pytest.mark.parametrize("label", parity.SWEEPS)
def test_golden_gradients_of_a_sweep(one_golden, label: str) -> None:
    parity.test_gradients_of_a_sweep(on_device(one_golden), "triton", label)


def test_golden_gradients_of_a_nonlocal_step(one_golden) -> None:
    parity.test_gradients_of_a_nonlocal_step(on_device(one_golden), "triton")


def test_torch_accepts_the_operators() -> None:
    fast()
    sweep = [tensor.to(DEVICE).requires_grad_() for tensor in sweep_inputs(1, 3, 2, 3)]
    torch.library.opcheck(torch.ops.gbpn.triton_sweep.default, (*sweep, 0, 1.0))
    step = [tensor.to(DEVICE).requires_grad_() for tensor in nonlocal_inputs(1, 2, 2, 3)]
    torch.library.opcheck(torch.ops.gbpn.triton_nonlocal_step.default, (*step, 1.0))


def test_strided_inputs_are_read_as_they_stand() -> None:
    inputs = sweep_inputs(1, 3, 4, 5)
    inputs[6] = torch.full((1, 1, 1, 1), 0.25, dtype=torch.float64).expand(1, 1, 4, 5)
    strided = [tensor.transpose(-1, -2).contiguous().transpose(-1, -2) for tensor in inputs[:6]]
    assert not strided[0].is_contiguous()
    assert_twins("sweep", SWEEP_NAMES, [*strided, inputs[6]], direction=0)
    step = nonlocal_inputs(1, 2, 4, 5)
    assert_twins("nonlocal_step", NONLOCAL_NAMES, [t.mT.contiguous().mT for t in step])


def test_a_sweep_is_one_launch(monkeypatch: pytest.MonkeyPatch) -> None:
    fast()
    from gbpn.gbp.triton import sweep_operator as module

    launches = []
    monkeypatch.setattr(module, "launch", lambda kernel, grid, *rest, **options: launches.append(grid))
    base_eta, base_lam, eta, lam, *edges = sweep_inputs(2, 3, 6, 5)
    for direction in range(4):
        module.sweep(Gaussian(base_eta, base_lam), Gaussian(eta, lam), *edges, direction=direction)
    assert launches == [(2,)] * 4  # all strips of an image this small are one


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
def test_weights_of_any_size(dtype: torch.dtype) -> None:
    """From 1e-10 to 1e6 and exactly 0: as exact as the reference in float64, and never NaN."""
    *state, weight, difference, damping = sweep_inputs(1, 3, 4, 5)
    weight = 10 ** (16 * weight / 2 - 10)
    weight[..., 2, :] = 0
    inputs = [tensor.to(dtype).double() for tensor in (*state, weight, difference, damping)]
    wanted = reference.sweep(Gaussian(*inputs[:2]), Gaussian(*inputs[2:4]), *inputs[4:], direction=1)
    moved_inputs = [tensor.to(DEVICE, dtype) for tensor in inputs]
    got = fast().sweep(
        Gaussian(*moved_inputs[:2]), Gaussian(*moved_inputs[2:4]), *moved_inputs[4:], direction=1
    )
    relative = 1e-5 if dtype == torch.float32 else 1e-12
    for part in ("information", "precision"):
        ours, theirs = getattr(got, part).double().cpu(), getattr(wanted, part)
        torch.testing.assert_close(ours, theirs, rtol=relative, atol=relative)


def test_without_evidence_nothing_is_said() -> None:
    inputs = [tensor.to(DEVICE) for tensor in sweep_inputs(1, 3, 4, 5)]
    nothing = [torch.zeros_like(tensor) for tensor in inputs[:4]]
    out = fast().sweep(Gaussian(*nothing[:2]), Gaussian(*nothing[2:]), *inputs[4:], direction=2)
    assert not out.information.any()
    assert not out.precision.any()


def test_wrong_inputs_are_named() -> None:
    *parts, weight, difference, damping = sweep_inputs(1, 3, 4, 5)
    base, messages = Gaussian(*parts[:2]), Gaussian(*parts[2:])
    with pytest.raises(InputError, match="damping must have shape"):
        fast().sweep(base, messages, weight, difference, damping[..., 1:], direction=0)
    with pytest.raises(InputError, match=r"difference must be torch\.float64"):
        fast().sweep(base, messages, weight, difference.float(), damping, direction=0)
    with pytest.raises(InputError, match="weight must be float32 or float64"):
        fast().sweep(base, messages, weight.half(), difference, damping, direction=0)


def test_without_triton_the_way_to_get_it_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    ours = ("gbpn.gbp.triton", "gbpn.kernels.triton_launch")
    for name in [name for name in sys.modules if name.startswith(ours)]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "triton", None)
    with pytest.raises(BackendError, match=r"pip install gbpn\[gpu\]"):
        __import__("gbpn.gbp.triton")


def test_without_gpu_and_interpreter_the_way_out_is_named() -> None:
    program = """
import torch
from gbpn import Gaussian
from gbpn.errors import BackendError
from gbpn.gbp import triton
one, eight = torch.ones(1, 1, 2, 2), torch.ones(1, 8, 2, 2)
try:
    triton.sweep(Gaussian(one, one), Gaussian(eight, eight), one, one, one, direction=0)
except BackendError as error:
    print(error)
"""
    paths = os.pathsep.join(path for path in sys.path if path)
    environment = os.environ | {"TRITON_INTERPRET": "0", "PYTHONPATH": paths}
    done = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True)
    assert "needs tensors on a GPU; got cpu" in done.stdout, done.stderr


def test_every_kernel_compiles_for_gpus(tmp_path: Path) -> None:
    cases = [
        {
            "module": KERNELS + module,
            "kernel": kernel,
            "numbers": ["batch", "strips", "lines", "positions"],
            "pointers": {"progress": "*i32", "counter": "*i32"},
            "constants": {
                "RHO": reweighting,
                "EDGES": edges,
                "BACKWARDS": edges == 3,
                "BLOCK": 64,
                "EVERY": 8,
            },
            "warps": 2,
            "pointer": pointer,
        }
        for module, kernel in (
            ("sweep_kernels", "sweep_forward"),
            ("sweep_adjoint_kernels", "sweep_adjoint"),
        )
        for edges, reweighting, pointer in ((3, 1.0, "*fp32"), (1, 0.3, "*fp64"))
    ] + [
        {
            "module": KERNELS + "nonlocal_kernels",
            "kernel": kernel,
            "numbers": ["edges", "height", "width"],
            "constants": {"RHO": 1.0, "BLOCK": 256},
            "warps": 4,
            "pointer": pointer,
        }
        for kernel, pointer in (("nonlocal_forward", "*fp64"), ("nonlocal_adjoint", "*fp32"))
    ]
    report = compiled(cases, tmp_path)
    assert_compiled(report, cases)
    for entry in report:
        if entry["kernel"].startswith("sweep") and entry["architecture"] != "gfx942":
            told, heard = (any(word in line for line in entry["waits"]) for word in ("release", "acquire"))
            assert told, entry
            assert heard, entry
