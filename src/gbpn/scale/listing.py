"""Which frames a source holds: folders and buckets, manifests (csv, Parquet), WebDataset's tar shards."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from pathlib import Path, PurePosixPath
from typing import Any
from urllib.parse import urlsplit

from gbpn.errors import GbpnError, InputError
from gbpn.files.guard import shown
from gbpn.formats.images import SUFFIXES
from gbpn.jobs.pairing import MEASUREMENTS, plan
from gbpn.scale.storage import Storage, StoredFile, address, base_name, is_remote, joined, local_path, parent
from gbpn.scale.worklist import ListedFrame

__all__ = ["MANIFESTS", "is_listed", "listed", "source_facts", "tar_shards"]

MANIFESTS = (".csv", ".parquet")
"""Suffixes of tables with one row per frame."""
_COLUMNS = {
    "name": ("id", "frame", "name"),
    "image": ("image",),
    "sparse": ("depth", "sparse", "points"),
    "camera": ("camera", "intrinsics"),
}
"""Field → names that its column may have."""
_ROWS_AT_A_TIME = 4096
"""Of a manifest."""
_RANGE = re.compile(r"\{(\d+)\.\.(\d+)\}")
"""WebDataset's way to name many shards."""


def is_listed(source: str) -> bool:
    """Whether a source is one that only this room reads: remote, a manifest, or tar shards."""
    return is_remote(source) or Path(source).suffix.lower() in (*MANIFESTS, ".tar")


def source_facts(source: str, sparse: str | None, storage: Storage) -> dict[str, Any]:
    """What says that a source is the same as before: its address, and of a manifest its size and time."""
    facts: dict[str, Any] = {"source": address(source), "sparse": address(sparse or "")}
    if _suffix(source) in MANIFESTS:
        entry = storage.find(source)
        if entry is None:
            raise InputError(f"{address(source)}: there is no such manifest")
        facts["manifest"] = [entry.size, entry.changed]
    return facts


def tar_shards(source: str, storage: Storage) -> list[str] | None:
    """The tars of a source, by name; None where it is none."""
    if (found := _RANGE.search(source)) is not None and source.split("?")[0].endswith(".tar"):
        first, last = found.groups()
        numbers = range(int(first), int(last) + 1)
        return [f"{source[: found.start()]}{n:0{len(first)}d}{source[found.end() :]}" for n in numbers]
    if _suffix(source) != ".tar":
        return None
    if "*" not in base_name(source):
        return [source]
    return [entry.uri for entry in _found(source, (".tar",), "tar shard", storage)]


def listed(
    source: str, sparse: str | None, storage: Storage, *, others: bool = False, **pairing: Any
) -> Iterator[ListedFrame]:
    """All frames of a source, in its order; one line per tar where it is made of tars.

    others   measurements come from elsewhere as well, so an image may have no file of its own
    pairing  as `gbpn.jobs.pairing.plan` takes it, for folders of this machine
    """
    if (tars := tar_shards(source, storage)) is not None:
        for tar in tars:
            yield ListedFrame(name=PurePosixPath(base_name(tar)).stem, image=tar)
    elif _suffix(source) in MANIFESTS:
        yield from _of_manifest(source, storage)
    elif (path := local_path(source)) is not None and (sparse is None or not is_remote(sparse)):
        folder = local_path(sparse) if sparse is not None else None
        for job in plan(str(path), None if folder is None else str(folder), others=others, **pairing):
            yield ListedFrame(
                name=job.name,
                image=str(job.image.absolute()),
                sparse="" if job.sparse is None else str(job.sparse.absolute()),
                problem=job.problem,
                left_out=job.left_out,
                settings=json.dumps(job.settings),
            )
    else:
        yield from _of_folders(source, sparse, storage, others)


def _of_folders(source: str, sparse: str | None, storage: Storage, others: bool) -> Iterator[ListedFrame]:
    """Pictures and measurements of two folders, paired by name."""
    images = _found(source, SUFFIXES, "image", storage)
    named: dict[str, str] = {}
    for entry in _found(sparse, MEASUREMENTS, "sparse depth", storage) if sparse is not None else []:
        stem = PurePosixPath(base_name(entry.uri)).stem
        if stem in named:
            raise InputError(f"two measurements for one image: {address(named[stem])}, {address(entry.uri)}")
        named[stem] = entry.uri
    stems = [PurePosixPath(base_name(entry.uri)).stem for entry in images]
    if sparse is None and not others:
        raise InputError("measurements are needed: a SPARSE folder, a manifest, or --points x,y,depth")
    if sparse is not None and not any(stem in named for stem in stems):
        raise InputError(f"no sparse depth of {address(sparse)} has the name of an image: name them alike")
    for stem, entry in zip(stems, images, strict=True):
        problem = "" if stem in named or others else "no sparse depth"
        yield ListedFrame(name=stem, image=entry.uri, sparse=named.get(stem, ""), problem=problem)


