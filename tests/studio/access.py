"""axe-core on a page: what people with a screen reader, a keyboard or weak eyes would stumble over."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

AXE = Path(__file__).resolve().parents[2] / "web" / "node_modules" / "axe-core" / "axe.min.js"
RUN = """async () => {
  const { violations } = await axe.run(document, { resultTypes: ["violations"] });
  const told = ({ id, nodes }) => nodes.map((one) => `${id}: ${one.target} ${one.failureSummary}`);
  return violations.flatMap(told);
}"""
TABS = ("measure", "see", "space", "next", "understand", "take")


def require_axe() -> None:
    if not AXE.is_file():
        pytest.skip("needs `npm ci` in web/")


def stumbles(page: Any) -> list[str]:
    """What axe finds in what is shown now, in light and in dark."""
    if not page.evaluate("typeof axe === 'object'"):
        page.evaluate(AXE.read_text(encoding="utf-8"))
    found = []
    for theme in ("light", "dark"):
        page.emulate_media(color_scheme=theme, reduced_motion="reduce")
        page.wait_for_timeout(200)
        found += [f"{theme}: {text}" for text in page.evaluate(RUN)]
    return found


def stumbles_everywhere(screen: Any) -> str:
    """On the start and in all activities of a scene with points, line by line."""
    page = screen.page
    page.wait_for_selector(".card")
    found = {"start": stumbles(page)}
    screen.open_scene()
    screen.click(90, 100)
    screen.answered()
    for tab in TABS:
        if page.is_hidden(f"#tab-{tab}"):
            continue
        screen.tab(tab)
        found[tab] = stumbles(page)
    screen.tab("measure")
    page.click("[data-tool=line]")
    screen.drag((20, 60), (280, 160))
    found["profile"] = stumbles(page)
    return "\n".join(f"{name}, {text}" for name, texts in found.items() for text in texts)
