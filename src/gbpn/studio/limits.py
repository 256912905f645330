"""What one page, and all pages together, may ask of the machine."""

from __future__ import annotations

import os
from dataclasses import dataclass, field

__all__ = ["Limits"]


@dataclass(frozen=True, kw_only=True)
class Limits:
    """Bounds of a server. Uploads are held against them before anything is decoded."""

    upload_bytes: int = 32_000_000
    """Of one message or request: picture and depth together."""
    megapixels: float = 60.0
    """Of an uploaded picture or depth map, by its header."""
    working_pixels: int = 640 * 480
    """Larger pictures are reduced to this many pixels, and the page says so."""
    points: int = 20_000
    """Measurements of a page; a depth map with more is kept as the map that points are taken from."""
    pages: int = 128
    """Connections at a time; further ones are refused with a reason."""
    kept_pixels: int = 8 * 320 * 240
    """Of pages whose drawn fields stay in memory, 1.3 KB a pixel; others are drawn again when used."""
    workers: int = field(default_factory=lambda: max(1, min(4, os.cpu_count() or 1)))
    """Computations at a time; others wait and are told."""
    waiting: int = 32
    """Requests of one page that may wait; more are refused."""
    idle_seconds: float = 1800.0
    """Without a word from it, a page's connection ends."""
