"""WebDataset's tar shards: files of one frame stand together and share what is before their first dot.

000017.jpg  000017.depth.png  000017.camera.txt      a frame called 000017
"""

from __future__ import annotations

import io
import os
import tarfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import IO

from gbpn.errors import InputError
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
        with tarfile.open(fileobj=stream, mode="r|*") as tar:
            for member in tar:
                base = PurePosixPath(member.name).name
                if not member.isfile() or base.startswith((".", "__")) or "." not in base:
                    continue
                stem, _, ending = base.partition(".")
                key = str(PurePosixPath(member.name).with_name(stem))
                if sample is None or sample.key != key:
                    if sample is not None:
                        yield sample
                    sample, count = TarSample(key=key), count + 1
                _unpack(tar, member, sample, ending.lower(), folder / str(count))
    except (tarfile.TarError, EOFError) as error:
        raise InputError(f"not a whole tar file ({shown(error)})") from error
    if sample is not None:
        yield sample


def _unpack(
    tar: tarfile.TarFile, member: tarfile.TarInfo, sample: TarSample, ending: str, folder: Path
) -> None:
    if member.size > _LARGEST:
        sample.problem = f"{shown(member.name)} has {member.size} bytes, more than {_LARGEST}: split it"
        return
    try:
        path = contained(folder, PurePosixPath(member.name).name)
    except InputError as error:
        sample.problem = str(error)
        return
    content = tar.extractfile(member)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"" if content is None else content.read())
    os.utime(path, (member.mtime, member.mtime))
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
