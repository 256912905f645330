"""Whoever first uses embedded weights that are for research only is told so."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

__all__ = ["TEXT", "is_free", "tell_once"]

TEXT = (
    "the embedded weights `default` of gbpn are for research and evaluation only (the code is MIT): "
    "gbpn info default says what they were trained on; --weights free may be used for anything"
)
_FREE = ("MIT", "CC0", "CC BY 4.0")
_told: list[bool] = []
"""Not empty once this process has said it."""


def is_free(card: Mapping[str, Any]) -> bool:
    """Whether weights with this card may be used for anything, if their makers are named."""
    return str(card.get("licence", "")).startswith(_FREE)


def tell_once(card: Mapping[str, Any]) -> None:
    """Say it on the error stream: once per person, or once per process where nothing can be remembered.

    `GBPN_WEIGHTS_LICENCE=read` in the environment says that it is known, for servers and containers.
    """
    if is_free(card) or _told or os.environ.get("GBPN_WEIGHTS_LICENCE") == "read":
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
