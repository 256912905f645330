"""Files by URI: folders here and buckets elsewhere, through pyarrow's file systems.

What a bucket fails to do is tried again where that helps (timeouts, 5xx), with growing pauses, and counted;
a refusal (403, 404) is told at once. A file appears whole or not at all, wherever it is written.

    s3://bucket/folder, gs://bucket/folder, hdfs://…, file:///folder, or a plain path
    s3://bucket/folder?endpoint_override=host:9000&scheme=http&region=eu-west-1    another S3
"""

from __future__ import annotations

import errno
import io
import os
import re
import threading
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from pathlib import Path
from random import Random
from typing import IO, TYPE_CHECKING, Any, TypeVar
from urllib.parse import parse_qsl, unquote, urlsplit

from gbpn.errors import BackendError, InputError, StorageError, WriteError
from gbpn.files.atomic import write_bytes
from gbpn.files.guard import shown

if TYPE_CHECKING:
    from pyarrow.fs import FileSystem

__all__ = [
    "Patience",
    "Storage",
    "StoredFile",
    "address",
    "base_name",
    "is_remote",
    "joined",
    "local_path",
    "parent",
    "require_arrow",
]

_Answer = TypeVar("_Answer")

_REFUSED = re.compile(
    r"ACCESS_DENIED|NO_SUCH|NOT_FOUND|INVALID|SIGNATURE|EXPIRED_TOKEN|UNRECOGNIZED_CLIENT|MISSING|MALFORMED"
    r"|HTTP status (?:400|401|403|404|405|411)\b|[Pp]ermission denied|Unauthorized|Could not resolve region"
)
"""What the messages of errors say that no patience will cure."""
_REFUSED_NUMBERS = {errno.ENOENT, errno.EACCES, errno.EPERM, errno.ENOTDIR, errno.EISDIR, errno.ENAMETOOLONG}
_RANGE = 1 << 22
"""Bytes of a large file that are asked for at a time."""
_S3_OPTIONS = {
    "region": "region",
    "scheme": "scheme",
    "endpoint_override": "endpoint_override",
    "access_key": "access_key",
    "secret_key": "secret_key",
}
"""What the query of an s3:// address may say."""


@dataclass(frozen=True, kw_only=True)
class Patience:
    """How often and how slowly a failed request is repeated."""

    attempts: int = 8
    """Requests in all, the first included."""
    first: float = 0.1
    """Seconds before the second one; the pauses double, and vary by half."""
    longest: float = 8.0
    """Seconds between two."""
    silence: float = 10.0
    """Seconds without a byte after which a request to S3 has failed."""

    def pause(self, failures: int, random: Random) -> float:
        """Seconds to wait after so many failures."""
        return min(self.longest, self.first * 2.0 ** (failures - 1)) * random.uniform(0.5, 1.5)


@dataclass(frozen=True, kw_only=True)
class StoredFile:
    """A file that was found."""

    uri: str
    size: int
    changed: int
    """Nanoseconds since 1970, as far as the storage keeps them."""


