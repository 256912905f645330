"""Depth completion at the NumPy and PIL border: anything in, metres and sigmas out."""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from gbpn.predict.completed import CompletedDepth
    from gbpn.predict.completer import DepthCompleter

__all__ = ["CompletedDepth", "DepthCompleter"]

_HOMES = {"CompletedDepth": "completed", "DepthCompleter": "completer"}
"""In which module a name lives; loaded when it is asked for, and torch with it."""


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        return getattr(importlib.import_module(f"gbpn.predict.{_HOMES[name]}"), name)
    raise AttributeError(f"module 'gbpn.predict' has no attribute {name!r}")
