"""Every message between the page and the server, and their binary form; `web/src/protocol.ts` is its mirror.

    frame = length of the header, uint32 | header, JSON in UTF-8 | arrays

All little-endian. The header and every array start at a multiple of 8 bytes; what is between is zero. The
header holds `kind`, the plain fields of the message, and `arrays`: a list of [name, type, shape], in the
order in which their bytes follow. Types are u1, i4 and f4.
"""

from __future__ import annotations

import dataclasses
import json
import struct
import types
from dataclasses import dataclass
from typing import Annotated, Any, NamedTuple, Union, get_args, get_origin, get_type_hints

import numpy as np

from gbpn.errors import InputError

__all__ = [
    "FROM_PAGE",
    "FROM_SERVER",
    "OFFERS",
    "VERSION",
    "Array",
    "Bytes",
    "Compare",
    "Compared",
    "Export",
    "Failed",
    "File",
    "Film",
    "FilmStill",
    "FindOutliers",
    "Listen",
    "Listened",
    "Map",
    "Maps",
    "Numbers",
    "OpenScene",
    "OpenUpload",
    "Opened",
    "Outliers",
    "Pixels",
    "Places",
    "ProtocolError",
    "SetPoints",
    "Suggest",
    "Suggested",
    "TakePattern",
    "Taken",
    "Waiting",
    "Welcome",
    "decode",
    "encode",
]

OFFERS = ("suggest", "film", "listen", "compare", "outliers")
"""What the server can be asked besides answers and files; pages without a server offer less."""
VERSION = 4
"""Of this protocol; the page compares it with its own."""
_ALIGNMENT = 8
_MOST_HEADER = 1_000_000
"""Bytes of a header that are looked at."""
Array = np.ndarray


class ProtocolError(InputError):
    """A frame that is none, or a message that is not as agreed."""


class _Stored(NamedTuple):
    """How an array travels."""

    dtype: str
    axes: int


Bytes = Annotated[Array, _Stored("u1", 1)]
Pixels = Annotated[Array, _Stored("u1", 3)]
Places = Annotated[Array, _Stored("i4", 1)]
Numbers = Annotated[Array, _Stored("f4", 1)]
Map = Annotated[Array, _Stored("f4", 2)]


# From the page.


@dataclass(frozen=True, kw_only=True)
class OpenScene:
    """Show an embedded scene."""

    id: int
    name: str


@dataclass(frozen=True, kw_only=True)
class OpenUpload:
    """Show a picture of the user's, perhaps with depth."""

    id: int
    name: str
    """What it is called on the page."""
    depth_type: str
    """Suffix of the depth file: ".png", ".npy", ".csv", ".txt", ".ply"; empty if there is none."""
    scale: float
    """What integer depth is divided by; 0: not said."""
    camera: list[float]
    """fx, fy, cx, cy in pixels of the picture; empty: from EXIF, else a stated guess."""
    camera_type: str
    """Suffix of the camera file, such as ".json"; empty if there is none."""
    picture: Bytes
    depth: Bytes | None = None
    camera_file: Bytes | None = None
    """A calibration; `camera` wins."""


@dataclass(frozen=True, kw_only=True)
class SetPoints:
    """All measurements there are now."""

    id: int
    x: Places
    y: Places
    depth: Numbers
    std: Numbers


@dataclass(frozen=True, kw_only=True)
class TakePattern:
    """Measure the dense map as a sensor would, instead of what was measured."""

    id: int
    pattern: str
    """"points", "lidar", "tof" or "corners"."""
    count: int
    seed: int


@dataclass(frozen=True, kw_only=True)
class Suggest:
    """Where to measure next."""

    id: int
    count: int


@dataclass(frozen=True, kw_only=True)
class Film:
    """Every sweep of belief propagation."""

    id: int


@dataclass(frozen=True, kw_only=True)
class Listen:
    """Which pixels one pixel listens to."""

    id: int
    x: int
    y: int


@dataclass(frozen=True, kw_only=True)
class Compare:
    """Another answer for the same measurements."""

    id: int
    to: str
    """"first": the first stage alone; "exact": the field's exact mean."""


@dataclass(frozen=True, kw_only=True)
class FindOutliers:
    """Measurements that the others contradict."""

    id: int
    limit: float


@dataclass(frozen=True, kw_only=True)
class Export:
    """A file to take away."""

    id: int
    what: str


# From the server. `reply` is the id of the message that is answered.


@dataclass(frozen=True, kw_only=True)
class Welcome:
    """The first message of a connection."""

    protocol: int
    version: str
    model: str
    stages: int
    has_std: bool
    has_exact: bool
    learned_edges: bool
    scenes: list[str]
    exports: list[str]
    most_points: int
    upload_bytes: int
    offers: list[str]
    """Of `OFFERS`: what can be asked for besides answers and files."""


