"""Where completed frames were taken, and in which unit: what their records say, and poses that agree with it.

A record that `gbpn complete` writes of a COLMAP project holds the pose of its frame in the unit of its depth.
Poses from elsewhere are compared with it, and with the depths themselves: a cloud of poses in one unit and
depths in another would look like a cloud.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from gbpn.errors import InputError
from gbpn.files.guard import shown
from gbpn.formats.colmap_layout import model_folders
from gbpn.formats.poses import poses_of
from gbpn.jobs.completed_folder import CompletedFrame, Record, read_record
from gbpn.jobs.merging import agreement

__all__ = ["places_of", "require_agreement"]

_SAME = 1.05
"""Factor between two scales up to which they count as one."""
_CLEARLY = 1.5
"""A scale that so many times as many pixels agree with is the one that was meant …"""
_ENOUGH = 0.3
"""… if at least this share of them does."""
_LOOKED_AT = 12
"""Frames of which the scale is looked at."""
_FACTORS = (1e-3, *(2.0 ** (k / 4) for k in range(-24, 25)), 1e3)
"""Scales that are tried: millimetres, and all up to 64 times too large or small."""


def places_of(
    found: Mapping[str, Path], completed: Path, poses: Path | None, units: float | None
) -> dict[str, np.ndarray]:
    """Name → [4, 4] camera to world, in the unit of the depths, of the completed frames `found`.

    poses  a file or folder, see `formats.poses`; None: those of the frames' records
    units  metres per unit of the poses of a COLMAP model; None: what the records say
    """
    records = {name: read_record(completed, name) for name in found}
    known = _units(records, units)
    if poses is None:
        return _of_records(records)
    model = model_folders(poses) if poses.is_dir() else []
    scale = (units or known or 1.0) if model else 1.0
    places = poses_of(model[0] if model else poses, list(found), scale)
    _require_same_path(places, records, poses)
    return places


def require_agreement(frames: Sequence[CompletedFrame]) -> None:
    """Raise if the depths agree much better with poses of another scale, and say with which."""
    chosen = [frames[k] for k in np.unique(np.linspace(0, len(frames) - 1, _LOOKED_AT).astype(int))]
    if len(chosen) < 2:
        return
    own = agreement(chosen)
    shares = {factor: agreement([_moved(frame, factor) for frame in chosen]) for factor in _FACTORS}
    best = max(shares, key=lambda factor: shares[factor])
    if shares[best] < max(_ENOUGH, _CLEARLY * own) or 1 / _SAME < best < _SAME:
        return
    raise InputError(
        f"the depths of {100 * own:.0f}% of the pixels agree with these poses, and of "
        f"{100 * shares[best]:.0f}% if the camera moves {best:.3g} times as far: poses and "
        f"depths are in different units; the poses must be in metres (of a COLMAP model: "
        f"--units {best:.3g})"
    )


def _moved(frame: CompletedFrame, factor: float) -> CompletedFrame:
    assert frame.pose is not None
    pose = frame.pose.copy()
    pose[:3, 3] *= factor
    return replace(frame, pose=pose)


def _units(records: Mapping[str, Record], units: float | None) -> float | None:
    """The one unit in which frames of a COLMAP model were completed; None where no record says."""
    stated = {record.metres_per_unit for record in records.values() if record.pose is not None}
    words = ", ".join(sorted("none" if one is None else f"{one:g}" for one in stated))
    if len(stated) > 1:
        raise InputError(
            f"the frames were completed with different units (--units {words}): complete them again with one"
        )
    if not stated:
        return None
    known = stated.pop()
    if units is not None and units != (known or 1.0):
        likely = "gbpn complete without --units" if known is None else f"--units {known:g}"
        raise InputError(
            f"the frames were completed with {likely}, so their depths are in that unit; got --units "
            f"{units:g}: leave --units out, or complete the frames again with --units {units:g}"
        )
    return known


def _of_records(records: Mapping[str, Record]) -> dict[str, np.ndarray]:
    places = {name: record.pose for name, record in records.items() if record.pose is not None}
    if not places:
        raise InputError(
            "where was the camera? The records of these frames hold no pose, as those of a COLMAP project "
            "do: give --poses (4×4 matrices, TUM, KITTI, transforms.json, COLMAP)"
        )
    return places


def _require_same_path(places: Mapping[str, np.ndarray], records: Mapping[str, Record], poses: Path) -> None:
    """Raise if the camera moved another distance than the records say."""
    both = [(places[name], pose) for name in places if (pose := records[name].pose) is not None]
    if len(both) < 2:
        return
    given, recorded = (np.array([pair[k][:3, 3] for pair in both]) for k in (0, 1))
    distances = [np.linalg.norm(np.diff(path, axis=0), axis=1) for path in (given, recorded)]
    if not min(float(steps.sum()) for steps in distances) > 0:
        return
    ratio = float(distances[0].sum() / distances[1].sum())
    if 1 / _SAME < ratio < _SAME:
        return
    units = next(record.metres_per_unit for record in records.values() if record.pose is not None)
    likely = ratio * (units or 1.0)
    raise InputError(
        f"{shown(poses)}: the camera moves {ratio:.3g} times as far as in the records of the frames, whose "
        f"depths are in that unit: complete them again with --units {_rounded(likely):g}"
    )


def _rounded(value: float) -> float:
    return float(f"{value:.4g}") if math.isfinite(value) else value
