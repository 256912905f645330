"""Who made what drawn worlds are made of, kept beside weights that were trained on them."""

from __future__ import annotations

from pathlib import Path

from gbpn.files.atomic import write_text

__all__ = ["CREDITS", "write_credits"]

CREDITS = "CREDITS.md"


def write_credits(data: Path, folder: Path) -> Path | None:
    """One CREDITS.md in `folder` of those of the scenes in `data`; None and no file where none has any."""
    found = [path for depth in ("", "*/", "*/*/") for path in sorted(data.glob(f"{depth}{CREDITS}"))]
    if not found:
        return None
    parts = [path.read_text(encoding="utf-8").strip() for path in found]
    return write_text(folder / CREDITS, "\n\n".join(parts) + "\n")
