"""Point clouds from files → [N, 3] float64 metres in the cloud's own coordinates.

.bin   KITTI: little-endian float32, x y z intensity
.ply   text or binary, either byte order
.pcd   text, binary or binary_compressed
.npy   [N, 3 or more]
.las   its points as they are stored; .laz needs laspy
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np

from gbpn.errors import DatasetError
from gbpn.files.guard import reading, shown
from gbpn.formats import las_files
from gbpn.formats.arrays import read_npy

__all__ = ["lzf_decompress", "read_points", "read_rated_points"]

_PLY_TYPES = {
    "char": "i1", "int8": "i1", "uchar": "u1", "uint8": "u1",
    "short": "i2", "int16": "i2", "ushort": "u2", "uint16": "u2",
    "int": "i4", "int32": "i4", "uint": "u4", "uint32": "u4",
    "float": "f4", "float32": "f4", "double": "f8", "float64": "f8",
}  # fmt: skip
_PCD_KINDS = {"I": "i", "U": "u", "F": "f"}


def read_points(path: str | Path) -> np.ndarray:
    """[N, 3] float64; points that are not finite are dropped."""
    path = Path(path)
    with reading(path, "point cloud", f"{shown(path.suffix, 20)} with x, y, z"):
        reader = _READERS.get(path.suffix.lower())
        if reader is None:
            raise DatasetError(
                f"{shown(path)}: point clouds are {', '.join(_READERS)}; got {shown(path.suffix)!r}"
            )
        points = np.asarray(reader(path), dtype=np.float64)
        if points.ndim != 2 or points.shape[1] != 3:
            raise ValueError(f"no list of x y z but {list(points.shape)}")
    return points[np.isfinite(points).all(axis=1)]


def read_rated_points(path: str | Path) -> tuple[np.ndarray, np.ndarray | None, np.ndarray | None]:
    """`read_points` with [N] std (metres) and [N] weight (0 to 1); None where the file has no such column.

    Columns of a .ply are called std or sigma, and weight or confidence; numbers that cannot be these are
    something else and are left alone.
    """
    path = Path(path)
    if path.suffix.lower() != ".ply":
        return read_points(path), None, None
    with reading(path, "point cloud", ".ply with x, y, z"):
        columns = _ply_columns(path)
        points = np.stack([columns[axis] for axis in "xyz"], axis=1).astype(np.float64)
    finite = np.isfinite(points).all(axis=1)
    found = []
    for names, most in ((("std", "sigma"), np.inf), (("weight", "confidence"), 1.0)):
        column = next((columns[name].astype(np.float64)[finite] for name in names if name in columns), None)
        possible = column is not None and len(column) and column.min() >= 0 and column.max() <= most
        found.append(column if possible else None)
    return points[finite], found[0], found[1]


def _read_bin(path: Path) -> np.ndarray:
    if size := path.stat().st_size % 16:
        raise ValueError(f"{size} bytes after whole x y z intensity records of 4 float32")
    values = np.fromfile(path, dtype="<f4")
    return values.reshape(-1, 4)[:, :3]


def _read_npy(path: Path) -> np.ndarray:
    values = read_npy(path)
    if values.ndim != 2 or values.shape[1] < 3:
        raise ValueError(f"wanted [N, 3 or more]; got {list(values.shape)}")
    return values[:, :3]


def _read_ply(path: Path) -> np.ndarray:
    columns = _ply_columns(path)
    return np.stack([columns[axis] for axis in "xyz"], axis=1)


def _ply_columns(path: Path) -> dict[str, np.ndarray]:
    """Property → [N] of the vertices."""
    content = path.read_bytes()
    end = content.find(b"end_header")
    if not content.startswith(b"ply") or end < 0:
        raise ValueError("no PLY header")
    body = content[content.index(b"\n", end) + 1 :]
    encoding, elements = _ply_header(content[:end].decode("ascii", errors="replace"))
    if encoding == "ascii":
        return _ply_text(body.decode("ascii"), elements)
    order = {"binary_little_endian": "<", "binary_big_endian": ">"}[encoding]
    start = 0
    for name, count, properties in elements:
        if any(kind == "list" for _, kind in properties):
            raise ValueError(f"element {name} with lists stands before the vertices")
        record = np.dtype([(label, order + _PLY_TYPES[kind]) for label, kind in properties])
        if name == "vertex":
            table = np.frombuffer(body, record, count=count, offset=start)
            return {label: table[label] for label, _ in properties}
        start += record.itemsize * count
    raise ValueError("no vertex element")


def _ply_header(text: str) -> tuple[str, list[tuple[str, int, list[tuple[str, str]]]]]:
    """Encoding and, per element, its name, count and properties (label, type)."""
    encoding = ""
    elements: list[tuple[str, int, list[tuple[str, str]]]] = []
    for line in text.splitlines():
        words = line.split()
        if words[:1] == ["format"]:
            encoding = words[1]
        elif words[:1] == ["element"]:
            if int(words[2]) < 0:
                raise ValueError(f"{words[2]} of element {words[1]}")
            elements.append((words[1], int(words[2]), []))
        elif words[:1] == ["property"]:
            elements[-1][2].append((words[-1], words[1]))
    if encoding not in ("ascii", "binary_little_endian", "binary_big_endian"):
        raise ValueError(f"unknown PLY format {encoding!r}")
    return encoding, elements


def _ply_text(body: str, elements: list[tuple[str, int, list[tuple[str, str]]]]) -> dict[str, np.ndarray]:
    lines = body.splitlines()
    start = 0
    for name, count, properties in elements:
        if name == "vertex":
            labels = [label for label, _ in properties]
            if start + count > len(lines):
                raise ValueError(f"{len(lines)} lines are fewer than the {start + count} that are declared")
            rows = [line.split() for line in lines[start : start + count]]
            table = np.array([[float(word) for word in row[: len(labels)]] for row in rows])
            return dict(zip(labels, table.reshape(-1, len(labels)).T, strict=True))
        start += count
    raise ValueError("no vertex element")


def _read_pcd(path: Path) -> np.ndarray:
    content = path.read_bytes()
    position = content.find(b"\nDATA ")
    if position < 0:
        raise ValueError("no PCD header")
    end = content.index(b"\n", position + 1) + 1
    header = {}
    for line in content[:end].decode("ascii", errors="replace").splitlines():
        words = line.split()
        if words and not words[0].startswith("#"):
            header[words[0]] = words[1:]
    fields, count = header["FIELDS"], int(header["POINTS"][0])
    if count < 0:
        raise ValueError(f"{count} points")
    repeats = [int(word) for word in header.get("COUNT", ["1"] * len(fields))]
    kinds = [_PCD_KINDS[kind] + size for kind, size in zip(header["TYPE"], header["SIZE"], strict=True)]
    record = np.dtype(
        [(f"{field}#{place}", f"<{kind}", (repeat,)) for place, (field, kind, repeat)
         in enumerate(zip(fields, kinds, repeats, strict=True))]
    )  # fmt: skip
    names = {field: record.names[place] for place, field in enumerate(fields) if record.names}
    encoding, body = header["DATA"][0], content[end:]
    if encoding == "ascii":
        first = np.cumsum([0, *repeats])
        table = np.array([line.split() for line in body.decode("ascii").splitlines() if line.strip()][:count])
        columns = [first[fields.index(axis)] for axis in "xyz"]
        return table.reshape(count, -1)[:, columns].astype(np.float64)
    if encoding == "binary":
        rows = np.frombuffer(body, record, count=count)
        return np.stack([rows[names[axis]][:, 0] for axis in "xyz"], axis=1)
    if encoding == "binary_compressed":
        packed, size = np.frombuffer(body, "<u4", count=2)
        if int(size) != record.itemsize * count:
            raise ValueError(f"{size} bytes are not {count} points of {record.itemsize}")
        plain = lzf_decompress(body[8 : 8 + int(packed)], int(size))
        out, start = {}, 0
        for field, kind, repeat in zip(fields, kinds, repeats, strict=True):  # stored field by field
            values = np.frombuffer(plain, f"<{kind}", count=count * repeat, offset=start)
            out[field], start = values[::repeat], start + values.nbytes
        return np.stack([out[axis] for axis in "xyz"], axis=1)
    raise ValueError(f"unknown PCD encoding {encoding!r}")


def lzf_decompress(packed: bytes, size: int) -> bytes:
    """LZF: a control byte below 32 starts a run of literals, others point back into what was written."""
    out = bytearray()
    at = 0
    while at < len(packed) and len(out) <= size:
        control = packed[at]
        at += 1
        if control < 32:
            out += packed[at : at + control + 1]
            at += control + 1
            continue
        length = control >> 5
        if length == 7:
            length += packed[at]
            at += 1
        back = len(out) - ((control & 31) << 8) - packed[at] - 1
        at += 1
        if back < 0:
            raise ValueError("damaged LZF data")
        for place in range(back, back + length + 2):  # may overlap what it writes
            out.append(out[place])
    if len(out) != size:
        raise ValueError(f"damaged LZF data: {len(out)} of {size} bytes")
    return bytes(out)


_READERS: dict[str, Callable[[Path], np.ndarray]] = {
    ".bin": _read_bin,
    ".ply": _read_ply,
    ".pcd": _read_pcd,
    ".npy": _read_npy,
    ".las": las_files.read_las,
    ".laz": las_files.read_laz,
}
