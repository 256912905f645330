"""What a ROS node does, without ROS: messages of images, cameras, clouds and transforms in, messages out.

`examples/ros1` and `examples/ros2` are nodes around it. Messages are whatever has the fields of their
definitions; classes of those that go out are handed in.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from gbpn.errors import GbpnError
from gbpn.formats.camera_files import CameraFile, camera_info
from gbpn.predict.completer import DepthCompleter
from gbpn.predict.live import Live, LiveAnswer
from gbpn.recordings import messages
from gbpn.recordings.timestamps import NANOSECONDS
from gbpn.recordings.transforms import TransformTree

__all__ = ["CLOUD_FIELDS", "Answered", "Robot", "cloud_fields", "depth_fields"]

CLOUD_FIELDS = ("x", "y", "z", "rgb", "sigma", "xx", "xy", "xz", "yy", "yz", "zz")
"""Of a published cloud, float32 each: the place in metres, its colour as PCL packs it, σ of its depth, and
the covariance of its place, metres squared."""
_REMEMBERED = 64
"""Headers of images that wait for their answer."""
_JUMP = 1.0
"""Seconds by which a stamp may be older than the last one: more is a clock that was set back, or a bag that
starts again."""
_KEPT = 10
"""Seconds for which transforms are kept."""
_PIXEL = 0.29
"""Standard deviation, in pixels, of a place within a pixel."""


@dataclass(frozen=True, kw_only=True)
class Answered:
    """An answer with the header of its image."""

    answer: LiveAnswer
    header: Any
    camera: np.ndarray
    """[3, 3], of the picture as it was completed."""


class Robot:
    """Pushes messages into a `gbpn.Live` as soon as the camera is known; safe for several threads."""

    def __init__(self, completer: DepthCompleter, *, tolerance: float = 0.05) -> None:
        """`tolerance`: seconds between an image and its measurements."""
        self.completer, self.tolerance = completer, tolerance
        self.restarts = 0
        """How often the clock went back."""
        self.images = 0
        """Images that came."""
        self.problem: str | None = None
        """What was wrong last, if anything."""
        self._lock = threading.Lock()
        self._tree = TransformTree(remembered=_KEPT * NANOSECONDS)
        self._camera: CameraFile | None = None
        self._target = ""
        self._live: Live | None = None
        self._headers: OrderedDict[float, Any] = OrderedDict()
        self._latest, self._told = float("-inf"), 0

    def camera(self, message: Any) -> None:
        """A CameraInfo; the first one counts."""
        with self._lock, self._told_of():
            if self._camera is None:
                self._camera, self._target = camera_info(message), str(message.header.frame_id)

    def transforms(self, message: Any) -> None:
        """A TFMessage."""
        with self._lock, self._told_of():
            for told in message.transforms:
                matrix = messages.transform_of(told.transform)
                time = messages.nanoseconds_of(told)
                self._tree.add(str(told.header.frame_id), str(told.child_frame_id), matrix, time)

    def image(self, message: Any) -> None:
        """An Image or CompressedImage."""
        with self._lock, self._told_of():
            self.images += 1
            stamp = messages.seconds_of(message)
            if stamp < self._latest - _JUMP:
                self._restart()
            self._latest = stamp
            if self._live is None:
                return
            self._headers[stamp] = message.header
            while len(self._headers) > _REMEMBERED:
                self._headers.popitem(last=False)
            self._live.push_image(messages.picture_of(message), stamp)

    def points(self, message: Any) -> None:
        """A PointCloud2, or a depth Image of the picture's own pixels."""
        with self._lock, self._told_of():
            self._begin()
            if self._live is None:
                return
            stamp = messages.seconds_of(message)
            if hasattr(message, "encoding"):
                self._live.push_depth(messages.depth_of(message), stamp)
                return
            points, source = messages.cloud_of(message), str(message.header.frame_id)
            if source != self._target:
                to_camera = self._tree.between(source, self._target, messages.nanoseconds_of(message))
                points = points @ to_camera[:3, :3].T + to_camera[:3, 3]
            self._live.push_cloud(points, stamp)

    def next(self) -> Answered | None:
        """The newest answer that was not given before."""
        with self._lock:
            answer = None if self._live is None else self._live.latest
            if answer is None or answer.number == self._told or answer.stamp not in self._headers:
                return None
            self._told = answer.number
            if self._live is not None and self._live.problem is not None:
                self.problem = self._live.problem
            header = self._headers[answer.stamp]
            return Answered(answer=answer, header=header, camera=answer.result.intrinsics.numpy())

    def close(self) -> None:
        """End the loop."""
        with self._lock:
            if self._live is not None:
                self._live.close()
                self._live = None

    def _begin(self) -> None:
        if self._live is None and self._camera is not None:
            self._live = Live(self.completer, self._camera, np.eye(4), tolerance=self.tolerance)

    def _restart(self) -> None:
        """Time starts again: what is known of the camera and of its mounting stays."""
        self.restarts += 1
        self._tree.forget_motion()
        self._headers.clear()
        self._told = 0
        if self._live is not None:
            self._live.close()
            self._live = None
        self._begin()

    def _told_of(self) -> _Telling:
        return _Telling(self)


