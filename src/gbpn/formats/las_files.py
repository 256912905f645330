"""LAS point clouds of surveyors: the header, and coordinates as whole numbers times a scale plus an offset.

LAZ is the same with compressed records, which `laspy` unpacks in a process of its own; the header is looked
at here first.
"""

from __future__ import annotations

import json
import struct
import subprocess
import sys
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

import numpy as np

from gbpn.errors import BackendError
from gbpn.files.guard import shown

__all__ = ["read_las", "read_laz"]

_HEADER = 227
"""Bytes of the header that every version has."""
_LONG_HEADER = 375
"""Bytes of the header of version 1.4, which counts with 64 bits."""
_RECORD = 54
"""Bytes of the shortest variable record behind the header."""
_COMPRESSED = 0x80
"""Set in the point format of LAZ."""
_MOST_PACKED = 100
"""Times that compressed records may grow; surveys shrink to a tenth."""

_MEMORY, _ROOM = 2 << 30, 1000
"""Bytes that the unpacking process may take: for itself, and for each point."""
_SECONDS = 600
_UNPACK = """
import json, sys
sys.path[:] = json.loads(sys.argv[3])
try:
    import resource
    resource.setrlimit(resource.RLIMIT_AS, (int(sys.argv[2]),) * 2)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
except ImportError:
    pass
import laspy, numpy
sys.stdout.buffer.write(numpy.ascontiguousarray(laspy.read(sys.argv[1]).xyz, numpy.float64).tobytes())
"""


@dataclass(frozen=True, kw_only=True)
class _Header:
    start: int
    """Where the points begin."""
    step: int
    """Bytes of a point."""
    count: int
    scale: np.ndarray
    offset: np.ndarray
    """[3] each: coordinate = whole number · scale + offset."""
    packed: bool


def read_las(path: Path) -> np.ndarray:
    """[N, 3] float64."""
    header = _header(path)
    if header.packed:
        raise ValueError("compressed records: call it .laz")
    size = path.stat().st_size - header.start
    if header.count * header.step > size:
        raise ValueError(f"{header.count} points of {header.step} bytes are declared, {size} bytes are there")
    with open(path, "rb") as file:
        file.seek(header.start)
        content = file.read(header.count * header.step)
    record = np.dtype({"names": ["xyz"], "formats": ["(3,)<i4"], "offsets": [0], "itemsize": header.step})
    whole: np.ndarray = np.frombuffer(content, record)["xyz"]
    return np.asarray(whole * header.scale + header.offset)


def read_laz(path: Path) -> np.ndarray:
    """[N, 3] float64, unpacked by laspy."""
    header = _header(path)
    if not header.packed:
        return read_las(path)
    most = _MOST_PACKED * path.stat().st_size
    if header.count * header.step > most:
        raise ValueError(f"{header.count} points of {header.step} bytes are declared, {most} are believed")
    if find_spec("laspy") is None:
        raise BackendError(f"{shown(path)}: reading LAZ needs a package: pip install laspy[lazrs]")
    return _unpacked(path, header.count)


def _unpacked(path: Path, count: int) -> np.ndarray:
    """[N, 3] from a process of its own: damaged records end the one that unpacks them."""
    words = [str(path.resolve()), str(_MEMORY + _ROOM * count), json.dumps([p for p in sys.path if p])]
    done = subprocess.run(
        [sys.executable, "-I", "-c", _UNPACK, *words], capture_output=True, timeout=_SECONDS, check=False
    )
    if done.returncode or len(done.stdout) != 24 * count:
        raise ValueError(f"damaged records: the process that unpacks them ended with {done.returncode}")
    return np.frombuffer(done.stdout, np.float64).reshape(count, 3)


def _header(path: Path) -> _Header:
    """What a file says of its points, where that can be."""
    size = path.stat().st_size
    with open(path, "rb") as file:
        head = file.read(_LONG_HEADER)
    if head[:4] != b"LASF" or len(head) < _HEADER:
        raise ValueError("no LAS header")
    long = head[25] >= 4 and len(head) == _LONG_HEADER
    own, start, records = struct.unpack_from("<HII", head, 94)
    kind, step, count = struct.unpack_from("<BHI", head, 104)
    if long:
        first_after, after, count_long = struct.unpack_from("<QIQ", head, 235)
        count = count_long or count
        if after and (first_after > size or after > size // _RECORD):
            raise ValueError(f"{after} records after the points in a file of {size} bytes")
    if not _HEADER <= own <= start <= size or records * _RECORD > start - own:
        raise ValueError(f"points that begin at byte {start} of {size}, after {records} records")
    if step < 12:
        raise ValueError(f"points of {step} bytes")
    numbers = np.frombuffer(head, "<f8", count=6, offset=131)
    if not np.isfinite(numbers).all() or not (numbers[:3] != 0).all():
        raise ValueError(f"a scale and an offset of {numbers.tolist()}")
    return _Header(
        start=start,
        step=step,
        count=count,
        scale=numbers[:3],
        offset=numbers[3:],
        packed=bool(kind & _COMPRESSED),
    )
