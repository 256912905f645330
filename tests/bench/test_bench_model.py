"""`gbpn bench model`: every number is there and means what it says."""

from __future__ import annotations

import json

import pytest
from typer.testing import CliRunner

from gbpn.bench import model as bench
from gbpn.cli import app
from gbpn.errors import InputError
from gbpn.model import cost
from gbpn.model.models import build

KEYS = {
    "total_ms",
    "gmcn_ms",
    "gbp_ms",
    "attention_ms",
    "attention_reference_ms",
    "peak_mb",
    "params",
    "macs",
}


def test_json_has_every_number(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bench, "matmul_rate", lambda *_: 100.0)
    monkeypatch.setattr(bench, "build", lambda name: build(name, width=0.25))
    monkeypatch.setattr(
        bench, "peak_memory", lambda name, *size: bench._peak_here(name, size[0], size[1], threads=1)
    )
    arguments = ["bench", "model", "--model", "gbpn-2", "--size", "32x64", "--repeats", "1", "--json"]
    result = CliRunner().invoke(app, arguments, catch_exceptions=False)
    found = json.loads(result.stdout)
    row = found["models"]["gbpn-2"]["32x64"]
    assert set(row) >= KEYS
    narrow = build("gbpn-2", width=0.25)
    assert row["params"] == cost.parameters(narrow)
    assert row["macs"] == sum(cost.multiply_adds(narrow, 32, 64).values())
    assert 0 < row["attention_macs"] < row["macs"]
    assert len(row["stages"]) == 2
    assert sum(stage["macs"] for stage in row["stages"]) == row["macs"]
    assert min(row[key] for key in KEYS) > 0
    share = 2e-6 * row["macs"] / row["gmcn_ms"] / found["matmul_gflops"]
    assert row["matmul_share"] == pytest.approx(share)


@pytest.mark.parametrize("size", ["256", "100x320", "0x32", "256x320x3"])
def test_sizes_are_multiples_of_32(size: str) -> None:
    with pytest.raises(InputError, match="multiples of 32"):
        bench.parsed(size)


def test_a_model_without_inference_is_refused() -> None:
    with pytest.raises(InputError, match="v1"):
        bench.bench_model("v1", 32, 32, 1)