class _Telling:
    """A message that cannot be used is told, and the next one is awaited."""

    def __init__(self, robot: Robot) -> None:
        self._robot = robot

    def __enter__(self) -> None: ...

    def __exit__(self, kind: object, problem: BaseException | None, trace: object) -> bool:
        if isinstance(problem, GbpnError):
            self._robot.problem = str(problem)
            return True
        return False


def depth_fields(metres: np.ndarray, encoding: str = "32FC1") -> dict[str, Any]:
    """Fields of a depth image (REP 118): 32FC1, metres, NaN where unknown; or 16UC1, millimetres, 0."""
    if encoding == "32FC1":
        return messages.image_fields(np.asarray(metres, np.float32))
    millimetres = np.nan_to_num(np.rint(metres * 1000.0), nan=0.0)
    stored = np.where(millimetres > np.iinfo(np.uint16).max, 0, millimetres).astype(np.uint16)
    return messages.image_fields(stored)


def cloud_fields(
    answered: Answered, point_field: Callable[..., Any], *, step: int = 1, max_sigma: float = 0.05
) -> dict[str, Any]:
    """Fields of a PointCloud2 of an answer, in the frame of the camera; see `CLOUD_FIELDS`.

    point_field  class of PointField messages
    step         every so many-th row and column
    max_sigma    share of the depth up to which a pixel is trusted
    """
    result = answered.answer.result
    depth = result.depth[::step, ::step]
    std = np.zeros_like(depth) if not result.calibrated else result.std[::step, ::step]
    keep = np.isfinite(depth) & (depth > 0) & (std <= max_sigma * depth)
    camera = answered.camera.astype(np.float64)
    y, x = np.mgrid[: result.depth.shape[0], : result.depth.shape[1]]
    pixels = np.stack([x, y, np.ones_like(x)], axis=2)[::step, ::step][keep].astype(np.float64)
    ray = pixels @ np.linalg.inv(camera).T  # [N, 3], z = 1
    z, sigma = depth[keep].astype(np.float64), std[keep].astype(np.float64)
    across = np.diag([1 / camera[0, 0], 1 / camera[1, 1], 0.0]) ** 2 * _PIXEL**2
    spread = sigma[:, None, None] ** 2 * ray[:, :, None] * ray[:, None, :] + z[:, None, None] ** 2 * across
    table = np.zeros((len(z), len(CLOUD_FIELDS)), "<f4")
    table[:, :3] = ray * z[:, None]
    colour = (result.image.permute(1, 2, 0).numpy()[::step, ::step][keep] * 255 + 0.5).astype(np.uint32)
    table[:, 3] = (colour[:, 0] << 16 | colour[:, 1] << 8 | colour[:, 2]).astype(np.uint32).view("<f4")
    table[:, 4] = sigma
    table[:, 5:] = np.stack([spread[:, i, j] for i in range(3) for j in range(i, 3)], axis=1)
    fields = [
        point_field(name=name, offset=4 * place, datatype=7, count=1)
        for place, name in enumerate(CLOUD_FIELDS)
    ]
    width = table.shape[1] * 4
    return {
        "height": 1,
        "width": len(table),
        "fields": fields,
        "is_bigendian": False,
        "point_step": width,
        "row_step": width * len(table),
        "data": np.frombuffer(table.tobytes(), np.uint8),
        "is_dense": True,
    }
