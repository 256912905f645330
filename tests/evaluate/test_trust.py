"""The table of intervals: bins, worst frames and scores of numbers that are known, and one command for it."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import torch
from typer.testing import CliRunner

from gbpn.cli import app
from gbpn.distribution import SigmaCalibration
from gbpn.errors import InputError
from gbpn.evaluate import trust
from gbpn.evaluate.report import Row
from gbpn.evaluate.settings import Setting
from gbpn.metrics import MetricTable, Scores
from gbpn.metrics.trust import SCORE, bin_names, trust_scores
from gbpn.model.loading import load
from gbpn.sample import Sample
from gbpn.sigma.held_out import LEVEL, LEVEL_QUANTILE
from gbpn.weights.files import save


def test_bins_count_pixels_by_what_is_near_them() -> None:
    """Truth 2 m on the left and 5 m on the right, measured in one corner, wrong on the right."""
    target = torch.full((1, 1, 40, 60), 2.0)
    target[..., 30:] = 5.0
    prediction = torch.where(target == 5, 4.0, target)
    sparse = torch.zeros_like(target)
    sparse[0, 0, 0, 0] = 2.0
    found = trust_scores(prediction, target, torch.full_like(target, 0.1), sparse)
    value = {name: float(number) for name, number in found.items()}
    assert value["within_depth_1"] == 1
    assert value["pixels_depth_1"] == 40 * 30
    assert value["within_depth_3"] == 0
    assert value["pixels_depth_3"] == 40 * 30
    assert np.isnan(value["within_depth_0"])
    assert value["pixels_depth_0"] == 0
    for kind in ("point", "depth", "edge"):
        names = [name for name in bin_names() if name.startswith(kind)]
        assert sum(value[f"pixels_{name}"] for name in names) == target.numel()
    assert value["pixels_edge_0"] == 40 * 6  # the two pixels at the edge, and two more on either side
    assert value["pixels_point_0"] == sum(x * x + y * y <= 16 for x in range(60) for y in range(40))
    width = 2 * LEVEL_QUANTILE * 0.1
    beyond = 2 / (1 - LEVEL) * (1 - LEVEL_QUANTILE * 0.1)
    assert value[SCORE] == pytest.approx((width / 2 + (width + beyond) / 5) / 2)


def test_unobserved_pixels_and_unknown_truth_do_not_count() -> None:
    target = torch.full((1, 1, 8, 8), 3.0)
    target[..., 0] = 0
    prediction = torch.where(target == 0, 1.0, target)
    prediction[..., 1] = torch.nan
    found = trust_scores(prediction, target, torch.ones_like(target), torch.zeros_like(target))
    assert float(found["pixels_depth_2"]) == 48
    assert float(found["pixels_point_4"]) == 48  # nothing is measured: infinitely far


def row(name: str, coverages: list[float], pixels: list[int]) -> Row:
    scores = [
        Scores(
            name=f"frame {k}#0",
            pixels=n,
            values={"rmse": 0.1, "observed": 1.0, "std": 0.1, "coverage_90": share, SCORE: 0.5}
            | {f"within_{bin_}": share for bin_ in bin_names()}
            | {f"pixels_{bin_}": float(n) for bin_ in bin_names()},
        )
        for k, (share, n) in enumerate(zip(coverages, pixels, strict=True))
    ]
    return Row(method="ours", setting={"name": name}, table=MetricTable(scores), measurements=5, seconds=0.1)


def test_rows_and_bins_are_judged() -> None:
    rows = [row("good", [0.88, 0.92], [2000, 6000]), row("bad", [0.6, 0.9], [900, 900])]
    good, bad = trust.trust(rows)
    assert (good["in 90 %"], good["worst"], good["score"]) == ("90 ✓", "88 ✓", "0.500")
    assert (bad["in 90 %"], bad["worst"]) == ("75 ✗", "60 ✗")
    first, second, everything = trust.by_bin(rows, "depth")
    assert first["≤1.5"] == "91 ✓"  # pixels count, not frames
    assert second["≤1.5"] == "–"  # too few pixels to say
    assert everything["setting"] == "all of these"
    assert everything[">4"] == "88 ✓"
    table = trust.tables(rows, ["ours"])
    assert len(table) == 4
    assert all(title.startswith("ours: ") for title in table)


def test_a_picture_may_be_taken_away() -> None:
    one, two = (
        Sample(
            image=torch.full((3, *size), value),
            sparse=torch.zeros(1, *size),
            intrinsics=torch.eye(3),
            target=torch.ones(1, *size),
            name=f"{value}",
        )
        for value, size in ((0.5, (8, 10)), (0.25, (20, 12)))
    )
    assert Setting().pictured(one, lambda: two) is one
    assert not Setting(picture="black").pictured(one, lambda: two).image.any()
    other = Setting(picture="other").pictured(one, lambda: two)
    assert other.image.shape == one.image.shape
    assert torch.allclose(other.image, torch.tensor(0.25))
    with pytest.raises(InputError, match="picture must be one of"):
        Setting(picture="white")


def test_one_command_prints_the_table(tree: Path, weights: Path, tmp_path: Path) -> None:
    model = load(weights / "v3.safetensors")
    model.calibration = SigmaCalibration(knots=(-5.0, 5.0), log_std=(0.0, -3.0), relative=True)
    save(model, tmp_path / "ours.safetensors")
    command = ["eval", "pool", "--data", str(tree), "--suite", "trust", "--limit", "1", "-o", str(tmp_path)]
    command += ["--weights", str(tmp_path / "ours.safetensors"), "--method", "spread", "--method", "nearest"]
    result = CliRunner().invoke(app, command, catch_exceptions=False)
    assert result.exit_code == 0, result.output
    data = json.loads((tmp_path / "report.json").read_text())
    assert data["failed"] == []
    lines = data["ours: 90 % intervals by setting"]
    assert [line["setting"] for line in lines] == [setting.name for setting in trust.SETTINGS]
    assert len(data["spread: 90 % intervals by setting"]) == sum(not s.weights_only for s in trust.SETTINGS)
    assert data["no sigma is stated by"] == [{"method": "nearest"}]
    assert (tmp_path / "pictures" / "reliability_ours.png").stat().st_size > 1000
    assert max(map(len, result.output.replace(str(tmp_path), "").splitlines())) <= 80
