"""Who computes: one model under one `How`, for single frames, sessions and streams; all doors come here."""

from gbpn.engine.engine import Engine

__all__ = ["Engine"]
