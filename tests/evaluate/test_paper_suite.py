"""`--suite paper` and what its pictures and tables promise."""

from __future__ import annotations

import io
import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image
from rich.console import Console
from test_formats import void
from typer.testing import CliRunner

from gbpn import Sample
from gbpn.cli import app
from gbpn.errors import InputError
from gbpn.evaluate import influence, published, suites
from gbpn.evaluate.methods import method_entry
from gbpn.evaluate.paper import PARTS, compared
from gbpn.evaluate.report import Report, Row
from gbpn.metrics import UNCERTAINTIES, MetricTable, Scores


def run(*arguments: object) -> str:
    result = CliRunner().invoke(app, ["eval", *map(str, arguments)], catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return result.output


def test_the_paper_in_one_command(tmp_path: Path, weights: Path) -> None:
    """VOID alone is there: its table is made, and everything else says why it is not."""
    for points in (150, 500, 1500):
        void(tmp_path / "data" / "void_release", points)
    command = ["--suite", "paper", "--data", tmp_path / "data", "--limit", "1", "--no-pictures"]
    command += ["--weights", weights / "v9.safetensors", "-o", tmp_path / "out"]
    run(*command)
    parts = {one["part"]: one for one in json.loads((tmp_path / "out" / "paper.json").read_text())}
    assert list(parts) == [part.title for part in PARTS]
    done = parts.pop("Table 3: VOID")
    assert not done["skipped"]
    assert done["frames"].startswith("Here: 1 frame of void_release. In the paper: ")
    printed = {
        (row["setting"]["points"]): row for row in published.beside("main", "void") if row["method"] == "GBPN"
    }
    rows = {(row["setting"], row["metric"]): row for row in done["rows"]}
    assert len(rows) == 6
    for points, entry in printed.items():
        for metric in ("rmse", "mae"):
            row = rows[f"{points} points", metric]
            assert row["method"] == "v9"
            assert row["paper"] == pytest.approx(entry[metric])
            assert row["difference"] == pytest.approx(row["here"] - entry[metric])
    assert all("no data: none of" in one["skipped"] for one in parts.values())
    page = (tmp_path / "out" / "index.html").read_text()
    assert page.count("Skipped:") == len(parts)
    before = (tmp_path / "out" / "parts" / "void-main" / "frames.jsonl").read_text()
    run(*command)  # once more: nothing is computed again
    assert (tmp_path / "out" / "parts" / "void-main" / "frames.jsonl").read_text() == before


def test_a_kind_is_asked_for_where_one_is_needed(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="which layout"):
        run("--data", tmp_path)


def test_pictures_of_sparsity_and_method(tmp_path: Path, tree: Path, weights: Path) -> None:
    stored = tmp_path / "theirs" / "toys" / "box"
    stored.mkdir(parents=True)
    for k in range(5):
        np.save(stored / f"{k:04d}.npy", np.full((40, 56), 2.5, np.float32))
    command = ["pool", "--data", tree / "toys" / "box", "--suite", "gallery", "--points", 1, "--points", 50]
    command += ["--weights", weights / "v9.safetensors", "--method", f"Theirs={tmp_path / 'theirs'}"]
    run(*command, "-o", tmp_path / "out")
    found = {file.stem for file in (tmp_path / "out" / "pictures").glob("gallery_*.png")}
    assert found == {"gallery_depth", "gallery_error", "gallery_precision"}
    rows = json.loads((tmp_path / "out" / "report.json").read_text())["rows"]
    assert {(row["method"], row["setting"]["points"]) for row in rows} == {
        (method, points) for method in ("v9", "Theirs") for points in (1, 50)
    }
    with Image.open(
        io.BytesIO((tmp_path / "out" / "pictures" / "gallery_depth.png").read_bytes())
    ) as picture:
        assert picture.width > 3 * 56
        assert picture.height > 3 * 40
    with pytest.raises(InputError, match="no folder"):
        method_entry("Theirs=nowhere")


def test_iterations_end_where_the_parameters_end() -> None:
    def counts(most: int) -> list[int | None]:
        return [setting.iterations for setting in suites.iterations_up_to(most)]

    assert counts(13) == [5, 7, 9, 11, 13]
    assert counts(7) == [3, 5, 7]
    assert counts(2) == [2]


def test_the_nearby_scheme_hears_the_nearest_alone() -> None:
    sample = Sample(
        image=torch.full((3, 20, 30), 0.5),
        sparse=torch.zeros(1, 20, 30),
        intrinsics=torch.eye(3),
        target=None,
        name="toys/0",
    )
    sample.sparse[0, 10, 15] = 2.0
    assert influence.nearby(sample, 10, 15) == pytest.approx(np.ones((20, 30)))
    sparse = sample.sparse.clone()
    sparse[0, :, 0] = sparse[0, :, 29] = 2.0
    share = influence.nearby(replace(sample, sparse=sparse), 10, 15)
    assert share[10, 15] == share.max() > 0.5
    assert share[10, 0] == 0
    assert (share >= 0).all()
    assert (share <= 1).all()


@pytest.mark.parametrize("name", ["gbpn", "a_method_with_a_long_name"])
def test_tables_fit_a_terminal_of_80_columns(name: str) -> None:
    scores = dict.fromkeys(("rmse", "mae", "irmse", "rel", "delta_1.02", *UNCERTAINTIES), 0.12345)
    table = MetricTable([Scores(name="toys/0#0", pixels=10, values=scores)])
    row = Row(method=name, setting={}, table=table, measurements=5.0, seconds=0.1)
    extras = {"runtime": [{"method": name, **{f"some_{word}_milliseconds": 123.45 for word in "abcdefgh"}}]}
    report = Report(dataset="pool", title="t", samples=1, rows=[row], suite="confidence", extras=extras)
    console = Console(width=80, record=True, file=io.StringIO())
    console.print(report.terminal())
    for table_ in report.terminal_extras():
        console.print(table_)
    text = console.export_text()
    assert max(map(len, text.splitlines())) <= 80
    assert "…" not in text
    assert text.count("0.1235") + text.count("0.1234") >= 4
    assert text.count("123.45") == 8


def test_only_the_same_setting_stands_beside(weights: Path) -> None:
    """The paper's noise begins at 1 %: nothing of it belongs beside measurements without noise."""
    table = MetricTable([Scores(name="nyuv2/a#0", pixels=10, values={"rmse": 0.1, "rmse_drop_1pct": 0.1})])
    rows = [
        Row(method="v9", setting=setting, table=table, measurements=5.0, seconds=0.1)
        for setting in ({}, {"noise": 0.01}, {"noise": 0.02})
    ]
    spec = str(weights / "v9.safetensors")
    for suite, found in (("noise", rows), ("confidence", rows[:1])):
        part = next(part for part in PARTS if part.suite == suite)
        report = Report(dataset="nyuv2", title="t", samples=1, rows=found, suite=suite)
        printed = {(one.setting, one.metric): one.paper for one in compared(part, report, [spec])}
        if suite == "noise":
            assert printed["as given", "rmse"] is None
            assert printed["noise 1 %", "rmse"] != printed["noise 2 %", "rmse"]
        assert None not in [paper for (setting, _), paper in printed.items() if setting != "as given"]
    assert printed["as given", "rmse_drop_1pct"] == pytest.approx(0.02689)
