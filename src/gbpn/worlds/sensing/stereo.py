"""Stereo: two cameras, or a camera and a projector of a pattern, and what they cannot see together.

Depth is a disparity d = focal length · baseline / depth that was found by comparing small windows. So it
comes in steps, its error grows with the square of the depth, it is thick at edges, and there is none where
only one of the two sees the surface: a shadow beside everything near, on the side away from the second one.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy import ndimage

from gbpn.errors import InputError
from gbpn.worlds.scene import Floats
from gbpn.worlds.sensing.laser import Reading
from gbpn.worlds.sensing.sight import Sight

__all__ = ["Matching", "disparity_depth", "stereo"]


@dataclass(frozen=True, kw_only=True)
class Matching:
    """How disparities are found."""

    step: float = 1 / 16
    """Pixels: disparities are multiples of this."""
    noise: float = 0.1
    """Pixels, standard deviation of a disparity; errors are alike within a window."""
    window: float = 2.0
    """Pixels by which edges of things wander: half of a window, standard deviation."""


def stereo(
    sight: Sight,
    rng: np.random.Generator,
    *,
    baseline: float = 0.12,
    matching: Matching | None = None,
    texture: float = 1.5,
    reach: float = 20.0,
) -> Reading:
    """A second camera `baseline` metres to the right (to the left where negative).

    texture  grey levels of 255: windows of the photograph with less contrast have no depth
    """
    if sight.image is None:
        raise InputError("stereo compares photographs; the sight has no image: give Sight(image=…)")
    if baseline == 0:
        raise InputError("stereo needs a baseline other than 0 metres")
    focal = float(sight.view.intrinsics[0, 0])
    depth = disparity_depth(sight.depth, focal * abs(baseline), matching or Matching(), rng)
    both = sight.sees(np.array([baseline, 0.0, 0.0]))
    grey = sight.image.astype(np.float32) @ np.array([0.3, 0.59, 0.11], np.float32)
    slope = ndimage.sobel(grey, axis=1) / 8
    contrast = np.sqrt(ndimage.uniform_filter(slope * slope, 9))
    # Mirrors and panes show something else to each of the two.
    plain = rng.random(sight.size) < sight.surfaces.mirror.reshape(sight.size)
    columns = np.arange(sight.size[1])
    with np.errstate(divide="ignore"):
        partner = columns - np.sign(baseline) * focal * abs(baseline) / np.maximum(sight.depth, 1e-6)
    inside = (partner >= 0) & (partner <= sight.size[1] - 1)
    kept = both & (contrast > texture) & ~plain & inside & (depth < reach)
    return Reading(depth=np.where(_without_specks(kept), depth, 0).astype(np.float32))


def disparity_depth(
    depth: Floats, focal_baseline: float, matching: Matching, rng: np.random.Generator
) -> npt.NDArray[np.float64]:
    """[H, W] exact depth → depth by disparities in steps; 0 stays 0. `focal_baseline` in pixels · metres."""
    moved = _wandered(depth, matching.window, rng).astype(np.float64)
    noise = ndimage.gaussian_filter(rng.standard_normal(depth.shape), 1.0)
    noise *= matching.noise / max(float(noise.std()), 1e-12)
    there = moved > 0
    disparity = np.where(there, focal_baseline / np.where(there, moved, 1), 0) + noise
    if matching.step > 0:
        disparity = np.round(disparity / matching.step) * matching.step
    found = there & (disparity > 0)
    return np.where(found, focal_baseline / np.where(found, disparity, 1), 0)


def _wandered(depth: Floats, window: float, rng: np.random.Generator) -> Floats:
    """Each pixel takes the depth of a place some pixels away, neighbours about the same way: lumpy edges."""
    if window <= 0:
        return depth
    height, width = depth.shape
    shift = rng.standard_normal((2, height, width)).astype(np.float32)
    shift = np.stack([ndimage.gaussian_filter(plane, max(window, 0.7)) for plane in shift])
    shift *= 0.5 * window / max(float(shift.std()), 1e-9)
    rows = np.clip(np.rint(np.arange(height)[:, None] + shift[0]), 0, height - 1).astype(np.int64)
    columns = np.clip(np.rint(np.arange(width) + shift[1]), 0, width - 1).astype(np.int64)
    return np.asarray(depth[rows, columns])


def _without_specks(kept: npt.NDArray[np.bool_]) -> npt.NDArray[np.bool_]:
    """Small islands go, as every stereo camera removes them, and so do pinholes."""
    share = ndimage.uniform_filter(kept.astype(np.float32), 5)
    return np.asarray((kept & (share > 0.4)) | (share > 0.9))
