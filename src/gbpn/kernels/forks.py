"""Forked processes: the threads of their parent are not copied, and waiting for them would never end."""

from __future__ import annotations

import os
from functools import cache

import torch

__all__ = ["one_thread_after_fork"]


@cache
def one_thread_after_fork() -> None:
    """From now on a forked process computes with one thread, as torch's own loaders do."""
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(after_in_child=_one_thread)


def _one_thread() -> None:
    if torch.get_num_threads() > 1:
        torch.set_num_threads(1)
