"""A projector of a dot pattern beside an infrared camera: the Kinect of most recorded rooms, as it comes
and filled.

Missing are surfaces that the projector or the infrared camera does not see, those that are dark, glancing,
polished or far, and a strip at the edge. `filled` does what was done to NYUv2's labelled frames: holes get
depth from their neighbours, more from those of their own colour. Its shadows then have depth from the wrong
side as often as not.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from scipy import ndimage, sparse
from scipy.sparse.linalg import spsolve

from gbpn.worlds.scene import Floats
from gbpn.worlds.sensing.laser import Reading
from gbpn.worlds.sensing.sight import Sight
from gbpn.worlds.sensing.stereo import Matching, disparity_depth

__all__ = ["filled", "kinect", "structured_light"]

_KINECT = Matching(step=1 / 8, noise=0.06, window=1.2)
_FOCAL = 580 / 640
"""Focal length of the infrared camera by its width."""


def structured_light(
    sight: Sight,
    rng: np.random.Generator,
    *,
    projector: float = -0.05,
    camera: float = 0.025,
    matching: Matching = _KINECT,
    nearest: float = 0.45,
    reach: float = 9.5,
) -> Reading:
    """Depth registered to the colour camera, holes left open.

    projector, camera  metres to the right of the colour camera at which the projector and the infrared
    camera sit
    """
    _height, width = sight.size
    seen = sight.surfaces
    both = sight.sees(np.array([projector, 0, 0])) & sight.sees(np.array([camera, 0, 0]))
    # Disparities are counted at the infrared camera's 640 columns whatever the picture's size.
    depth = disparity_depth(sight.depth, _FOCAL * 640 * abs(camera - projector), matching, rng)
    with np.errstate(divide="ignore", invalid="ignore"):
        light = seen.brightness * seen.cosine / np.maximum(seen.distance, 0.3) ** 2
    light = np.where(np.isfinite(light), light, 0).reshape(sight.size)
    polish, cosine = seen.polish.reshape(sight.size), seen.cosine.reshape(sight.size)
    enough = light > 0.0022 * np.exp(0.5 * _lumps(sight.size, rng))
    glancing = cosine < 0.12 + 0.05 * _lumps(sight.size, rng)
    glare = (polish > 0.75) & (cosine > 0.985)  # the projector's own image
    thrown_on = seen.mirror.reshape(sight.size) > 0.3
    kept = both & enough & ~glancing & ~glare & ~thrown_on & (depth > nearest) & (depth < reach)
    kept = ndimage.binary_opening(kept, np.ones((2, 2), bool))
    # Windows of the matching reach over the edge of a shadow: it grows a little.
    kept &= ~ndimage.binary_dilation(~kept & (sight.depth > 0), iterations=1) | (rng.random(sight.size) < 0.5)
    edge = max(1, round(width * 0.012))
    kept[:, :edge] = False
    return Reading(depth=np.where(kept, depth, 0).astype(np.float32))


def kinect(sight: Sight, rng: np.random.Generator, *, turned: bool = False) -> Reading:
    """As `structured_light`, with all holes filled; `turned` has projector and camera change sides."""
    side = -1.0 if turned else 1.0
    raw = structured_light(sight, rng, projector=-0.05 * side, camera=0.025 * side)
    image = sight.image if sight.image is not None else np.zeros((*sight.size, 3), np.uint8)
    return Reading(depth=filled(raw.depth, image))


def filled(depth: Floats, image: npt.NDArray[np.uint8]) -> Floats:
    """[H, W] with every hole filled: each pixel the mean of its eight neighbours, weighted by likeness in
    colour.

    A frame without any depth stays as it is. Measured pixels keep their depth.
    """
    holes = depth <= 0
    count = int(holes.sum())
    if not count or count == depth.size:
        return depth
    height, width = depth.shape
    number = np.full(depth.shape, -1, np.int64)
    number[holes] = np.arange(count)
    grey = image.astype(np.float64) @ np.array([0.299, 0.587, 0.114]) / 255
    row, column = np.nonzero(holes)
    own = grey[row, column]
    neighbours = []
    for dy, dx in ((-1, -1), (-1, 0), (-1, 1), (0, -1), (0, 1), (1, -1), (1, 0), (1, 1)):
        y, x = row + dy, column + dx
        inside = (y >= 0) & (y < height) & (x >= 0) & (x < width)
        y, x = np.clip(y, 0, height - 1), np.clip(x, 0, width - 1)
        neighbours.append((y, x, inside, (grey[y, x] - own) ** 2))
    spread = np.sum([np.where(n[2], n[3], 0) for n in neighbours], axis=0) / 8
    spread = np.maximum(spread * 0.6, 2e-4)
    rows, columns, values = [], [], []
    total, known = np.zeros(count), np.zeros(count)
    for y, x, inside, difference in neighbours:
        weight = np.where(inside, np.exp(-difference / spread) + 1e-5, 0)
        total += weight
        other = number[y, x]
        free = inside & (other >= 0)
        rows.append(np.flatnonzero(free))
        columns.append(other[free])
        values.append(-weight[free])
        known += np.where(inside & (other < 0), weight * depth[y, x], 0)
    everything = np.arange(count)
    matrix = sparse.csc_matrix(
        (
            np.concatenate([*values, total]),
            (np.concatenate([*rows, everything]), np.concatenate([*columns, everything])),
        ),
        shape=(count, count),
    )
    out = depth.copy()
    out[holes] = np.asarray(spsolve(matrix, known)).astype(np.float32)
    return out


def _lumps(size: tuple[int, int], rng: np.random.Generator) -> npt.NDArray[np.float64]:
    """[H, W] noise of deviation 1 that is alike over some pixels."""
    noise = ndimage.gaussian_filter(rng.standard_normal(size), 1.5)
    return np.asarray(noise / max(float(noise.std()), 1e-12))
