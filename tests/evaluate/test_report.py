"""Reports: the promised schema, equal files for equal runs, one page that needs nothing else."""

from __future__ import annotations

import csv
import json
import re
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from scipy.interpolate import griddata
from typer.testing import CliRunner

from gbpn.cli import app
from gbpn.errors import InputError
from gbpn.evaluate import published
from gbpn.evaluate.report import header, setting_text
from gbpn.evaluate.suites import SUITES

PROMISED = {
    "method",
    "setting",
    "rmse",
    "mae",
    "irmse",
    "imae",
    "rel",
    "delta_1.02",
    "delta_1.05",
    "delta_1.25",
    "coverage_90",
    "ause",
    "rmse_drop_1pct",
}


def evaluate(*arguments: object) -> str:
    result = CliRunner().invoke(app, ["eval", *map(str, arguments)], catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return result.output


def report(folder: Path) -> dict:
    return json.loads((folder / "report.json").read_text())


def test_the_promised_schema(tree, tmp_path) -> None:
    text = evaluate(
        "pool",
        "--data",
        tree,
        "--method",
        "linear",
        "--method",
        "gbp_handmade",
        "--points",
        60,
        "-o",
        tmp_path,
    )
    assert "linear" in text
    data = report(tmp_path)
    assert (data["dataset"], data["samples"], len(data["rows"])) == ("pool", 10, 2)
    for row in data["rows"]:
        assert row.keys() >= PROMISED
        assert row["setting"] == {"points": 60}
        assert row["rmse"] > 0
    linear, handmade = data["rows"]
    assert linear["coverage_90"] is None  # no sigma, no coverage
    assert 0 <= handmade["coverage_90"] <= 1
    with open(tmp_path / "report.csv", newline="") as file:
        table = list(csv.DictReader(file))
    assert [float(row["rmse"]) for row in table] == [row["rmse"] for row in data["rows"]]
    assert "| linear |" in (tmp_path / "report.md").read_text()


def test_equal_commands_write_equal_files(tree, tmp_path) -> None:
    for name in ("first", "second"):
        evaluate(
            "pool", "--data", tree, "--method", "all", "--points", 40, "--limit", 3, "-o", tmp_path / name
        )
    for name in ("report.json", "report.csv", "report.md"):
        assert (tmp_path / "first" / name).read_bytes() == (tmp_path / "second" / name).read_bytes(), name
    assert len(report(tmp_path / "first")["rows"]) == 11


def test_the_page_needs_nothing_else(tree, weights, tmp_path) -> None:
    learned = weights / "v9.safetensors"
    evaluate(
        "pool",
        "--data",
        tree,
        "--weights",
        learned,
        "--method",
        "gbp_handmade",
        "--limit",
        3,
        "--pixel",
        "9,30",
        "-o",
        tmp_path,
    )
    page = (tmp_path / "index.html").read_text()
    sources = re.findall(r'(?:src|href)="([^"]*)"', page)
    assert sources
    assert all(source.startswith("data:image/") for source in sources)
    for name in ("rmse", "sparsification", "calibration", "best_frame", "worst_frame", "learned_edges"):
        with Image.open(tmp_path / "pictures" / f"{name}.png") as picture:
            assert np.asarray(picture.convert("RGB")).std() > 1, name
    with Image.open(tmp_path / "pictures" / "sweeps.gif") as animation:
        assert getattr(animation, "n_frames", 1) == 2 * (
            4 + 1
        )  # two iterations of four sweeps and the learned edges


def small(suite: str, shared: Path) -> list[object]:
    """Reduced sizes on real frames."""
    room = ["pool", "--data", shared / "data" / "nyuv2" / "test_public", "--limit", 1]
    street = ["pool", "--data", shared / "data" / "kitti" / "odometry_00", "--limit", 1]
    few = ["--method", "linear", "--method", "gbp_handmade", "--no-pictures"]
    return {
        "main": [*room, *few],
        "ablation": [*room, "--method", "linear", "--no-pictures"],
        "points": [*room, *few, "--points", 50, "--points", 500, "--seeds", 2],
        "lines": [*street, "--method", "nearest", "--lines", 8, "--lines", 64, "--no-pictures"],
        "noise": [*room, *few, "--noise", 0.01, "--noise", 0.05],
        "transfer": ["pool", "--data", shared / "data" / "icl_nuim", "--limit", 2, *few],
        "iterations": [*room, "--iterations", 2, "--iterations", 3, "--no-pictures"],
        "propagation": [*room, "--method", "nearest", "--method", "linear", "--points", 30],
        "runtime": [*room, "--method", "nearest", "--no-pictures"],
        "confidence": [*room, *few],
        "gallery": [*room, "--method", "linear", "--points", 10, "--points", 500],
        "sharpness": [*room, "--method", "linear", "--points", 40, "--no-pictures"],
        "prior": [*room, "--method", "linear", "--points", 40, "--no-pictures"],
        "parts": [*room, "--method", "linear", "--points", 40, "--no-pictures"],
    }[suite]


@pytest.mark.parametrize("suite", [name for name, suite in SUITES.items() if not suite.judged])
def test_every_suite_on_real_frames(suite, shared, weights, mapped, tmp_path) -> None:
    learned = ["--weights", weights] if suite in ("ablation", "iterations", "runtime", "propagation") else []
    learned += ["--weights", mapped] if suite in ("sharpness", "prior", "parts") else []
    evaluate(*small(suite, shared), *learned, "--suite", suite, "-o", tmp_path)
    data = report(tmp_path)
    assert data["suite"] == suite
    assert data["failed"] == []
    settings = [tuple(row["setting"].items()) for row in data["rows"]]
    methods = len({row["method"] for row in data["rows"]})
    assert len(data["rows"]) == methods * len(set(settings))
    page = (tmp_path / "index.html").read_text()
    expected = published.beside(suite, "kitti" if suite == "lines" else "nyuv2")
    assert ("published</span>" in page) == bool(expected and suite not in ("transfer", "runtime"))
    if suite == "transfer":
        assert {row["setting"]["scene"] for row in data["rows"]} == {"icl_nuim/of_kt0", "icl_nuim/of_kt3"}
    if suite == "points":
        by_points = {
            row["setting"]["points"]: row["rmse"] for row in data["rows"] if row["method"] == "linear"
        }
        assert by_points[500] < by_points[50]
        assert data["rows"][0]["setting"]["seeds"] == 2
    if suite == "runtime":
        sizes = ["228×304", "256×320", "352×1216"]
        assert [(e["method"], e["size"]) for e in data["runtime"]] == [
            (method, size) for method in ("v3", "v9") for size in sizes
        ]
        for entry in data["runtime"]:
            parts = entry["network_milliseconds"] + entry["gbp_milliseconds"]
            assert parts >= entry["milliseconds"] - 0.02
            assert entry["network_gigamacs"] > entry["gbp_gigaflops"] > 0
    if suite == "prior":
        (table,) = (rows for title, rows in data.items() if title.startswith("priors, "))
        assert {"none", "good: depth, blurred", "wrong: mirrored"} < {line["prior"] for line in table}
        assert {line["points"] for line in table} == {40}
        assert table[0]["change"] == "+0.0 %"
    if suite == "parts":
        (table,) = (rows for title, rows in data.items() if title.startswith("parts, "))
        assert table[0]["without"] == "nothing"
        assert table[0]["change"] == "+0.0 %"
        assert {"depth-like map", "second stage"} & {line["without"] for line in table}
    if suite == "sharpness":
        (line,) = data["depth-like maps"]
        assert line["frames"] == 1
        assert 0 < float(line["normals [°]"]) < 90
        for row in data["rows"]:
            assert row["rmse_away"] < row["rmse"] < row["rmse_edges"]
            assert row["pattern_2"] > 0
    if suite == "propagation":
        ranges = {line["method"]: line for line in data["range of one of 30 measurements"]}
        assert ranges["v9, 1 iteration"]["above 0.001"] > ranges["nearest"]["above 0.001"]
        assert int(ranges["local scheme, 18 steps"]["farthest [pixels]"]) <= 18 * 2**0.5
        assert (tmp_path / "pictures" / "influence_30.png").stat().st_size > 10_000


def test_baselines_against_another_implementation(shared, tmp_path) -> None:
    """Nearest and linear by SciPy's griddata on files read here, scored by hand: the same numbers."""
    folder = shared / "data" / "nyuv2" / "test_public"
    command = ("pool", "--data", folder, "--limit", 4, "--no-pictures", "-o", tmp_path)
    evaluate(*command, "--method", "nearest", "--method", "linear")
    got = {row["method"]: row for row in report(tmp_path)["rows"]}
    files = sorted((folder / "depth").glob("*.png"))
    place = np.stack(np.divmod(np.random.RandomState(0).choice(228 * 304, 500, replace=False), 304), 1)
    y, x = np.mgrid[:228, :304]
    errors: dict[str, list[float]] = {"nearest": [], "linear": []}
    for file in (files[k * len(files) // 4] for k in range(4)):
        depth = np.asarray(Image.open(file))[6:-6, 8:-8] / 1000
        near = griddata(place, depth[tuple(place.T)], (y, x), method="nearest")
        flat = griddata(place, depth[tuple(place.T)], (y, x), method="linear")
        for name, answer in (("nearest", near), ("linear", np.where(np.isnan(flat), near, flat))):
            errors[name].append(float(np.sqrt(np.mean((answer - depth)[depth > 1e-3] ** 2))))
    assert got["linear"]["rmse"] == pytest.approx(np.mean(errors["linear"]), rel=1e-3)
    assert got["nearest"]["rmse"] == pytest.approx(np.mean(errors["nearest"]), rel=5e-3)  # ties may differ


def test_ablation_asks_for_weights(tree, tmp_path) -> None:
    with pytest.raises(InputError, match="give --weights FOLDER"):
        evaluate("pool", "--data", tree, "--suite", "ablation", "-o", tmp_path)


def test_suites_are_listed(tree) -> None:
    text = evaluate("pool", "--data", tree, "--suite", "list")
    assert all(name in text for name in SUITES)


def test_published_numbers_are_the_papers() -> None:
    main = {row["method"]: row for row in published.beside("main", "nyuv2")}
    assert main["GBPN"]["rmse"] == 0.085
    assert main["GBPN"]["delta_1.02"] == 0.893
    street = {row["method"]: row for row in published.beside("main", "kitti")}
    assert street["GBPN"]["rmse"] == pytest.approx(0.68161)  # printed as 681.61 mm
    assert street["GBPN"]["irmse"] == pytest.approx(1.79e-3)  # printed as 1.79 1/km
    assert {row["published"] for row in published.beside("noise", "nyuv2")} == {"tab:sup_noise_comparison"}
    assert all(0 < row["rel"] < 1 for row in published.beside("points", "nyuv2"))
    confidence = published.beside("confidence", "nyuv2")[0]
    assert (confidence["rmse"], confidence["rmse_drop_1pct"]) == (0.08551, 0.02689)


def test_words() -> None:
    assert header("rmse") == "RMSE [m]"
    assert header("irmse") == "iRMSE [1/m]"
    assert header("delta_1.02") == "δ1.02"
    assert setting_text({"points": 500, "noise": 0.02}) == "500 points, noise 2 %"
