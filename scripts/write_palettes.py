"""The palettes of `gbpn.pictures` as web/src/palettes.ts, so that page and previews show the same colours.

python scripts/write_palettes.py
"""

from __future__ import annotations

import base64
from pathlib import Path

import numpy as np

from gbpn import pictures

ENTRIES = 256
TARGET = Path(__file__).resolve().parents[1] / "web" / "src" / "palettes.ts"
PALETTES = {"depth": pictures.DEPTH, "confidence": pictures.CONFIDENCE, "error": pictures.ERROR}


def table(palette: str) -> str:
    """All entries as base64 of RGB bytes."""
    values = (np.arange(ENTRIES) + 0.5)[None] / ENTRIES
    return base64.b64encode(pictures.colours(values, 0.0, 1.0, palette).tobytes()).decode("ascii")


def module() -> str:
    """The TypeScript file."""
    lines = ["// Written by scripts/write_palettes.py: the colours of the previews, 256 RGB entries each.", ""]
    lines += [f'export const {name.upper()} =\n  "{table(palette)}";' for name, palette in PALETTES.items()]
    red, green, blue = pictures.UNKNOWN
    lines.append(f"export const UNKNOWN: readonly [number, number, number] = [{red}, {green}, {blue}];")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    TARGET.write_text(module(), encoding="utf-8")
