"""How far a foreign map is believed, from measurements that were held out: globally, and by place.

The field is completed without some of the measurements twice, with the network's own depth-like map and with
the foreign one, and both are compared at those. What counts is how surely the foreign map is better, not by
how much: a share that grows with the mean gain over its standard error costs next to nothing where the map is
wrong, and all of it is used where it is right.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.ndimage import gaussian_filter

__all__ = ["SETTINGS", "Array", "TrustSettings", "Verdict", "folds", "narrowing", "share", "share_by_place"]

Array = np.ndarray


@dataclass(frozen=True, kw_only=True)
class TrustSettings:
    """The numbers of the check."""

    fewest: int = 5
    """Measurements of a frame from which on a map is checked."""
    most_folds: int = 5
    """Parts that the measurements are divided into; each is held out once …"""
    enough: int = 100
    """… but of so many measurements two parts suffice."""
    largest_gain: float = 0.5
    """In |log error|; no single measurement counts more."""
    doubt: float = 0.5
    """Standard errors of the mean gain at which a map begins to be believed …"""
    certainty: float = 2.0
    """… and at which it is believed fully …"""
    few: float = 10.0
    """… where of so few measurements the standard error itself is doubtful."""
    by_place: int = 50
    """Measurements held out from which on places are told apart …"""
    reach: float = 3.0
    """… over this many mean distances between measurements."""
    agreement: float = 0.3
    """Rank correlation with the network's own answer from which on an unchecked map is believed."""
    unchecked: float = 0.5
    """Share of an unchecked map."""
    narrowest: float = 0.5
    """Of that ratio, so much counts …"""
    narrowed: float = 0.5
    """… and by this share of what it asks for σ becomes narrower: few measurements say little of it."""


SETTINGS = TrustSettings()


@dataclass(frozen=True, kw_only=True)
class Verdict:
    """What became of a foreign map."""

    kind: str
    """What its values were taken for, of `fitting.KINDS`; "none" where no fit was found."""
    share: float
    """Of it in the depth-like map, in the mean over the picture; the rest is the network's own."""
    checked: int
    """Measurements that were held out to decide that; 0: too few for a check."""
    reason: str
    """In words."""
    narrowing: float = 1.0
    """What is left of σ where measurements are too few to check it: errors with the map over without."""

    def as_json(self) -> dict[str, object]:
        """For the record of a frame."""
        return {
            "kind": self.kind,
            "share": round(self.share, 3),
            "checked": self.checked,
            "reason": self.reason,
        }


def folds(there: Array, settings: TrustSettings = SETTINGS) -> list[Array]:
    """Parts of the measurements `there` [H, W] bool, to be held out one after the other; always the same."""
    rows, columns = np.nonzero(there)
    count = len(rows)
    if count < settings.fewest:
        return []
    parts, draw = settings.most_folds, np.random.default_rng(0)
    drawn = draw.permutation(count) % parts
    out = []
    for part in range(parts if count < settings.enough else 2):
        held = np.zeros_like(there)
        held[rows[drawn == part], columns[drawn == part]] = True
        out.append(held)
    return out


def share(gain: Array, settings: TrustSettings = SETTINGS) -> float:
    """In [0, 1] for gains [n], |log error| with the network's own map − with the foreign one."""
    if len(gain) < 2:
        return 0.0
    held = np.clip(gain, -settings.largest_gain, settings.largest_gain)
    deviation = held.std(ddof=1) / np.sqrt(len(held))
    return float(_believed(held.mean(), deviation, len(held), settings))


def narrowing(without: Array, with_map: Array, share: float) -> float:
    """Of |log errors| [n] at held-out measurements without the map and with it, for a share of it."""
    ratio = float(with_map.mean() / max(float(without.mean()), 1e-9))
    return 1 - SETTINGS.narrowed * share * (1 - float(np.clip(ratio, SETTINGS.narrowest, 1)))


def share_by_place(gain: Array, rows: Array, columns: Array, size: tuple[int, int]) -> Array:
    """[H, W] in [0, 1]: the same around every pixel, from gains [n] at measurements that were held out.

    Where few of them are near, all of them count.
    """
    settings = SETTINGS
    everywhere = np.full(size, share(gain), dtype=np.float32)
    if len(gain) < settings.by_place:
        return everywhere
    held = np.clip(gain, -settings.largest_gain, settings.largest_gain)
    sigma = settings.reach * float(np.sqrt(size[0] * size[1] / len(gain)))
    counted, summed, squared = (_smoothed(values, rows, columns, size, sigma) for values in _moments(held))
    near = 4 * np.pi * sigma**2 * counted  # measurements that the window is worth
    own = settings.by_place / 2
    mean = (near * summed / np.maximum(counted, 1e-12) + own * held.mean()) / (near + own)
    spread = (near * squared / np.maximum(counted, 1e-12) + own * np.square(held).mean()) / (near + own)
    deviation = np.sqrt(np.maximum(spread - mean**2, 1e-18) / (near + own))
    return np.asarray(_believed(mean, deviation, len(gain), settings), dtype=np.float32)


def _believed(mean: Array, deviation: Array, count: int, settings: TrustSettings) -> Array:
    """Shares for mean gains and their standard errors, of `count` measurements."""
    surely = mean / np.maximum(deviation, 1e-9) * np.sqrt(count / (count + settings.few))
    return np.asarray(np.clip((surely - settings.doubt) / (settings.certainty - settings.doubt), 0, 1))


def _moments(values: Array) -> tuple[Array, Array, Array]:
    return np.ones_like(values), values, np.square(values)


def _smoothed(values: Array, rows: Array, columns: Array, size: tuple[int, int], sigma: float) -> Array:
    """Values [n] at their pixels, as a density."""
    out = np.zeros(size)
    np.add.at(out, (rows, columns), values)
    return np.asarray(gaussian_filter(out, sigma, mode="reflect", truncate=3.0))
