"""Names that come from files never leave the folder they are meant for."""

from __future__ import annotations

import os
import stat
from pathlib import Path, PurePosixPath, PureWindowsPath

from gbpn.errors import InputError
from gbpn.files.guard import shown

__all__ = ["ROOM", "contained"]

_LONGEST_PART = 255
"""Bytes of one part of a path, as common file systems have it."""
ROOM = 32
"""Bytes left for what is added to the last part: suffixes, and the mark of an unfinished file."""
_LONGEST_PATH = 4000
"""Bytes of a whole path."""
_MOST_PARTS = 64
"""Folders within folders."""


def contained(folder: str | os.PathLike[str], name: str, suffix: str = "") -> Path:
    """`folder`/`name` with `suffix` added, or `InputError` where that would be somewhere else.

    Refused are names that are absolute, climb with `..`, hold unprintable characters, are longer or
    deeper than file systems and programs take, lead through a link, or lead to something that is no plain
    file, such as a device.
    """
    folder = Path(folder)
    if (problem := _problem(name)) is not None:
        raise InputError(
            f"a name that comes from a file must stay in {shown(folder)}; {shown(name)!r} {problem}"
        )
    path = folder.joinpath(*PurePosixPath(name).parts[:-1], PurePosixPath(name).name + suffix)
    try:
        inside = path.resolve().is_relative_to(folder.resolve())
        kind = path.lstat().st_mode if os.path.lexists(path) else None
    except (OSError, RuntimeError, ValueError) as error:
        raise InputError(f"{shown(path)} cannot be written ({shown(error)}): rename it") from error
    if not inside or (kind is not None and stat.S_ISLNK(kind)):
        raise InputError(f"{shown(path)} leads through a link out of {shown(folder)}: remove the link")
    if kind is not None and not stat.S_ISREG(kind):
        raise InputError(f"{shown(path)} is there already and no plain file: remove it or rename the input")
    return path


def _problem(name: str) -> str | None:
    """What speaks against a relative name of a file; None where nothing does."""
    posix, windows = PurePosixPath(name), PureWindowsPath(name)
    if not posix.name or not name.isprintable():
        return "is empty or holds unprintable characters: rename it"
    if posix.is_absolute() or windows.drive or windows.root:
        return "is absolute: make it relative"
    if ".." in windows.parts:
        return "climbs out with '..': make it plain"
    try:
        lengths = [len(os.fsencode(part)) for part in posix.parts]
    except UnicodeEncodeError:
        return "cannot be written as the name of a file: rename it"
    if max(lengths) > _LONGEST_PART - ROOM or sum(lengths) + len(lengths) > _LONGEST_PATH:
        return "is longer than file systems allow: shorten it"
    if len(lengths) > _MOST_PARTS:
        return f"has {len(lengths)} folders within folders, more than {_MOST_PARTS}: flatten it"
    return None
