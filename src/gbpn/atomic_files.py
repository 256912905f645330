"""Files that appear whole or not at all: written beside their place, then renamed into it."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from gbpn.errors import WriteError

__all__ = ["PARTIAL", "replacing", "write_bytes", "write_text"]

PARTIAL = ".gbpn-partial-"
"""What the names of unfinished files begin with; one that is left over belongs to a run that was killed."""


@contextmanager
def replacing(path: str | os.PathLike[str], *, durable: bool = False) -> Iterator[Path]:
    """A temporary path in the same folder that becomes `path` if the block succeeds, and goes if it fails.

    What the system refuses (no space, no permission, a folder in the way) is a `WriteError`.

    durable  wait until the contents are on the disk before the name points to them: survives a power cut
    """
    path = Path(path)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, name = tempfile.mkstemp(dir=path.parent, prefix=PARTIAL, suffix=path.suffix)
        os.close(handle)
        try:
            yield Path(name)
            if durable:
                _to_disk(name)
            os.chmod(name, 0o666 & ~_mask())  # mkstemp makes private files; an output is an ordinary one
            os.replace(name, path)
        except BaseException:
            Path(name).unlink(missing_ok=True)
            raise
    except WriteError:
        raise
    except OSError as error:
        raise WriteError(f"{path}: cannot be written ({error.strerror or error})") from error


def write_bytes(path: str | os.PathLike[str], data: bytes, *, durable: bool = False) -> Path:
    """The whole contents of a file."""
    with replacing(path, durable=durable) as temporary:
        temporary.write_bytes(data)
    return Path(path)


def write_text(path: str | os.PathLike[str], text: str, *, durable: bool = False) -> Path:
    """The same for text, UTF-8."""
    return write_bytes(path, text.encode(), durable=durable)


def _to_disk(name: str) -> None:
    handle = os.open(name, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _mask() -> int:
    """The permissions that new files of this process do not get."""
    mask = os.umask(0)
    os.umask(mask)
    return mask
