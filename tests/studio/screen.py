"""A page in a real browser, and what a person does with it."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import numpy as np

import gbpn
from gbpn import scenes
from gbpn.engine.session import Session

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
FLAGS = [
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-background-networking",
    "--disable-component-update", "--disable-sync", "--enable-unsafe-swiftshader",
]  # fmt: skip
PATIENCE = 90_000
"""Milliseconds: a busy machine may take its time."""
SCENE = "bedroom"


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


def same(got: np.ndarray, wanted: np.ndarray) -> None:
    np.testing.assert_allclose(got, wanted, rtol=2e-6, atol=1e-7)
