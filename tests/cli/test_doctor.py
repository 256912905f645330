"""`gbpn doctor` tells what is there, what is broken, and what to do."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

import gbpn
from gbpn.cli import app, doctor
from gbpn.weights import files

ROOT = Path(__file__).resolve().parents[2]
INTERNAL = {"dev", "docs"}
"""Extras for those who work on the project itself."""


def test_this_installation_is_sound() -> None:
    answer = CliRunner().invoke(app, ["doctor"])
    assert answer.exit_code == 0, answer.output
    assert "✗" not in answer.output
    assert "default" in answer.output


def test_the_table_of_extras_is_that_of_the_package() -> None:
    tomllib = pytest.importorskip("tomllib", reason="Python 3.11")
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    wanted = {
        extra: {need.split(">")[0].split("=")[0].split(";")[0].split("[")[0] for need in needs}
        for extra, needs in project["optional-dependencies"].items()
        if extra not in INTERNAL
    }
    assert {extra: set(packages) for extra, packages in doctor.EXTRAS.items()} == wanted


def test_damaged_weights_are_bad_and_what_is_optional_is_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = files.save(gbpn.build("small", width=0.25), tmp_path / "own.safetensors")
    content = bytearray(file.read_bytes())
    content[-100] ^= 1
    file.write_bytes(content)
    monkeypatch.setattr(files, "EMBEDDED", tmp_path)
    monkeypatch.setattr(doctor, "EXTRAS", {"openvino": ("no-such-package",)})
    answer = CliRunner().invoke(app, ["doctor", "--json"])
    assert answer.exit_code == 1
    states = {one["name"]: one for one in json.loads(answer.output)}
    assert states["weights"]["state"] == "bad"
    assert "checksum" in states["weights"]["text"]
    assert states["[openvino]"]["state"] == "optional"
    assert "pip install 'gbpn[openvino]'" in states["[openvino]"]["advice"]


def test_the_version_is_printed() -> None:
    assert CliRunner().invoke(app, ["--version"]).output == f"gbpn {gbpn.__version__}\n"
