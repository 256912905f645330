"""`gbpn bench gbp`: its numbers are there, and it refuses to speak of speed when the kernels are wrong."""

from __future__ import annotations

import json
from typing import Any

import pytest
from typer.testing import CliRunner

pytest.importorskip("gbpn._native", reason="gbpn was installed without its C++ kernels")

from gbpn.bench import gbp as bench
from gbpn.cli import app
from gbpn.errors import GbpnError, InputError
from gbpn.gaussian import Gaussian
from gbpn.gbp import cpu

KEYS = {
    *("forward_ms", "memcpy_ms", "reference_ms", "tape_ms", "adjoint_ms", "nonlocal_ms"),
    *("grid_sample_ms", "inference13_ms", "exact_ms"),
}


def test_json_holds_every_time() -> None:
    done = CliRunner().invoke(app, ["bench", "gbp", "--size", "24x40", "--repeats", "1", "--json"])
    assert done.exit_code == 0, done.output
    found = json.loads(done.stdout)
    assert found["sizes"]["24x40"].keys() >= KEYS


def test_table_compares_with_the_aims() -> None:
    done = CliRunner().invoke(app, ["bench", "gbp", "--size", "24x40", "--repeats", "1"])
    assert done.exit_code == 0, done.output
    assert all(aim.label in done.stdout for aim in bench.AIMS)


def test_no_speed_without_agreement(monkeypatch: pytest.MonkeyPatch) -> None:
    right = cpu.infer

    def wrong(*args: Any, **options: Any) -> tuple:
        belief, messages = right(*args, **options)
        return Gaussian(belief.information * 1.001, belief.precision), messages

    monkeypatch.setattr(cpu, "infer", wrong)
    with pytest.raises(GbpnError, match="differ from plain torch"):
        bench.bench_gbp(["24x40"], repeats=1)


def test_size_is_explained() -> None:
    with pytest.raises(InputError, match="HEIGHTxWIDTH"):
        bench.parsed("24")
