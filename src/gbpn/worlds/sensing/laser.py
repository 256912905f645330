"""Shots of a laser: what comes back, from how far, and where the camera sees it.

A shot is lost where too little light returns: the power falls with the surface's brightness, the cosine of
the angle and the square of the distance. Mirrors send it on: what it meets then seems to lie behind them.
The beam is as wide as a hand at fifty metres, so at edges the answer is one surface, the other, or one
between them.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from gbpn.worlds.scene import Floats
from gbpn.worlds.sensing.sight import Sight, Surfaces

__all__ = ["Laser", "Reading", "fire", "into_picture"]


@dataclass(frozen=True, kw_only=True)
class Laser:
    """How a laser ranges."""

    reach: float = 120.0
    """Metres; nothing beyond."""
    nearest: float = 0.9
    """Metres; nothing nearer."""
    reach_dark: float = 55.0
    """Metres at which half the shots on a surface of 10 % brightness, head on, come back."""
    divergence: float = 0.0015
    """Half angle of the beam in radians."""
    merging: float = 0.35
    """Metres: two surfaces in one beam nearer to each other than this give one distance between them."""
    noise: float = 0.015
    """Metres, standard deviation of a distance."""
    noise_per_metre: float = 0.0004
    """Further deviation for each metre of distance."""
    step: float = 0.002
    """Metres: distances are multiples of this; 0 leaves them as they are."""
    lost: float = 0.02
    """Share of shots that are lost for no reason."""

    @staticmethod
    def exact() -> Laser:
        """A beam without width or error, that always comes back."""
        return Laser(
            reach=1e4, nearest=0, reach_dark=1e6, divergence=0, noise=0, noise_per_metre=0, step=0, lost=0
        )


@dataclass(frozen=True, kw_only=True)
class Reading:
    """What a sensor measured, as the camera has it."""

    depth: Floats
    """[H, W] planar depth in metres, 0 where nothing was measured."""
    ring: npt.NDArray[np.uint8] | None = None
    """[H, W] scan line + 1, 0 where there is none."""
    points: npt.NDArray[np.float64] | None = None
    """[N, 3] all points in camera coordinates, those outside the picture too."""


def fire(
    sight: Sight,
    place: np.ndarray,
    directions: np.ndarray,
    laser: Laser,
    rng: np.random.Generator,
) -> npt.NDArray[np.float64]:
    """[S] distance measured along unit `directions` [S, 3] from `place` [3] (camera coordinates), NaN for
    none."""
    first = sight.look(directions, place)
    distance, power = _range(sight, first, directions, rng)
    if laser.divergence > 0:
        turned = directions + rng.normal(0, laser.divergence * 0.7, directions.shape)
        second = sight.look(turned, place)
        distance = _mixed(distance, second.distance.astype(np.float64), laser, rng)
    with np.errstate(invalid="ignore", divide="ignore", over="ignore"):
        signal = np.minimum(power / 0.1 * (laser.reach_dark / distance) ** 2, 1e6)
        back = rng.random(len(distance)) < signal**3 / (1 + signal**3)
        deviation = laser.noise + laser.noise_per_metre * distance
        measured = distance + rng.standard_normal(len(distance)) * np.where(
            np.isfinite(deviation), deviation, 0
        )
        if laser.step > 0:
            measured = np.round(measured / laser.step) * laser.step
        kept = back & (rng.random(len(distance)) >= laser.lost)
        kept &= (distance < laser.reach) & (distance > laser.nearest) & (measured > 0)
    return np.where(kept, measured, np.nan)


def _range(
    sight: Sight, first: Surfaces, directions: np.ndarray, rng: np.random.Generator
) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
    """(distance, share of light given back); shots that a mirror reflects go on to what they meet next."""
    distance = first.distance.astype(np.float64)
    power = (first.brightness * first.cosine).astype(np.float64)
    away = np.flatnonzero(rng.random(len(distance)) < first.mirror)
    if len(away):
        then = sight.reflected(first, directions, away)
        distance[away] += then.distance
        power[away] = then.brightness * then.cosine * 0.8
    return distance, np.where(np.isfinite(distance), power, 0)


def _mixed(
    one: npt.NDArray[np.float64], two: npt.NDArray[np.float64], laser: Laser, rng: np.random.Generator
) -> npt.NDArray[np.float64]:
    """Distances of two rays of a beam as one: between them where they are close, else one or the other."""
    share = rng.random(len(one))
    with np.errstate(invalid="ignore"):
        close = np.abs(one - two) < laser.merging
        apart = np.isfinite(two) & (share > 0.7)
        return np.where(close, one + (two - one) * share, np.where(apart, two, one))


def into_picture(sight: Sight, points: np.ndarray, ring: np.ndarray | None = None) -> Reading:
    """Points [N, 3] in camera coordinates onto the pixels; the nearest wins where several meet."""
    height, width = sight.size
    ahead = points[:, 2] > 0.05
    safe = np.where(ahead, points[:, 2], 1)
    pixel = points @ sight.view.intrinsics.T
    column, row = np.rint(pixel[:, 0] / safe), np.rint(pixel[:, 1] / safe)
    inside = ahead & (column >= 0) & (column < width) & (row >= 0) & (row < height)
    number = np.flatnonzero(inside)
    number = number[np.argsort(-points[number, 2], kind="stable")]  # the nearest is written last
    at = row[number].astype(np.int64), column[number].astype(np.int64)
    depth = np.zeros(sight.size, np.float32)
    depth[at] = points[number, 2]
    rings = None
    if ring is not None:
        rings = np.zeros(sight.size, np.uint8)
        rings[at] = ring[number] + 1
    return Reading(depth=depth, ring=rings, points=points)
