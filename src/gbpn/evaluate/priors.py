"""What foreign depth maps of many qualities bring and cost: kinds × numbers of points, from exact depth."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from scipy.ndimage import distance_transform_edt, gaussian_filter
from torch import Tensor

from gbpn.engine import Engine
from gbpn.errors import InputError
from gbpn.evaluate.run import Plan
from gbpn.foreign.resampling import resampled
from gbpn.inputs.frame import FrameInputs
from gbpn.measurements.validity import measured
from gbpn.model.loading import load
from gbpn.sample import Sample
from gbpn.sigma.held_out import LEVEL_QUANTILE

__all__ = ["Array", "Found", "compared", "made", "tables"]

Array = np.ndarray

_BLUR, _WARP, _WARPED_BY, _FLATTENED = 2.0, 25.0, 0.15, 0.8
"""Pixels, pixels, and log depth: a map blurred, and one that is flatter and bent smoothly besides."""


def made(depth: Array, other: Array, seed: int) -> dict[str, Array]:
    """Maps by name from exact depth [H, W], and from that of another picture of the same size."""
    exact, draw = gaussian_filter(np.log(depth), _BLUR), np.random.default_rng(seed)
    bent = _FLATTENED * exact + _WARPED_BY * _smooth(draw, depth.shape, _WARP)
    warped, foreign = np.exp(bent), np.exp(gaussian_filter(np.log(other), _BLUR))
    half, middle = np.exp(exact), depth.shape[1] // 2
    half[:, middle:] = foreign[:, middle:]
    return {
        "good: depth, blurred": np.exp(exact),
        "good: log depth, blurred": 0.3 * exact - 2,
        "fair: depth, warped": warped,
        "fair: 0 to 1, warped": (warped - warped.min()) / np.ptp(warped),
        "fair: disparity, warped": 37 * (1 / warped - 0.05),
        "half wrong": half,
        "wrong: another picture's": foreign,
        "wrong: mirrored": np.exp(exact[:, ::-1]),
        "wrong: flat": np.full_like(depth, 2.0),
        "wrong: noise": np.exp(0.3 * _smooth(draw, depth.shape, 3.0)),
    }


@dataclass(kw_only=True)
class Found:
    """Means over frames as they come."""

    own: list[float] = field(default_factory=list)
    """RMSE without the map, metres."""
    rmse: list[float] = field(default_factory=list)
    """With it."""
    share: list[float] = field(default_factory=list)
    inside: list[float] = field(default_factory=list)
    """Share of the pixels within the 90 % interval."""

    def row(self) -> dict[str, Any]:
        """For a table."""
        own, rmse = (math.fsum(x) / len(x) for x in (self.own, self.rmse))
        return {
            "without [m]": f"{own:.3f}",
            "with [m]": f"{rmse:.3f}",
            "change": f"{100 * (rmse / own - 1):+.1f} %",
            "believed": f"{math.fsum(self.share) / len(self.share):.0%}",
            "90 % hold": f"{math.fsum(self.inside) / len(self.inside):.1%}" if self.inside else "–",
        }


def tables(plan: Plan) -> dict[str, Any]:
    """One table for each of the weights: a row for each kind of map and number of points."""
    return {f"priors, {entry.name}": _table(plan, entry.spec) for entry in plan.entries if _learned(entry)}


def _learned(entry: Any) -> bool:
    return bool(entry.kind == "weights")


def _table(plan: Plan, spec: str) -> list[dict[str, Any]]:
    engine, out = Engine.of(load(spec)), []
    for setting in plan.settings:
        dataset = plan.open(setting)
        found: dict[str, Found] = {}
        samples = [dataset.load(index) for index in plan.frames(dataset, setting)]
        for number, sample in enumerate(samples):
            maps = _maps(sample, samples[(number + 1) % len(samples)], number)
            seen = setting.measure(sample)
            compared(engine, seen, maps, found)
        out += [{"prior": name, "points": setting.points, **one.row()} for name, one in found.items()]
    return out


def _maps(sample: Sample, other: Sample, seed: int) -> dict[str, Array]:
    if sample.target is None or other.target is None:
        raise InputError(f"{sample.name}: no ground truth to make priors of")
    size = sample.image.shape[1], sample.image.shape[2]
    there = resampled(torch.from_numpy(_filled(other.target))[None], size)[0].numpy()
    return made(_filled(sample.target), there, seed)


def compared(engine: Engine, sample: Sample, maps: dict[str, Array], found: dict[str, Found]) -> None:
    """One frame without a map and with each of them, added to what was `found` by name."""
    assert sample.target is not None
    target = sample.target

    def answer(prior: Tensor | None) -> tuple[float, float, float]:
        result = engine.frame(
            FrameInputs(image=sample.image, sparse=sample.sparse, intrinsics=sample.intrinsics, prior=prior)
        )
        there = measured(target)[0].numpy() & result.observed
        error = np.abs(result.depth - target[0].numpy())[there]
        inside = (
            float((error <= LEVEL_QUANTILE * result.std[there]).mean()) if result.calibrated else math.nan
        )
        verdict = result.distribution.prior
        return float(np.sqrt(np.square(error).mean())), inside, 0.0 if verdict is None else verdict.share

    own = answer(None)
    for name, values in {"none": None, **maps}.items():
        given = (
            None if values is None else torch.from_numpy(np.asarray(values, dtype=np.float32).copy())[None]
        )
        rmse, inside, share = own if given is None else answer(given)
        one = found.setdefault(name, Found())
        one.own.append(own[0])
        one.rmse.append(rmse)
        one.share.append(share)
        one.inside += [] if math.isnan(inside) else [inside]


def _filled(target: Tensor) -> Array:
    """[H, W] metres: holes take the nearest depth."""
    depth = target[0].numpy().astype(np.float64)
    place = distance_transform_edt(depth <= 0, return_distances=False, return_indices=True)
    return np.asarray(depth[tuple(place)])


def _smooth(draw: np.random.Generator, size: tuple[int, ...], sigma: float) -> Array:
    """[H, W] smooth noise of standard deviation 1."""
    noise = gaussian_filter(draw.standard_normal(size), sigma)
    return np.asarray(noise / noise.std())
