"""Numbers of a scene of the pool layout, drawn or recorded: depths, edges, how hard it is, its sensors."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from PIL import Image

from gbpn.errors import DatasetError

__all__ = ["EDGE", "POINTS", "STEPS", "SceneNumbers", "SensorNumbers", "numbers_of", "stored_depth"]

EDGE = 0.06
"""Relative step between neighbouring pixels that counts as an edge."""
POINTS = 500
STEPS = tuple(float(step) for step in np.geomspace(0.25, 256, 41))
"""Metres: limits of the histogram's bars, a ratio apart."""
_FRAMES, _INTERPOLATED = 200, 40
_WORTH_NAMING = 20
"""Pixels from which on a thing counts as seen."""


@dataclass(frozen=True, kw_only=True)
class SensorNumbers:
    """What a sensor says beside the exact depth, over all frames that were looked at."""

    name: str
    measured: float
    """Share of pixels."""
    error: float
    """Median difference to the exact depth in metres, where both are known."""
    apart: float
    """Share of measured pixels that differ by more than 5 %: past edges, flying, or filled."""


@dataclass(frozen=True, kw_only=True)
class SceneNumbers:
    """One scene, of at most 200 of its frames."""

    name: str
    frames: int
    """In all."""
    known: float
    """Share of pixels with depth."""
    quantiles: tuple[float, ...]
    """Depth in metres below which 5, 25, 50, 75 and 95 % of the pixels are."""
    histogram: tuple[float, ...]
    """Share of the pixels between STEPS."""
    edges: float
    """Share of the pixels with an edge to the right or below."""
    linear: float
    """Metres: mean over frames of the root mean square error of linear interpolation between 500 points."""
    things: float | None
    """Median number of kinds of things that a frame shows; None where that is not told."""
    seen: tuple[tuple[str, float], ...]
    """Things, and the share of frames that show them, most frequent first."""
    sensors: tuple[SensorNumbers, ...]


def numbers_of(folder: Path) -> SceneNumbers:
    """Of the scene in this folder, which has a `meta.json` and a `depth/`."""
    meta = _meta(folder)
    names = sorted(path.stem for path in folder.glob("depth/*.png"))
    if not names:
        raise DatasetError(f"{folder}: no depth/*.png; expected a scene of the pool layout with depth maps")
    rng = np.random.default_rng(0)
    chosen = sorted(rng.permutation(len(names))[:_FRAMES])
    scale = float(meta.get("depth_scale", 0)) or 1.0
    depths = [stored_depth(folder / "depth" / f"{names[k]}.png", scale) for k in chosen]
    every = np.concatenate([depth[depth > 0] for depth in depths])
    counts = np.histogram(every, STEPS)[0] if every.size else np.zeros(len(STEPS) - 1)
    shown = list(_shown(folder, [names[k] for k in chosen]))
    return SceneNumbers(
        name=f"{folder.resolve().parent.name}/{folder.resolve().name}",
        frames=len(names),
        known=float(np.mean([(depth > 0).mean() for depth in depths])),
        quantiles=tuple(float(q) for q in np.quantile(every, (0.05, 0.25, 0.5, 0.75, 0.95)))
        if every.size
        else (),
        histogram=tuple(float(share) for share in counts / max(every.size, 1)),
        edges=float(np.mean([_edges(depth).mean() for depth in depths])),
        linear=float(np.mean([_linear_error(depth, rng) for depth in depths[:_INTERPOLATED]])),
        things=float(np.median([len(names) for names in shown])) if shown else None,
        seen=_frequent(shown),
        sensors=tuple(
            _sensor(folder, kind, [names[k] for k in chosen], depths, scale) for kind in _sensors(folder)
        ),
    )


def stored_depth(path: Path, scale: float) -> npt.NDArray[np.float32]:
    """[H, W] metres."""
    with Image.open(path) as file:
        return np.asarray(np.asarray(file, np.float32) / np.float32(scale))


def _meta(folder: Path) -> dict[str, Any]:
    path = folder / "meta.json"
    try:
        return dict(json.loads(path.read_text(encoding="utf-8")))
    except (OSError, ValueError, TypeError) as error:
        raise DatasetError(f"{path}: not readable ({error}); expected a scene of the pool layout") from error


def _shown(folder: Path, names: list[str]) -> Iterator[list[str]]:
    """Things that each frame shows, where its camera file tells."""
    for name in names:
        path = folder / "camera" / f"{name}.json"
        seen = json.loads(path.read_text(encoding="utf-8")).get("seen") if path.is_file() else None
        if seen:
            yield [thing for thing, pixels in seen.items() if pixels >= _WORTH_NAMING]


def _frequent(shown: list[list[str]]) -> tuple[tuple[str, float], ...]:
    counted = Counter(thing for things in shown for thing in set(things))
    order = sorted(counted.items(), key=lambda item: (-item[1], item[0]))
    return tuple((thing, count / len(shown)) for thing, count in order)


def _edges(depth: npt.NDArray[np.float32]) -> npt.NDArray[np.bool_]:
    """[H, W] as contact sheets draw them."""
    out = np.zeros(depth.shape, bool)
    for axis in (0, 1):
        first = np.take(depth, np.arange(depth.shape[axis] - 1), axis)
        second = np.take(depth, np.arange(1, depth.shape[axis]), axis)
        near = np.minimum(first, second)
        step = (np.abs(first - second) > EDGE * near) & (near > 0)
        out[: step.shape[0], : step.shape[1]] |= step
    return out


def _linear_error(depth: npt.NDArray[np.float32], rng: np.random.Generator) -> float:
    """Root mean square over the known pixels inside the hull of the points."""
    from scipy.interpolate import LinearNDInterpolator

    known = np.argwhere(depth > 0)
    if len(known) < POINTS:
        return 0.0
    points = known[rng.choice(len(known), POINTS, replace=False)]
    surface = LinearNDInterpolator(points, depth[tuple(points.T)])
    error = surface(known) - depth[tuple(known.T)]
    error = error[np.isfinite(error)]
    return float(np.sqrt(np.mean(error**2)))


def _sensors(folder: Path) -> list[str]:
    other = ("camera", "color", "depth", "ring")
    return sorted(path.name for path in folder.iterdir() if path.is_dir() and path.name not in other)


def _sensor(
    folder: Path, kind: str, names: list[str], depths: list[npt.NDArray[np.float32]], scale: float
) -> SensorNumbers:
    measured, apart, errors = [], [], []
    for name, exact in zip(names, depths, strict=True):
        path = folder / kind / f"{name}.png"
        reading = stored_depth(path, scale) if path.is_file() else np.zeros_like(exact)
        there = reading > 0
        both = there & (exact > 0)
        error = np.abs(reading[both] - exact[both])
        measured.append(float(there.mean()))
        errors.append(error)
        apart.append(error > 0.05 * exact[both])
    error, far = np.concatenate(errors), np.concatenate(apart)
    return SensorNumbers(
        name=kind,
        measured=float(np.mean(measured)),
        error=float(np.median(error)) if error.size else 0.0,
        apart=float(far.mean()) if far.size else 0.0,
    )
