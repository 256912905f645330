"""Tables of finished frames: one Parquet file of each shard, which appears after all its outputs."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from gbpn.errors import StorageError
from gbpn.scale.storage import Storage, address, base_name, require_arrow
from gbpn.scale.worklist import own_file

__all__ = ["FrameRecord", "ShardReport", "commit", "committed", "read_quarantine", "read_records", "uncommit"]

_REPORT = b"gbpn.report"
"""Where a table keeps the report of its shard."""
_QUARANTINE = ("frame", "image", "sparse", "error", "model", "weights", "gbpn", "worker")
"""Columns of the table of failures."""


@dataclass(frozen=True, kw_only=True)
class FrameRecord:
    """One row."""

    frame: str
    state: str
    """"written", "left out" or "failed"."""
    image: str
    sparse: str
    files: list[str] = field(default_factory=list)
    """Relative to the output; of a tar, its members."""
    packed: str = ""
    """The tar they are in, if any."""
    size: int = 0
    """Bytes of all files."""
    contents: list[tuple[str, bytes]] = field(default_factory=list)
    """Of --pack parquet: the files themselves."""
    height: int = 0
    width: int = 0
    measurements: int = 0
    dropped: int = 0
    observed: float = 0.0
    """Share of pixels that a measurement reached."""
    sigma_10: float | None = None
    """Metres; a tenth of the observed pixels are surer than this."""
    sigma_50: float | None = None
    sigma_90: float | None = None
    notices: list[str] = field(default_factory=list)
    error: str = ""
    seconds: float = 0.0
    seconds_read: float = 0.0
    seconds_network: float = 0.0
    seconds_inference: float = 0.0
    seconds_write: float = 0.0
    model: str = ""
    weights: str = ""
    """Checksum."""
    gbpn: str = ""
    """Version."""
    worker: str = ""


@dataclass(frozen=True, kw_only=True)
class ShardReport:
    """What a worker says of a shard."""

    shard: int
    state: str
    """"done"; "kept": was committed before; "postponed": the storage failed; "fatal": the run must end."""
    written: int = 0
    left_out: int = 0
    failed: int = 0
    frames: int = 0
    seconds: float = 0.0
    """Of the whole shard, from its first request to its record."""
    processor: float = 0.0
    """Seconds of processor time in them, threads included."""
    read: float = 0.0
    network: float = 0.0
    inference: float = 0.0
    write: float = 0.0
    bytes_read: int = 0
    bytes_written: int = 0
    retried: int = 0
    """Requests to the storage that had to be repeated."""
    worker: str = ""
    launch: str = ""
    """Which start of the driver it was done under."""
    memory: int = 0
    """Resident bytes of the worker afterwards."""
    message: str = ""

    def as_json(self) -> str:
        """For the wire and for the table's metadata."""
        return json.dumps(asdict(self))

    @classmethod
    def of_json(cls, text: str | bytes) -> ShardReport:
        """The same back."""
        return cls(**json.loads(text))


def commit(output: str, rows: Sequence[FrameRecord], report: ShardReport, storage: Storage) -> None:
    """The tables of a shard: first the frames that failed, at last the record that makes it count."""
    failed = [row for row in rows if row.state == "failed"]
    quarantine = _place(output, "quarantine", report.shard)
    if failed:
        storage.write(quarantine, _quarantine_table(failed))
    elif storage.find(quarantine) is not None:  # of an earlier try that was not committed
        storage.delete(quarantine)
    done = [row for row in rows if row.state != "failed"]
    storage.write(_place(output, "records", report.shard), _record_table(done, report))


def committed(output: str, shard: int, storage: Storage) -> ShardReport | None:
    """What was said of a shard that is finished; None for others."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    place = _place(output, "records", shard)
    if storage.find(place) is None:
        return None
    try:
        with storage.open(place) as file:
            found = pq.read_schema(file).metadata[_REPORT]
        return replace(ShardReport.of_json(found), state="kept")
    except (pa.ArrowInvalid, KeyError, TypeError, ValueError) as error:
        raise StorageError(f"{address(place)} is damaged: remove it and repeat the command") from error


def uncommit(output: str, storage: Storage) -> int:
    """Take back the shards with failed frames, so that they are done anew; how many there were."""
    names = [base_name(entry.uri) for entry in _tables(output, "quarantine", storage)]
    for name in names:
        storage.delete(own_file(output, f"records/{name}"))
    return len(names)


def read_records(output: str, storage: Storage | None = None, *, contents: bool = False) -> Any:
    """The table of all finished frames as a pyarrow table, in the order of the source.

    contents  with the files themselves, where they were packed into the tables
    """
    leave = set() if contents else {"contents"}
    return _read(output, "records", _record_schema(), storage or Storage(), leave)


def read_quarantine(output: str, storage: Storage | None = None) -> Any:
    """The table of all frames that failed, with their errors."""
    return _read(output, "quarantine", _quarantine_schema(), storage or Storage(), set())


def _read(output: str, kind: str, schema: Any, storage: Storage, leave: set[str]) -> Any:
    import pyarrow as pa
    import pyarrow.parquet as pq

    wanted = [name for name in schema.names if name not in leave]
    tables = [
        pq.read_table(io.BytesIO(storage.read(entry.uri)), columns=wanted).replace_schema_metadata()
        for entry in _tables(output, kind, storage)
    ]
    return pa.concat_tables(tables) if tables else schema.empty_table().select(wanted)


def _tables(output: str, kind: str, storage: Storage) -> Iterator[Any]:
    require_arrow()
    try:
        yield from storage.files(own_file(output, f"{kind}"))
    except StorageError as error:
        if error.passing or "no such" not in str(error):
            raise


def _place(output: str, kind: str, shard: int) -> str:
    return own_file(output, f"{kind}/shard-{shard:010d}.parquet")


def _record_schema() -> Any:
    import pyarrow as pa

    texts, whole, real = pa.list_(pa.string()), pa.int64(), pa.float64()
    kinds = {
        "files": texts,
        "notices": texts,
        "contents": pa.map_(pa.string(), pa.binary()),
        **dict.fromkeys(("size", "height", "width", "measurements", "dropped"), whole),
        **dict.fromkeys(("observed", "sigma_10", "sigma_50", "sigma_90", "seconds"), real),
        **{f"seconds_{part}": real for part in ("read", "network", "inference", "write")},
    }
    names = [name for name in FrameRecord.__dataclass_fields__ if name != "error"]
    return pa.schema([(name, kinds.get(name, pa.string())) for name in names])


def _quarantine_schema() -> Any:
    import pyarrow as pa

    return pa.schema([(name, pa.string()) for name in _QUARANTINE])


def _record_table(rows: Sequence[FrameRecord], report: ShardReport) -> bytes:
    schema = _record_schema().with_metadata({_REPORT: report.as_json().encode()})
    return _parquet(rows, schema)


def _quarantine_table(rows: Sequence[FrameRecord]) -> bytes:
    return _parquet(rows, _quarantine_schema())


def _parquet(rows: Sequence[FrameRecord], schema: Any) -> bytes:
    import pyarrow as pa
    import pyarrow.parquet as pq

    columns = {name: [getattr(row, name) for row in rows] for name in schema.names}
    buffer = io.BytesIO()
    pq.write_table(pa.table(columns, schema=schema), buffer, compression="zstd")
    return buffer.getvalue()
