"""Memory that the programs of this package free stays with them.

Maps of one frame go back to the system and come again as fresh pages for the next, up to a tenth of a call. A
library must not decide that for the program that it is in; these programs are ours.
"""

from __future__ import annotations

import ctypes
import sys

__all__ = ["keep_freed_memory"]

_MALLOPT = {-1: 1 << 29, -3: 1 << 25}
"""M_TRIM_THRESHOLD and M_MMAP_THRESHOLD of malloc.h, in bytes: so much is kept, and single blocks are up to
the most that glibc takes."""


def keep_freed_memory() -> bool:
    """Let this process keep what it frees; whether that could be asked for."""
    if not sys.platform.startswith("linux"):
        return False
    try:
        mallopt = ctypes.CDLL(None).mallopt  # of glibc; others do without
    except (AttributeError, OSError):
        return False
    taken = {option: bool(mallopt(option, most)) for option, most in _MALLOPT.items()}
    return all(taken.values())
