"""ROS 1 bags, ROS 2 bags and MCAP files: images paired with clouds or depth images, cameras and transforms.

A recording is gone through once for the times of its messages; a frame is then read when it is asked for, so
that memory holds one at a time.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

import numpy as np

from gbpn.errors import DatasetError, InputError
from gbpn.files.guard import reading, shown
from gbpn.formats.camera_files import CameraFile, camera_info
from gbpn.recordings import messages
from gbpn.recordings.bag_files import BagFile
from gbpn.recordings.timestamps import nearest
from gbpn.recordings.transforms import TransformTree

__all__ = ["Moment", "RecordedFrame", "Recording", "is_recording"]

_SUFFIXES = (".bag", ".mcap", ".db3")
_IMAGES = ("sensor_msgs/msg/Image", "sensor_msgs/msg/CompressedImage")
_CLOUDS = ("sensor_msgs/msg/PointCloud2",)
_CAMERAS = ("sensor_msgs/msg/CameraInfo",)
_TRANSFORM_TYPES = ("tf2_msgs/msg/TFMessage", "tf/msg/tfMessage")
_TRANSFORMS = ("/tf_static", "/tf")
"""Topics of transforms, unless told otherwise."""
_SLICES = 32
"""Parts of a scan that are taken as measured at one time each, when it is deskewed."""


@dataclass(frozen=True, kw_only=True)
class Moment:
    """One message of a topic."""

    time: int
    """Nanoseconds, of its header; of the recording where the header has none."""
    written: int
    """Nanoseconds, when it was recorded: how it is found again."""
    rank: int
    """Which of those that were recorded at that very time."""


@dataclass(frozen=True, kw_only=True)
class RecordedFrame:
    """An image with what was measured at its time."""

    picture: np.ndarray
    """[H, W, 3] uint8 or uint16 RGB."""
    camera: CameraFile | None
    """None where no camera_info was recorded."""
    points: np.ndarray | None
    """[N, 3] metres in the frame of the scanner; None where there is a depth image of the picture's own
    pixels."""
    to_camera: np.ndarray | None
    """[4, 4] from the frame of the points to that of the camera; None where no transform says so."""
    depth: np.ndarray | None
    """[H, W] metres, 0 where not measured; None where there are points."""


def is_recording(path: str | Path) -> bool:
    """Whether this looks like a bag: a file by its suffix, a folder by its metadata.yaml."""
    path = Path(path)
    return (path / "metadata.yaml").is_file() or (path.suffix.lower() in _SUFFIXES and not path.is_dir())


class Recording:
    """A recording that is open; its frames may be read from several threads."""

    def __init__(
        self,
        path: str | Path,
        *,
        image: str | None = None,
        points: str | None = None,
        camera_info: str | None = None,
        transforms: tuple[str, ...] = (),
        deskew: bool = False,
    ) -> None:
        """
        image        topic of images; may be None where there is only one
        points       topic of point clouds or depth images; may be None where there is only one of clouds
        camera_info  topic of the camera; by default the one beside the image's
        transforms   topics of transforms; by default /tf_static and /tf
        deskew       clouds are put where each of their points was at its own time, by the transforms
        """
        self.path = Path(path)
        self._lock = threading.Lock()
        self._info, self._named_transforms, self._deskew = camera_info, transforms, deskew
        self._cameras: dict[str, tuple[int, Any] | None] = {}
        with self._border():
            self._file = BagFile(self.path)
            try:
                self._look(image, points)
            except BaseException:
                self._file.close()
                raise

    def _look(self, image: str | None, points: str | None) -> None:
        """Topics, times and transforms."""
        self.topics = self._file.topics
        if self._file.empty:
            raise DatasetError(f"{shown(self.path)}: the recording is empty, there is no message in it")
        images = [name for name, kind in self.topics.items() if kind in _IMAGES]
        clouds = [name for name, kind in self.topics.items() if kind in _CLOUDS]
        self.image = self._chosen("--image", image, images, images)
        others = [name for name in images if name != self.image]
        self.points = self._chosen("--points", points, clouds, [*clouds, *others])
        self._images, self._measured = self._moments(self.image), self._moments(self.points)
        self._tree = self._transforms()

    def close(self) -> None:
        """Let go of the file."""
        with self._lock:
            self._file.close()

    def __enter__(self) -> Recording:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def pairs(self) -> tuple[list[tuple[Moment, Moment]], list[int]]:
        """Every image with the measurement nearest in time, and the nanoseconds between the two."""
        index, apart = nearest([m.time for m in self._images], [m.time for m in self._measured])
        return [
            (image, self._measured[place]) for image, place in zip(self._images, index, strict=True)
        ], apart

    def frame(self, image: Moment, measured: Moment) -> RecordedFrame:
        """One pair, read now."""
        with self._border(), self._lock:
            seen = self._message(self.image, image)
            found = self._message(self.points, measured)
            picture = messages.picture_of(seen)
            camera = self._camera(self.image, self._info)
            frame = str(seen.header.frame_id)
            if self.topics[self.points] not in _IMAGES:
                source = str(found.header.frame_id)
                points = self._straight(found, source) if self._deskew else messages.cloud_of(found)
                to_camera = self._to_camera(source, frame, image.time, measured.time)
                to_camera = None if to_camera is None else self._rectification() @ to_camera
                return RecordedFrame(
                    picture=picture, camera=camera, points=points, to_camera=to_camera, depth=None
                )
            depth, own = messages.depth_of(found), str(found.header.frame_id)
            if depth.shape == picture.shape[:2] and own == frame:
                return RecordedFrame(picture=picture, camera=camera, points=None, to_camera=None, depth=depth)
            points = _lifted(depth, self._camera(self.points, None), self.points)
            to_camera = self._to_camera(own, frame, image.time, measured.time)
            return RecordedFrame(
                picture=picture, camera=camera, points=points, to_camera=to_camera, depth=None
            )

    @contextmanager
    def _border(self) -> Iterator[None]:
        """What goes wrong inside is an error about the recording."""
        whole = self.path / "metadata.yaml" if self.path.is_dir() else self.path
        with reading(whole, "recording", "a ROS bag or MCAP file that was closed"):
            yield

    def _chosen(self, option: str, topic: str | None, natural: list[str], possible: list[str]) -> str:
        if topic is None:
            if len(natural) == 1:
                return natural[0]
            what = "several are there" if natural else "none is of the usual kind"
            raise InputError(f"{option} wants a topic, {what}: {self._listed(natural or list(self.topics))}")
        if topic not in self.topics:
            raise InputError(
                f"{option} {shown(topic)}: no such topic in {shown(self.path.name)}; there are "
                f"{self._listed(possible)}"
            )
        if topic not in possible:
            raise InputError(
                f"{option} {shown(topic)} is a topic of {self.topics[topic]}; wanted one of "
                f"{self._listed(possible)}"
            )
        return topic

    def _listed(self, names: list[str]) -> str:
        return shown(", ".join(f"{name} ({self.topics[name]})" for name in names) or "none", 300)

    def _moments(self, topic: str) -> list[Moment]:
        """Every message of a topic, in order of time."""
        found: list[Moment] = []
        for written, message in self._file.read(topic):
            rank = found[-1].rank + 1 if found and found[-1].written == written else 0
            time = messages.nanoseconds_of(message) or written
            found.append(Moment(time=time, written=written, rank=rank))
        if not found:
            raise DatasetError(f"{shown(self.path)}: topic {shown(topic)} has no message")
        return sorted(found, key=lambda moment: moment.time)

    def _message(self, topic: str, moment: Moment) -> Any:
        for rank, (_, message) in enumerate(self._file.read(topic, moment.written, moment.written + 1)):
            if rank == moment.rank:
                return message
        raise DatasetError(f"{shown(self.path)}: a message of {shown(topic)} is gone: was the file changed?")

    def _camera(self, topic: str, named: str | None) -> CameraFile | None:
        """The camera of an image topic: the first message, as calibrations do not change while driving."""
        info = self.camera_of(topic) if named is None else named
        if info is None:
            return None
        if self.topics.get(info) not in _CAMERAS:
            raise InputError(
                f"--camera-info {shown(info)}: no such topic; there are {self._listed(self.cameras)}"
            )
        if info not in self._cameras:
            self._cameras[info] = next(self._file.read(info), None)
        found = self._cameras[info]
        if found is None:
            return None
        try:
            camera = camera_info(found[1])
        except DatasetError as error:
            raise DatasetError(f"{shown(self.path.name)}, {shown(info)}: {error}") from error
        return _rectified(camera, found[1]) if "rect" in PurePosixPath(topic).name else camera

    @property
    def cameras(self) -> list[str]:
        """Topics of cameras."""
        return [name for name, kind in self.topics.items() if kind in _CAMERAS]

    def camera_of(self, topic: str) -> str | None:
        """The topic of an image topic's camera: beside it, or the nearest above it, or the only one there is.

        /cam/image/compressed belongs to /cam/camera_info; /cam/rgb to the only one below /cam.
        """
        for place in PurePosixPath(topic).parents:
            if str(place / "camera_info") in self.cameras:
                return str(place / "camera_info")
            below = [name for name in self.cameras if place in PurePosixPath(name).parents]
            if below:
                return below[0] if len(below) == 1 else None
        return None

    def require_camera(self) -> None:
        """Raise if it is not known which camera took the images, and say which there are.

        Depth images of the same pixels are completed with a camera that is guessed, if none was recorded.
        """
        guessed = not self.cameras and self.topics[self.points] in _IMAGES
        if self._info is None and self.camera_of(self.image) is None and not guessed:
            there = f"there are {self._listed(self.cameras)}" if self.cameras else "there is none"
            raise InputError(
                f"which camera took {shown(self.image)}? No camera_info is beside or above it; {there}: "
                "name it with --camera-info, or give --intrinsics"
            )

    def require_transform(self) -> None:
        """Raise if no transform leads from the points to the camera."""
        if self.topics[self.points] in _IMAGES:
            return
        with self._border(), self._lock:
            seen = self._message(self.image, self._images[0])
            found = self._message(self.points, self._measured[0])
            source, target = str(found.header.frame_id), str(seen.header.frame_id)
            if self._to_camera(source, target, self._images[0].time, self._measured[0].time) is None:
                raise InputError(
                    f"no transform leads from {shown(source)} ({shown(self.points)}) to {shown(target)}: "
                    "record /tf_static, name its topic with --tf, or give --extrinsics"
                )

    def _rectification(self) -> np.ndarray:
        """[4, 4]: how the images of a rectified topic are turned against the camera's frame."""
        turn = np.eye(4)
        info = self._info or self.camera_of(self.image)
        found = None if info is None else self._cameras.get(info)
        if "rect" in PurePosixPath(self.image).name and found is not None:
            values = getattr(found[1], "R", None)
            values = getattr(found[1], "r", None) if values is None else values
            if values is not None and np.any(values):
                turn[:3, :3] = np.asarray(values, np.float64).reshape(3, 3)
        return turn

    def _to_camera(self, source: str, target: str, time: int, measured: int) -> np.ndarray | None:
        """None where the recording tells of no transform at all, so that the caller may know one."""
        if source == target:
            return np.eye(4)
        return self._tree.between(source, target, time, measured) if self._tree.frames else None

    def _straight(self, message: Any, source: str) -> np.ndarray:
        """[N, 3] points as the scanner would see them all at the time of the message."""
        points, since = messages.timed_cloud_of(message)
        if since is None:
            raise DatasetError(
                f"{shown(self.points)} does not say when each point was measured (a field t, time, timestamp "
                "or offset_time): leave out --deskew"
            )
        if source not in self._tree.frames:
            raise DatasetError(f"no transform tells how {shown(source)} moves: leave out --deskew")
        stamp, out = messages.nanoseconds_of(message), points.copy()
        slices = np.minimum((since - since.min()) * _SLICES // max(int(np.ptp(since)), 1), _SLICES - 1)
        for part in np.unique(slices):
            here = slices == part
            then = stamp + int(np.median(since[here]))
            moved = self._tree.between(source, source, stamp, then)
            out[here] = points[here] @ moved[:3, :3].T + moved[:3, 3]
        return out

    def _transforms(self) -> TransformTree:
        tree = TransformTree()
        for topic in self._named_transforms or _TRANSFORMS:
            if topic not in self.topics:
                if self._named_transforms:
                    raise InputError(
                        f"--tf {shown(topic)}: no such topic; there are {self._listed(list(self.topics))}"
                    )
                continue
            if self.topics[topic] not in _TRANSFORM_TYPES:
                if self._named_transforms:
                    raise InputError(
                        f"--tf {shown(topic)} is a topic of {self.topics[topic]}, not of transforms"
                    )
                continue
            for written, message in self._file.read(topic):
                for told in message.transforms:
                    time = messages.nanoseconds_of(told) or written
                    matrix = messages.transform_of(told.transform)
                    tree.add(str(told.header.frame_id), str(told.child_frame_id), matrix, time)
        return tree


def _rectified(camera: CameraFile, message: Any) -> CameraFile:
    """The camera of a topic that holds undistorted images: P instead of K, and no lens."""
    import torch

    projection = getattr(message, "P", None)
    projection = getattr(message, "p", None) if projection is None else projection
    if projection is None or not np.any(projection):
        return CameraFile(intrinsics=camera.intrinsics, size=camera.size)
    matrix = np.asarray(projection, np.float64).reshape(3, 4)[:, :3]
    return CameraFile(intrinsics=torch.from_numpy(matrix.copy()), size=camera.size)


def _lifted(depth: np.ndarray, camera: CameraFile | None, topic: str) -> np.ndarray:
    """[N, 3] points of a depth image that has a camera of its own."""
    if camera is None:
        raise DatasetError(
            f"depth images of {shown(topic)} have other pixels than the images, and no camera_info is "
            f"beside them: "
            "record it too, or the aligned depth"
        )
    rows, columns = np.nonzero(depth)
    inverse = np.linalg.inv(camera.intrinsics.numpy())
    rays = np.stack([columns, rows, np.ones(len(rows))], axis=1) @ inverse.T
    if camera.lens is not None:
        straight = camera.lens.undistort(rays[:, 0], rays[:, 1])
        rays = np.stack([*straight, np.ones(len(rows))], axis=1)
    points = rays * depth[rows, columns][:, None]
    return np.asarray(points[np.isfinite(points).all(axis=1)])
