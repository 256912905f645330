"""Where next, Understand and Take away in a real browser, held against Python."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image
from screen import SCENE, Screen, same

import gbpn
from gbpn.engine import explanation


def test_where_next(screen: Screen, completer: gbpn.DepthCompleter) -> None:
    screen.open_scene()
    screen.click(160, 120)
    screen.answered()
    wanted = screen.session(completer).suggest(3)
    screen.tab("next")
    screen.page.fill("#suggest-count", "3")
    screen.page.click("#suggest")
    screen.wait("state.suggestions.length === 3")
    found = screen.state("state.suggestions")
    assert [(one["x"], one["y"]) for one in found] == [(one.x, one.y) for one in wanted]
    assert [one["gain"] for one in found] == pytest.approx([one.gain for one in wanted], rel=1e-4)
    screen.page.click("#suggestion-list button")
    screen.wait("state.points.length === 2")
    assert (screen.points()[1]["x"], screen.points()[1]["y"]) == (wanted[0].x, wanted[0].y)
    screen.page.click("#suggest-take")
    screen.wait("state.points.length === 4")
    screen.answered()
    same(screen.map("state.maps.depth.values"), screen.session(completer).depth)


def test_understand(screen: Screen, completer: gbpn.DepthCompleter) -> None:
    """The film, a pixel's listening, the other answers, an outlier that is found and dropped."""
    screen.open_scene()
    page = screen.page
    page.locator("#pattern-count").fill("400")  # about fifty points
    screen.answered()
    session = screen.session(completer)
    screen.tab("understand")
    page.click("#film-play")
    screen.wait("state.overlay && state.overlay.kind === 'film'")
    stills = list(explanation.film(session))
    page.wait_for_function(f"() => document.getElementById('film-scrub').max === '{len(stills) - 1}'")
    page.locator("#film-scrub").fill("5")
    shown = stills[5]  # of the second iteration, with or without learned edges in the first
    assert page.inner_text("#caption-text") == f"Stage 1 · iteration 2 · {shown.part.replace('_', ' → ')}"
    same(screen.map("state.overlay.values"), stills[5].depth)
    page.click("[data-tool=listen]")
    screen.click(150, 100)
    screen.wait("state.listened !== null")
    heard = explanation.listening(session, 150, 100)
    shares = screen.state("Array.from(state.listened.shares)")
    np.testing.assert_allclose(shares, heard.shares, rtol=1e-3, atol=1e-6)
    page.click("#compare-first")
    screen.wait("state.overlay && state.overlay.title.includes('first stage')")
    difference = np.abs(explanation.first_stage(session) - session.depth)
    np.testing.assert_allclose(screen.map("state.overlay.values"), difference, atol=2e-5)
    if screen.state("state.welcome.has_exact"):
        page.click("#compare-exact")
        screen.wait("state.overlay && state.overlay.title.includes('exact')")
        exact = screen.map("state.overlay.other")
        np.testing.assert_allclose(exact, explanation.exact(session), rtol=1e-4)
    else:  # learned edges, or parameters by iteration
        assert page.is_disabled("#compare-exact")
        assert "learned edges" in page.inner_text("#compare-note")
        with pytest.raises(gbpn.GbpnError):
            explanation.exact(session)
    page.check("#compare-beside")
    assert screen.state("state.overlay.kind") == "beside"
    screen.drag((160, 200), (60, 200))
    assert screen.state("state.splitAt") == pytest.approx(60.5 / 320, abs=0.01)
    page.click("#overlay-clear")
    assert screen.state("state.overlay") is None
    page.click("[data-tool=point]")
    index = len(screen.points()) // 2
    screen.tab("measure")
    page.click(f"#point-list [data-index='{index}']")
    page.fill("#point-depth", "30")
    screen.answered()
    screen.tab("understand")
    page.click("#outlier-find")
    screen.wait("state.outliers.length > 0")
    wanted = screen.session(completer).outliers(4.0)
    assert [(o["x"], o["y"]) for o in screen.state("state.outliers")] == [(o.x, o.y) for o in wanted]
    wild = screen.points()[index]
    assert (wild["x"], wild["y"]) == (wanted[0].x, wanted[0].y)
    count = len(screen.points())
    page.click("#outlier-drop")
    assert len(screen.points()) == count - len(wanted)


def test_take_away(screen: Screen, completer: gbpn.DepthCompleter, tmp_path: Path) -> None:
    """Files are Python's files, and the code gives the very same depth."""
    screen.open_scene()
    screen.click(100, 100)
    screen.click(200, 60)
    screen.answered()
    session = screen.session(completer)
    screen.tab("take")
    name, content = screen.saved("[data-export='depth.npy']")
    assert name == f"{SCENE}_depth.npy"
    np.testing.assert_array_equal(np.load(io.BytesIO(content)), session.depth)
    np.testing.assert_array_equal(
        np.load(io.BytesIO(screen.saved("[data-export='std.npy']")[1])), session.std
    )
    session.result.to_point_cloud(tmp_path / "cloud.ply")
    assert screen.saved("[data-export='cloud.ply']")[1] == (tmp_path / "cloud.ply").read_bytes()
    assert screen.saved("[data-export='mesh.glb']")[1].startswith(b"glTF")
    png = session.result.to_png(tmp_path / "depth.png").read_bytes()
    assert screen.saved("[data-export='depth.png']")[1] == png
    mask = np.array(Image.open(io.BytesIO(screen.saved("[data-export='mask.png']")[1])))
    np.testing.assert_array_equal(mask > 0, session.result.observed)
    session.result.preview(tmp_path / "preview.png")
    assert screen.saved("[data-export='preview.png']")[1] == (tmp_path / "preview.png").read_bytes()
    screen.page.click("#snippet-show")
    screen.page.wait_for_selector("#snippet-box:not([hidden])")
    code = screen.page.inner_text("#snippet").replace("result.preview", "# result.preview")
    found: dict[str, Any] = {}
    exec(code, found)
    same(screen.map("state.maps.depth.values"), found["result"].depth)
