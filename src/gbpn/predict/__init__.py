"""The doors in Python: `DepthCompleter` for what people have, `Live` for robots."""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from gbpn.predict.completer import DepthCompleter

__all__ = ["DepthCompleter"]

_HOMES = {"DepthCompleter": "completer"}
"""In which module a name lives; loaded when it is asked for, and torch with it."""


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        return getattr(importlib.import_module(f"gbpn.predict.{_HOMES[name]}"), name)
    raise AttributeError(f"module 'gbpn.predict' has no attribute {name!r}")
