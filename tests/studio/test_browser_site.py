"""The studio without a server, in a real browser from a plain file server, held against Python."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hosting import ISOLATION, Host, hosting
from screen import PATIENCE, SCENE, Screen

import gbpn
import gbpn.runtime
from gbpn import scenes
from gbpn.errors import InputError
from gbpn.studio.site import MOST_BYTES, write_site

METRES, MOST_METRES = 1e-3, 2e-2
"""How far depth and sigma may be from those of `gbpn.runtime` with the same networks, and single pixels …"""
FEW = 1e-3
"""… which are this share at most: at edges roundings of another compiler grow from pixel to pixel."""
READY = "() => window.gbpn && window.gbpn.state.connection === 'open' && document.querySelector('.card')"
ENGINE = ("engine/runtime.wasm.gz", "engine/core.wasm", "networks/first.onnx")


@pytest.fixture
def host(site: Path) -> Iterator[Host]:
    with hosting(site) as one:
        yield one


@pytest.fixture
def visit(browser: Any) -> Iterator[Callable[..., Screen]]:
    """A visitor without a past; every file and every policy is as published."""
    opened = []

    def visited(host: Host, **how: Any) -> Screen:
        context = browser.new_context(viewport={"width": 1280, "height": 800}, **how)
        opened.append(context)
        screen = Waiting(context.new_page())
        screen.page.goto(host.url)
        return screen

    yield visited
    for context in opened:
        context.close()


class Waiting(Screen):  # type: ignore[misc]  # imported by bare name, which is Any to mypy
    """Waits without evaluating text in the page, which its policy forbids."""

    def wait(self, condition: str) -> None:
        for _ in range(PATIENCE // 50):
            if self.state(f"Boolean({condition})"):
                return
            self.page.wait_for_timeout(50)
        raise AssertionError(f"never came: {condition}; {self.state('[state.reason, state.error]')}")

    def take(self, pattern: str, count: int) -> None:
        """Let the scene be measured."""
        self.page.select_option("#pattern", pattern)
        self.page.fill("#pattern-number", str(count))
        self.page.press("#pattern-number", "Enter")
        self.page.press("#pattern-number", "Tab")
        self.wait(f"state.points.length > {count // 2} && state.points.length <= {count} && state.computing")
        self.answered()

    def sparse(self) -> np.ndarray:
        """[H, W] metres of the page's points."""
        height, width = self.state("[state.picture.height, state.picture.width]")
        out = np.zeros((height, width), np.float32)
        for p in self.points():
            out[int(p["y"]), int(p["x"])] = p["depth"]
        return out


def frame(name: str = SCENE) -> tuple[np.ndarray, np.ndarray]:
    sample = scenes.load(name)
    return (sample.image * 255).round().byte().permute(1, 2, 0).numpy(), sample.intrinsics.numpy()


def held_against_python(screen: Waiting, site: Path) -> None:
    """What the page shows is what the runtime says of the same points."""
    image, camera = frame()
    completer = gbpn.runtime.DepthCompleter(site / "networks", engine="onnxruntime", threads=1)
    wanted = completer(image, screen.sparse(), camera)
    maps = {"maps.depth.values": wanted.depth, "std": wanted.std, "confidence": wanted.confidence}
    for which, values in maps.items():
        apart = np.abs(screen.map(f"state.{which}") - values)
        assert np.mean(apart > METRES) <= FEW, which
        assert np.max(apart) <= MOST_METRES, which


def test_a_site_is_whole_small_and_its_own(site: Path, tmp_path: Path) -> None:
    assert sum(path.stat().st_size for path in site.rglob("*") if path.is_file()) <= MOST_BYTES
    assert {"weights.md", "scenes.md", "licences.txt", "site.json"} <= {path.name for path in site.iterdir()}
    (tmp_path / "mine.txt").write_text("mine")
    with pytest.raises(InputError, match="something else"):
        write_site(tmp_path)
    assert (tmp_path / "mine.txt").read_text() == "mine"


def test_first_visit_second_visit_and_none(host: Host, site: Path, visit: Callable[..., Waiting]) -> None:
    """With the keyboard; nothing is asked of other hosts; then from the cache; then without a network."""
    screen = visit(host)
    asked: list[str] = []
    screen.page.on("request", lambda request: asked.append(request.url))
    screen.page.wait_for_selector(f"[data-scene={SCENE}]")
    screen.page.focus(f"[data-scene={SCENE}]")
    screen.page.keyboard.press("Enter")
    screen.wait("state.picture")
    for key in ("ArrowRight", "Enter", "Escape", "Shift+ArrowDown", "Enter"):
        screen.page.keyboard.press(key)
    screen.answered()
    first = screen.map("state.maps.depth.values")
    assert len(screen.points()) == 2
    assert np.isfinite(first).all()
    screen.page.wait_for_timeout(500)  # it is kept a moment later
    assert all(url.startswith((host.url, "blob:", "data:")) for url in asked)
    assert all(host.sent[name] for name in ENGINE)
    screen.wait("navigator.serviceWorker.controller")
    for network in (True, False):
        if not network:
            host.stop()
        host.sent.clear()
        screen.page.reload()
        screen.wait("state.points.length === 2")  # nothing is lost
        screen.answered()
        np.testing.assert_allclose(screen.map("state.maps.depth.values"), first, atol=METRES)
        assert not [name for name in host.sent if name in ENGINE or name.endswith(".onnx")]
    assert not screen.problems


