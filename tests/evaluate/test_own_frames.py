"""`gbpn eval folder`: default weights take part, rows name their setting, settings stand side by side."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from gbpn.cli import app
from gbpn.evaluate import plots


@pytest.fixture
def mine(tree: Path, tmp_path: Path) -> Path:
    for place, source in (("rgb", "color"), ("gt", "depth")):
        (tmp_path / "mine" / place).mkdir(parents=True)
        for frame in range(2):
            shutil.copy(tree / "toys" / "box" / source / f"{frame:04}.png", tmp_path / "mine" / place)
    (tmp_path / "mine" / "intrinsics.txt").write_text("50 50 27.5 19.5")
    return tmp_path / "mine"


def evaluate(folder: Path, *arguments: object) -> tuple[str, list[dict]]:
    words = [
        "eval",
        "folder",
        "--option",
        "scale=1000",
        "--no-pictures",
        "-o",
        str(folder),
        *map(str, arguments),
    ]
    result = CliRunner().invoke(app, words, catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return result.output, json.loads((folder / "report.json").read_text())["rows"]


def test_default_weights_and_several_settings(mine: Path, tmp_path: Path, monkeypatch) -> None:
    figures = []
    png = plots._png

    def drawn(figure: Any) -> bytes:
        figures.append(figure)
        return png(figure)

    monkeypatch.setattr(plots, "_png", drawn)
    out = tmp_path / "report"
    text, rows = evaluate(out, "--data", mine, "--points", 20, "--points", 200, "--method", "linear")
    assert [(row["method"], row["setting"]) for row in rows] == [
        (method, {"points": count}) for count in (20, 200) for method in ("default", "linear")
    ]
    assert text.count("20 points") >= 2, text
    bars = [patch for patch in figures[0].axes[0].patches if patch.get_width() > 0]
    places = [round(bar.get_y(), 3) for bar in bars]
    assert len(set(places)) == len(places) == 4, "no bar lies on another"
    assert len({bar.get_facecolor() for bar in bars}) == 2
    legend = [words.get_text() for words in figures[0].legends[0].get_texts()]
    assert len(legend) == 2
    page = (out / "index.html").read_text()
    assert "<th>setting</th>" in page or "setting" in page


def test_without_weights_if_told_so(mine: Path, tmp_path: Path) -> None:
    _, rows = evaluate(
        tmp_path / "r", "--data", mine, "--weights", "none", "--method", "linear", "--points", 50
    )
    assert [row["method"] for row in rows] == ["linear"]