@dataclass(kw_only=True, eq=False)
class Storage:
    """All storages that one process talks to; may be used from several threads."""

    patience: Patience = field(default_factory=Patience)
    retried: Counter[str] = field(default_factory=Counter)
    """Requests that had to be repeated, by what was asked."""
    bytes_read: int = 0
    bytes_written: int = 0
    _systems: dict[str, FileSystem] = field(default_factory=dict)
    _random: Random = field(default_factory=Random)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def __reduce__(self) -> tuple[Any, ...]:
        return _storage, (self.patience,)  # another process counts and connects for itself

    def read(self, uri: str) -> bytes:
        """The whole contents of a file."""

        def get() -> bytes:
            if (path := local_path(uri)) is not None:
                return path.read_bytes()
            system, key = self._system(uri)
            with system.open_input_file(key) as file:
                return bytes(file.read())

        data = self._asked("read", uri, get)
        with self._lock:
            self.bytes_read += len(data)
        return data

    def open(self, uri: str) -> IO[bytes]:
        """A file to read from, anywhere in it."""
        if (path := local_path(uri)) is not None:
            return self._asked("read", uri, lambda: path.open("rb"))
        entry = self.find(uri)
        if entry is None:
            raise StorageError(f"{address(uri)}: there is no such file")
        return io.BufferedReader(_Ranges(self, entry), _RANGE)

    def part(self, uri: str, first: int, count: int) -> bytes:
        """Some bytes of a file."""
        system, key = self._system(uri)

        def get() -> bytes:
            with system.open_input_file(key) as file:
                return bytes(file.read_at(count, first))

        data = self._asked("read", uri, get)
        with self._lock:
            self.bytes_read += len(data)
        return data

    def fetch(self, uri: str, path: Path) -> Path:
        """A copy at `path`."""
        data = self.read(uri)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
        return path

    def write(self, uri: str, data: bytes) -> None:
        """A file with this contents, which replaces one that is there."""

        def put() -> None:
            if (path := local_path(uri)) is not None:
                write_bytes(path, data, durable=True)
                return
            system, key = self._system(uri)
            with system.open_output_stream(key, compression=None) as stream:
                stream.write(data)

        self._asked("write", uri, put)
        with self._lock:
            self.bytes_written += len(data)

    def find(self, uri: str) -> StoredFile | None:
        """The file at an address, or None."""

        def look() -> StoredFile | None:
            if (path := local_path(uri)) is not None:
                if not path.is_file():
                    return None
                status = path.stat()
                return StoredFile(uri=uri, size=status.st_size, changed=status.st_mtime_ns)
            from pyarrow.fs import FileType

            system, key = self._system(uri)
            info = system.get_file_info(key)
            if info.type != FileType.File:
                return None
            return StoredFile(uri=uri, size=info.size, changed=info.mtime_ns)

        return self._asked("find", uri, look)

    def files(self, uri: str) -> list[StoredFile]:
        """The files directly in a folder, or those that the last part of the address matches; by name."""
        pattern = base_name(uri) if re.search(r"[*?\[]", base_name(uri)) else None
        folder = parent(uri) if pattern else uri

        def look() -> list[StoredFile]:
            if (path := local_path(folder)) is not None:
                found = (file for file in sorted(path.iterdir()) if file.is_file())
                return [
                    StoredFile(
                        uri=str(file), size=(status := file.stat()).st_size, changed=status.st_mtime_ns
                    )
                    for file in found
                ]
            from pyarrow.fs import FileSelector, FileType

            system, key = self._system(folder)
            listed = system.get_file_info(FileSelector(key))
            return [
                StoredFile(uri=joined(folder, info.base_name), size=info.size, changed=info.mtime_ns)
                for info in sorted(listed, key=lambda info: str(info.path))
                if info.type == FileType.File
            ]

        found = self._asked("list", folder, look)
        visible = [entry for entry in found if not base_name(entry.uri).startswith(".")]
        return [entry for entry in visible if pattern is None or fnmatchcase(base_name(entry.uri), pattern)]

    def delete(self, uri: str) -> None:
        """Remove a file, if it is there."""

        def remove() -> None:
            if (path := local_path(uri)) is not None:
                path.unlink(missing_ok=True)
                return
            system, key = self._system(uri)
            try:
                system.delete_file(key)
            except FileNotFoundError:
                return

        self._asked("delete", uri, remove)

    def _system(self, uri: str) -> tuple[FileSystem, str]:
        """The file system of an address, and the name in it."""
        require_arrow()
        from pyarrow.fs import FileSystem

        plain, _, query = _split(uri)
        parts = urlsplit(plain)
        kind = f"{parts.scheme}://{'' if parts.scheme == 's3' else parts.netloc}?{query}"
        with self._lock:
            if kind not in self._systems:
                try:
                    if parts.scheme == "s3":
                        self._systems[kind] = _s3(dict(parse_qsl(query)), self.patience.silence)
                    else:
                        self._systems[kind] = FileSystem.from_uri(uri)[0]
                except Exception as error:
                    raise InputError(
                        f"{address(uri)}: no storage that pyarrow knows ({shown(error)})"
                    ) from error
            system = self._systems[kind]
        if parts.scheme == "s3":
            return system, unquote(f"{parts.netloc}{parts.path}").rstrip("/")
        return system, FileSystem.from_uri(uri)[1].rstrip("/")

    def _asked(self, what: str, uri: str, ask: Callable[[], _Answer]) -> _Answer:
        """The answer, after as many requests as it takes and `patience` allows."""
        failures = 0
        while True:
            try:
                return ask()
            except (StorageError, WriteError, InputError, BackendError):
                raise
            except OSError as error:
                failures += 1
                if not _may_pass(error):
                    raise _refusal(what, uri, error) from error
                if failures >= self.patience.attempts:
                    problem = StorageError(
                        f"{address(uri)}: {what} failed {failures} times ({shown(error, 240)}): is the "
                        "storage up? What is finished is kept; the same command goes on later"
                    )
                    problem.passing = True
                    raise problem from error
            with self._lock:
                self.retried[what] += 1
                pause = self.patience.pause(failures, self._random)
            time.sleep(pause)


