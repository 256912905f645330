"""The demonstration: a page that stands alone, with every scene in it."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from PIL import Image

import gbpn
from gbpn import scenes
from gbpn.predict import demo
from gbpn.weights.files import EMBEDDED


def test_cases_cover_every_scene_and_sparsity() -> None:
    cases = demo.cases()
    assert {case.scene for case in cases} == set(scenes.names())
    assert len({(case.scene, case.name) for case in cases}) == len(cases)
    assert {"500", "50", "1", "tof", "lidar64"} <= {case.name for case in cases}


def test_the_page_stands_alone(
    completer: gbpn.DepthCompleter, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    some = [case for case in demo.cases() if case.name in ("1", "lidar16")]
    monkeypatch.setattr(demo, "cases", lambda: some)
    shown = list(demo.run(completer, tmp_path / "demo"))
    assert shown[0].points == 1
    page = (tmp_path / "demo" / "index.html").read_text(encoding="utf-8")
    assert page.count("data:image/jpeg;base64,") == len(some)
    assert 'src="http' not in page
    for one in shown:
        assert f"{one.rmse:.3f}" in page
        with Image.open(tmp_path / "demo" / f"{one.case.scene}_{one.case.name}.png") as picture:
            assert picture.size == one.picture.shape[1::-1]


def test_default_weights_beat_interpolation_where_points_are_few() -> None:
    if not (EMBEDDED / "default.safetensors").is_file():
        pytest.skip("the default weights are not part of this checkout")
    torch.manual_seed(0)
    completer = gbpn.DepthCompleter.from_pretrained(device="cpu")
    case = next(case for case in demo.cases() if (case.scene, case.name) == ("kitchen", "50"))
    shown = demo.show(completer, case)
    assert shown.rmse < shown.interpolated
