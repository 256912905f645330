"""A map without metres brought to metres: one affine fit to the measurements, robust, in the map's own kind.

Monocular networks say depth, disparity (1/depth) or log depth, often up to a factor and a shift that they do
not know. For each kind a·value + b is fitted. Where measurements are too few for both numbers, the usual form
of such maps holds them: the values as they are, if their range is that of a scene, else shifted to one.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

__all__ = ["KINDS", "Array", "MapFit", "fitted", "most_fitting", "rank_correlation"]

KINDS = ("depth", "disparity", "log")
"""What the values of a map may be: metres up to scale and shift, their inverse, or their logarithm."""

Array = np.ndarray

_USUAL_RANGE = (1.3, 12.0)
"""Of near to far, from the 5th to the 95th percentile: maps within need no shift …"""
_RANGE = 4.0
"""… and others are shifted to this one."""
_FORM = 2.0
"""Measurements that the usual form weighs as much as, all of it together."""
_PLACES = 8
"""Along each side of the grid of places at which it does."""
_ROUNDS = 8
"""Of reweighting."""
_EXACT = 0.01
"""Relative error of a measurement below which it weighs no more than others."""
_LEAST = 0.1
"""No fit counts as less than this share of what was measured, while it is sought."""
_BEYOND = 3.0
"""A fitted map reaches at most this factor beyond the nearest and the farthest measurement."""


@dataclass(frozen=True, kw_only=True)
class MapFit:
    """A map in metres."""

    kind: str
    logarithm: Array
    """[H, W] log metres; NaN where the map says nothing."""
    error: float
    """Mean |log residual| at the measurements."""


def most_fitting(values: Array, metres: Array, guess: Array, kind: str = "auto") -> MapFit | None:
    """The best of the fits of all kinds, or of one; None if the map says nothing or the opposite.

    values  [H, W] as the map has them, NaN where it has none
    metres  [H, W] measurements, 0 where there is none
    guess   [H, W] metres, the network's own answer: it tells near from far where measurements are too few to
    """
    found = [fit for one in (KINDS if kind == "auto" else (kind,)) if (fit := fitted(values, metres, one))]
    if kind != "auto" or len(found) < 2:
        return found[0] if found else None
    if int((metres > 0).sum()) >= 2 * _FORM + 1:
        return min(found, key=lambda fit: fit.error)
    near_is_large = rank_correlation(values, guess) < 0
    return next((fit for fit in found if (fit.kind == "disparity") == near_is_large), found[0])


def fitted(values: Array, metres: Array, kind: str) -> MapFit | None:
    """The fit of one kind; None where the map is flat, knows no measured pixel, or runs the other way."""
    if kind == "depth":  # where files hold no depth they hold 0
        values = np.where(values == 0, np.nan, values)
    known = np.isfinite(values)
    there = known & (metres > 0)
    if not there.any() or (form := _usual_form(values, kind)) is None:
        return None
    given, depth = values[there].astype(np.float64), metres[there].astype(np.float64)
    slope, shift = form
    usual = slope * given + shift  # in the kind's own terms, up to one number
    terms = _terms(depth, kind)
    if kind == "log":
        shift += float(np.median(terms - usual))
    else:
        factor = float(np.median(terms / usual))
        slope, shift = slope * factor, shift * factor
    places = _grid(values, known)
    held = slope * places + shift
    if kind != "log":
        held, places = held[held > 0], places[held > 0]
    weight = np.concatenate([np.ones(len(given)), np.full(len(places), _FORM / max(len(places), 1))])
    values_held, terms_held = np.concatenate([given, places]), np.concatenate([terms, held])
    slope, shift = _affine(values_held, terms_held, weight, kind, (slope, shift))
    if not slope > 0:
        return None
    logarithm = _logarithm(slope * values.astype(np.float64) + shift, kind)
    lowest, highest = np.log(depth.min() / _BEYOND), np.log(depth.max() * _BEYOND)
    logarithm = np.clip(logarithm, lowest, highest)
    error = float(np.abs(logarithm[there] - np.log(depth)).mean())
    return MapFit(kind=kind, logarithm=logarithm.astype(np.float32), error=error)


def rank_correlation(one: Array, other: Array) -> float:
    """Of two maps [H, W], where both are finite; 0 where either is flat."""
    both = np.isfinite(one) & np.isfinite(other)
    if both.sum() < 2 or any(np.ptp(x[both]) == 0 for x in (one, other)):
        return 0.0
    first, second = (np.argsort(np.argsort(x[both], kind="stable")) for x in (one, other))
    return float(np.asarray(np.corrcoef(np.stack([first, second]).astype(np.float64)))[0, 1])


def _usual_form(values: Array, kind: str) -> tuple[float, float] | None:
    """Slope and shift that give values the range of a scene; None for a flat map."""
    known = values[np.isfinite(values)].astype(np.float64)
    low, high = np.percentile(known, (5, 95)) if known.size else (0.0, 0.0)
    if not high - low > 1e-6 * max(abs(low), abs(high)):
        return None
    if kind == "log":
        usual = np.log(_USUAL_RANGE[0]) <= high - low <= np.log(_USUAL_RANGE[1])
        return (1.0, 0.0) if usual else (float(np.log(_RANGE) / (high - low)), 0.0)
    if low > 0 and _USUAL_RANGE[0] <= high / low <= _USUAL_RANGE[1] and known.min() > 0:
        return 1.0, 0.0
    shift = (high - _RANGE * low) / (_RANGE - 1)  # (high + shift) / (low + shift) is the range
    return 1.0, float(max(shift, -known.min() + (high - low) * 1e-3))


def _terms(depth: Array, kind: str) -> Array:
    return np.asarray(depth if kind == "depth" else 1 / depth if kind == "disparity" else np.log(depth))


def _logarithm(terms: Array, kind: str) -> Array:
    """Log depth; what no depth can have is the nearest or the farthest there is."""
    if kind == "log":
        return terms
    bounded = np.log(np.maximum(terms, 1e-9, where=np.isfinite(terms), out=np.full_like(terms, np.nan)))
    return np.asarray(bounded if kind == "depth" else -bounded)


def _grid(values: Array, known: Array) -> Array:
    """Values at a few places all over the map."""
    rows, columns = (
        np.unique(((np.arange(_PLACES) + 0.5) * side / _PLACES).astype(int)) for side in values.shape
    )
    chosen = np.ix_(rows, columns)
    return np.asarray(values[chosen][known[chosen]], dtype=np.float64)


def _affine(
    values: Array, terms: Array, weight: Array, kind: str, start: tuple[float, float]
) -> tuple[float, float]:
    """Least absolute log errors of slope·values + shift against terms, by reweighting."""
    slope, shift = start
    design = np.stack([values, np.ones_like(values)], axis=1)
    for _ in range(_ROUNDS):
        found = slope * values + shift
        scale = np.ones_like(terms) if kind == "log" else 1 / np.maximum(found, _LEAST * terms)
        residual = np.abs(found - terms if kind == "log" else np.log(scale * terms))
        root = np.sqrt(weight / np.maximum(residual, _EXACT)) * scale
        slope, shift = np.linalg.lstsq(design * root[:, None], terms * root, rcond=None)[0]
    return float(slope), float(shift)
