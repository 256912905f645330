"""Messages of ROS 1 and ROS 2 ↔ arrays: images, depth images, point clouds, transforms, times.

Messages are whatever has the fields of their definition: those that `rosbags` reads and those that `rclpy`
hands over alike.
"""

from __future__ import annotations

import io
from typing import Any

import numpy as np
from PIL import Image

from gbpn.errors import DatasetError
from gbpn.files.guard import require_size, shown
from gbpn.formats.images import KINDS, picture_pixels
from gbpn.recordings.timestamps import NANOSECONDS

__all__ = [
    "cloud_of",
    "depth_of",
    "image_fields",
    "nanoseconds_of",
    "picture_of",
    "seconds_of",
    "timed_cloud_of",
    "transform_of",
]

_CHANNELS = {"rgb8": (3, "RGB"), "bgr8": (3, "BGR"), "rgba8": (4, "RGB"), "bgra8": (4, "BGR"), "mono8": (1,
""),
             "8uc1": (1, ""), "8uc3": (3, "BGR")}  # fmt: skip
"""Encoding → channels of a byte each, and their order; OpenCV's 8UC3 is blue, green, red."""
_WIDE = ("mono16", "16uc1")
_FLOAT = "32fc1"
_MILLIMETRES = 1000
"""ROS's convention for depth images of 16 bits (REP 118)."""
_COMPRESSED_DEPTH_HEADER = 12
"""Bytes before the PNG of a compressedDepth image."""
_POINT_TYPES = {1: "i1", 2: "u1", 3: "i2", 4: "u2", 5: "i4", 6: "u4", 7: "f4", 8: "f8"}
"""PointField's constants."""
_POINT_TIMES = ("t", "offset_time", "time", "timestamp")
"""Names of fields that say when each point was measured."""
_CLOCK = 1e6
"""Seconds from which on a time is the clock's, not the scan's."""


def nanoseconds_of(message: Any) -> int:
    """Time in the header of a message; 0 where nobody set it."""
    stamp = message.header.stamp
    if hasattr(stamp, "secs"):  # as rospy calls them
        return int(stamp.secs) * NANOSECONDS + int(stamp.nsecs)
    return int(stamp.sec) * NANOSECONDS + int(stamp.nanosec)


def seconds_of(message: Any) -> float:
    """The same in seconds, as `gbpn.Live` takes it."""
    return nanoseconds_of(message) / NANOSECONDS


def picture_of(message: Any) -> np.ndarray:
    """[H, W, 3] uint8 or uint16 RGB of an Image or a CompressedImage."""
    if not hasattr(message, "encoding"):
        return _decoded(message)
    name = str(message.encoding).lower()
    if name in _WIDE:
        return np.repeat(_rows(message, "u2")[..., None], 3, axis=2)
    if name not in _CHANNELS:
        known = ", ".join((*_CHANNELS, *_WIDE))
        raise DatasetError(
            f"images encoded as {shown(message.encoding)!r} are not understood; {known} and compressed "
            f"ones are: "
            "convert them first (image_proc turns bayer into rgb8)"
        )
    channels, order = _CHANNELS[name]
    pixels = _rows(message, "u1", channels).reshape(message.height, message.width, channels)
    if channels == 1:
        return np.repeat(pixels, 3, axis=2)
    return np.ascontiguousarray(pixels[..., :3] if order == "RGB" else pixels[..., 2::-1])


def depth_of(message: Any) -> np.ndarray:
    """[H, W] float32 metres of a depth image: 16UC1 in millimetres, 32FC1 in metres; NaN becomes 0."""
    if not hasattr(message, "encoding"):
        return _decoded_depth(message)
    name = str(message.encoding).lower()
    if name in _WIDE:
        return _rows(message, "u2").astype(np.float32) / _MILLIMETRES
    if name != _FLOAT:
        raise DatasetError(
            f"a depth image is 16UC1 (millimetres) or 32FC1 (metres); got {shown(message.encoding)!r}: "
            "is this the depth topic?"
        )
    metres = _rows(message, "f4").astype(np.float32)
    return np.where(np.isfinite(metres) & (metres > 0), metres, np.float32(0))


def cloud_of(message: Any) -> np.ndarray:
    """[N, 3] float64 of a PointCloud2; points that are not finite, the scanner's misses, are left out."""
    return timed_cloud_of(message)[0]


