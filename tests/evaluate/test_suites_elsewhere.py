"""Every suite of `gbpn eval`, tables and pictures, with the weights on another device than the frames."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from typer.testing import CliRunner

from gbpn.cli import app
from gbpn.evaluate.suites import SUITES

_ALIKE = (
    "ablation",
    "acceptance",
    "iterations",
    "noise",
    "points",
    "prior",
    "runtime",
    "sizes",
    "transfer",
    "trust",
)
"""Those that take long, or whose way is also that of another one: with GBPN_ALL_TESTS=1."""
_ON_A_POOL = ("acceptance", "sizes", "sharpness", "confidence")


@pytest.mark.parametrize("suite", sorted(SUITES))
def test_a_suite(
    suite: str, second_device: str, tree: Path, whole_pool: Path, weights: Path, mapped: Path, tmp_path: Path
) -> None:
    if suite in _ALIKE and not os.environ.get("GBPN_ALL_TESTS"):
        pytest.skip("takes long: set GBPN_ALL_TESTS=1")
    data = whole_pool if suite in _ON_A_POOL else tree
    file = mapped if suite == "sharpness" else weights / "v9.safetensors"
    given = ["eval", "pool", "--data", str(data), "-o", str(tmp_path), "--suite", suite]
    given += ["--weights", str(file), "--method", "nearest", "--limit", "1"]
    if suite not in (*_ON_A_POOL, "lines", "trust"):
        given += ["--points", "40", "--seeds", "1"]
    answer = CliRunner().invoke(app, given)
    assert answer.exit_code == 0, answer.output
    page = (tmp_path / "index.html").read_text()
    assert file.stem in page
    assert "Traceback" not in answer.output
