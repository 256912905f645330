"""The page in a real browser: every activity with mouse and keyboard, its results held against Python."""

from __future__ import annotations

import io
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image
from talking import running

import gbpn
from gbpn import scenes
from gbpn.predict import explanation
from gbpn.predict.session import Session
from gbpn.studio.limits import Limits
from gbpn.studio.run import Server

sync_api = pytest.importorskip("playwright.sync_api", reason="needs playwright (pip install gbpn[dev])")

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="needs Chromium (apt-get install chromium)")
FLAGS = [
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-background-networking",
    "--disable-component-update", "--disable-sync", "--enable-unsafe-swiftshader",
]  # fmt: skip
PATIENCE = 90_000
"""Milliseconds: a busy machine may take its time."""
SCENE = "bedroom"


@pytest.fixture(scope="module")
def completer() -> Iterator[gbpn.DepthCompleter]:
    """The weights that people get, on one thread as in the server: the same order of sums, the same bytes."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield gbpn.DepthCompleter.from_pretrained(device="cpu")
    torch.set_num_threads(threads)


@pytest.fixture(scope="module")
def studio(completer: gbpn.DepthCompleter) -> Iterator[Server]:
    with running(completer, limits=Limits(workers=2)) as one:
        yield one


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with sync_api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        yield browser
        browser.close()


class Screen:
    """A page, and what a person does with it."""

    def __init__(self, page: Any) -> None:
        self.page, self.problems = page, []
        page.set_default_timeout(PATIENCE)
        page.on("pageerror", lambda error: self.problems.append(str(error)))
        page.on("console", lambda m: self.problems.append(m.text) if m.type == "error" else None)

    def state(self, expression: str) -> Any:
        return self.page.evaluate(f"() => {{ const state = window.gbpn.state; return {expression}; }}")

    def wait(self, condition: str) -> None:
        self.page.wait_for_function(
            f"() => {{ const state = window.gbpn.state; return {condition}; }}", timeout=PATIENCE
        )

    def answered(self) -> None:
        """Until the refined answer for the present points is there."""
        self.wait("state.maps && state.maps.stage === 'last' && !state.computing")

    def open_scene(self, name: str = SCENE) -> None:
        self.page.click(f"[data-scene={name}]")
        self.wait(f"state.picture && state.picture.name === '{name}'")

    def place(self, x: int, y: int) -> tuple[float, float]:
        """Where a pixel is on the screen."""
        box = self.page.locator("#picture").bounding_box()
        width, height = self.state("[state.picture.width, state.picture.height]")
        scale = min(box["width"] / width, box["height"] / height)
        left = box["x"] + (box["width"] - width * scale) / 2
        top = box["y"] + (box["height"] - height * scale) / 2
        return left + (x + 0.5) * scale, top + (y + 0.5) * scale

    def click(self, x: int, y: int) -> None:
        self.page.mouse.click(*self.place(x, y))

    def drag(self, start: tuple[int, int], end: tuple[int, int]) -> None:
        self.page.mouse.move(*self.place(*start))
        self.page.mouse.down()
        self.page.mouse.move(*self.place(*end), steps=4)
        self.page.mouse.up()

    def tab(self, name: str) -> None:
        self.page.click(f"#tab-{name}")

    def map(self, which: str) -> np.ndarray:
        """[H, W] float32 of a map in the page's memory."""
        height, width = self.state("[state.picture.height, state.picture.width]")
        values = self.state(f"Array.from(new Uint32Array({which}.slice().buffer))")
        return np.array(values, np.uint32).view(np.float32).reshape(height, width)

    def points(self) -> list[dict[str, float]]:
        return self.state("state.points")

    def session(self, completer: gbpn.DepthCompleter, scene: str = SCENE) -> Session:
        """What Python says for the same points."""
        sample = scenes.load(scene)
        session = completer.session(sample.image, sample.intrinsics)
        for p in self.points():
            session.add(p["x"], p["y"], np.float32(p["depth"]), np.float32(p["std"]))
        return session

    def saved(self, button: str) -> tuple[str, bytes]:
        with self.page.expect_download(timeout=PATIENCE) as caught:
            self.page.click(button)
        return caught.value.suggested_filename, Path(caught.value.path()).read_bytes()