def timed_cloud_of(message: Any) -> tuple[np.ndarray, np.ndarray | None]:
    """`cloud_of`, and [N] nanoseconds of each point from the time in the header; None where no field says.

    Drivers call the field t or offset_time (nanoseconds), time (seconds) or timestamp (seconds of the clock).
    """
    fields = {field.name: field for field in message.fields}
    missing = [axis for axis in "xyz" if axis not in fields]
    if missing:
        raise DatasetError(
            f"a point cloud has fields x, y, z; got {shown(', '.join(fields))}: choose another topic"
        )
    order = ">" if message.is_bigendian else "<"
    clock = next((name for name in _POINT_TIMES if name in fields), None)
    read = [*"xyz", *([clock] if clock else [])]
    kinds = [order + _POINT_TYPES[int(fields[name].datatype)] for name in read]
    offsets = [int(fields[name].offset) for name in read]
    step, width, height = int(message.point_step), int(message.width), int(message.height)
    record = np.dtype({"names": read, "formats": kinds, "offsets": offsets, "itemsize": step})
    data = np.frombuffer(message.data, np.uint8)
    row = int(message.row_step) or step * width
    if row < step * width or len(data) < row * max(height - 1, 0) + step * width:
        raise DatasetError(f"a point cloud of {height}×{width} points of {step} bytes; got {len(data)} bytes")
    lines = [np.frombuffer(data, record, count=width, offset=line * row) for line in range(height)]
    table = np.concatenate(lines) if lines else np.zeros(0, record)
    points = np.stack([table[axis].astype(np.float64) for axis in "xyz"], axis=1)
    kept = np.isfinite(points).all(axis=1)
    return points[kept], None if clock is None else _since(table[clock][kept], clock, nanoseconds_of(message))


def _since(values: np.ndarray, name: str, stamp: int) -> np.ndarray:
    """[N] nanoseconds from `stamp`."""
    if values.dtype.kind in "iu":
        return values.astype(np.int64)
    seconds = values.astype(np.float64)
    if name == "timestamp" and seconds.size and float(seconds[0]) > _CLOCK:
        seconds = seconds - stamp / NANOSECONDS
    return np.rint(np.nan_to_num(seconds) * NANOSECONDS).astype(np.int64)


def transform_of(message: Any) -> np.ndarray:
    """[4, 4] of a Transform: coordinates of the child frame → those of the parent, the header's frame."""
    turn, move = message.rotation, message.translation
    x, y, z, w = (float(value) for value in (turn.x, turn.y, turn.z, turn.w))
    length = np.sqrt(x * x + y * y + z * z + w * w)
    if not (np.isfinite(length) and length > 1e-9):
        raise DatasetError(f"the quaternion {x:g}, {y:g}, {z:g}, {w:g} is no rotation")
    x, y, z, w = x / length, y / length, z / length, w / length
    return np.array(
        [
            [1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y), float(move.x)],
            [2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x), float(move.y)],
            [2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y), float(move.z)],
            [0, 0, 0, 1],
        ]
    )


def image_fields(values: np.ndarray) -> dict[str, Any]:
    """Fields of an Image message, without its header: [H, W] float32 metres as 32FC1, [H, W] uint16 as 16UC1,
    or [H, W, 3] uint8 as rgb8."""
    encoding, kind = ("rgb8", "u1") if values.ndim == 3 else ("32FC1", "<f4")
    if values.ndim == 2 and values.dtype == np.uint16:
        encoding, kind = "16UC1", "<u2"
    array = np.ascontiguousarray(values, kind)
    return {
        "height": array.shape[0],
        "width": array.shape[1],
        "encoding": encoding,
        "is_bigendian": 0,
        "step": array.strides[0],
        "data": np.frombuffer(array.tobytes(), np.uint8),
    }


def _rows(message: Any, kind: str, channels: int = 1) -> np.ndarray:
    """[H, W · channels] of an Image, whose rows may be padded."""
    height, width, step = int(message.height), int(message.width), int(message.step)
    require_size("an image of a recording", height, width)
    order = ">" if message.is_bigendian and kind != "u1" else "<"
    needed = width * channels * int(kind[1])
    data = np.frombuffer(message.data, np.uint8)
    if step < needed or len(data) < step * (height - 1) + needed:
        raise DatasetError(
            f"an image of {width}×{height} as {shown(message.encoding)} wants rows of {needed} bytes; got "
            f"rows of {step} and {len(data)} bytes: a damaged message?"
        )
    padded = np.zeros(step * height, np.uint8)
    padded[: min(len(data), len(padded))] = data[: len(padded)]
    rows = padded.reshape(height, step)[:, :needed]
    return np.ascontiguousarray(rows).view(order + kind).astype(kind)


def _open(data: bytes, what: str) -> Image.Image:
    try:
        Image.init()
        picture = Image.open(io.BytesIO(data), formats=[kind for kind in KINDS if kind in Image.OPEN])
        require_size("an image of a recording", picture.height, picture.width)
        picture.load()
    except (OSError, ValueError, SyntaxError) as error:
        raise DatasetError(
            f"a compressed image that is no {what} ({shown(error)}): a damaged message?"
        ) from error
    return picture


def _decoded(message: Any) -> np.ndarray:
    return picture_pixels(_open(bytes(np.frombuffer(message.data, np.uint8)), "picture"))


def _decoded_depth(message: Any) -> np.ndarray:
    data = bytes(np.frombuffer(message.data, np.uint8))
    start = _COMPRESSED_DEPTH_HEADER if "compressedDepth" in str(message.format) else 0
    values = np.asarray(_open(data[start:], "PNG"))
    if values.ndim != 2 or values.dtype == np.uint8 or "32FC1" in str(message.format):
        raise DatasetError(
            f"a compressed depth image must be a PNG of 16 bits in millimetres; got "
            f"{shown(message.format)!r}: "
            "record the depth topic uncompressed"
        )
    return values.astype(np.float32) / _MILLIMETRES
