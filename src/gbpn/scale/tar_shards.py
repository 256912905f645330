"""WebDataset's tar shards: files of one frame stand together and share what is before their first dot.

000017.jpg  000017.depth.png  000017.camera.txt      a frame called 000017
"""

from __future__ import annotations

import io
import shutil
import tarfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path, PurePosixPath
from typing import IO

from gbpn.errors import GbpnError, InputError
from gbpn.files.contained import contained
from gbpn.files.guard import shown
from gbpn.formats.images import SUFFIXES
from gbpn.jobs.pairing import MEASUREMENTS

__all__ = ["TarSample", "TarWriter", "samples"]

_IMAGES = ("image", "rgb", "color", "colour")
_DEPTHS = ("depth", "sparse", "points", "cloud")
_CAMERAS = ("camera", "intrinsics")
"""First part of a member's ending, where it has two: `depth.png`."""
_LARGEST = 1 << 30
"""Bytes of one member."""
_LARGEST_READ = 1 << 20
"""Bytes that are taken at a time, and so of a header: names and times need no more."""


@dataclass(kw_only=True)
class TarSample:
    """The files of one frame of a tar."""

    key: str
    members: dict[str, Path] = field(default_factory=dict)
    """Ending after the first dot → the file it was unpacked to."""
    problem: str = ""

    @property
    def image(self) -> Path | None:
        """The picture."""
        return self._one(_IMAGES, SUFFIXES)

    @property
    def sparse(self) -> Path | None:
        """The measurements."""
        only = tuple(suffix for suffix in MEASUREMENTS if suffix not in SUFFIXES)
        return self._named(_DEPTHS) or self._one((), only)

    @property
    def camera(self) -> Path | None:
        """The camera file."""
        return self._named(_CAMERAS)

    def _named(self, words: Sequence[str]) -> Path | None:
        return next((path for ending, path in self.members.items() if ending.split(".")[0] in words), None)

    def _one(self, words: Sequence[str], suffixes: Sequence[str]) -> Path | None:
        plain = (path for ending, path in self.members.items() if f".{ending}" in suffixes)
        return self._named(words) or next(plain, None)


def samples(stream: IO[bytes], folder: Path) -> Iterator[TarSample]:
    """The frames of a tar one after the other, unpacked below `folder`, each in a place of its own."""
    sample: TarSample | None = None
    count = 0
    try:
        for member, read in _members(stream):
            base = PurePosixPath(member.name).name
            if not member.isfile() or base.startswith((".", "__")) or "." not in base:
                continue
            stem, _, ending = base.partition(".")
            key = str(PurePosixPath(member.name).with_name(stem)).encode(errors="replace").decode()
            if sample is None or sample.key != key:
                whole, sample, count = sample, TarSample(key=key), count + 1
                if whole is not None:
                    yield whole
            _unpack(member, read(), sample, ending.lower(), folder / str(count))
    except InputError as error:
        if sample is not None and sample.members:
            sample.problem = f"perhaps not all of its files are here: {error}"
            yield sample
        raise
    if sample is not None:
        yield sample


def _members(stream: IO[bytes]) -> Iterator[tuple[tarfile.TarInfo, Callable[[], IO[bytes] | None]]]:
    """The members of an uncompressed tar, and what opens each, held against the bytes that are there."""
    bounded = _Bounded(stream)
    try:
        with tarfile.open(fileobj=bounded, mode="r:", errorlevel=2) as tar:
            while (member := tar.next()) is not None:
                tar.members = []  # type: ignore[attr-defined]  # or all of a long tar would be kept
                yield member, partial(_opened, tar, member, bounded.length)
                _opened(tar, member, bounded.length)
            bounded.seek(min(tar.offset, bounded.length))
            if any(bounded.read(tarfile.BLOCKSIZE)):  # a tar ends with zeros, or its file with it
                raise InputError(f"not a whole tar file (no header at byte {tar.offset}): pack it again")
    except GbpnError:
        raise
    except Exception as error:  # whatever the bytes of a header make of themselves in tarfile
        found = shown(f"{type(error).__name__}: {error}")
        raise InputError(f"not a whole, uncompressed tar file ({found}): pack it again") from error


def _opened(tar: tarfile.TarFile, member: tarfile.TarInfo, length: int) -> IO[bytes] | None:
    end = member.offset_data + (0 if member.issparse() else member.size)
    if not 0 <= member.offset < member.offset_data <= end <= length:
        raise InputError(
            f"not a whole tar file ({shown(member.name)} declares {member.size} bytes at "
            f"{member.offset_data}, and the file has {length}): pack it again"
        )
    return tar.extractfile(member) if member.isfile() else None


class _Bounded(io.RawIOBase):
    """A file of known length whose reads take no more memory than a header may ask for."""

    def __init__(self, stream: IO[bytes]) -> None:
        super().__init__()
        self.stream = stream
        self.length = stream.seek(0, io.SEEK_END)
        stream.seek(0)

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        if whence != io.SEEK_SET or not 0 <= offset <= self.length:
            raise InputError(
                f"not a whole tar file (it leads to byte {offset} of {self.length}): pack it again"
            )
        return self.stream.seek(offset)

    def tell(self) -> int:
        return self.stream.tell()

    def read(self, size: int | None = -1, /) -> bytes:
        wanted = self.length if size is None or size < 0 else size
        if min(wanted, self.length - self.tell()) > _LARGEST_READ:
            raise InputError(f"not a whole tar file (a header declares {wanted} bytes): pack it again")
        return self.stream.read(min(wanted, _LARGEST_READ))


def _unpack(
    member: tarfile.TarInfo, content: IO[bytes] | None, sample: TarSample, ending: str, folder: Path
) -> None:
    if member.size > _LARGEST or member.issparse():
        what = f"{member.size} bytes, more than {_LARGEST}: split it"
        sample.problem = f"{shown(member.name)} has {'holes: pack it whole' if member.issparse() else what}"
        return
    try:
        path = contained(folder, PurePosixPath(member.name).name)
    except InputError as error:
        sample.problem = str(error)
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("wb") as file:
        if content is not None:
            shutil.copyfileobj(content, file, _LARGEST_READ)
    sample.members[ending] = path


class TarWriter:
    """A tar of completed frames, the same bytes for the same frames."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._tar = tarfile.open(path, "w", format=tarfile.PAX_FORMAT)  # noqa: SIM115  closed in `close`
        self._keys: set[str] = set()

    def add(self, name: str, files: Sequence[Path]) -> list[str]:
        """The files of the frame `name`; what they are called inside."""
        place = PurePosixPath(name)
        key = str(place.with_name(place.name.replace(".", "-")))
        if key in self._keys:
            raise InputError(f"{shown(name)}: a frame of this tar has that key already: rename it")
        self._keys.add(key)
        names = []
        for file in files:
            ending = file.name.removeprefix(place.name).lstrip("_.")
            member = tarfile.TarInfo(f"{key}.{ending}")
            data = file.read_bytes()
            member.size = len(data)
            self._tar.addfile(member, io.BytesIO(data))
            names.append(member.name)
        return names

    def close(self) -> bytes:
        """The whole tar."""
        self._tar.close()
        return self.path.read_bytes()
