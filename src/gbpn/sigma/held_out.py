"""Which measurements a check of the sigmas holds out, and what their errors say; in NumPy, for torch and for
`gbpn.runtime` alike. See `gbpn.sigma.check`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

__all__ = [
    "BESIDE_DOUBT",
    "LEVEL",
    "LEVEL_QUANTILE",
    "SETTINGS",
    "Array",
    "SigmaCheckSettings",
    "drawn_patches",
    "explain",
    "factor_of_few",
]

LEVEL, LEVEL_QUANTILE = 0.90, 1.6449
"""σ is such that a share LEVEL of the errors lies within LEVEL_QUANTILE·σ, as for a Gaussian."""

Array = np.ndarray


@dataclass(frozen=True, kw_only=True)
class SigmaCheckSettings:
    """The numbers of the check."""

    share: float = 0.2
    """Of the measurements that are held out."""
    fewest: int = 25
    """Measurements of an image from which on it is checked."""
    few: tuple[float, float] = (0.5, 0.75)
    """Below that, n measurements leave the scale of a scene open: σ grows by the first of these / n to the
    power of the second, as frames held out from training ask for."""
    patches_from: int = 2000
    """From this many measurements on, all in a square patch are held out together: on a scan line, or around
    a hole, single points would be too easy to guess from their neighbours."""
    patch: float = 3.0
    """Side of such a patch, in mean distances between measurements."""
    line_patch: tuple[float, float] = (1.0, 20.0)
    """Where measurements lie on scan lines, however many: height and width of a patch along them, in the same
    distances. Such a patch takes out a piece of a line as long as no neighbour along it can help."""
    on_lines: tuple[float, float] = (0.5, 3.0)
    """Measurements lie on lines where at least the first share of them has a neighbour along the rows within
    half the mean distance, and that share is the second times that along the columns; or the reverse."""
    calibration_weight: float = 20
    """Held-out measurements that weigh as much as the stored calibration."""
    narrowing: float = 1.0
    """Power on factors below 1: how far a good result narrows sigmas."""
    largest_factor: float = 10.0
    """Sigmas are widened, or narrowed, by at most this factor."""
    noise_passed_on: float = 0.5
    """Share of the measurements' noise that is found in the answer."""
    factors_tried: int = 16
    """Factors on σ, from 1 to the largest, among which the likeliest is sought together with …"""
    noises: tuple[float, float, int] = (0.002, 0.2, 15)
    """… the noise relative to depth: none, or this many values from the first to the second …"""
    freedom: float = 3.0
    """… for errors that follow Student's t of this many degrees of freedom …"""
    gaussian_scale: float = 1.25
    """… whose likeliest scale for Gaussian noise is that noise's σ over this …"""
    doubt: float = 2.0
    """… where any noise at all must be this much better in log-likelihood than none …"""
    most_compared: int = 400
    """… for at most about this many held-out measurements."""


SETTINGS = SigmaCheckSettings()
BESIDE_DOUBT = replace(SETTINGS, few=(0.0, 1.0), calibration_weight=50, narrowing=0.0)
"""Where weights know the doubt of a pixel's surroundings, which counts the measurements too: they state σ
better than a few held-out ones do, and where those err less than stated, they lie where it is easy. Chosen on
held-out training frames."""


def drawn_patches(there: Array, settings: SigmaCheckSettings = SETTINGS) -> Array:
    """[height, width] bool: where those of an image's measurements `there` are held out, always the same."""
    (height, width), count = there.shape, int(there.sum())
    if count < settings.fewest:
        return np.zeros((height, width), dtype=bool)
    patches = _drawn(there, _patch_size(there, math.sqrt(height * width / count), settings), settings)
    if 0 < 2 * int(patches[there].sum()) <= count:
        return patches
    return _drawn(there, (1, 1), settings)  # one line, say: a patch that takes all of it, or none


def _drawn(there: Array, size: tuple[int, int], settings: SigmaCheckSettings) -> Array:
    """A share of all patches of so many rows and columns, cut off at the image's border."""
    (height, width), (rows, columns) = there.shape, size
    draw = _uniform(math.ceil(height / rows), math.ceil(width / columns))
    patches: Array = (draw < np.float32(settings.share)).repeat(rows, 0).repeat(columns, 1)
    return patches[:height, :width]


