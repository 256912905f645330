"""See and 3D in a real browser, and the page on a phone."""

from __future__ import annotations

import io
from typing import Any

import numpy as np
import pytest
from PIL import Image
from screen import PATIENCE, SCENE, Screen, same
from talking import running

import gbpn
from gbpn import scenes
from gbpn.show import pictures
from gbpn.studio.limits import Limits
from gbpn.studio.run import Server


def test_see(screen: Screen) -> None:
    """Layers, opacity, split, clamped colours, the words under the mouse, a profile."""
    screen.open_scene()
    for x, y in ((60, 60), (250, 80), (160, 200)):
        screen.click(x, y)
    screen.answered()
    page = screen.page
    depth, std = screen.map("state.maps.depth.values"), screen.map("state.std")
    page.mouse.move(*screen.place(120, 90))
    wanted = f"{depth[90, 120]:.2f} ± {std[90, 120]:.2f} m"
    page.wait_for_function("text => document.getElementById('readout').textContent === text", arg=wanted)
    screen.tab("see")
    for layer in ("std", "confidence", "error", "truth", "image", "depth"):
        page.check(f"#layer-{layer}", force=True)
        assert screen.state("state.layer") == layer
    error = np.abs(depth - scenes.load(SCENE).target[0].numpy())
    page.mouse.move(2, 2)
    shown = f"RMSE {np.sqrt(np.mean(error.astype(np.float64) ** 2)):.3f} m"
    page.wait_for_function(
        "text => document.getElementById('readout').textContent.startsWith(text)", arg=shown
    )
    page.fill("#range-low", "1")
    page.fill("#range-high", "4")
    page.press("#range-high", "Tab")
    assert screen.state("state.clamps.depth") == [1, 4]
    x, y = screen.place(30, 30)
    screen.page.locator("#opacity").fill("1")
    page.wait_for_timeout(100)
    box = page.locator("#picture").bounding_box()
    seen = page.evaluate(
        "([x, y]) => { const c = document.getElementById('picture'); const r = devicePixelRatio;"
        " return [...c.getContext('2d').getImageData(x * r, y * r, 1, 1).data].slice(0, 3); }",
        [x - box["x"], y - box["y"]],
    )
    painted = pictures.colours(depth[28:33, 28:33], 1.0, 4.0, pictures.DEPTH).reshape(-1, 3).astype(int)
    assert (painted.min(0) - 2 <= seen).all()
    assert (seen <= painted.max(0) + 2).all()
    page.check("#split")
    page.select_option("#split-layer", "error")
    screen.drag((160, 120), (80, 120))
    assert screen.state("state.splitAt") == pytest.approx(80.5 / 320, abs=0.01)
    page.click("[data-tool=line]")
    page.wait_for_selector("#profile-hint", state="visible")  # the picture makes room for it
    screen.drag((20, 130), (300, 120))
    assert screen.state("state.line") == {"x0": 20, "y0": 130, "x1": 300, "y1": 120}
    assert page.is_visible("#profile")
    drawn = page.evaluate(
        "() => { const c = document.getElementById('profile'); return c.getContext('2d')"
        ".getImageData(0, 0, c.width, c.height).data.filter((v, i) => i % 4 === 3 && v > 0).length; }"
    )
    assert drawn > 5000


def test_space(screen: Screen) -> None:
    """Points and mesh, cut by sigma, turned by the mouse."""
    screen.open_scene()
    for x, y in ((60, 60), (250, 80), (160, 200)):
        screen.click(x, y)
    screen.answered()
    page = screen.page
    page.set_viewport_size({"width": 860, "height": 520})  # drawn in software here
    screen.tab("space")
    whole = 320 * 240
    page.wait_for_function(
        f"() => 0 < window.gbpn.shownInSpace && window.gbpn.shownInSpace < {whole}", timeout=PATIENCE
    )
    page.locator("#space-cut").fill("1")  # it opens without what is least sure
    page.wait_for_function(f"() => window.gbpn.shownInSpace === {whole}", timeout=PATIENCE)
    page.locator("#space-cut").fill("0.5")
    std = screen.map("state.std").astype(np.float64)
    page.wait_for_function(f"() => window.gbpn.shownInSpace < {whole}", timeout=PATIENCE)
    assert page.evaluate("window.gbpn.shownInSpace") == int((std <= np.quantile(std, 0.5)).sum())
    before = page.locator("#space").screenshot()
    box = page.locator("#space").bounding_box()
    page.mouse.move(box["x"] + 200, box["y"] + 150)
    page.mouse.down()
    page.mouse.move(box["x"] + 280, box["y"] + 170, steps=3)
    page.mouse.up()
    page.wait_for_timeout(300)
    assert page.locator("#space").screenshot() != before
    page.locator("#space-cut").fill("1")
    page.select_option("#space-shape", "mesh")
    page.wait_for_function("() => window.gbpn.shownInSpace > 100000", timeout=PATIENCE)
    # nothing but the bare background would be a single colour
    assert len(np.unique(np.array(Image.open(io.BytesIO(page.locator("#space").screenshot()))))) > 50


def test_phone_dark_and_policy(browser: Any, studio: Server) -> None:
    """At phone width nothing is wider than the screen; the page keeps to its own policy."""
    context = browser.new_context(
        viewport={"width": 390, "height": 844}, color_scheme="dark", has_touch=True, is_mobile=True
    )
    screen = Screen(context.new_page())
    page = screen.page
    page.goto(studio.address.url)
    page.wait_for_selector(".card")
    assert page.evaluate("document.documentElement.dataset.theme") == "dark"
    page.tap("[data-scene=bedroom]")
    page.wait_for_selector("#invite:not([hidden])")
    page.touchscreen.tap(*screen.place(160, 120))
    page.wait_for_selector("#point-editor:not(.off)")
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    for tab in ("see", "space", "next", "understand", "take", "measure"):
        page.tap(f"#tab-{tab}")
        assert page.evaluate("document.documentElement.scrollWidth") <= 390, tab
    page.tap("header .theme")
    assert page.evaluate("document.documentElement.dataset.theme") == "light"
    assert not screen.problems, screen.problems
    context.close()


def test_a_page_that_slept_finds_back(browser: Any, thin: gbpn.DepthCompleter) -> None:
    """The server ends it; a click, and the picture, the points and their answer are there again."""
    with running(thin, limits=Limits(idle_seconds=2.0)) as own:
        context = browser.new_context(viewport={"width": 1280, "height": 800}, bypass_csp=True)
        screen = Screen(context.new_page())
        screen.page.goto(own.address.url)
        screen.open_scene()
        screen.click(100, 100)
        screen.answered()
        before, points = screen.map("state.maps.depth.values"), screen.points()
        reply = screen.state("state.maps.reply")
        screen.wait("state.connection === 'asleep'")
        screen.page.click("header .wake")
        screen.wait(f"state.connection === 'open' && state.maps.reply > {reply}")
        screen.answered()
        assert screen.points() == points
        same(screen.map("state.maps.depth.values"), before)
        assert not screen.problems, screen.problems
        context.close()