@dataclass(frozen=True, kw_only=True)
class Opened:
    """A picture is ready to be measured."""

    reply: int
    name: str
    intrinsics: list[float]
    """fx, fy, cx, cy."""
    notices: list[str]
    picture: Pixels
    """[H, W, 3] RGB."""
    truth: Map | None = None
    """[H, W] metres, 0 where unknown."""
    x: Places
    """Measurements that came along."""
    y: Places
    depth: Numbers


@dataclass(frozen=True, kw_only=True)
class Maps:
    """An answer."""

    reply: int
    """The SetPoints or TakePattern that it answers."""
    stage: str
    """"first": at once and to be refined; "last"."""
    seconds: float
    notices: list[str]
    depth: Map
    """[H, W] metres; NaN where nothing is known."""
    confidence: Map | None = None
    """[H, W] in [0, 1); with the last stage only, as sigmas: it takes longer than the first one's depth."""
    std: Map | None = None
    """[H, W] metres."""


@dataclass(frozen=True, kw_only=True)
class Taken:
    """What a sensor would have measured."""

    reply: int
    x: Places
    y: Places
    depth: Numbers


@dataclass(frozen=True, kw_only=True)
class Suggested:
    """Pixels worth a measurement, best first."""

    reply: int
    x: Places
    y: Places
    gain: Numbers
    """Share of the summed variance that each is expected to take away."""


@dataclass(frozen=True, kw_only=True)
class FilmStill:
    """One sweep of the film."""

    reply: int
    number: int
    """From 0."""
    count: int
    """Stills of the whole film."""
    stage: int
    iteration: int
    part: str
    depth: Map


@dataclass(frozen=True, kw_only=True)
class Listened:
    """Which pixels one pixel listens to."""

    reply: int
    x: int
    y: int
    strength: Map
    """[H, W] in [0, 1]."""
    shares: Numbers
    """Of each measurement, in the order in which they were sent."""


@dataclass(frozen=True, kw_only=True)
class Compared:
    """The other answer."""

    reply: int
    to: str
    depth: Map


@dataclass(frozen=True, kw_only=True)
class Outliers:
    """Measurements that the others contradict, worst first."""

    reply: int
    x: Places
    y: Places
    expected: Numbers
    sigmas: Numbers


@dataclass(frozen=True, kw_only=True)
class File:
    """A file to take away."""

    reply: int
    name: str
    media_type: str
    content: Bytes


@dataclass(frozen=True, kw_only=True)
class Waiting:
    """All workers are busy with others."""

    reply: int
    ahead: int
    """Computations before this one."""


@dataclass(frozen=True, kw_only=True)
class Failed:
    """What was asked for cannot be done, and what to do."""

    reply: int
    message: str


FROM_PAGE = (
    OpenScene, OpenUpload, SetPoints, TakePattern, Suggest, Film, Listen, Compare, FindOutliers, Export,
)  # fmt: skip
FROM_SERVER = (
    Welcome, Opened, Maps, Taken, Suggested, FilmStill, Listened, Compared, Outliers, File, Waiting, Failed,
)  # fmt: skip


def _layout(kind: type) -> tuple[dict[str, _Stored], dict[str, Any], frozenset[str]]:
    """Arrays of a message by name, its plain fields with their types, and which of all may be left out."""
    arrays, plain = {}, {}
    for name, hint in get_type_hints(kind, include_extras=True).items():
        stored = [mark for one in (hint, *get_args(hint)) for mark in getattr(one, "__metadata__", ())]
        if stored:
            arrays[name] = stored[0]
        else:
            plain[name] = hint
    optional = (field.name for field in dataclasses.fields(kind) if field.default is None)
    return arrays, plain, frozenset(optional)


_LAYOUTS = {kind.__name__: _layout(kind) for kind in (*FROM_PAGE, *FROM_SERVER)}


