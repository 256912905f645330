"""Badges as files of the repository: they show without asking another server."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / "docs" / "images" / "badges"
GREEN, BLUE, ORANGE = "#2f7d4f", "#0b6bcb", "#b3541e"
LETTER, PAD, HEIGHT = 6.6, 8, 20
"""Pixels: width of a letter, left and right of words, height."""


def badges() -> dict[str, tuple[str, str, str]]:
    """File name → (left, right, colour), from what the project's files say."""
    project = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    version = re.search(r'^version = "(\S+)"', project, flags=re.MULTILINE)
    minors = re.findall(r"Python :: 3\.(\d+)", project)
    stated = re.search(
        r"\*\*(\d+) %\*\* of the lines", (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    )
    assert version is not None
    assert stated is not None
    return {
        "version": ("version", version[1], BLUE),
        "python": ("python", f"3.{minors[0]} – 3.{minors[-1]}", BLUE),
        "code": ("code", "MIT", GREEN),
        "weights": ("weights", "research only", ORANGE),
        "types": ("mypy", "strict", GREEN),
        "coverage": ("lines tested", f"{stated[1]} %", GREEN),
    }


def write() -> None:
    FOLDER.mkdir(parents=True, exist_ok=True)
    for name, parts in badges().items():
        (FOLDER / f"{name}.svg").write_text(svg(*parts), encoding="utf-8")


def svg(left: str, right: str, colour: str) -> str:
    """Two words side by side."""
    widths = [round(len(word) * LETTER + 2 * PAD) for word in (left, right)]
    total = sum(widths)
    text = 'font-family="Verdana,DejaVu Sans,sans-serif" font-size="11" fill="#fff" text-anchor="middle"'
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{total}" height="{HEIGHT}" role="img" '
        f'aria-label="{left}: {right}"><clipPath id="r">'
        f'<rect width="{total}" height="{HEIGHT}" rx="4"/></clipPath>'
        f'<g clip-path="url(#r)"><rect width="{widths[0]}" height="{HEIGHT}" fill="#3a3f47"/>'
        f'<rect x="{widths[0]}" width="{widths[1]}" height="{HEIGHT}" fill="{colour}"/></g><g {text}>'
        f'<text x="{widths[0] / 2}" y="14">{left}</text>'
        f'<text x="{widths[0] + widths[1] / 2}" y="14">{right}</text>'
        "</g></svg>\n"
    )
