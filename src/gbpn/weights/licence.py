"""Whoever uses the embedded weights for the first time is told that they are for research."""

from __future__ import annotations

import os
import sys
from pathlib import Path

__all__ = ["TEXT", "tell_once"]

TEXT = (
    "the embedded weights of gbpn are for research and evaluation only (the code is MIT): "
    "gbpn info default says what they were trained on"
)
_told: list[bool] = []
"""Not empty once this process has said it."""


def tell_once() -> None:
    """Say it on the error stream: once per person, or once per process where nothing can be remembered.

    `GBPN_WEIGHTS_LICENCE=read` in the environment says that it is known, for servers and containers.
    """
    if _told or os.environ.get("GBPN_WEIGHTS_LICENCE") == "read":
        return
    _told.append(True)
    mark = _memory()
    try:
        mark.parent.mkdir(parents=True, exist_ok=True)
        mark.touch(exist_ok=False)
    except FileExistsError:
        return
    except OSError:
        pass
    print(f"note: {TEXT}", file=sys.stderr)


def _memory() -> Path:
    """An empty file in the user's cache; without it, the note comes again."""
    folder = os.environ.get("XDG_CACHE_HOME") or os.environ.get("LOCALAPPDATA")
    return Path(folder or os.path.expanduser("~/.cache")) / "gbpn" / "told-licence-of-weights"
