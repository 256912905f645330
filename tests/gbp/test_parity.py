"""The golden numbers of the released network's propagation, reproduced by every backend."""

from __future__ import annotations

import importlib

import pytest
import torch
from backends import BACKENDS

from gbpn import MRF, Gaussian, LocalEdges, Messages, NonLocalEdges, infer
from goldens import assert_known_close

SWEEPS = ("LR", "TB", "RL", "BT")
NOISE = {"op_sweeps": 4.4e-6, "op_nonlocal": 1.7e-5, "op_gbp": 1.7e-5}
"""Float32 noise of the released arithmetic (GOLDENS.md); we allow ten times that."""


def operators(backend: str):
    return importlib.import_module(f"gbpn.gbp.{backend}")


def assert_close(name: str, got: torch.Tensor, wanted: torch.Tensor) -> None:
    assert_known_close(got, wanted, atol=10 * NOISE[name])


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("case", ["c0", "c1"])
def test_sweeps_one_by_one(golden, backend: str, case: str) -> None:
    g = golden("op_sweeps")
    base = Gaussian(
        g[f"{case}_eta_unary"] + g[f"{case}_eta_nonlocal"], g[f"{case}_lam_unary"] + g[f"{case}_lam_nonlocal"]
    )
    messages = Gaussian(g[f"{case}_eta_in"], g[f"{case}_lam_in"])
    for turn in range(2):
        for direction, label in enumerate(SWEEPS):
            weight, difference = g["w"][None, direction], g["r"][None, direction]
            messages = operators(backend).sweep(
                base, messages, weight, difference, g["beta"].view(1, 1, 24, 40), direction=direction
            )
            assert_close("op_sweeps", messages.information, g[f"{case}_round{turn}_{label}_eta"])
            assert_close("op_sweeps", messages.precision, g[f"{case}_round{turn}_{label}_lam"])


@pytest.mark.parametrize("backend", BACKENDS)
def test_nonlocal_steps(golden, backend: str) -> None:
    g = golden("op_nonlocal")
    base = Gaussian(g["eta_base"], g["lam_base"])
    total = Gaussian(g["eta_nl_in"], g["lam_nl_in"])
    edges = (g["w"], g["r"], g["offsets"].view(1, 3, 2, 24, 40))
    step = operators(backend).nonlocal_step
    once = step(base, total, *edges, torch.zeros_like(g["beta"]))
    assert_close("op_nonlocal", once.information, g["once_eta"])
    assert_close("op_nonlocal", once.precision, g["once_lam"])
    for _ in range(4):
        total = step(base, total, *edges, g["beta"])
    assert_close("op_nonlocal", total.information, g["step4_eta"])
    assert_close("op_nonlocal", total.precision, g["step4_lam"])


def released_field(g: dict[str, torch.Tensor], stage: str) -> MRF:
    """A field from head maps in the released channel order."""
    omega, r, offsets, beta = (g[f"{stage}_{head}"] for head in ("omega", "r", "offs", "beta"))
    iterations = r.shape[1] // 15
    omega, r = (x.unflatten(1, (iterations, 5, 3)) for x in (omega[:, 2:], r))  # [B, T, 5, 3, H, W]
    weight = torch.nn.functional.softplus(omega) + 1e-10
    beta = beta.unflatten(1, (iterations, 2))
    sparse = g["sparse"]
    unary = (torch.nn.functional.softplus(g[f"{stage}_omega"][:, :1]) + 1e-10) * (sparse > 0)
    return MRF(
        depth=sparse,
        weight=unary,
        local=LocalEdges(weight=weight[:, :, :4], difference=r[:, :, :4], damping=beta[:, :, 0]),
        nonlocal_=NonLocalEdges(
            weight=weight[:, :, 4],
            difference=r[:, :, 4],
            offset=offsets.unflatten(1, (iterations, 3, 2)),
            damping=beta[:, :, 1],
        ),
    )


@pytest.mark.parametrize("backend", BACKENDS)
def test_whole_inference_of_both_stages(golden, backend: str) -> None:
    g = golden("op_gbp")
    messages: Messages | None = None
    for stage in (stage for stage in ("s1", "s2") if f"{stage}_omega" in g):
        answer = infer(released_field(g, stage), messages, backend=backend)
        messages = answer.messages
        assert_close("op_gbp", answer.belief.mean, g[f"{stage}_depth"])
        assert_close("op_gbp", answer.belief.precision + g[f"{stage}_omega"][:, 1:2], g[f"{stage}_conf"])
        assert_close("op_gbp", messages.local.information, g[f"{stage}_eta_local"])
        assert_close("op_gbp", messages.local.precision, g[f"{stage}_lam_local"])
        assert_close("op_gbp", messages.nonlocal_.information, g[f"{stage}_eta_nl"])
        assert_close("op_gbp", messages.nonlocal_.precision, g[f"{stage}_lam_nl"])


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("label", SWEEPS)
def test_gradients_of_a_sweep(golden, backend: str, label: str) -> None:
    g = {k.removeprefix(f"{label}_"): v for k, v in golden("op_backward").items() if k.startswith(label)}
    names = ("eta", "lam", "r", "w", "beta", "me", "ml")
    x = {name: g[f"in_{name}"].clone().requires_grad_() for name in names}
    out = operators(backend).sweep(
        Gaussian(x["me"], x["ml"]),
        Gaussian(x["eta"], x["lam"]),
        x["w"],
        x["r"],
        x["beta"],
        direction=SWEEPS.index(label),
    )
    torch.testing.assert_close(out.information, g["out_eta"], rtol=1e-10, atol=1e-12)
    torch.testing.assert_close(out.precision, g["out_lam"], rtol=1e-10, atol=1e-12)
    torch.autograd.backward((out.information, out.precision), (g["cot_eta"], g["cot_lam"]))
    filled = g["in_lam"] > 0  # the file holds 0 for the gradient of an empty slot, which nothing depends on
    for name in names:
        got = x[name].grad * filled if name in ("eta", "lam") else x[name].grad
        torch.testing.assert_close(got, g[f"grad_{name}"], rtol=1e-8, atol=1e-10)


@pytest.mark.parametrize("backend", BACKENDS)
def test_gradients_of_a_nonlocal_step(golden, backend: str) -> None:
    g = {k.removeprefix("NL_"): v for k, v in golden("op_backward").items() if k.startswith("NL")}
    names = ("inp", "pri", "w", "r", "off")  # information and precision of the field, then the edges
    x = {name: g[f"in_{name}"].clone().requires_grad_() for name in names}
    nothing = torch.zeros_like(g["in_pri"])
    out = operators(backend).nonlocal_step(
        Gaussian(x["inp"], x["pri"]),
        Gaussian(nothing, nothing),
        x["w"],
        x["r"],
        x["off"].unflatten(1, (3, 2)),
        nothing,
    )
    torch.testing.assert_close(out.information, g["out_eta"], rtol=1e-10, atol=1e-12)
    torch.testing.assert_close(out.precision, g["out_lam"], rtol=1e-10, atol=1e-12)
    torch.autograd.backward((out.information, out.precision), (g["cot_eta"], g["cot_lam"]))
    for name in names:
        torch.testing.assert_close(x[name].grad, g[f"grad_{name}"], rtol=1e-8, atol=1e-10)
