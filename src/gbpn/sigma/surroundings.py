"""What a pixel's surroundings leave open, and so how much wider its σ must be than its confidence says.

Confidence is the network's own view, and was trained where measurements lie all over a picture. How far the
next measurement is, whether a depth lies beyond all that was measured, how much the answer changes nearby and
whether the picture has any texture say more. A small network of these numbers, fitted with the calibration,
gives a factor on σ. In NumPy, for torch and for `gbpn.runtime` alike, on cells of 2×2 pixels, so that no
pattern of single pixels gets in; nothing in it depends on the unit of depth.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from gbpn.measurements.validity import measured

__all__ = ["CELL", "FEATURES", "HIDDEN", "Array", "doubt", "factors", "features", "grey", "sound"]

Array = np.ndarray

CELL = 2
"""Pixels along a side of a cell."""
FEATURES = (
    "log σ as stated",
    "log precision of the belief",
    "distance to the nearest measurement",
    "that distance in mean distances between measurements",
    "log depth against the nearest measurement",
    "how far it is from that",
    "how far beyond all measurements",
    "how far before all of them",
    "log depth against their median",
    "change of depth next to the pixel",
    "change of depth around it",
    "texture around it",
    "number of measurements",
    "mean distance between them",
    "mean distance of all pixels to one",
    "range of what was measured",
    "contrast of the picture",
)
"""What `features` gives, in this order."""
HIDDEN = 12
"""Units of both hidden layers."""
_LARGEST = 10.0
"""σ is widened, or narrowed, by at most this factor."""
_WITHIN = 4.0
"""Deviations from the mean that a feature is believed to have."""
_LEAST = 1e-12
_STEP, _AROUND, _TEXTURE = 3, 11, 7
"""Cells along the sides of the squares in which depth changes and a picture has texture."""


def doubt(
    mean: Array, precision: Array, log_std: Array, sparse: Array, picture: Array, numbers: Sequence[Array]
) -> Array:
    """[H, W] float32: the factor on σ that the fitted `numbers` give; for the rest see `features`."""
    found = factors(features(mean, precision, log_std, sparse, picture), numbers)
    out: Array = np.exp(_pixels(found, mean.shape))
    return out


def factors(found: Array, numbers: Sequence[Array]) -> Array:
    """Logarithms of the factors on σ, [...], for features [F, ...]."""
    middle, scale, *layers = (np.asarray(part, dtype=np.float32) for part in numbers)
    values = found.reshape(len(FEATURES), -1).T
    values = np.clip((values - middle) / scale, -_WITHIN, _WITHIN)
    for weight, bias in zip(layers[::2], layers[1::2], strict=True):
        values = values @ weight.reshape(len(bias), -1).T + bias
        if len(bias) > 1:
            values = np.tanh(values)
    most = np.float32(math.log(_LARGEST))
    out: Array = np.clip(values[:, 0], -most, most).reshape(found.shape[1:])
    return out


def sound(numbers: Sequence[Sequence[float]]) -> bool:
    """Whether these are what `factors` takes: means, deviations, and weights and biases of three layers."""
    count = len(FEATURES)
    wanted = (count, count, count * HIDDEN, HIDDEN, HIDDEN * HIDDEN, HIDDEN, HIDDEN, 1)
    return (
        tuple(map(len, numbers)) == wanted
        and all(math.isfinite(value) for part in numbers for value in part)
        and min(numbers[1]) > 0
    )


def grey(image: Array, mean: Sequence[float], std: Sequence[float]) -> Array:
    """[H, W] in 0 to 1 of a normalised picture [3, H, W]."""
    scale, middle = np.asarray(std, np.float32), np.asarray(mean, np.float32)
    out: Array = (image * scale[:, None, None] + middle[:, None, None]).mean(0)
    return out


def features(mean: Array, precision: Array, log_std: Array, sparse: Array, picture: Array) -> Array:
    """[F, ⌈H/2⌉, ⌈W/2⌉] float32 of an answer's maps, [H, W] each.

    mean       metres, NaN where not observed
    precision  of the belief
    log_std    logarithm of σ over depth, as the confidence states it
    sparse     metres, 0 where not measured; somewhere it is
    picture    its brightness, 0 to 1
    """
    from scipy.ndimage import distance_transform_edt, maximum_filter, minimum_filter, uniform_filter

    depths = np.log(sparse[measured(sparse)])
    middle = np.median(depths)
    near, far = np.quantile(depths, (0.02, 0.98))
    known = np.isfinite(mean) & (mean > 0)
    log = _cells(np.log(np.where(known, mean, np.exp(middle))).astype(np.float32))
    spots = _nearest_of_cells(sparse)
    distance, nearest = distance_transform_edt(spots == 0, return_indices=True)
    distance = (CELL * distance).astype(np.float32)
    from_nearest = log - np.log(spots[nearest[0], nearest[1]])
    spacing = math.sqrt(mean.size / len(depths))
    changes = [maximum_filter(log, side) - minimum_filter(log, side) for side in (_STEP, _AROUND)]
    bright = _cells(picture)
    spread = uniform_filter(bright * bright, _TEXTURE) - np.square(uniform_filter(bright, _TEXTURE))
    far_from_all = np.log1p(distance)
    of_pixels = (
        _cells(log_std),
        np.log(np.maximum(_cells(precision), _LEAST)),
        far_from_all,
        np.log1p(distance / spacing),
        from_nearest,
        np.abs(from_nearest),
        np.maximum(log - far, 0),
        np.maximum(near - log, 0),
        log - middle,
        *(np.log(change + 1e-3) for change in changes),
        np.log(np.sqrt(np.maximum(spread, 0)) + 1e-2),
    )
    of_all = (
        math.log(len(depths)),
        math.log(spacing),
        float(far_from_all.mean()),
        float(far - near),
        math.log(float(bright.std()) + 1e-2),
    )
    whole = (np.full_like(log, value) for value in of_all)
    return np.stack([maps.astype(np.float32) for maps in (*of_pixels, *whole)])


def _cells(maps: Array) -> Array:
    """[H, W] → [⌈H/2⌉, ⌈W/2⌉]: means of 2×2 pixels."""
    whole = np.pad(maps, ((0, maps.shape[0] % CELL), (0, maps.shape[1] % CELL)), mode="edge")
    out: Array = (whole[::2, ::2] + whole[1::2, ::2] + whole[::2, 1::2] + whole[1::2, 1::2]) / 4
    return out.astype(np.float32)


def _nearest_of_cells(sparse: Array) -> Array:
    """[⌈H/2⌉, ⌈W/2⌉]: the nearest of each cell's measurements, 0 where there is none."""
    whole = np.pad(sparse, ((0, sparse.shape[0] % CELL), (0, sparse.shape[1] % CELL)))
    whole = np.where(whole > 0, whole, np.inf)
    least = whole[::2, ::2]
    for part in (whole[1::2, ::2], whole[::2, 1::2], whole[1::2, 1::2]):
        least = np.minimum(least, part)
    return np.where(np.isfinite(least), least, 0)


def _pixels(maps: Array, size: tuple[int, ...]) -> Array:
    """[⌈H/2⌉, ⌈W/2⌉] → [H, W], linear between the cells' centres."""
    for axis in (0, 1):
        along = np.moveaxis(maps, axis, 0)
        before, after = np.concatenate((along[:1], along[:-1])), np.concatenate((along[1:], along[-1:]))
        both = np.stack((0.75 * along + 0.25 * before, 0.75 * along + 0.25 * after), 1)
        maps = np.moveaxis(both.reshape(-1, *along.shape[1:])[: size[axis]], 0, axis)
    return np.ascontiguousarray(maps, dtype=np.float32)
