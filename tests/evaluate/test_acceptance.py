"""Tables by which weights are judged: what they say of numbers that are known."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from gbpn.cli import app
from gbpn.errors import InputError
from gbpn.evaluate import ablation, acceptance
from gbpn.evaluate.report import Row
from gbpn.metrics import MetricTable, Scores
from gbpn.metrics.uncertainty import FRACTIONS


def row(method: str, setting: str, rmse: list[float], **values: float) -> Row:
    """A row whose frames have these RMSE; MAE is half of it. Dropping 1 % gains half of an oracle's 0.02."""
    curve = [0.0] * len(FRACTIONS)
    scores = []
    for k, value in enumerate(rmse):
        ranked, oracle = list(curve), list(curve)
        ranked[:2], oracle[:2] = [value, value - 0.01], [value, value - 0.02]
        scores.append(
            Scores(
                name=f"frame {k}#0",
                pixels=10,
                values={"rmse": value, "mae": value / 2, "delta_1.02": 0.5, "ause": 0.1, "coverage_90": 0.9}
                | values,
                curves={"sparsification": ranked, "oracle": oracle},
            )
        )
    return Row(
        method=method, setting={"name": setting}, table=MetricTable(scores), measurements=1, seconds=0.1
    )


def test_the_best_baseline_of_each_setting_counts() -> None:
    rows = [
        row("ours", "500 points", [0.1, 0.2]),
        row("linear", "500 points", [0.3, 0.3]),
        row("guided", "500 points", [0.2, 0.2], mae=0.01),
        row("ours", "1 point", [0.3, 0.3]),
        row("linear", "1 point", [0.2, 0.2]),
    ]
    first, second = acceptance.against_baselines(rows, "ours", [r for r in rows if r.method != "ours"])
    assert (first["RMSE"], first["next RMSE"], first["next RMSE by"]) == ("0.1500", "0.2000", "guided")
    assert (first["RMSE gap"], first["MAE gap"]) == ("-25.0% ✓", "+650.0% ✗")
    assert second["RMSE gap"] == "+50.0% ✗"


def test_trust_is_held_against_an_oracle_and_an_interval() -> None:
    good, bad = acceptance.trust(
        [row("ours", "500 points", [0.2]), row("ours", "1 point", [0.2], coverage_90=0.97)], "ours"
    )
    assert (good["drop 1 %"], good["oracle"], good["gain"]) == ("0.1900", "0.1800", "50% ✓")
    assert (good["in 90 %"], bad["in 90 %"]) == ("90.0% ✓", "97.0% ✗")


def test_frames_on_which_one_point_is_better_than_a_constant_are_counted() -> None:
    rows = [row("ours", "1 point", [0.1, 0.2, 0.3, 0.5]), row("nearest", "1 point", [0.2, 0.4, 0.4, 0.4])]
    (found,) = acceptance.one_point(rows, "ours")
    assert found["better than nearest"] == "75% ✓"
    assert found["worst"] == "1.25"


def test_sizes_are_held_against_the_best_one() -> None:
    names = [setting.name for setting in acceptance.SIZES if setting.points == 500]
    rows = [row("ours", name, [rmse]) for name, rmse in zip(names, (0.11, 0.1, 0.104), strict=True)]
    (found,) = acceptance.sizes(rows, "ours")
    assert found["whole size"] == "456×608"
    assert [found[f"at {scale} of it"] for scale in ("0.25", "0.5", "1")] == ["0.1100", "0.1000", "0.1040"]
    assert found["worst / best"] == "1.10 ✗"


def test_ablation_rows_stand_beside_the_papers() -> None:
    published = [
        {"method": f"V{n}", "rmse": r, "delta_1.02": 0.8} for n, r in ((1, 0.3), (3, 0.11), (4, 0.1))
    ]
    rows = [row("v1", "", [0.4]), row("v3", "", [0.2]), row("v3-seed2", "", [0.22]), row("v4", "", [0.3])]
    found = ablation.tables([*rows, row("linear", "", [0.1])], published)
    here, order = found.values()
    assert [line["RMSE here"] for line in here] == ["0.4000", "0.2100 ± 0.0100", "0.3000"]
    assert [line["seeds"] for line in here] == [1, 2, 1]
    assert [line["agrees"] for line in order] == ["yes", "no", "2 of 3"]
    assert ablation.tables([row("linear", "", [0.1])], published) == {}


def test_one_command_judges_weights(whole_pool: Path, weights: Path, tmp_path: Path) -> None:
    command = ["eval", "pool", "--data", str(whole_pool), "--suite", "acceptance", "-o", str(tmp_path)]
    command += ["--weights", str(weights / "v3.safetensors"), "--method", "nearest", "--method", "linear"]
    result = CliRunner().invoke(app, command, catch_exceptions=False)
    assert result.exit_code == 0, result.output
    data = json.loads((tmp_path / "report.json").read_text())
    assert data["failed"] == []
    table = data["v3 against every baseline"]
    assert len(table) == len(acceptance.SETTINGS) - len(acceptance.SIZES)
    assert {line["next RMSE by"] for line in table} <= {"nearest", "linear"}
    assert len(data["v3 at several sizes"]) == 6
    assert "64 ToF zones" in (tmp_path / "report.md").read_text()
    for name in ("frames_500_points", "frames_1_point"):
        assert (tmp_path / "pictures" / f"{name}.png").stat().st_size > 1000
    with pytest.raises(InputError, match="settings of its own"):
        CliRunner().invoke(app, [*command, "--points", "3"], catch_exceptions=False)