@pytest.fixture
def screen(browser: Any, studio: Server) -> Iterator[Screen]:
    # wait_for_function evaluates text, which the page's own policy forbids; that policy has a test of its own
    context = browser.new_context(viewport={"width": 1280, "height": 800}, bypass_csp=True)
    screen = Screen(context.new_page())
    screen.page.goto(studio.address.url)
    screen.page.wait_for_selector(".card")
    yield screen
    context.close()
    assert not screen.problems, screen.problems


def same(got: np.ndarray, wanted: np.ndarray) -> None:
    np.testing.assert_allclose(got, wanted, rtol=2e-6, atol=1e-7)


def test_start(screen: Screen, completer: gbpn.DepthCompleter, tmp_path: Path) -> None:
    """A scene by keyboard; then a picture of one's own with its depth, through the file chooser."""
    screen.page.focus("[data-scene=kitchen]")
    screen.page.keyboard.press("Enter")
    screen.wait("state.picture && state.picture.name === 'kitchen'")
    same(screen.map("state.picture.truth"), scenes.load("kitchen").target[0].numpy())
    image = np.random.default_rng(0).integers(0, 256, (60, 90, 3), dtype=np.uint8)
    Image.fromarray(image).save(tmp_path / "mine.png")
    (tmp_path / "mine.csv").write_text("x,y,depth\n10,20,2.5\n70,40,1.25\n")
    screen.page.click("#open-start")
    screen.page.set_input_files("#choose-file", [tmp_path / "mine.png", tmp_path / "mine.csv"])
    screen.wait("state.picture && state.picture.name === 'mine.png'")
    screen.answered()
    assert any("60°" in notice for notice in screen.state("state.picture.notices"))
    session = completer.session(image)
    session.add([10, 70], [20, 40], [2.5, 1.25])
    same(screen.map("state.maps.depth.values"), session.depth)


def test_start_with_a_folder(screen: Screen, completer: gbpn.DepthCompleter, tmp_path: Path) -> None:
    """A sequence with depth and one camera for all; and what is no picture is said on the start itself."""
    folder = tmp_path / "walk"
    folder.mkdir()
    images = np.random.default_rng(1).integers(0, 256, (3, 48, 64, 3), dtype=np.uint8)
    for number, image in enumerate(images):
        Image.fromarray(image).save(folder / f"{number}.png")
        (folder / f"{number}.csv").write_text(f"5,7,{1 + number}\n")
    (folder / "camera.txt").write_text("60 61 31 23\n")
    (tmp_path / "broken.jpg").write_bytes(b"nothing of the kind")
    screen.page.set_input_files("#choose-file", tmp_path / "broken.jpg")
    screen.page.wait_for_selector("#error:not([hidden])")
    assert "not a picture" in screen.page.inner_text("#error-text")
    screen.page.click("#error-close")
    screen.page.set_input_files("#choose-folder", folder)
    for number, move in enumerate(("", "#sequence-on", "PageDown")):
        if move.startswith("#"):
            screen.page.click(move)
        elif move:
            screen.page.focus("#picture")
            screen.page.keyboard.press(move)
        screen.wait(f"state.picture && state.picture.name === '{number}.png' && state.points.length === 1")
        screen.answered()
        assert screen.page.inner_text("#sequence-place") == f"{number + 1} / 3"
        session = completer.session(images[number], [60, 61, 31, 23])
        session.add(5, 7, 1.0 + number)
        same(screen.map("state.maps.depth.values"), session.depth)