class _Ranges(io.RawIOBase):
    """A file of a bucket, some megabytes at a time, each asked for again where that fails."""

    def __init__(self, storage: Storage, entry: StoredFile) -> None:
        super().__init__()
        self.storage, self.entry, self.place = storage, entry, 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        start = {io.SEEK_SET: 0, io.SEEK_CUR: self.place, io.SEEK_END: self.entry.size}[whence]
        self.place = start + offset
        return self.place

    def readinto(self, buffer: Any) -> int:
        wanted = min(len(buffer), max(0, self.entry.size - self.place))
        data = self.storage.part(self.entry.uri, self.place, wanted) if wanted else b""
        buffer[: len(data)] = data
        self.place += len(data)
        return len(data)


def require_arrow() -> None:
    """Raise unless pyarrow is there."""
    try:
        import pyarrow.fs  # noqa: F401
    except ImportError as error:
        raise BackendError("storage by address needs pyarrow: pip install 'gbpn[scale]'") from error


def is_remote(uri: str) -> bool:
    """Whether an address is not a path of this machine."""
    return "://" in uri and not uri.startswith("file://")


def local_path(uri: str) -> Path | None:
    """The path of an address on this machine; None for one elsewhere."""
    if is_remote(uri):
        return None
    return Path(unquote(urlsplit(uri).path)) if uri.startswith("file://") else Path(uri)


def joined(uri: str, name: str) -> str:
    """The address of a file in a folder."""
    if not is_remote(uri):
        return str(Path(uri) / name) if "://" not in uri else f"{uri.rstrip('/')}/{name}"
    plain, mark, query = _split(uri)
    return f"{plain.rstrip('/')}/{name}{mark}{query}"


def parent(uri: str) -> str:
    """The address of the folder that something is in."""
    if not is_remote(uri):
        return str(Path(uri).parent) if "://" not in uri else uri.rpartition("/")[0]
    plain, mark, query = _split(uri)
    return f"{plain.rstrip('/').rpartition('/')[0]}{mark}{query}"


def base_name(uri: str) -> str:
    """The last part of an address."""
    return _split(uri)[0].rstrip("/").rpartition("/")[2]


def address(uri: str) -> str:
    """An address to be told: without its query, which may hold a key."""
    return shown(_split(uri)[0])


def _split(uri: str) -> tuple[str, str, str]:
    """Address, mark and query; a `?` that stands for a letter is part of the address."""
    if is_remote(uri) and (found := re.search(r"\?(?=\w+=)", uri)):
        return uri[: found.start()], "?", uri[found.end() :]
    return uri, "", ""


def _s3(options: dict[str, str], silence: float) -> FileSystem:
    """S3 without retries of its own, so that ours are all and are counted."""
    from pyarrow.fs import AwsStandardS3RetryStrategy, S3FileSystem

    unknown = sorted(set(options) - set(_S3_OPTIONS))
    if unknown:
        raise InputError(f"unknown {', '.join(unknown)}; an s3:// address takes {', '.join(_S3_OPTIONS)}")
    endpoint = os.environ.get("AWS_ENDPOINT_URL_S3") or os.environ.get("AWS_ENDPOINT_URL")
    if endpoint and "endpoint_override" not in options:
        parts = urlsplit(endpoint)
        options = {"endpoint_override": parts.netloc, "scheme": parts.scheme or "https", **options}
    if "endpoint_override" in options:
        options.setdefault("region", os.environ.get("AWS_REGION", "us-east-1"))
    return S3FileSystem(
        retry_strategy=AwsStandardS3RetryStrategy(max_attempts=1),
        allow_delayed_open=True,  # one request for a small file instead of three
        connect_timeout=silence,
        request_timeout=silence,
        **options,
    )


def _may_pass(error: OSError) -> bool:
    """Whether the same request may succeed later."""
    if isinstance(error, FileNotFoundError | PermissionError | IsADirectoryError | NotADirectoryError):
        return False
    if error.errno in _REFUSED_NUMBERS or error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EROFS):
        return False
    return not _REFUSED.search(str(error))


def _refusal(what: str, uri: str, error: OSError) -> StorageError:
    if isinstance(error, FileNotFoundError) or re.search(r"NO_SUCH|NOT_FOUND|HTTP status 404", str(error)):
        return StorageError(f"{address(uri)}: there is no such file or bucket")
    if isinstance(error, PermissionError) or re.search(
        r"ACCESS_DENIED|HTTP status 40[13]|[Pp]ermission", str(error)
    ):
        return StorageError(
            f"{address(uri)}: {what} is not allowed ({shown(error, 200)}): check the credentials and the "
            "bucket's policy"
        )
    return StorageError(f"{address(uri)}: {what} failed ({shown(error, 240)})")


def _storage(patience: Patience) -> Storage:
    return Storage(patience=patience)
