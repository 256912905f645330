"""Many files in one, and messages: tar shards, tables of frames, projects of the studio, what it is sent."""

from __future__ import annotations

import io
import json
import struct
import tarfile
import zipfile
from functools import partial
from pathlib import Path

import numpy as np
from PIL import Image

from gbpn.formats.images import read_image
from gbpn.formats.point_clouds import read_points
from gbpn.formats.point_tables import read_point_table
from gbpn.jobs.project_files import read_project, unpacked
from gbpn.scale.listing import listed
from gbpn.scale.storage import Storage
from gbpn.scale.tar_shards import samples
from gbpn.studio import protocol

from .making import CAMERA, Seed, depth, npy, pixels, saved


def _shard(form: int, **headers: str) -> bytes:
    """Two frames; the second one's members carry extended `headers`."""
    out = io.BytesIO()
    files = {"png": saved(Image.fromarray(pixels()), "PNG"), "depth.npy": npy(depth())}
    with tarfile.open(fileobj=out, mode="w", format=form) as tar:
        for number in range(2):
            for ending, content in files.items():
                member = tarfile.TarInfo(f"room/{number:04d}.{ending}")
                member.size = len(content)
                if number:
                    member.pax_headers = dict(headers)
                tar.addfile(member, io.BytesIO(content))
    return out.getvalue()


def _unpacked(path: Path) -> object:
    with path.open("rb") as stream:
        return len([one.image for one in samples(stream, path.parent / "in")])


def tars() -> list[Seed]:
    """Shards with plain headers, and with those that name sizes and times in words."""
    return [
        Seed(name="plain.tar", content=_shard(tarfile.USTAR_FORMAT), read=_unpacked),
        Seed(name="gnu.tar", content=_shard(tarfile.GNU_FORMAT), read=_unpacked),
        Seed(
            name="words.tar",
            content=_shard(tarfile.PAX_FORMAT, mtime="1.5", comment="x", uname="someone"),
            read=_unpacked,
        ),
    ]


def _rows(path: Path) -> object:
    return len(list(listed(str(path), None, Storage())))


def manifests() -> list[Seed]:
    """The same rows as CSV and as Parquet, packed in two ways."""
    import pyarrow as pa
    from pyarrow import parquet

    rows = {
        "id": ["a", "b/c", "d"],
        "image": ["color/0.png", "color/1.png", "file:///nowhere/2.png"],
        "depth": ["depth/0.png", "", "depth/2.npy"],
        "camera": ["", CAMERA, "camera.txt"],
    }
    lines = [",".join(rows), *(",".join(row) for row in zip(*rows.values(), strict=True))]
    out = [Seed(name="frames.csv", content=("\n".join(lines) + "\n").encode(), read=_rows)]
    for kind in ("NONE", "SNAPPY"):
        stored = io.BytesIO()
        parquet.write_table(pa.table(rows), stored, compression=kind)
        out.append(Seed(name=f"{kind.lower()}.parquet", content=stored.getvalue(), read=_rows))
    return out


def _project(path: Path) -> object:
    place = path.parent / "out"
    place.mkdir()
    photo, table, _ = unpacked(read_project(path), place)
    return read_image(photo), read_point_table(table)


def _zipped(kind: int, **files: bytes) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", kind) as packed:
        for name, content in files.items():
            packed.writestr(name, content)
    return out.getvalue()


def _member(path: Path, *, name: str, rest: dict[str, bytes]) -> object:
    """A damaged member of a ZIP that is whole."""
    whole = path.with_name("whole.gbpn")
    whole.write_bytes(_zipped(zipfile.ZIP_STORED, **{**rest, name: path.read_bytes()}))
    return _project(whole)


def projects() -> list[Seed]:
    """A project, and each of its files by itself, so that no checksum hides what is behind."""
    told = {
        "format": "gbpn-project", "version": 1, "written_by": "test", "name": "my photo",
        "photo": "photo.png", "size": [6, 8], "camera": [20, 20, 7.5, 5.5], "how": {"keep_measured": True},
    }  # fmt: skip
    files = {
        "project.json": json.dumps(told).encode(),
        "points.csv": b"x,y,depth,std\n0,0,2.5,0\n7,5,1.25,0.1\n",
        "photo.png": saved(Image.fromarray(pixels()), "PNG"),
    }
    out = [
        Seed(name=f"{name}.gbpn", content=_zipped(kind, **files), read=_project)
        for name, kind in (("stored", zipfile.ZIP_STORED), ("deflated", zipfile.ZIP_DEFLATED))
    ]
    return out + [
        Seed(name=f"in/{name}", content=content, read=partial(_member, name=name, rest=files))
        for name, content in files.items()
    ]


def _message(path: Path) -> object:
    return protocol.decode(path.read_bytes()).id


def messages() -> list[Seed]:
    """What the studio's page sends."""
    numbers, whole = np.ones(3, np.float32), np.arange(3, dtype=np.int32)
    sent = (
        protocol.SetPoints(id=1, x=whole, y=whole, depth=numbers, std=numbers),
        protocol.TakePattern(id=2, pattern="tof", count=8, seed=1),
        protocol.OpenUpload(
            id=3,
            name="a.png",
            depth_type=".npy",
            scale=0.0,
            camera=[20.0, 20.0, 7.5, 5.5],
            camera_type="",
            picture=np.frombuffer(saved(Image.fromarray(pixels()), "PNG"), np.uint8),
            depth=np.frombuffer(npy(depth()), np.uint8),
        ),
        protocol.Listen(id=4, x=3, y=2),
    )
    return [
        Seed(name=f"{type(one).__name__}.frame", content=protocol.encode(one), read=_message) for one in sent
    ]


def surveys() -> list[Seed]:
    """A LAS file of 20 points, which is read without a package."""
    head, record = 227, 20
    points = np.random.default_rng(8).integers(-5000, 5000, (20, 3)).astype("<i4")
    content = bytearray(head)
    content[:4] = b"LASF"
    struct.pack_into("<BB", content, 24, 1, 2)
    struct.pack_into("<HI", content, 94, head, head)
    struct.pack_into("<BHI", content, 104, 0, record, len(points))
    struct.pack_into("<6d", content, 131, 1e-3, 1e-3, 1e-3, 0, 0, 0)
    rows = np.zeros((len(points), record), np.uint8)
    rows[:, :12] = points.view(np.uint8).reshape(len(points), 12)
    return [Seed(name="survey.las", content=bytes(content) + rows.tobytes(), read=read_points)]