def test_measure(screen: Screen, completer: gbpn.DepthCompleter, tmp_path: Path) -> None:
    """Click, type, wheel, drag, keys, delete, undo, redo, noise; a sensor by its slider; import, export."""
    screen.open_scene()
    page = screen.page
    truth = scenes.load(SCENE).target[0].numpy()
    screen.click(100, 100)
    screen.click(200, 60)
    screen.answered()
    assert [(p["x"], p["y"]) for p in screen.points()] == [(100, 100), (200, 60)]
    assert screen.points()[0]["depth"] == truth[100, 100]
    page.fill("#point-depth", "2.5")
    page.fill("#point-noise", "0.2")
    page.press("#point-noise", "Tab")
    assert screen.points()[1] == {"x": 200, "y": 60, "depth": 2.5, "std": 0.2}
    screen.answered()
    same(screen.map("state.maps.depth.values"), screen.session(completer).depth)
    same(screen.map("state.std"), screen.session(completer).std)

    screen.drag((200, 60), (220, 90))
    assert (screen.points()[1]["x"], screen.points()[1]["y"]) == (220, 90)
    page.mouse.wheel(0, -100)
    page.wait_for_timeout(50)
    assert screen.points()[1]["depth"] == pytest.approx(2.5 * 1.01**2)
    page.keyboard.press("ArrowLeft")
    page.keyboard.press("Shift+ArrowDown")
    assert (screen.points()[1]["x"], screen.points()[1]["y"]) == (219, 100)
    page.keyboard.press("-")
    assert screen.points()[1]["depth"] == pytest.approx(2.5 * 1.01)
    page.keyboard.down("Shift")
    screen.drag((219, 100), (219, 80))
    page.keyboard.up("Shift")
    assert screen.points()[1]["depth"] > 2.6
    page.keyboard.type("3.25")  # right after the click: into the field for the depth
    page.keyboard.press("Enter")
    assert screen.points()[1] == {"x": 219, "y": 100, "depth": 3.25, "std": 0.2}
    page.locator("#point-slider").fill("600")
    assert screen.points()[1]["depth"] == pytest.approx(0.05 * 4000**0.6, rel=1e-3)
    page.focus("#picture")
    page.keyboard.press("Escape")
    page.keyboard.press("ArrowRight")
    page.keyboard.press("Enter")  # at the keyboard's own cursor
    assert len(screen.points()) == 3
    page.keyboard.press("Delete")
    assert len(screen.points()) == 2
    page.keyboard.press("Control+z")
    assert len(screen.points()) == 3
    page.keyboard.press("Control+y")
    assert len(screen.points()) == 2
    screen.answered()
    same(screen.map("state.maps.depth.values"), screen.session(completer).depth)

    name, table = screen.saved("#export-points")
    assert name == f"{SCENE}_points.csv"
    (tmp_path / name).write_bytes(table)
    before = screen.points()
    page.click("#clear")
    assert screen.points() == []
    page.set_input_files("#import-file", tmp_path / name)
    screen.wait("state.points.length === 2")
    assert screen.points() == before

    box = page.locator("#pattern-count").bounding_box()
    answers = page.evaluate("window.gbpn.latencies.length")
    page.mouse.move(box["x"] + 0.4 * box["width"], box["y"] + box["height"] / 2)
    page.mouse.down()
    for step in range(200):  # answers while it moves
        page.mouse.move(box["x"] + (0.4 + 0.01 * (step % 20)) * box["width"], box["y"] + box["height"] / 2)
        if page.evaluate("window.gbpn.latencies.length") > answers + 2:
            break
        page.wait_for_timeout(50)
    assert page.evaluate("window.gbpn.latencies.length") > answers + 2
    page.mouse.up()
    page.select_option("#pattern", "corners")
    page.focus("#pattern-count")
    for _ in range(5):
        page.keyboard.press("PageUp")
    wanted = int(page.input_value("#pattern-number"))
    screen.answered()
    screen.wait(f"state.points.length === {wanted} || state.points.length > 100")
    for p in screen.points():
        assert p["depth"] == truth[p["y"], p["x"]]
    same(screen.map("state.maps.depth.values"), screen.session(completer).depth)


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
    from gbpn.show import pictures

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
    page.wait_for_function(f"() => window.gbpn.shownInSpace === {320 * 240}", timeout=PATIENCE)
    page.locator("#space-cut").fill("0.5")
    std = screen.map("state.std").astype(np.float64)
    page.wait_for_function("() => window.gbpn.shownInSpace < 76800", timeout=PATIENCE)
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


def test_phone_dark_policy_and_reconnection(browser: Any, studio: Server) -> None:
    """At phone width nothing is wider than the screen; the page keeps to its own policy; it finds back."""
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
