"""What is computed for a page, each in one call that may run in any thread."""

from __future__ import annotations

import time
from dataclasses import dataclass

import numpy as np
import torch

from gbpn.engine import explanation
from gbpn.engine.measured_pixels import Measurement
from gbpn.engine.session import Session
from gbpn.errors import InputError
from gbpn.predict import DepthCompleter
from gbpn.sensors import patterns
from gbpn.studio import protocol
from gbpn.studio.limits import Limits
from gbpn.studio.material import Material

__all__ = [
    "PATTERNS",
    "Points",
    "compared",
    "draw",
    "filmed",
    "listened",
    "measured",
    "outliers",
    "quick",
    "read_points",
    "refined",
    "suggested",
    "take",
]

PATTERNS = ("points", "lidar", "tof", "corners")
_LIDAR_REACH = 120.0
"""Metres."""
_MOST_SUGGESTED = 50


@dataclass(frozen=True, kw_only=True)
class Points:
    """Measurements of one moment, and the message that brought them."""

    number: int
    rows: tuple[Measurement, ...]


def draw(completer: DepthCompleter, material: Material) -> Session:
    """The network's look at the picture."""
    return completer.session(material.image, material.intrinsics)


def read_points(message: protocol.SetPoints, material: Material, limits: Limits) -> Points:
    """The measurements of a message, each checked."""
    height, width = material.image.shape[:2]
    lengths = {len(message.x), len(message.y), len(message.depth), len(message.std)}
    if len(lengths) != 1 or len(message.x) > limits.points:
        raise InputError(f"up to {limits.points} points with x, y, depth, std each; got {sorted(lengths)}")
    x, y, depth, std = message.x, message.y, message.depth, message.std
    inside = (x >= 0) & (x < width) & (y >= 0) & (y < height)
    positive = np.isfinite(depth) & (depth > 0) & np.isfinite(std) & (std >= 0)
    if not (inside & positive).all():
        bad = int(np.flatnonzero(~(inside & positive))[0])
        raise InputError(
            f"a point is x, y inside {width}×{height}, depth above 0, noise at least 0; "
            f"got {x[bad]}, {y[bad]}, {depth[bad]:g}, {std[bad]:g}"
        )
    if len(np.unique(y.astype(np.int64) * width + x)) != len(x):
        raise InputError("two points at one pixel: remove one of them")
    return Points(
        number=message.id,
        rows=tuple(
            Measurement(x=int(a), y=int(b), depth=float(c), std=float(d))
            for a, b, c, d in zip(x, y, depth, std, strict=True)
        ),
    )