def again(screen: Waiting) -> None:
    screen.page.wait_for_selector(f"[data-scene={SCENE}]")
    screen.page.click(f"[data-scene={SCENE}]")
    screen.wait("state.picture")
    screen.click(100, 100)
    screen.answered()


@pytest.mark.parametrize("headers", [{}, ISOLATION], ids=["plain", "isolated"])
def test_answers_are_those_of_python(
    site: Path, visit: Callable[..., Waiting], headers: dict[str, str]
) -> None:
    with hosting(site, headers) as host:
        screen = visit(host)
        screen.page.wait_for_selector(f"[data-scene={SCENE}]")
        assert screen.page.evaluate("crossOriginIsolated") is bool(headers)
        screen.open_scene()
        for pattern, count in (("points", 12), ("lidar", 300), ("tof", 64)):
            screen.take(pattern, count)
            held_against_python(screen, site)
        assert not screen.problems


def test_mouse_and_what_is_inside(host: Host, visit: Callable[..., Waiting]) -> None:
    """A wrong point is found, the film ends with the answer, a file is the map."""
    completer = gbpn.DepthCompleter.from_pretrained(device="cpu", precision="float32")
    screen = visit(host)
    screen.page.wait_for_selector(f"[data-scene={SCENE}]")
    screen.open_scene()
    screen.take("points", 18)
    screen.click(160, 120)
    screen.page.fill("#point-depth", "40")
    screen.page.press("#point-depth", "Tab")
    screen.answered()
    screen.tab("understand")
    screen.page.click("#outlier-find")
    screen.wait("state.outliers.length > 0")
    found = screen.state("state.outliers")
    assert (found[0]["x"], found[0]["y"]) == (160, 120)
    expected = screen.session(completer).outliers()
    assert [(one["x"], one["y"]) for one in found] == [(one.x, one.y) for one in expected]
    assert found[0]["expected"] == pytest.approx(expected[0].expected, rel=1e-3)
    screen.page.click("#outlier-drop")
    screen.wait(f"state.points.length === {19 - len(found)}")
    screen.answered()
    screen.page.click("#film-play")
    screen.wait("state.overlay && state.overlay.kind === 'film'")
    last = int(screen.page.get_attribute("#film-scrub", "max"))
    screen.page.locator("#film-scrub").fill(str(last))
    answer = screen.map("state.maps.depth.values")
    np.testing.assert_allclose(screen.map("state.overlay.values"), answer, rtol=1e-5)
    screen.tab("take")
    name, content = screen.saved("[data-export='depth.npy']")
    assert name == f"{SCENE}_depth.npy"
    assert np.array_equal(np.frombuffer(content[-answer.nbytes :], "<f4").reshape(answer.shape), answer)
    assert screen.page.is_hidden("#tab-next")
    assert not screen.problems


def test_touch(host: Host, visit: Callable[..., Waiting]) -> None:
    screen = visit(host, has_touch=True, is_mobile=True)
    screen.page.wait_for_selector(f"[data-scene={SCENE}]")
    screen.page.tap(f"[data-scene={SCENE}]")
    screen.wait("state.picture")
    screen.page.touchscreen.tap(*screen.place(90, 100))
    screen.answered()
    assert [(p["x"], p["y"]) for p in screen.points()] == [(90, 100)]


def test_a_browser_without_webassembly_is_told(host: Host, browser: Any) -> None:
    context = browser.new_context()
    context.add_init_script("delete window.WebAssembly")
    page = context.new_page()
    page.goto(host.url)
    page.wait_for_selector("#start .wake:visible")
    assert "WebAssembly switched off" in page.inner_text("#start-status")
    context.close()


@pytest.mark.parametrize("fault", ["cut", "changed"])
def test_a_download_that_fails_can_be_tried_again(
    host: Host, visit: Callable[..., Waiting], fault: str
) -> None:
    if fault == "cut":
        host.cut["networks/first.onnx"] = 1_000_000
    else:
        host.changed.add("networks/first.onnx")
    screen = visit(host)
    screen.page.wait_for_selector("#start .wake:visible")
    wanted = "download was cut" if fault == "cut" else "checksum differs"
    assert wanted in screen.page.inner_text("#start-status")
    whole = host.sent["networks/second.onnx"]
    host.cut.clear()
    host.changed.clear()
    screen.page.click("#start .wake:visible")
    again(screen)
    assert host.sent["networks/second.onnx"] == whole  # what had come was kept


def test_full_storage_is_told_and_does_not_matter(host: Host, browser: Any) -> None:
    context = browser.new_context(viewport={"width": 1280, "height": 800})
    screen = Waiting(context.new_page())
    session = context.new_cdp_session(screen.page)
    session.send(
        "Storage.overrideQuotaForOrigin", {"origin": host.url.split("/some")[0], "quotaSize": 2_000_000}
    )
    screen.page.goto(host.url)
    again(screen)
    screen.wait("/storage is full/.test(document.getElementById('error-text').textContent + state.error)")
    context.close()
