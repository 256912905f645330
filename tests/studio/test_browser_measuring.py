"""Start and Measure in a real browser, with mouse and keyboard, held against Python."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from screen import SCENE, Screen, same

import gbpn
from gbpn import scenes


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
