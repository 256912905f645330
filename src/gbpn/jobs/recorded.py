"""Recordings as jobs: every image of a bag with its measurements, read when it is its turn."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import torch

from gbpn.camera.lens import undistorted_picture, undistorted_sparse
from gbpn.camera.pinhole import fitted_intrinsics
from gbpn.errors import InputError
from gbpn.files.guard import shown
from gbpn.formats.camera_files import CameraFile, read_camera, read_transform, resized
from gbpn.formats.images import to_tensor
from gbpn.inputs.frame import FrameInputs
from gbpn.inputs.reading import UNDISTORTED, as_camera
from gbpn.jobs.pairing import Job, left_out_in_time, require_one_pair
from gbpn.jobs.sources import Sensor
from gbpn.measurements.validity import measured
from gbpn.recordings.bags import Moment, RecordedFrame, Recording
from gbpn.recordings.timestamps import NANOSECONDS, tolerance_of
from gbpn.sensors.projection import project, remove_see_through

__all__ = ["frame_of", "jobs_of_recording"]


def jobs_of_recording(recording: Recording, sensor: Sensor, tolerance: float) -> list[Job]:
    """One job per image; those without a measurement within `tolerance` seconds are left out."""
    if sensor.wide:
        raise InputError(
            "panoramas and --fisheye are completed from files: write the recording's frames to a folder first"
        )
    pairs, apart = recording.pairs()
    allowed = tolerance_of(tolerance)
    require_one_pair(apart, allowed, recording.image, recording.points)
    if sensor.intrinsics is None:
        recording.require_camera()
    if sensor.extrinsics is None:
        recording.require_transform()
    topics = {"image": recording.image, "points": recording.points}
    return [
        Job(
            image=recording.path,
            sparse=None,
            name=f"{image.time // NANOSECONDS}.{image.time % NANOSECONDS:09}",
            left_out="" if gap <= allowed else left_out_in_time(tolerance),
            read=partial(_read, recording, sensor, image, measured),
            recorded=True,
            settings={"topics": topics, "time": image.time, "measured": measured.time},
        )
        for (image, measured), gap in zip(pairs, apart, strict=True)
    ]


def _read(recording: Recording, sensor: Sensor, image: Moment, points: Moment) -> FrameInputs:
    return frame_of(recording.frame(image, points), sensor, recording.path)


def frame_of(frame: RecordedFrame, sensor: Sensor, path: Path) -> FrameInputs:
    """A recorded frame as a model takes it; intrinsics and extrinsics of `sensor` go before the
    recording's."""
    picture = to_tensor(frame.picture)
    height, width = picture.shape[1:]
    camera, notices = _camera(frame, sensor, path, height, width)
    matrix, odd = fitted_intrinsics(camera.intrinsics.float(), height, width)
    lens = None if sensor.rectified else camera.lens
    sparse = torch.zeros(1, height, width)
    if frame.depth is not None:
        sparse = torch.from_numpy(frame.depth)[None]
    if lens is not None:
        picture = undistorted_picture(picture, matrix, lens)
        sparse = undistorted_sparse(sparse, matrix, lens)
    if frame.points is not None:
        transform = _transform(frame, sensor, path)
        sparse = remove_see_through(project(frame.points, matrix, height, width, transform))
        if not bool(measured(sparse).any()):
            raise InputError(
                f"{shown(path.name)}: none of the {len(frame.points)} points falls into the "
                f"{width}×{height} picture: "
                "is the transform (--tf, --extrinsics) the one from the points to the camera's optical frame?"
            )
    told = (*notices, odd, None if lens is None else UNDISTORTED)
    return FrameInputs(
        image=picture, sparse=sparse, intrinsics=matrix, notices=tuple(text for text in told if text)
    )


def _camera(
    frame: RecordedFrame, sensor: Sensor, path: Path, height: int, width: int
) -> tuple[CameraFile, list[str]]:
    if isinstance(sensor.intrinsics, Path):
        camera, notice = resized(read_camera(sensor.intrinsics, number=sensor.camera), height, width)
    elif sensor.intrinsics is not None:
        matrix, _, notice = as_camera(sensor.intrinsics, None, height, width)
        camera = CameraFile(intrinsics=matrix.double())
    elif frame.camera is not None:
        camera, notice = resized(frame.camera, height, width)
    elif frame.points is not None:
        raise InputError(
            f"{shown(path.name)} has no camera_info beside the images: name its topic with --camera-info, "
            f"or give "
            "--intrinsics"
        )
    else:
        matrix, _, notice = as_camera(None, None, height, width)
        camera = CameraFile(intrinsics=matrix)
    return camera, [notice] if notice else []


def _transform(frame: RecordedFrame, sensor: Sensor, path: Path) -> torch.Tensor:
    if sensor.extrinsics is not None:
        return read_transform(sensor.extrinsics)
    if frame.to_camera is None:
        raise InputError(
            f"{shown(path.name)} tells of no transform from the points to the camera: record /tf_static, "
            f"name its "
            "topic with --tf, or give --extrinsics"
        )
    return torch.from_numpy(frame.to_camera)
