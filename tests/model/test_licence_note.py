"""The embedded weights are for research: said once per person, in the metadata, and nowhere twice."""

from __future__ import annotations

from pathlib import Path

import pytest

import gbpn
from gbpn.weights import licence

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def newcomer(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """Somebody who never used gbpn."""
    monkeypatch.delenv("GBPN_WEIGHTS_LICENCE")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(licence, "_told", [])
    return tmp_path / "cache"


def test_said_at_the_first_load_and_never_again(
    newcomer: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    gbpn.load("default")
    gbpn.load("default")
    assert capsys.readouterr().err.count(licence.TEXT) == 1
    monkeypatch.setattr(licence, "_told", [])  # the next process
    gbpn.load("default")
    assert capsys.readouterr().err == ""


def test_said_in_every_process_where_nothing_can_be_remembered(
    newcomer: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    newcomer.write_text("a file where a folder should be")
    for _ in range(2):
        monkeypatch.setattr(licence, "_told", [])
        licence.tell_once({"licence": "for research"})
        licence.tell_once({"licence": "for research"})
    assert capsys.readouterr().err.count(licence.TEXT) == 2


def test_silent_for_other_weights_and_on_request(
    newcomer: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    gbpn.build("small", width=0.5).save_pretrained(tmp_path / "own")
    gbpn.load(tmp_path / "own")
    monkeypatch.setenv("GBPN_WEIGHTS_LICENCE", "read")
    gbpn.load("default")
    assert capsys.readouterr().err == ""


def test_the_metadata_say_it_too() -> None:
    tomllib = pytest.importorskip("tomllib", reason="reads TOML from Python 3.11 on")
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert "research-only" in project["license"]
    texts = [(ROOT / name).read_text(encoding="utf-8") for name in project["license-files"]]
    assert any("research and evaluation only" in text for text in texts)
