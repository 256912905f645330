"""What is to be done, written down once: frames in shards, and what their answers depend on.

Below OUTPUT/gbpn of every run:

    run.json            options, checksum of the weights, source, sizes; written last: now the list is whole
    worklist/           the frames by number: every worker finds its own, and no driver has to know all
    records/            one table of each finished shard; written last of all its files
    quarantine/         one table of each finished shard with frames that failed
"""

from __future__ import annotations

import hashlib
import io
import json
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, fields
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from gbpn.errors import InputError, StorageError
from gbpn.files.contained import contained
from gbpn.files.guard import shown
from gbpn.scale.storage import Storage, address, joined

__all__ = ["OWN_FOLDER", "ListedFrame", "Worklist", "begin", "own_file"]

OWN_FOLDER = "gbpn"
"""Where a run keeps its tables, below its output."""
_FORMAT = 1
_ROWS = 8192
"""Frames of one file of the list, about: what a worker reads to find its own."""
_SPILLED = 1 << 20
"""Bytes of digests that are kept in memory while names are compared."""
_DIGEST = 16
_FOLDERS_OF_DIGESTS = 256


@dataclass(frozen=True, kw_only=True)
class ListedFrame:
    """One line of the list."""

    name: str
    """What its outputs are called; with slashes they lie in subfolders."""
    image: str
    """Address of the picture; of a tar shard, of the tar."""
    sparse: str = ""
    """Address of the measurements; empty: none of its own."""
    camera: str = ""
    """fx,fy,cx,cy or the address of a camera file; empty: that of the run."""
    problem: str = ""
    """Why it cannot be done, if that is known beforehand."""
    left_out: str = ""
    """Why it is not even tried, which is no mistake."""
    settings: str = "{}"
    """JSON: what its answer depends on besides the files and the settings of the run."""


