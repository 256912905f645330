"""Files of ROS 1 bags, ROS 2 bags and MCAP, opened so that nothing in them is believed.

`rosbags` takes them apart, which needs no ROS. Two of its habits are not for files of strangers: it turns the
message definitions that a recording carries into Python and runs that, and it takes as much memory as a
damaged length asks for. So messages are read by ROS's own definitions only, and reads end with the file.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

from gbpn.errors import BackendError, DatasetError
from gbpn.files.guard import BoundedFile, shown

__all__ = ["BagFile"]

_OLD_TRANSFORMS = "geometry_msgs/TransformStamped[] transforms"
"""tf2_msgs/TFMessage, and tf/tfMessage before it, in ROS 1."""
_ANY = ("", "*")
"""Digests of message types that say nothing."""


class BagFile:
    """A recording that is open: its topics, and messages by topic and time."""

    def __init__(self, path: Path) -> None:
        try:
            from rosbags.rosbag1 import Reader as Reader1
            from rosbags.rosbag2 import Reader as Reader2
        except ImportError as error:
            raise BackendError(
                f"{shown(path)}: reading bags needs a package: pip install gbpn[ros]"
            ) from error
        self._first = path.suffix.lower() == ".bag"
        self._reader: Any = (Reader1 if self._first else Reader2)(_BoundedPath(path))
        self._reader.open()
        self._types = _types(self._first)
        found = self._reader.topics
        self.topics = {name: str(info.msgtype) for name, info in found.items()}
        """Name → type, such as sensor_msgs/msg/Image."""
        self.counts = {name: int(info.msgcount) for name, info in found.items()}
        """Messages of each topic."""
        self.seconds = max(float(self._reader.duration), 0.0) / 1e9
        """From the first message to the last."""
        self.empty = not any(info.msgcount for info in found.values())

    def close(self) -> None:
        """Let go of the file."""
        self._reader.close()

    def read(
        self, topic: str, start: int | None = None, stop: int | None = None
    ) -> Iterator[tuple[int, Any]]:
        """(nanoseconds when it was recorded, message) of a topic, in [start, stop)."""
        unpack = self._types.deserialize_ros1 if self._first else self._types.deserialize_cdr
        connections = [connection for connection in self._reader.connections if connection.topic == topic]
        for connection in connections:
            self._require_known(connection)
        for connection, written, data in self._reader.messages(connections, start=start, stop=stop):
            yield written, unpack(data, connection.msgtype)

    def _require_known(self, connection: Any) -> None:
        """Raise where a type is called like one of ROS's and is another."""
        kind = str(connection.msgtype)
        if kind not in self._types.types:
            raise DatasetError(f"topic {shown(connection.topic)} is of {shown(kind)}, which is not read here")
        digest = str(connection.digest or "")
        own = self._types.generate_msgdef(kind)[1] if self._first else self._types.hash_rihs01(kind)
        if digest not in _ANY and digest != own:
            raise DatasetError(
                f"topic {shown(connection.topic)}: its {kind} is another one than ROS's ({shown(digest)}); "
                "record it with the usual message"
            )


@cache
def _types(first: bool) -> Any:
    """ROS's own definitions."""
    from rosbags.typesys import Stores, get_types_from_msg, get_typestore

    store = get_typestore(Stores.ROS1_NOETIC if first else Stores.ROS2_HUMBLE)
    if first:
        for name in ("tf2_msgs/msg/TFMessage", "tf/msg/tfMessage"):
            store.register(get_types_from_msg(_OLD_TRANSFORMS, name))
    return store


class _BoundedPath(type(Path())):  # type: ignore[misc]
    """A path whose files take no more memory than they have bytes, whatever is asked for."""

    def open(self, mode: str = "r", *args: Any, **kwargs: Any) -> Any:
        return BoundedFile(self) if mode == "rb" else super().open(mode, *args, **kwargs)