def _found(source: str, suffixes: Sequence[str], what: str, storage: Storage) -> list[StoredFile]:
    if _suffix(source) in suffixes and "*" not in base_name(source):
        entry = storage.find(source)
        found = [] if entry is None else [entry]
    else:
        found = [entry for entry in storage.files(source) if _suffix(entry.uri) in suffixes]
    if not found:
        raise InputError(f"{address(source)}: no {what} here; known are {', '.join(suffixes)}")
    return found


def _of_manifest(source: str, storage: Storage) -> Iterator[ListedFrame]:
    """One row after the other; the whole table is never in memory."""
    folder = parent(source)
    number = 0
    for names, rows in _batches(source, storage):
        columns = {
            field: next((c for c in choices if c in names), None) for field, choices in _COLUMNS.items()
        }
        if columns["image"] is None:
            raise InputError(
                f"{address(source)}: a manifest needs a column image, and usually depth (or points) and "
                f"camera; got {shown(', '.join(names))}"
            )
        for row in rows:
            number += 1
            values = {f: str(row[c] or "").strip() if c else "" for f, c in columns.items()}
            yield _of_row(values, folder, f"{address(source)}, row {number}")


def _of_row(values: dict[str, str], folder: str, where: str) -> ListedFrame:
    image, camera = values["image"], values["camera"]
    if not image:
        raise InputError(f"{where}: no image")
    try:
        return _frame_of(values, image, camera, folder)
    except ValueError as error:  # of names that no path or address can be, such as file://[
        raise InputError(f"{where}: not the name of a file ({shown(error)}): mend the row") from error


def _frame_of(values: dict[str, str], image: str, camera: str, folder: str) -> ListedFrame:
    name = values["name"] or _plain_name(image)
    given_numbers = re.fullmatch(r"[-+\d.eE,;\s]+", camera)
    return ListedFrame(
        name=name,
        image=_resolved(image, folder),
        sparse=_resolved(values["sparse"], folder) if values["sparse"] else "",
        camera=camera.replace(";", ",") if given_numbers or not camera else _resolved(camera, folder),
    )


def _plain_name(image: str) -> str:
    """A relative path without its suffix; of an address or an absolute path only its last part."""
    path = PurePosixPath(image)
    if is_remote(image) or path.is_absolute():
        return PurePosixPath(base_name(image)).stem
    return path.with_suffix("").as_posix()


def _resolved(text: str, folder: str) -> str:
    """An address as a manifest gives it: relative to the manifest, or whole; `ValueError` if it is none."""
    if "://" in text:
        urlsplit(text)
    if is_remote(text):
        scheme, query = text.split("://")[0], folder.partition("?")[2]
        same = folder.startswith(f"{scheme}://") and query and "?" not in text
        return f"{text}?{query}" if same else text
    if text.startswith(("/", "file://")):
        return text
    if not is_remote(folder):
        return str((local_path(folder) or Path()).absolute() / text)
    return joined(folder, text)


def _batches(source: str, storage: Storage) -> Iterator[tuple[list[str], list[dict[str, Any]]]]:
    """Names of the columns, and rows, some thousands at a time."""
    import pyarrow as pa
    from pyarrow import csv
    from pyarrow import parquet as pq

    with storage.open(source) as stream:
        try:
            if _suffix(source) == ".parquet":
                for batch in pq.ParquetFile(stream).iter_batches(batch_size=_ROWS_AT_A_TIME):
                    yield batch.schema.names, batch.to_pylist()
                return
            every = {name: pa.string() for choices in _COLUMNS.values() for name in choices}
            table = csv.open_csv(stream, convert_options=csv.ConvertOptions(column_types=every))
            for batch in table:
                yield batch.schema.names, batch.to_pylist()
        except GbpnError:
            raise
        except Exception as error:  # whatever damaged bytes make of themselves in pyarrow
            found = shown(f"{type(error).__name__}: {error}")
            raise InputError(
                f"{address(source)}: not a readable table ({found}); wanted Parquet, or CSV in UTF-8"
            ) from error


def _suffix(uri: str) -> str:
    return PurePosixPath(base_name(uri)).suffix.lower()