def encode(message: Any) -> bytes:
    """The frame of a message."""
    stored, plain, _ = _LAYOUTS[type(message).__name__]
    header: dict[str, Any] = {"kind": type(message).__name__}
    header |= {name: getattr(message, name) for name in plain}
    arrays = {
        name: np.ascontiguousarray(value, dtype="<" + how.dtype)
        for name, how in stored.items()
        if (value := getattr(message, name)) is not None
    }
    header["arrays"] = [[name, stored[name].dtype, list(values.shape)] for name, values in arrays.items()]
    text = json.dumps(header, ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode()
    parts = [struct.pack("<II", len(text), 0), text, _padding(len(text))]
    for values in arrays.values():
        parts += [values.tobytes(), _padding(values.nbytes)]
    return b"".join(parts)


def decode(frame: bytes, kinds: tuple[type, ...] | None = None) -> Any:
    """The message of a frame, one of `kinds` (default: the page's); anything else raises `ProtocolError`."""
    header, start = _header(frame)
    listed = header.pop("arrays", None)
    name = header.pop("kind", None)
    kind = next((one for one in kinds or FROM_PAGE if one.__name__ == name), None)
    if kind is None:
        raise ProtocolError(f"unknown message {str(name)[:40]!r}: is the page as new as the server?")
    stored, plain, optional = _LAYOUTS[kind.__name__]
    arrays = _arrays(frame, start, listed)
    for part, wanted, got in (("array", set(stored), set(arrays)), ("field", set(plain), set(header))):
        if missing := wanted - got - optional:
            raise ProtocolError(f"{name} lacks the {part} {min(missing)!r}")
        if unknown := got - wanted:
            raise ProtocolError(f"{name} has no {part} {min(unknown)[:40]!r}")
    for field, values in arrays.items():
        if (values.dtype.str[1:], values.ndim) != stored[field]:
            raise ProtocolError(f"{name}.{field} must be {stored[field].dtype} of {stored[field].axes} axes")
    for field, value in header.items():
        if not _fits(value, plain[field]):
            wanted_type = getattr(plain[field], "__name__", str(plain[field]))
            raise ProtocolError(f"{name}.{field} must be {wanted_type}; got {str(value)[:40]!r}")
    return kind(**header, **arrays)


def _header(frame: bytes) -> tuple[dict[str, Any], int]:
    """The header, and where the arrays start."""
    if len(frame) < _ALIGNMENT:
        raise ProtocolError(f"a frame has at least {_ALIGNMENT} bytes; got {len(frame)}")
    (length,) = struct.unpack_from("<I", frame)
    if length > min(_MOST_HEADER, len(frame) - _ALIGNMENT):
        raise ProtocolError(f"the header is said to have {length} bytes in a frame of {len(frame)}")
    try:
        header = json.loads(
            bytes(frame[_ALIGNMENT : _ALIGNMENT + length]).decode(), parse_constant=_no_constant
        )
        json.dumps(
            header, ensure_ascii=False
        ).encode()  # halves of letters, such as \\ud800, cannot be sent on
    except (ValueError, RecursionError) as error:
        raise ProtocolError(f"the header is not JSON ({str(error)[:80]})") from error
    if not isinstance(header, dict):
        raise ProtocolError("the header must be an object")
    return header, _ALIGNMENT + length + len(_padding(length))


def _no_constant(text: str) -> Any:
    raise ValueError(f"{text} is not JSON")


def _arrays(frame: bytes, start: int, listed: Any) -> dict[str, Array]:
    """Views into the frame, which must hold exactly what is listed."""
    if not isinstance(listed, list):
        raise ProtocolError("the header must list its arrays")
    out: dict[str, Array] = {}
    for entry in listed:
        if not (isinstance(entry, list) and len(entry) == 3 and isinstance(entry[0], str)):
            raise ProtocolError("an array is listed as [name, type, shape]")
        name, kind, shape = entry
        whole = isinstance(shape, list) and all(type(n) is int and 0 <= n < 2**31 for n in shape)
        if kind not in ("u1", "i4", "f4") or not whole or not 1 <= len(shape) <= 3 or name in out:
            raise ProtocolError(f"array {name[:40]!r} must be u1, i4 or f4 with 1 to 3 axes, once")
        count = 1
        for n in shape:
            count *= n
        size = count * int(kind[1])
        if start + size > len(frame):
            raise ProtocolError(f"array {name[:40]!r} is cut off")
        out[name] = np.frombuffer(frame, "<" + kind, count, start).reshape(shape)
        start += size + len(_padding(size))
    if start != len(frame):
        raise ProtocolError(f"the frame has {len(frame)} bytes; {start} were announced")
    return out


def _fits(value: Any, hint: Any) -> bool:
    if get_origin(hint) is list:
        return isinstance(value, list) and all(_fits(one, get_args(hint)[0]) for one in value)
    if get_origin(hint) in (Union, types.UnionType):
        return any(_fits(value, one) for one in get_args(hint))
    if hint is float:
        return type(value) in (int, float) and abs(value) < 1e300
    if hint is int:
        return type(value) is int and abs(value) < 2**53
    return type(value) is hint


def _padding(length: int) -> bytes:
    return bytes(-length % _ALIGNMENT)
