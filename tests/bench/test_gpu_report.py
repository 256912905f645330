"""`gbpn doctor --gpu` with the interpreter in place of a GPU: it finds what is right and what is wrong."""

from __future__ import annotations

import pytest
import torch
from typer.testing import CliRunner

pytest.importorskip("triton", reason="needs triton (pip install gbpn[gpu])")

from device import DEVICE
from gbpn import Gaussian
from gbpn.bench import gpu_report
from gbpn.cli import app

pytestmark = pytest.mark.usefixtures("interpreter")


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """The interpreter is slow."""
    for name, sizes in (("_sweep_inputs", (3, 5)), ("_step_inputs", (3, 5)), ("_attention_inputs", (4, 5))):
        make = getattr(gpu_report, name)
        edges = name != "_attention_inputs"
        monkeypatch.setattr(
            gpu_report, name, lambda *given, m=make, s=sizes, e=edges: m(*(given[:1] if e else ()), *s)
        )
    monkeypatch.setattr(gpu_report, "_LIMITS", {torch.float64: 1e-9})


def test_every_kernel_is_right() -> None:
    found = list(gpu_report.checks(DEVICE))
    assert len(found) == 9 + (DEVICE == "cuda")  # every operator, recomputation, half precision, one graph
    assert all(one.right for one in found), found
    assert max(one.difference for one in found) > 0


def test_a_wrong_kernel_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    from gbpn.gbp import triton

    sweep = triton.sweep

    def wrong(*arguments, **options) -> Gaussian:
        out = sweep(*arguments, **options)
        return Gaussian(out.information, out.precision * 1.001)

    monkeypatch.setattr(triton, "sweep", wrong)
    found = next(gpu_report.checks(DEVICE))
    assert not found.right
    assert "WRONG" in gpu_report.text("this", [found], {})
    assert not gpu_report.Check(name="none", difference=float("nan"), limit=1).right


def test_times_stand_beside_the_paper() -> None:
    found = gpu_report.speeds("cpu", sizes=("64x96",), repeats=1)
    assert found["64x96"].keys() == {"inference", "graph", "network", "frame"}
    told = gpu_report.text("this", [], {"256x320": found["64x96"]})
    assert "the paper's inference: 23.35 ms" in told


def test_without_a_gpu_it_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    answer = CliRunner().invoke(app, ["doctor", "--gpu"])
    assert answer.exit_code == 2
    assert "no GPU" in answer.output
