"""One float channel as OpenEXR: scan lines, not compressed, which every reader knows."""

from __future__ import annotations

import struct

import numpy as np

__all__ = ["exr"]

_MAGIC, _VERSION = 20000630, 2
_FLOAT = 2
"""Pixel type of 32-bit floating point."""


def exr(values: np.ndarray, channel: str = "Z") -> bytes:
    """The file of [H, W] float32; not finite numbers stay what they are."""
    height, width = values.shape
    window = struct.pack("<4i", 0, 0, width - 1, height - 1)
    channels = channel.encode() + b"\0" + struct.pack("<iB3xii", _FLOAT, 0, 1, 1) + b"\0"
    attributes = (
        ("channels", "chlist", channels),
        ("compression", "compression", b"\0"),
        ("dataWindow", "box2i", window),
        ("displayWindow", "box2i", window),
        ("lineOrder", "lineOrder", b"\0"),
        ("pixelAspectRatio", "float", struct.pack("<f", 1)),
        ("screenWindowCenter", "v2f", struct.pack("<2f", 0, 0)),
        ("screenWindowWidth", "float", struct.pack("<f", 1)),
    )
    header = struct.pack("<2i", _MAGIC, _VERSION)
    for name, kind, content in attributes:
        header += name.encode() + b"\0" + kind.encode() + b"\0" + struct.pack("<i", len(content)) + content
    header += b"\0"
    line = 8 + 4 * width
    first = len(header) + 8 * height  # after the table of where each line starts
    table: bytes = (first + line * np.arange(height, dtype="<u8")).tobytes()
    lines = np.empty(height, dtype=[("row", "<i4"), ("size", "<i4"), ("pixels", "<f4", (width,))])
    lines["row"], lines["size"], lines["pixels"] = np.arange(height), 4 * width, values
    return header + table + lines.tobytes()