@dataclass(frozen=True, kw_only=True)
class Worklist:
    """The list of a run, as every process sees it."""

    output: str
    """Address of the output."""
    facts: dict[str, Any]
    """What run.json holds."""

    @property
    def identity(self) -> dict[str, Any]:
        """What every answer depends on, see `gbpn.jobs.run.Run.identity`."""
        found: dict[str, Any] = self.facts["identity"]
        return found

    @property
    def tars(self) -> bool:
        """Whether a shard is a tar file, else so many frames as a batch has."""
        return bool(self.facts["tars"])

    @property
    def lines(self) -> int:
        """Frames, or tars."""
        return int(self.facts["lines"])

    @property
    def batch(self) -> int:
        """Lines of a shard."""
        return int(self.facts["batch"])

    @property
    def shards(self) -> int:
        """How many there are, numbered from 0."""
        return -(-self.lines // self.batch)

    def frames(self, shard: int, storage: Storage) -> list[ListedFrame]:
        """The lines of a shard."""
        first = shard * self.batch
        rows = int(self.facts["rows"])
        table = _part(storage, own_file(self.output, f"worklist/{_part_name(first // rows)}"))
        return [_frame(row) for row in table.slice(first % rows, self.batch).to_pylist()]


def begin(
    output: str,
    frames: Iterator[ListedFrame],
    facts: dict[str, Any],
    storage: Storage,
    *,
    batch: int,
) -> Worklist:
    """The list of a run that has none, or the one that is there, if it is of the same run.

    facts  what run.json says: identity, source, tars, …; other facts than those that are there are refused
    """
    place = own_file(output, "run.json")
    if storage.find(place) is not None:
        stored = _stored(place, storage)
        _require_same(output, stored, facts)
        return Worklist(output=output, facts=stored)
    rows = batch * max(1, _ROWS // batch)
    with tempfile.TemporaryDirectory() as folder:
        names = _DistinctNames(Path(folder))
        lines = 0
        for part, chunk in enumerate(_chunks(frames, rows)):
            for frame in chunk:
                _require_name(frame.name)
                names.add(frame.name)
            lines += len(chunk)
            storage.write(own_file(output, f"worklist/{_part_name(part)}"), _table_of(chunk))
        if not lines:
            raise InputError("there is no frame to complete in this source")
        names.require_distinct()
    stored = {"format": _FORMAT, **facts, "lines": lines, "batch": batch, "rows": rows}
    storage.write(place, (json.dumps(stored, indent=1) + "\n").encode())
    return Worklist(output=output, facts=stored)


def own_file(output: str, name: str) -> str:
    """The address of one of the run's own files."""
    return joined(output, f"{OWN_FOLDER}/{name}")


def _stored(place: str, storage: Storage) -> dict[str, Any]:
    try:
        found: dict[str, Any] = json.loads(storage.read(place))
        sound = found["format"] == _FORMAT and isinstance(found["identity"], dict)
    except (ValueError, KeyError, TypeError):
        sound = False
    if not sound:
        raise StorageError(
            f"{address(place)} is not what a run of this release writes: choose another output, or remove it"
        )
    return found


def _require_same(output: str, stored: dict[str, Any], facts: dict[str, Any]) -> None:
    """Raise if an output was begun with other options, weights or sources."""
    then, now = _flat(stored), _flat(json.loads(json.dumps(facts)))
    differing = [key for key in now if key in then and then[key] != now[key]]
    differing += [key for key in now if key not in then]
    if differing:
        told = "; ".join(
            f"{key}: {shown(then.get(key, 'none'), 80)} then, {shown(now[key], 80)} now"
            for key in differing[:4]
        )
        raise InputError(
            f"{address(output)} was begun with other options, and results of two kinds never share an "
            f"output ({told}): repeat the first command, or give another -o"
        )


def _flat(table: dict[str, Any], prefix: str = "") -> dict[str, Any]:
    out: dict[str, Any] = {}
    for key, value in table.items():
        if isinstance(value, dict):
            out |= _flat(value, f"{prefix}{key}.")
        else:
            out[f"{prefix}{key}"] = value
    return out


def _chunks(frames: Iterator[ListedFrame], size: int) -> Iterator[list[ListedFrame]]:
    chunk: list[ListedFrame] = []
    for frame in frames:
        chunk.append(frame)
        if len(chunk) == size:
            yield chunk
            chunk = []
    if chunk:
        yield chunk


def _require_name(name: str) -> None:
    contained("output", name, "_confidence.npy")
    if name.split("/")[0] == OWN_FOLDER:
        raise InputError(f"a frame called {shown(name)!r} would lie among the tables of the run: rename it")


def _part_name(number: int) -> str:
    return f"part-{number:07d}.parquet"


def _table_of(chunk: list[ListedFrame]) -> bytes:
    import pyarrow as pa
    import pyarrow.parquet as pq

    columns = {part.name: [getattr(frame, part.name) for frame in chunk] for part in fields(ListedFrame)}
    schema = pa.schema([(name, pa.string()) for name in columns])
    buffer = io.BytesIO()
    pq.write_table(pa.table(columns, schema=schema), buffer, compression="zstd")
    return buffer.getvalue()


def _frame(row: dict[str, Any]) -> ListedFrame:
    return ListedFrame(**{part.name: row[part.name] for part in fields(ListedFrame)})


@lru_cache(maxsize=2)  # neighbours are asked for next
def _part(storage: Storage, uri: str) -> Any:
    import pyarrow.parquet as pq

    return pq.read_table(io.BytesIO(storage.read(uri)))


class _DistinctNames:
    """Finds a name that comes twice among any number of names, with bounded memory: digests go to files."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.pending = bytearray()
        self.spilled = False

    def add(self, name: str) -> None:
        self.pending += hashlib.blake2b(name.encode(), digest_size=_DIGEST).digest()
        if len(self.pending) >= _SPILLED:
            self._spill()

    def require_distinct(self) -> None:
        """Raise if a name came twice."""
        if self.spilled:
            self._spill()
        stored = (path.read_bytes() for path in sorted(self.folder.iterdir()))
        for data in stored if self.spilled else (bytes(self.pending),):
            digests = np.frombuffer(data, dtype=f"V{_DIGEST}")
            if len(np.unique(digests)) < len(digests):
                raise InputError(
                    "two frames have the same name and would be written to the same files: give the manifest "
                    "a column id with a name of its own for each frame"
                )

    def _spill(self) -> None:
        digests = np.frombuffer(bytes(self.pending), dtype=np.uint8).reshape(-1, _DIGEST)
        for first in range(_FOLDERS_OF_DIGESTS):
            with (self.folder / f"{first:02x}").open("ab") as file:
                file.write(digests[digests[:, 0] == first].tobytes())
        self.pending.clear()
        self.spilled = True
