"""The doors in Python: `DepthCompleter` for what people have, `Live` for robots."""

from gbpn.predict.completer import DepthCompleter

__all__ = ["DepthCompleter"]
