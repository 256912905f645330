"""The frame of every page that is written: one file, readable offline, pictures inside."""

from __future__ import annotations

import base64
from html import escape

__all__ = ["document", "embedded"]

_BASE = """
:root { --ink: #1c2024; --faint: #687076; --line: #e3e6e8; --accent: #0b68cb; --paper: #fff; }
body { font: 15px/1.5 system-ui, sans-serif; color: var(--ink); background: var(--paper);
  margin: 32px auto; padding: 0 20px; max-width: 1240px; }
h1 { font-size: 24px; } h2 { font-size: 18px; margin-top: 36px; }
img { max-width: 100%; height: auto; } code, pre { font-size: 13px; }
"""


def document(title: str, body: str, *, style: str = "", script: str = "") -> str:
    """A whole HTML document; `style` is added to what all pages share."""
    scripts = f"<script>{script}</script>\n" if script else ""
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{escape(title)}</title><style>{_BASE}{style}</style></head>\n"
        f"<body>\n{body}\n{scripts}</body></html>\n"
    )


def embedded(data: bytes, kind: str = "png") -> str:
    """The address of a picture that lies inside the page itself."""
    return f"data:image/{kind};base64,{base64.b64encode(data).decode('ascii')}"
