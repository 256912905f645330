"""Video files through PyAV: frames by number, and films of pictures."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Iterable, Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np

from gbpn.errors import BackendError, DatasetError
from gbpn.files.atomic import replacing
from gbpn.files.guard import reading, require_size, shown
from gbpn.recordings.timestamps import NANOSECONDS

__all__ = ["VIDEOS", "Video", "write_video"]

VIDEOS = (".mp4", ".mov", ".mkv", ".avi", ".webm", ".m4v")
"""Suffixes of what is read as a video."""
_REMEMBERED = 8
"""Frames that are kept for those who ask a little late."""
_SEALED = {"format_whitelist": "mov,matroska,webm,avi", "protocol_whitelist": "file"}
"""A file is the video itself, whatever its name: no list of other files or addresses."""
_USUAL_RATE = Fraction(30)
"""Frames per second where a file does not say."""


class Video:
    """A video's frames by number; going forward is fast, going back starts over. Safe for several threads."""

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        self._lock = threading.Lock()
        self._frames: Iterator[Any] | None = None
        self._next = 0
        self._kept: OrderedDict[int, np.ndarray] = OrderedDict()
        with self._border():
            with _av().open(str(self.path), options=_SEALED) as container:
                stream = _stream(container, self.path)
                require_size("a video", stream.height, stream.width)
                self.rate = Fraction(stream.average_rate or stream.guessed_rate or _USUAL_RATE)
                base = stream.time_base
                stamps = [packet.pts for packet in container.demux(stream) if packet.size]
            if not stamps:
                raise DatasetError(f"{shown(self.path)}: there is no picture in this video")
            known = sorted(stamp for stamp in stamps if stamp is not None)
            if len(known) == len(stamps) and base:
                seconds = [(stamp - known[0]) * base for stamp in known]
            else:
                seconds = [number / self.rate for number in range(len(stamps))]
            self.times = [int(second * NANOSECONDS) for second in seconds]
            """Nanoseconds from the first frame, of every frame."""

    def __len__(self) -> int:
        return len(self.times)

    def frame(self, number: int) -> np.ndarray:
        """[H, W, 3] uint8 RGB, upright."""
        with self._border(), self._lock:
            if number in self._kept:
                return self._kept[number]
            if self._frames is None or number < self._next:
                self._frames, self._next = self._decoded(), 0
            for pixels in self._frames:
                at, self._next = self._next, self._next + 1
                self._kept[at] = pixels
                while len(self._kept) > _REMEMBERED:
                    self._kept.popitem(last=False)
                if at == number:
                    return pixels
            raise DatasetError(f"{shown(self.path)}: the video ends before its frame {number}")

    def _decoded(self) -> Iterator[np.ndarray]:
        with _av().open(str(self.path), options=_SEALED) as container:
            for frame in container.decode(_stream(container, self.path)):
                require_size("a frame of a video", frame.height, frame.width)
                pixels = frame.to_ndarray(format="rgb24")
                quarters = round(float(getattr(frame, "rotation", 0) or 0) / 90) % 4  # counter-clockwise
                yield np.ascontiguousarray(np.rot90(pixels, quarters))

    def _border(self) -> Any:
        return reading(self.path, "video", "frames that PyAV decodes")


def write_video(path: str | Path, pictures: Iterable[np.ndarray], rate: Fraction) -> Path:
    """An MP4 of [H, W, 3] uint8 pictures, all of one size; H.264 where there is an encoder for it."""
    path = Path(path)
    av = _av()
    with replacing(path) as temporary, av.open(str(temporary), "w", format="mp4") as container:
        codec = "libx264" if "libx264" in av.codecs_available else "mpeg4"
        stream: Any = None
        for pixels in pictures:
            height, width = (side - side % 2 for side in pixels.shape[:2])  # colours are stored at half size
            if stream is None:
                stream = container.add_stream(codec, rate=rate.limit_denominator(1001))
                stream.width, stream.height, stream.pix_fmt = width, height, "yuv420p"
            whole = np.ascontiguousarray(pixels[:height, :width])
            for packet in stream.encode(av.VideoFrame.from_ndarray(whole, format="rgb24")):
                container.mux(packet)
        for packet in stream.encode() if stream is not None else ():
            container.mux(packet)
    return path


def _stream(container: Any, path: Path) -> Any:
    if not container.streams.video:
        raise DatasetError(f"{shown(path)}: there is no picture in this file, only sound or data")
    return container.streams.video[0]


def _av() -> Any:
    try:
        import av
    except ImportError as error:
        raise BackendError("reading video needs a package: pip install gbpn[video]") from error
    return av
