"""The border: what comes from outside is right, or one error says what is wrong with it.

Every reader of a file, and every function that takes what a caller has, runs inside `reading` or `taking`.
What a library raises there becomes a `GbpnError` of at most `LONGEST_MESSAGE` characters that names the
source, what was wanted, what was found and what to do. Sizes are checked as declared, before memory is taken.
"""

from __future__ import annotations

import io
import math
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from gbpn.errors import DatasetError, GbpnError, InputError

__all__ = ["LONGEST_MESSAGE", "BoundedFile", "most_pixels", "reading", "require_size", "shown", "taking"]

LONGEST_MESSAGE = 500
"""Characters of an error about something that came in."""
_LONGEST_NAME = 160
"""Characters of a file's name in a message; of longer ones the beginning and the end are shown."""
_MEGAPIXELS = 64.0
"""Largest picture, depth map or camera that is read; the variable GBPN_MAX_MEGAPIXELS changes it."""


@contextmanager
def reading(
    path: str | os.PathLike[str], kind: str, expected: str, *, error: type[GbpnError] = DatasetError
) -> Iterator[Path]:
    """Whatever goes wrong inside is an `error` about the file `path`, which must be an ordinary one.

    kind      what the file is: "depth file"
    expected  what it should hold: "one number per pixel"
    """
    name = shown(path)
    try:
        file = Path(path)
        if not file.is_file():
            raise error(f"{name}: {_absence(file, kind)}; expected {expected}")
        yield file
    except GbpnError as problem:
        raise _short(problem) from problem.__cause__
    except Exception as problem:
        found = f"{name}: not a readable {kind} ({_found(problem)})"
        raise error(shown(f"{found}; expected {expected}: is the file whole?", LONGEST_MESSAGE)) from problem


@contextmanager
def taking(name: str, wanted: str) -> Iterator[None]:
    """Whatever goes wrong inside is an `InputError` about the argument `name`."""
    try:
        yield
    except GbpnError as problem:
        raise _short(problem) from problem.__cause__
    except Exception as problem:
        found = f"{name} must be {wanted}; got {_found(problem)}: convert it first"
        raise InputError(shown(found, LONGEST_MESSAGE)) from problem


class BoundedFile(io.BufferedReader):
    """A file whose reads take no more memory than it has bytes, whatever length a library read in it."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        super().__init__(io.FileIO(path))
        self._end = os.fstat(self.fileno()).st_size

    def read(self, size: int | None = -1, /) -> bytes:
        left = max(self._end - self.tell(), 0)
        return super().read(left if size is None or size < 0 else min(size, left))


def most_pixels() -> int:
    """The limit that is in force."""
    text = os.environ.get("GBPN_MAX_MEGAPIXELS", "")
    try:
        megapixels = float(text) if text.strip() else _MEGAPIXELS
    except ValueError:
        megapixels = math.nan
    if not 0 < megapixels < 1e6:
        raise InputError(f"GBPN_MAX_MEGAPIXELS must be a number of megapixels above 0; got {shown(text)!r}")
    return int(megapixels * 1e6)


def require_size(what: str, height: int, width: int) -> None:
    """Raise unless `height` × `width` pixels exist and are within the limit."""
    if height < 1 or width < 1:
        raise InputError(f"{what} must have at least one pixel; got {_number(width)}×{_number(height)}")
    if height * width > (most := most_pixels()):
        raise InputError(
            f"{what} of {_number(width)}×{_number(height)} pixels is larger than {most / 1e6:g} megapixels: "
            "reduce it, or raise the limit with the environment variable GBPN_MAX_MEGAPIXELS"
        )


def shown(text: object, most: int = _LONGEST_NAME) -> str:
    """One printable line of at most `most` characters; of a longer one its beginning and its end."""
    line = "".join(letter if letter.isprintable() else "?" for letter in str(text).replace("\n", " "))
    return line if len(line) <= most else f"{line[: most // 2 - 1]}…{line[len(line) - most // 2 + 1 :]}"


def _absence(file: Path, kind: str) -> str:
    if file.is_dir():
        return f"a folder, not a {kind}"
    return f"not an ordinary file, so no {kind}" if file.exists() else f"no such {kind}"


def _found(problem: Exception) -> str:
    if isinstance(problem, MemoryError):
        return "it does not fit into memory"
    return shown(f"{type(problem).__name__}: {problem}")


def _short(problem: GbpnError) -> GbpnError:
    """The same error, with one line of at most `LONGEST_MESSAGE` characters."""
    text = str(problem)
    return problem if len(text) <= LONGEST_MESSAGE else type(problem)(shown(text, LONGEST_MESSAGE))


def _number(value: int) -> str:
    return str(value) if abs(value) < 10**12 else f"{value:.0e}" if abs(value) < 10**300 else "very many"
