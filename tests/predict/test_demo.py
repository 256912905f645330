"""The demonstration: a page that stands alone, with every scene in it."""

from __future__ import annotations

import base64
import json
import re
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

import gbpn
from gbpn import scenes
from gbpn.baselines import linear
from gbpn.formats.calibration import read_intrinsics
from gbpn.formats.depth_files import read_depth
from gbpn.formats.images import read_image
from gbpn.inputs.reading import as_sparse
from gbpn.jobs import demo, demo_page
from gbpn.weights.files import embedded


def test_cases_cover_every_scene_and_sparsity() -> None:
    cases = demo.cases()
    assert {case.scene for case in cases} == set(scenes.names())
    assert len({(case.scene, case.name) for case in cases}) == len(cases)
    assert {"500", "50", "1", "tof", "lidar64"} <= {case.name for case in cases}


def test_sensors_measure_what_their_captions_say() -> None:
    """The exact depth at so many places; the same ones at every call; zones average."""
    counts = {"500": 500, "50": 50, "1": 1, "tof": 64}
    measured = {}
    for case in demo.cases():
        sample = scenes.load(case.scene)
        sparse = case.measure(sample, np.random.default_rng(demo.SEED))
        there = sparse > 0
        measured[case.scene, case.name] = int(there.sum())
        if case.name != "tof":
            assert torch.equal(sparse[there], sample.target[there])
        if case.name in counts:
            assert int(there.sum()) == counts[case.name]
            assert case.caption.startswith(("one", "a", case.name))
    assert measured["street", "lidar64"] > 3 * measured["street", "lidar16"] > 0


def test_a_shown_case_is_the_completer_held_against_exact_depth(completer: gbpn.DepthCompleter) -> None:
    case = next(case for case in demo.cases() if (case.scene, case.name) == ("living_room", "50"))
    sample = scenes.load(case.scene)
    sample = replace(sample, sparse=case.measure(sample, np.random.default_rng(demo.SEED)))
    start = time.perf_counter()
    shown = demo.show(completer, case)
    assert 0 < shown.seconds < time.perf_counter() - start
    known = sample.target[0] > 0
    off = completer(sample.image, sample.sparse, sample.intrinsics).depth - sample.target[0].numpy()
    assert shown.points == 50
    assert shown.rmse == pytest.approx(float(np.sqrt((off[known.numpy()] ** 2).mean())), rel=1e-4)
    off = (linear(sample).mean[0, 0] - sample.target[0])[known]
    assert shown.interpolated == pytest.approx(float(off[off.isfinite()].square().mean().sqrt()), rel=1e-4)
    assert shown.within is None
    table = demo_page.page([shown], completer)
    for cell in ("living room", case.caption, "50", f"{shown.rmse:.3f}", f"{shown.interpolated:.3f}", "–"):
        assert f"<td>{cell}</td>" in table
    assert "Living room" in table
    assert "3+4 iterations" in table
    stated = demo_page.page([replace(shown, within=0.68)], completer)
    assert "<td>68%</td>" in stated


def test_the_example_files_are_the_scene(tmp_path: Path) -> None:
    demo.write_example(tmp_path, "bedroom")
    sample = scenes.load("bedroom")
    depth = read_depth(tmp_path / "depth.png", 1000)
    there = depth > 0
    assert int(there.sum()) == 500
    torch.testing.assert_close(depth[there], sample.target[there], rtol=0, atol=1.1e-3)
    first, *lines = (tmp_path / "points.csv").read_text().splitlines()
    assert first == "x,y,depth"
    table = as_sparse(tmp_path / "points.csv", *depth.shape[1:])
    torch.testing.assert_close(table, depth, rtol=0, atol=1.6e-3)
    assert len(lines) == 500
    torch.testing.assert_close(read_intrinsics(tmp_path / "camera.txt"), sample.intrinsics, rtol=0, atol=1e-3)
    assert float((read_image(tmp_path / "photo.jpg") - sample.image).abs().mean()) < 0.03


def test_the_page_stands_alone(
    completer: gbpn.DepthCompleter, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    some = [case for case in demo.cases() if case.name in ("1", "lidar16")]
    monkeypatch.setattr(demo, "cases", lambda: some)
    shown = list(demo.run(completer, tmp_path / "demo"))
    assert shown[0].points == 1
    page = (tmp_path / "demo" / "index.html").read_text(encoding="utf-8")
    assert page.count('<div class="compare"') == len(some)
    assert 'src="http' not in page
    assert "$" not in page.partition("<script>")[0]  # every place of the templates is filled
    assert page.index("Where it is weak") > page.index("The numbers")
    for one in shown:
        assert f"{one.rmse:.3f}" in page
        with Image.open(tmp_path / "demo" / f"{one.case.scene}_{one.case.name}.png") as picture:
            assert picture.size == one.picture.shape[1::-1]


def test_default_weights_beat_interpolation_where_points_are_few() -> None:
    if not embedded("default").is_file():
        pytest.skip("the default weights are not part of this checkout")
    torch.manual_seed(0)
    completer = gbpn.DepthCompleter.from_pretrained(device="cpu")
    case = next(case for case in demo.cases() if (case.scene, case.name) == ("kitchen", "50"))
    shown = demo.show(completer, case)
    assert shown.rmse < shown.interpolated


def test_the_scene_to_play_with_is_the_answer(completer: gbpn.DepthCompleter) -> None:
    """What the page's script reads: millimetres, and the camera."""
    case = next(case for case in demo.cases() if (case.scene, case.name) == ("living_room", "500"))
    shown = demo.show(completer, case)
    page = demo_page.page([shown], completer)
    stored = re.search(r'id="hero-depth">([^<]*)<', page)
    depth = np.frombuffer(base64.b64decode(stored[1]), "<u2").reshape(shown.result.depth.shape) / 1000
    known = shown.result.observed
    np.testing.assert_allclose(depth[known], shown.result.depth[known], atol=1.1e-3)
    assert not depth[~known].any()
    camera = json.loads(re.search(r'id="hero-camera">([^<]*)<', page)[1])
    assert camera["fx"] == pytest.approx(float(shown.sample.intrinsics[0, 0]))
