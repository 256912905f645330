"""Completed frames as a recording for the rerun viewer; needs the package rerun-sdk (extra `rerun`)."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np

from gbpn.errors import BackendError
from gbpn.files.atomic import replacing
from gbpn.formats.cloud_files import Cloud
from gbpn.jobs.completed_folder import CompletedFrame

__all__ = ["write_recording"]


def write_recording(path: str | Path, frames: Iterable[CompletedFrame], cloud: Cloud | None = None) -> None:
    """Write .rrd: pictures, depth and σ by frame, at their poses where known, and perhaps a cloud."""
    try:
        import rerun
    except ImportError as error:
        raise BackendError(f"{path}: a rerun recording needs a package: pip install rerun-sdk") from error
    with replacing(Path(path)) as temporary:
        recording: Any = rerun.RecordingStream("gbpn", make_default=False, make_thread_default=False)
        recording.save(str(temporary))
        recording.log("world", rerun.ViewCoordinates.RDF, static=True)
        if cloud is not None:
            points = rerun.Points3D(cloud.points.astype(np.float32), colors=cloud.colours)
            recording.log("world/cloud", points, static=True)
        for number, frame in enumerate(frames):
            recording.set_time("frame", sequence=number)
            _log(rerun, recording, frame)
        recording.flush()
        recording.disconnect()


def _log(rerun: Any, recording: Any, frame: CompletedFrame) -> None:
    height, width = frame.depth.shape
    if frame.pose is not None:
        turn, place = frame.pose[:3, :3], frame.pose[:3, 3]
        recording.log("world/camera", rerun.Transform3D(translation=place, mat3x3=turn))
    recording.log(
        "world/camera", rerun.Pinhole(image_from_camera=frame.intrinsics, width=width, height=height)
    )
    recording.log("world/camera/image", rerun.Image(frame.image).compress(jpeg_quality=90))
    recording.log("world/camera/depth", rerun.DepthImage(np.nan_to_num(frame.depth), meter=1.0))
    if frame.std is not None:
        recording.log("world/camera/sigma", rerun.DepthImage(np.nan_to_num(frame.std), meter=1.0))
