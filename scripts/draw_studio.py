"""Photograph the studio in Chromium: the pictures of docs/studio.md.

python scripts/draw_studio.py [FOLDER]      FOLDER: docs/images/studio unless told otherwise

Each picture is a visit of its own, done as a person would do it: a scene, points, a tool, a theme.
"""

from __future__ import annotations

import io
import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from measure_studio import FLAGS, server
from PIL import Image

FOLDER = Path(__file__).resolve().parents[1] / "docs" / "images" / "studio"
DESK, PHONE = {"width": 1280, "height": 800}, {"width": 390, "height": 844}
GAP = 16
"""Pixels between pictures of a phone."""
LIGHT = (246, 248, 252)


def _until(page: Any, condition: str) -> None:
    page.wait_for_function(f"() => {{ const state = window.gbpn.state; return {condition}; }}")


def _answered(page: Any) -> None:
    _until(page, "state.maps && state.maps.stage === 'last' && !state.computing")


def _place(page: Any, x: int, y: int) -> tuple[float, float]:
    """Where a pixel of the picture is on the screen."""
    box = page.locator("#picture").bounding_box()
    width, height = page.evaluate("[window.gbpn.state.picture.width, window.gbpn.state.picture.height]")
    scale = min(box["width"] / width, box["height"] / height)
    left, top = box["x"] + (box["width"] - width * scale) / 2, box["y"] + (box["height"] - height * scale) / 2
    return left + (x + 0.5) * scale, top + (y + 0.5) * scale


def _open(page: Any, scene: str, points: int) -> None:
    """A scene with random points."""
    page.click(f"[data-scene={scene}]")
    _until(page, "state.picture !== null")
    page.fill("#pattern-number", str(points))
    page.press("#pattern-number", "Tab")
    _answered(page)


def gallery(page: Any) -> None:
    page.wait_for_timeout(500)


def measure(page: Any) -> None:
    _open(page, "kitchen", 40)
    page.mouse.click(*_place(page, 95, 150))
    _answered(page)
    page.locator("#point-place").scroll_into_view_if_needed()
    page.mouse.move(*_place(page, 170, 142))


def profile(page: Any) -> None:
    _open(page, "living_room", 60)
    page.click("[data-tool=line]")
    page.wait_for_selector("#profile-hint", state="visible")
    page.mouse.move(*_place(page, 12, 150))
    page.mouse.down()
    page.mouse.move(*_place(page, 308, 128), steps=5)
    page.mouse.up()
    page.mouse.move(*_place(page, 200, 100))


def space(page: Any) -> None:
    _open(page, "living_room", 120)
    page.click("#tab-space")
    page.wait_for_function("() => window.gbpn.shownInSpace > 0")
    box = page.locator("#space").bounding_box()
    x, y = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
    page.mouse.move(x, y)
    page.mouse.down()
    page.mouse.move(x + 0.05 * box["width"], y + 0.03 * box["height"], steps=4)
    page.mouse.up()
    page.wait_for_timeout(800)


def film(page: Any) -> None:
    _open(page, "bedroom", 50)
    page.click("#tab-understand")
    page.click("#film-play")
    _until(page, "state.overlay && state.overlay.kind === 'film'")
    page.locator("#film-scrub").fill("1")
    page.mouse.move(2, 2)


def dark(page: Any) -> None:
    _open(page, "street", 300)
    page.click("#tab-see")
    page.check("#layer-std", force=True)
    page.check("#split")
    page.mouse.move(*_place(page, 100, 100))


DESKS: dict[str, tuple[str, Callable[[Any], None]]] = {
    "gallery": ("light", gallery),
    "measure": ("light", measure),
    "profile": ("light", profile),
    "space": ("dark", space),
    "film": ("light", film),
    "dark": ("dark", dark),
}
PHONES = (("light", gallery), ("light", measure), ("dark", space))


def main(folder: Path = FOLDER) -> None:
    from playwright.sync_api import sync_playwright

    folder.mkdir(parents=True, exist_ok=True)
    flags = [*FLAGS, "--enable-unsafe-swiftshader"]
    with server() as (port, _), sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=flags)

        def photograph(act: Callable[[Any], None], theme: str, **options: Any) -> Image.Image:
            context = browser.new_context(color_scheme=theme, bypass_csp=True, **options)
            page = context.new_page()
            page.set_default_timeout(120_000)
            page.goto(f"http://127.0.0.1:{port}/")
            page.wait_for_selector(".card")
            act(page)
            page.wait_for_timeout(400)
            taken = Image.open(io.BytesIO(page.screenshot())).convert("RGB")
            context.close()
            return taken

        for name, (theme, act) in DESKS.items():
            photograph(act, theme, viewport=DESK).save(folder / f"{name}.jpg", quality=82)
        phones = [
            photograph(act, theme, viewport=PHONE, device_scale_factor=1.5, is_mobile=True, has_touch=True)
            for theme, act in PHONES
        ]
        browser.close()
    width, height = phones[0].size
    sheet = Image.new("RGB", (len(phones) * (width + GAP) + GAP, height + 2 * GAP), LIGHT)
    for number, phone in enumerate(phones):
        sheet.paste(phone, (GAP + number * (width + GAP), GAP))
    sheet.save(folder / "phone.jpg", quality=82)


if __name__ == "__main__":
    main(*(Path(word) for word in sys.argv[1:2]))
