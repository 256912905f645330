"""Whether the measurements of a run are turned against its pictures: told, and mended if asked for.

What is decided here is one field of the run's sensor, `Sensor.rotation`: every reader of frames obeys it, and
it stands in every record.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from gbpn.errors import GbpnError, InputError
from gbpn.jobs.looking import spread
from gbpn.jobs.pairing import Job
from gbpn.jobs.sources import Sensor, read_job
from gbpn.sensors.alignment import FEWEST_FRAMES, Alignment, aligned
from gbpn.sensors.edges import FEWEST_EDGES, FrameEdges

__all__ = ["refined", "suspicion"]

_FRAMES = 30
"""That the rotation is estimated from."""
_GLANCED = 10
"""Frames that are looked at where nobody asked."""
_TOLD = 0.4
"""Degrees from which on a rotation is told unasked."""
_MENDED = 0.1
"""Degrees below which nothing is turned."""


def refined(sensor: Sensor, jobs: Sequence[Job]) -> tuple[Sensor, str]:
    """The sensor with the rotation that fits the frames best, and what was decided, in words."""
    if sensor.reconstruction is not None:
        raise InputError(
            "--refine-extrinsics mends how a sensor is turned against the camera; the points of a COLMAP "
            "model come from the pictures themselves: leave it out"
        )
    if sensor.wide:
        raise InputError("--refine-extrinsics takes pinhole pictures; panoramas and fisheyes are not mended")
    found = aligned(_edges(sensor, jobs, _FRAMES))
    told = f"edges of {found.frames} frames"
    if not found.clear or found.rotation.degrees < _MENDED:
        return sensor, f"{told}: no rotation fits them better than the calibration; nothing is turned"
    sure = f"{told} fit best with the measurements turned by {found.rotation}"
    return replace(sensor, rotation=found.rotation), f"{sure}; so they are, and every record says so"


def suspicion(sensor: Sensor, jobs: Sequence[Job]) -> str | None:
    """What speaks for a wrong calibration, in words; None where nothing does, or too little is seen."""
    if sensor.rotation is not None or sensor.reconstruction is not None or sensor.wide:
        return None
    found = _glance(sensor, jobs)
    if found is None or not found.clear or found.rotation.degrees < _TOLD:
        return None
    return (
        f"the measurements seem to be turned against the pictures: edges of {found.frames} frames fit best "
        f"after a rotation by {found.rotation}; check the calibration, or give --refine-extrinsics"
    )


def _glance(sensor: Sensor, jobs: Sequence[Job]) -> Alignment | None:
    edges = _edges(sensor, jobs, _GLANCED, patient=False)
    try:
        return aligned(edges)
    except GbpnError:  # too few edges
        return None


def _edges(sensor: Sensor, jobs: Sequence[Job], count: int, *, patient: bool = True) -> list[FrameEdges]:
    """Of frames from the first to the last; who is not patient ends when the first have too few."""
    found: list[FrameEdges] = []
    for job in spread(jobs, count):
        try:
            inputs = read_job(job, replace(sensor, rotation=None))
        except GbpnError:  # is told when it is completed
            continue
        found.append(FrameEdges.of(inputs.image, inputs.sparse, inputs.intrinsics))
        few = sum(len(edges.rays) >= FEWEST_EDGES for edges in found) == 0
        if few and not patient and len(found) >= min(3, FEWEST_FRAMES):
            return found
    return found
