"""Decoded files kept, so that an epoch reads what the first one decoded: in memory, or mapped from a folder.

A folder serves any number of processes and runs at once, and survives them; its pages lie once in memory.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from pathlib import Path

import numpy as np

from gbpn.errors import DatasetError
from gbpn.files.atomic import replacing

__all__ = ["Decoded"]


class Decoded:
    """Arrays by the path of the file that they were decoded from."""

    def __init__(self, folder: Path | None = None) -> None:
        """`folder`: where arrays are written; None keeps them in memory."""
        self.folder = folder
        self._kept: dict[Path, np.ndarray] = {}
        self._files: dict[Path, Path] = {}

    def of(self, path: Path, decode: Callable[[], np.ndarray]) -> np.ndarray:
        """What `decode` made of the file at `path` when it was last new."""
        if self.folder is None:
            if path not in self._kept:
                self._kept[path] = decode()
            return self._kept[path]
        if path not in self._files:
            self._files[path] = self._written(self.folder, path, decode)
        return np.asarray(np.load(self._files[path], mmap_mode="r"))

    @staticmethod
    def _written(folder: Path, path: Path, decode: Callable[[], np.ndarray]) -> Path:
        """The file that holds what is decoded; made where it is not there."""
        place = path.resolve()
        try:
            state = place.stat()
        except OSError as error:
            raise DatasetError(f"{path} cannot be read: {error}") from error
        # a file that changes gets another name: nothing stale is ever read
        key = hashlib.sha256(f"{place} {state.st_size} {state.st_mtime_ns}".encode()).hexdigest()[:32]
        kept = folder / key[:2] / f"{key}.npy"
        if not kept.is_file():
            array = decode()
            with replacing(kept) as new:
                np.save(new, array)
        return kept