def take(material: Material, pattern: str, count: int, seed: int, limits: Limits) -> np.ndarray:
    """[N, 3] of x, y, depth: the dense map as a sensor would measure it, with about `count` points."""
    if pattern not in PATTERNS or not 1 <= count <= limits.points:
        raise InputError(
            f"a pattern is one of {', '.join(PATTERNS)} with 1 to {limits.points} points; "
            f"got {pattern[:20]!r}, {count}"
        )
    if material.truth is None:
        raise InputError("this picture has no dense depth map to take points from: place them by hand")
    truth = torch.from_numpy(material.truth)[None]
    rng = np.random.default_rng(seed % 2**32)
    if pattern == "points":
        sparse = patterns.random_points(truth, rng, count)
    elif pattern == "corners":
        image = torch.from_numpy(material.image).permute(2, 0, 1).float() / 255
        sparse = patterns.corners(truth, rng, image, count)
    elif pattern == "tof":
        height, width = truth.shape[1:]
        rows = max(1, round((count * height / width) ** 0.5))
        sparse = patterns.time_of_flight(truth, (rows, max(1, count // rows)))
    else:
        sparse = _lidar(truth, material.intrinsics, count)
    kept = sparse[0].numpy()
    y, x = np.nonzero(kept)
    return np.stack([x, y, kept[y, x]], axis=1).astype(np.float32)


def _lidar(truth: torch.Tensor, camera: tuple[float, float, float, float], count: int) -> torch.Tensor:
    """Horizontal scan lines over the whole height, as many as leave three pixels between shots of a line."""
    height, width = truth.shape[1:]
    lines = int(np.clip(round(3 * count / width), 1, height))
    shots = max(1, min(width, round(count / lines)))
    fx, fy, cx, cy = camera
    elevation = np.linspace(np.arctan2(0.5 - cy, fy), np.arctan2(height - 1.5 - cy, fy), lines + 2)[1:-1]
    azimuth = np.linspace(np.arctan2(-cx, fx), np.arctan2(width - 1 - cx, fx), shots + 2)[1:-1]
    column = np.rint(fx * np.tan(azimuth) + cx)
    row = np.rint(
        fy * np.tan(elevation)[:, None] / np.cos(azimuth)[None] + cy
    )  # lines bend away from the middle
    inside = (row >= 0) & (row < height)
    place = row[inside].astype(np.int64), np.broadcast_to(column, row.shape)[inside].astype(np.int64)
    out = torch.zeros_like(truth)
    out[0][place] = truth[0][place]
    return out * (out <= _LIDAR_REACH)


def measured(drawn: Session, points: Points) -> Session:
    """A session over the same picture with these measurements alone."""
    session, new = drawn.copy(), points.rows
    if new:
        session.add([p.x for p in new], [p.y for p in new], [p.depth for p in new], [p.std for p in new])
    return session


def quick(session: Session, points: Points) -> protocol.Maps:
    """The first stage's depth."""
    start = time.perf_counter()
    depth = session.quick_depth()
    return protocol.Maps(
        reply=points.number,
        stage="first",
        seconds=time.perf_counter() - start,
        notices=[],
        depth=depth,
    )


def refined(session: Session, points: Points) -> protocol.Maps:
    """The whole answer."""
    start = time.perf_counter()
    result = session.result
    std = result.std if result.calibrated else None
    return protocol.Maps(
        reply=points.number,
        stage="last",
        seconds=time.perf_counter() - start,
        notices=list(result.notices),
        depth=result.depth,
        confidence=result.confidence,
        std=std,
    )


def suggested(session: Session, message: protocol.Suggest) -> protocol.Suggested:
    """Where to measure next."""
    if not 1 <= message.count <= _MOST_SUGGESTED:
        raise InputError(f"1 to {_MOST_SUGGESTED} suggestions at a time; got {message.count}")
    found = session.suggest(message.count)
    return protocol.Suggested(
        reply=message.id,
        x=np.array([one.x for one in found], np.int32),
        y=np.array([one.y for one in found], np.int32),
        gain=np.array([one.gain for one in found], np.float32),
    )


def filmed(session: Session, message: protocol.Film) -> list[protocol.FilmStill]:
    """Every sweep."""
    stills = list(explanation.film(session))
    return [
        protocol.FilmStill(
            reply=message.id,
            number=number,
            count=len(stills),
            stage=still.stage,
            iteration=still.iteration,
            part=still.part,
            depth=still.depth,
        )
        for number, still in enumerate(stills)
    ]


def listened(session: Session, message: protocol.Listen) -> protocol.Listened:
    """Which pixels one pixel listens to."""
    heard = explanation.listening(session, message.x, message.y)
    return protocol.Listened(
        reply=message.id, x=message.x, y=message.y, strength=heard.strength, shares=heard.shares
    )


def compared(session: Session, message: protocol.Compare) -> protocol.Compared:
    """The first stage alone, or the exact mean."""
    ways = {"first": explanation.first_stage, "exact": explanation.exact}
    if message.to not in ways:
        raise InputError(f"compare to one of {', '.join(ways)}; got {message.to!r}")
    return protocol.Compared(reply=message.id, to=message.to, depth=ways[message.to](session))


def outliers(session: Session, message: protocol.FindOutliers) -> protocol.Outliers:
    """Measurements that the others contradict."""
    if not 0 < message.limit < 1e6:
        raise InputError(f"the limit is a positive number of sigmas; got {message.limit}")
    found = session.outliers(message.limit)
    return protocol.Outliers(
        reply=message.id,
        x=np.array([one.x for one in found], np.int32),
        y=np.array([one.y for one in found], np.int32),
        expected=np.array([one.expected for one in found], np.float32),
        sigmas=np.array([one.sigmas for one in found], np.float32),
    )
