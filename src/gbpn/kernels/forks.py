"""Processes that were forked: the threads of their parent are gone, and waiting for them would never end."""

from __future__ import annotations

import os

__all__ = ["safe_after_fork"]

_forked = False


def _note() -> None:
    global _forked
    _forked = True


def safe_after_fork() -> None:
    """In a forked process, compute with one thread from now on; those of the parent were not copied."""
    global _forked
    if not _forked:
        return
    _forked = False
    import torch

    torch.set_num_threads(1)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_note)
