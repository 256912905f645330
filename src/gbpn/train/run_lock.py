"""One process at a time per run folder."""

from __future__ import annotations

import os
import platform
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from gbpn.errors import TrainingError

try:
    import fcntl
except ImportError:  # systems without it have no lock
    fcntl = None  # type: ignore[assignment]

__all__ = ["LOCK", "locked"]

LOCK = ".running"
"""Name of the file whose lock says that a run goes on; it holds the process and its machine."""


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Hold the folder, or say who does. When a process dies, however it does, the system frees its lock.

    Of POSIX's kind, which the processes that load data do not inherit.
    """
    folder.mkdir(parents=True, exist_ok=True)
    handle = os.open(folder / LOCK, os.O_RDWR | os.O_CREAT, 0o666)
    try:
        _take(handle, folder)
        os.ftruncate(handle, 0)
        os.write(handle, f"process {os.getpid()} on {platform.node()}".encode())
        yield
        os.ftruncate(handle, 0)
    finally:
        os.close(handle)


def _take(handle: int, folder: Path) -> None:
    if fcntl is None:
        return
    try:
        fcntl.lockf(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        holder = os.read(handle, 200).decode(errors="replace") or "another process"
        raise TrainingError(
            f"{folder} is in use: {holder} trains there; wait for it, stop it, or choose another --out"
        ) from error
