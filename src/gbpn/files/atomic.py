"""Files that appear whole or not at all: written beside their place, then renamed into it."""

from __future__ import annotations

import os
import platform
import shutil
import tempfile
import time
import zlib
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from gbpn.errors import WriteError

__all__ = [
    "PARTIAL",
    "checksum",
    "hidden_folder",
    "remove_leftovers",
    "replacing",
    "to_disk",
    "write_bytes",
    "write_text",
]

PARTIAL = ".gbpn-partial-"
"""What the names of unfinished files begin with; next comes the process they belong to."""
_CHUNK = 1 << 20
"""Bytes that are read at a time."""
_FORGOTTEN = 24 * 3600.0
"""Seconds after which an unfinished file of another machine counts as left over."""


@contextmanager
def replacing(path: str | os.PathLike[str], *, durable: bool = False) -> Iterator[Path]:
    """A temporary path in the same folder that becomes `path` if the block succeeds, and goes if it fails.

    What the system refuses (no space, no permission, a folder in the way) is a `WriteError`.

    durable  wait until the contents are on the disk before the name points to them: survives a power cut
    """
    path = Path(path)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, name = tempfile.mkstemp(dir=path.parent, prefix=_own_prefix(), suffix=path.suffix)
        os.close(handle)
        try:
            yield Path(name)
            if durable:
                to_disk(name)
            os.chmod(name, 0o666 & ~_mask())  # mkstemp makes private files; an output is an ordinary one
            os.replace(name, path)
            if durable:
                to_disk(path.parent)
        except BaseException:
            Path(name).unlink(missing_ok=True)
            raise
    except WriteError:
        raise
    except OSError as error:
        problem = WriteError(f"{path}: cannot be written ({error.strerror or error})")
        problem.errno = error.errno  # a full disk is told from a frame that is at fault
        raise problem from error


@contextmanager
def hidden_folder(parent: str | os.PathLike[str]) -> Iterator[Path]:
    """A temporary folder inside `parent`, gone in any case: files are moved out of it when all are made."""
    with tempfile.TemporaryDirectory(dir=parent, prefix=_own_prefix()) as name:
        yield Path(name)


def write_bytes(path: str | os.PathLike[str], data: bytes, *, durable: bool = False) -> Path:
    """The whole contents of a file."""
    with replacing(path, durable=durable) as temporary:
        temporary.write_bytes(data)
    return Path(path)


def write_text(path: str | os.PathLike[str], text: str, *, durable: bool = False) -> Path:
    """The same for text, UTF-8."""
    return write_bytes(path, text.encode(), durable=durable)


def remove_leftovers(folder: str | os.PathLike[str]) -> int:
    """Delete unfinished files and folders whose process has died; how many there were."""
    removed = 0
    for path in Path(folder).glob(f"{PARTIAL}*"):
        if _in_use(path):
            continue
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path, ignore_errors=True)
        else:
            with suppress(OSError):
                path.unlink(missing_ok=True)
        removed += 1
    return removed


def checksum(path: str | os.PathLike[str]) -> str:
    """CRC-32 of a file's contents, eight hexadecimal digits."""
    total = 0
    with open(path, "rb") as file:
        while piece := file.read(_CHUNK):
            total = zlib.crc32(piece, total)
    return f"{total:08x}"


def to_disk(path: str | os.PathLike[str]) -> None:
    """Wait until a file's contents, or a folder's names, are on the disk."""
    if os.name == "nt" and os.path.isdir(path):
        return  # where folders cannot be opened
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _own_prefix() -> str:
    return f"{PARTIAL}{_machine()}.{os.getpid()}.{_started(os.getpid())}-"


def _in_use(path: Path) -> bool:
    """Whether the process that an unfinished file is named after may still write it."""
    machine, number, start = [*path.name.removeprefix(PARTIAL).partition("-")[0].split("."), "", ""][:3]
    if not number.isdigit():
        return False
    if machine != _machine():  # sharing this folder, or gone
        try:
            return time.time() - path.stat().st_mtime < _FORGOTTEN
        except OSError:
            return False
    try:
        os.kill(int(number), 0)
    except ProcessLookupError:
        return False
    except (OSError, OverflowError):
        pass  # somebody else's
    return start == _started(int(number))  # numbers are used again, with another start


def _machine() -> str:
    return f"{zlib.crc32(platform.node().encode()):08x}"


def _started(process: int) -> str:
    """When a process began, in ticks since the machine did; 0 where the system does not say."""
    try:
        with open(f"/proc/{process}/stat", encoding="utf-8", errors="replace") as file:
            return file.read().rpartition(")")[2].split()[19]
    except (OSError, IndexError):
        return "0"


def _mask() -> int:
    """The permissions that new files of this process do not get."""
    mask = os.umask(0)
    os.umask(mask)
    return mask