def _patch_size(there: Array, distance: float, settings: SigmaCheckSettings) -> tuple[int, int]:
    """Rows and columns of the patches that are held out of measurements with this mean distance."""
    reach = max(1, round(distance / 2))
    along_rows, along_columns = _with_neighbour(there, reach), _with_neighbour(there.T, reach)
    least, times = settings.on_lines
    across, along = (max(1, round(size * distance)) for size in settings.line_patch)
    if along_rows >= max(least, times * along_columns):
        return across, along
    if along_columns >= max(least, times * along_rows):
        return along, across
    side = round(settings.patch * distance) if int(there.sum()) >= settings.patches_from else 1
    return side, side


def _with_neighbour(there: Array, reach: int) -> float:
    """Share of the measurements with another one in the next `reach` columns, a row off at most."""
    band = there.copy()
    band[1:] |= there[:-1]
    band[:-1] |= there[1:]
    before = np.concatenate((np.zeros((len(band), 1), dtype=np.int64), band.cumsum(axis=1)), axis=1)
    column = np.arange(there.shape[1])
    upto = np.minimum(column + reach + 1, there.shape[1])
    return float(((before[:, upto] - before[:, column + 1]) > 0)[there].mean())


def _uniform(rows: int, columns: int) -> Array:
    """[rows, columns] float32 in [0, 1): as torch.rand with seed 0, 24 bits of a Mersenne twister."""
    twister = np.random.RandomState(0)
    bits = twister.randint(0, 2**32, (rows, columns), dtype=np.uint32)
    return (bits & np.uint32(2**24 - 1)).astype(np.float32) * np.float32(2**-24)


def factor_of_few(count: int, settings: SigmaCheckSettings = SETTINGS) -> float:
    """The factor on σ where none of `count` measurements could be held out."""
    amount, power = settings.few
    return 1.0 + amount / max(count, 1) ** power if count < settings.fewest else 1.0


def explain(error: Array, sigma: Array, settings: SigmaCheckSettings = SETTINGS) -> tuple[float, float]:
    """The factor on σ, and the relative σ to add, that make errors [n] at held-out measurements likely.

    An error there is that of the answer and that of the measurement; both are relative to depth, as `sigma`.
    Only what is wider than stated can be noise. Noise shows at pixels that should be certain, sigmas that are
    too small show at all.
    """
    if not len(error):
        return 1.0, 0.0
    trust = len(error) / (len(error) + settings.calibration_weight)
    factor, noise = _needed_factor(error, sigma, 0.0), 0.0
    if factor > 1:
        noise = _likeliest_noise(error, sigma, settings)
        factor = max(_needed_factor(error, sigma, noise), 1.0)
    largest, power = settings.largest_factor, trust if factor > 1 else trust * settings.narrowing
    return min(max(factor, 1 / largest), largest) ** power, settings.noise_passed_on * noise * trust


def _needed_factor(error: Array, sigma: Array, noise: float) -> float:
    """The factor on σ with which a share LEVEL of the errors lies within its interval, besides `noise`."""
    beyond = np.sqrt(np.maximum(np.square(error / LEVEL_QUANTILE) - noise**2, 0))
    return float(np.quantile(beyond / sigma, LEVEL))


def _likeliest_noise(error: Array, sigma: Array, settings: SigmaCheckSettings) -> float:
    step = max(1, len(error) // settings.most_compared)
    error, sigma = error[::step], sigma[::step]
    factors = np.exp(np.linspace(0, math.log(settings.largest_factor), settings.factors_tried))
    low, high, count = settings.noises
    noises = np.concatenate((np.zeros(1), np.exp(np.linspace(math.log(low), math.log(high), count))))
    scale = np.sqrt(np.square(factors[:, None, None] * sigma) + np.square(noises[:, None]))
    freedom = settings.freedom
    misfit = np.square(error / scale) / freedom
    likelihood = (-np.log(scale) - (freedom + 1) / 2 * np.log1p(misfit)).sum(-1)
    likelihood -= settings.doubt * (noises > 0)
    return settings.gaussian_scale * float(noises[likelihood.max(0).argmax()])
