"""Frames of a moving camera as one cloud in the world: trusted pixels that other frames agree with, thinned.

Pixels between a nearer and a farther surface are left out. A pixel is looked at from the other frames around:
one agrees whose depth at that place is the same within what both σ allow; one contradicts that sees past it,
to something clearly farther. A pixel stays if enough agree, and more than contradict. Then each cube of the
grid keeps the mean of its points, by 1 / σ².
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from gbpn.camera.pinhole import normals
from gbpn.errors import InputError
from gbpn.formats.cloud_files import Cloud
from gbpn.jobs.completed_folder import CompletedFrame
from gbpn.sigma.limit import SigmaLimit

__all__ = ["Merging", "agreement", "in_the_air", "merged", "voxel_means"]

_STEP = 0.05
"""Share of the depth from which on a neighbour lies on another surface."""
_USUAL_SIDE = 0.01
"""Metres."""
_SIDE_WITHOUT_UNIT = 0.005
"""Of the median depth."""
_LOOKED_AT = 600
"""Pixels of a frame that `agreement` looks at."""


@dataclass(frozen=True, kw_only=True)
class Merging:
    """How frames become one cloud."""

    voxel: float | None = None
    """Metres of a cube's side; 0 keeps every point; None: 0.01, or a share of the depth where that has no
    unit."""
    votes: int = 1
    """Other frames that must agree with a pixel; 0: none is asked."""
    neighbours: int = 8
    """Frames that are asked: the nearest in the sequence."""
    tolerance: float = 0.02
    """Share of the depth within which frames agree, besides their σ."""
    max_sigma: SigmaLimit | None = None
    """Of pixels that are trusted; None: the usual."""

    def __post_init__(self) -> None:
        if (
            (self.voxel or 0) < 0
            or self.votes < 0
            or self.neighbours < self.votes
            or not 0 < self.tolerance < 1
        ):
            raise InputError(f"merging wants a voxel and votes of at least 0, votes ≤ neighbours; got {self}")


def merged(frames: Sequence[CompletedFrame], settings: Merging | None = None) -> tuple[Cloud, list[float]]:
    """(the cloud in world coordinates, the share of each frame's trusted pixels that was kept)."""
    settings = settings or Merging()
    side = _side(frames) if settings.voxel is None else settings.voxel
    parts, shares = [], []
    for index, frame in enumerate(frames):
        keep = frame.trusted(settings.max_sigma) & ~in_the_air(frame.depth)
        trusted = int(keep.sum())
        if settings.votes:
            keep = _voted(frames, index, keep, settings)
        shares.append(float(keep.sum() / max(trusted, 1)))
        parts.append(voxel_means(_in_world(frame, keep), side))
    cloud = Cloud(
        points=np.concatenate([part.points for part in parts]),
        colours=np.concatenate([part.colours for part in parts]),
        normals=np.concatenate([_known(part.normals) for part in parts]),
        std=None
        if any(part.std is None for part in parts)
        else np.concatenate([_known(part.std) for part in parts]),
    )
    return voxel_means(cloud, side), shares


def _side(frames: Sequence[CompletedFrame]) -> float:
    """The usual side of a cube."""
    if all(frame.metric for frame in frames):
        return _USUAL_SIDE
    return _SIDE_WITHOUT_UNIT * float(np.nanmedian([np.nanmedian(frame.depth) for frame in frames]))


def agreement(frames: Sequence[CompletedFrame], around: int = 2) -> float:
    """Share of the pixels seen by a frame's neighbours (`around` on each side) on whose depth they agree.

    Some hundreds of pixels of each frame are looked at.
    """
    agreed = seen = 0
    for index, frame in enumerate(frames):
        step = max(1, round((frame.depth.size / _LOOKED_AT) ** 0.5))
        keep = np.zeros(frame.depth.shape, bool)
        keep[step // 2 :: step, step // 2 :: step] = True
        keep &= np.isfinite(frame.depth) & (frame.depth > 0)
        world = _in_world(frame, keep).points
        for other in (*frames[max(index - around, 0) : index], *frames[index + 1 : index + 1 + around]):
            expected, depth, _ = _looked_at(other, world)
            inside = np.isfinite(depth) & np.isfinite(expected)
            seen += int(inside.sum())
            agreed += int((np.abs(depth - expected)[inside] < _STEP * expected[inside]).sum())
    return agreed / seen if seen else 0.0


def in_the_air(depth: np.ndarray) -> np.ndarray:
    """[H, W] bool: pixels between a nearer and a farther surface, which belong to neither.

    Frames that were taken side by side agree on them, so votes do not find them.
    """
    filled = np.where(np.isfinite(depth) & (depth > 0), depth, np.nan)
    around = np.pad(filled, 1, constant_values=np.nan)
    height, width = depth.shape
    windows = [around[y : y + height, x : x + width] for y in range(3) for x in range(3)]
    farthest, nearest = np.fmax.reduce(windows), np.fmin.reduce(windows)
    with np.errstate(invalid="ignore"):
        return np.asarray((farthest > filled * (1 + _STEP)) & (nearest < filled * (1 - _STEP)))


def _voted(frames: Sequence[CompletedFrame], index: int, keep: np.ndarray, settings: Merging) -> np.ndarray:
    """[H, W] bool: those of a frame's pixels that enough others agree with."""
    frame = frames[index]
    others = sorted((k for k in range(len(frames)) if k != index), key=lambda k: abs(k - index))
    row, column = np.nonzero(keep)
    world = _in_world(frame, keep).points
    std = np.zeros(len(row), np.float32) if frame.std is None else frame.std[row, column]
    agree, contradict = np.zeros((2, len(row)), np.int32)
    for other in (frames[k] for k in others[: settings.neighbours]):
        expected, depth, other_std = _looked_at(other, world)
        with np.errstate(invalid="ignore"):
            slack = np.hypot(settings.tolerance * expected, 2 * np.hypot(std, other_std))
            agree += np.abs(depth - expected) < slack
            contradict += depth - expected > 2 * slack
    out = keep.copy()
    out[row, column] = (agree >= settings.votes) & (agree > contradict)
    return out


def _looked_at(frame: CompletedFrame, world: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """[N] each: depth that points would have in a frame, the one it says, and its σ; NaN outside of it."""
    assert frame.pose is not None
    turn, place = frame.pose[:3, :3], frame.pose[:3, 3]
    seen = (world - place) @ turn  # the inverse of a rotation is its transpose
    expected = np.where(seen[:, 2] > 1e-3, seen[:, 2], np.nan)
    pixel = seen @ frame.intrinsics.T / expected[:, None]
    height, width = frame.depth.shape
    with np.errstate(invalid="ignore"):
        column, row = np.rint(pixel[:, 0]), np.rint(pixel[:, 1])
        inside = (column >= 0) & (column < width) & (row >= 0) & (row < height)
    depth, std = np.full((2, len(world)), np.nan, np.float32)
    place_of = row[inside].astype(np.int64), column[inside].astype(np.int64)
    depth[inside] = frame.depth[place_of]
    std[inside] = 0.0 if frame.std is None else frame.std[place_of]
    return expected, depth, std


def _in_world(frame: CompletedFrame, keep: np.ndarray) -> Cloud:
    """A frame's pixels where `keep` holds, in world coordinates."""
    if frame.pose is None:
        raise InputError(f"{frame.name} has no pose: merging needs to know where every frame was taken")
    camera = frame.intrinsics
    y, x = np.mgrid[: frame.depth.shape[0], : frame.depth.shape[1]].astype(np.float32)
    rays = [(x - camera[0, 2]) / camera[0, 0], (y - camera[1, 2]) / camera[1, 1], np.ones_like(x)]
    places = np.stack(rays, axis=2) * frame.depth[..., None]
    turn = frame.pose[:3, :3]
    return Cloud(
        points=places[keep] @ turn.T + frame.pose[:3, 3],
        colours=frame.image[keep],
        normals=normals(places)[keep] @ turn.T,
        std=None if frame.std is None else frame.std[keep],
    )


def voxel_means(cloud: Cloud, side: float) -> Cloud:
    """One point for every cube of the grid that has any: means weighted by 1 / σ², the smallest σ stays."""
    if side <= 0 or not len(cloud):
        return cloud
    cell = np.floor(cloud.points / side).astype(np.int64)
    cell -= cell.min(axis=0)
    if float(np.prod((cell.max(axis=0) + 1).astype(np.float64))) > 2**62:
        raise InputError(f"a voxel of {side:g} m is too small for a cloud of this extent: give a larger one")
    size = cell.max(axis=0) + 1
    _, place = np.unique((cell[:, 0] * size[1] + cell[:, 1]) * size[2] + cell[:, 2], return_inverse=True)
    place, count = place.ravel(), int(place.max()) + 1
    weight = np.ones(len(cloud)) if cloud.std is None else 1 / np.maximum(cloud.std, 1e-4) ** 2
    total = np.bincount(place, weight, count)

    def mean(columns: np.ndarray) -> np.ndarray:
        sums = [np.bincount(place, weight * column, count) / total for column in columns.T.astype(np.float64)]
        return np.stack(sums, axis=1)

    std = None
    if cloud.std is not None:
        std = np.full(count, np.inf, np.float32)
        np.minimum.at(std, place, cloud.std)
    facing = None
    if cloud.normals is not None:
        facing = mean(cloud.normals)
        facing = facing / np.maximum(np.linalg.norm(facing, axis=1, keepdims=True), 1e-9)
    colours = (mean(cloud.colours) + 0.5).astype(np.uint8)
    return Cloud(points=mean(cloud.points), colours=colours, normals=facing, std=std)


def _known(values: np.ndarray | None) -> np.ndarray:
    assert values is not None
    return values
