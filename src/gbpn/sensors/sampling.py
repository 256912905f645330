"""Patterns and corruptions by name: `points:500`, `lines:16+noise:0.02`, `corners:300+outliers:0.05`.

The first part says where the sensor measures; further parts, joined by +, say what goes wrong.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
from torch import Tensor

from gbpn.errors import InputError
from gbpn.sample import Sample
from gbpn.sensors import corruption, patterns, selections

__all__ = ["ANY_NUMBER", "CORRUPTIONS", "PATTERNS", "areas", "mixture", "parse", "sparsify"]

_Pattern = Callable[[Sample, Tensor, np.random.Generator, float], Tensor]

PATTERNS: dict[str, tuple[float, str, _Pattern]] = {
    "given": (0, "what the sensor gave, untouched", lambda s, d, rng, _: s.sparse),
    "points": (500, "random pixels with depth", lambda s, d, rng, n: patterns.random_points(d, rng, int(n))),
    "fixed": (
        500,
        "the released protocol: the same positions in every frame",
        lambda s, d, rng, n: patterns.fixed_positions(d, int(n)),
    ),
    "lines": (
        64,
        "scan lines by the released rule, per-frame pitch labels",
        lambda s, d, rng, n: patterns.pitch_lines(d, s.intrinsics, int(n)),
    ),
    "elevation": (
        64,
        "scan lines by fixed elevation bins",
        lambda s, d, rng, n: patterns.elevation_lines(d, s.intrinsics, int(n)),
    ),
    "lidar": (
        64,
        "a virtual rotating LiDAR with this many lines",
        lambda s, d, rng, n: patterns.rotating_lidar(d, rng, s.intrinsics, int(n)),
    ),
    "corners": (500, "image corners", lambda s, d, rng, n: patterns.corners(d, rng, s.image, int(n))),
    "grid": (
        16,
        "a regular grid, spacing in pixels",
        lambda s, d, rng, n: patterns.regular_grid(d, rng, int(n)),
    ),
    "tof": (
        8,
        "low-resolution time of flight, zones per side",
        lambda s, d, rng, n: patterns.time_of_flight(d, (int(n), int(n))),
    ),
    "blocks": (
        4,
        "a smaller depth map, pixels per block side",
        lambda s, d, rng, n: patterns.block_means(d, int(n)),
    ),
    "holes": (0.5, "dense with large holes, share missing", lambda s, d, rng, v: patterns.holes(d, rng, v)),
    "near": (3.0, "dense up to a reach in metres", lambda s, d, rng, v: patterns.near_only(d, v)),
    "centres": (
        8,
        "as tof, its readings taken for points at the zones' middles",
        lambda s, d, rng, n: patterns.time_of_flight(d, (int(n), int(n))),
    ),
    "rows": (1, "rows of pixels", lambda s, d, rng, n: selections.rows(d, rng, int(n))),
    "dark": (
        500,
        "random pixels of the darkest fifth of the image",
        lambda s, d, rng, n: selections.dark_points(d, rng, s.image, int(n)),
    ),
    "textured": (
        500,
        "random pixels of the most textured fifth of the image",
        lambda s, d, rng, n: selections.textured_points(d, rng, s.image, int(n)),
    ),
}
"""Name → (default argument, what it is, function of sample, depth to measure, generator and argument)."""

CORRUPTIONS: dict[str, tuple[float, str, Callable[[Tensor, np.random.Generator, float], Tensor]]] = {
    "noise": (0.02, "relative error, uniform in ± this", corruption.relative_noise),
    "outliers": (0.05, "share of wild measurements", corruption.outliers),
    "missing": (0.5, "share of measurements lost", corruption.missing),
    "shift": (
        2,
        "pixels moved against the image, any way",
        lambda s, rng, v: _shift(s, rng, v),
    ),
    "reach": (3.0, "nothing beyond this many metres", lambda s, rng, v: patterns.near_only(s, v)),
    "cut": (0.5, "large holes, share missing", lambda s, rng, v: patterns.holes(s, rng, v)),
    "nearest": (0.4, "the nearest share alone", lambda s, rng, v: selections.nearest_share(s, v)),
    "side": (0.5, "one side of a line alone, its share of the picture", selections.one_side),
    "corner": (0.5, "a corner alone, its share of the sides", selections.one_corner),
}
"""Name → (default argument, what it is, function of sparse depth, generator and argument)."""


def areas(spec: str, size: tuple[int, int]) -> tuple[int, int] | None:
    """(rows, columns) of the smaller depth map that a pattern means, in a picture of `size`; None: points."""
    (name, value), *_ = parse(spec)
    if name == "tof":
        return min(int(value), size[0]), min(int(value), size[1])
    if name == "blocks":
        return max(size[0] // int(value), 1), max(size[1] // int(value), 1)
    return None


def sparsify(sample: Sample, spec: str, rng: np.random.Generator) -> Sample:
    """The sample with `sparse` measured as `spec` says.

    Scan-line patterns thin out what the sensor gave; all others measure the target, or what the sensor gave
    where there is no target.
    """
    (name, value), *steps = parse(spec)
    thins = name in ("lines", "elevation") and bool(sample.sparse.any())
    source = sample.sparse if sample.target is None or thins else sample.target
    sparse = PATTERNS[name][2](sample, source, rng, value)
    for step, amount in steps:
        sparse = CORRUPTIONS[step][2](sparse, rng, amount)
    return replace(sample, sparse=sparse)


def parse(spec: str) -> list[tuple[str, float]]:
    """`points:500+noise` → [("points", 500.0), ("noise", 0.02)]; a pattern, then corruptions."""
    parts: list[tuple[str, float]] = []
    for position, text in enumerate(spec.split("+")):
        name, _, argument = text.strip().partition(":")
        kind, table = ("pattern", PATTERNS) if position == 0 else ("corruption", CORRUPTIONS)
        if name not in table:
            raise InputError(f"unknown {kind} {name!r} in {spec!r}: choose from {', '.join(table)}")
        try:
            value = float(argument) if argument else float(table[name][0])
        except ValueError:
            raise InputError(f"{text!r} in {spec!r}: the part after the colon must be a number") from None
        if not 0 <= value < float("inf"):
            raise InputError(f"{text!r} in {spec!r}: the number must be finite and not negative")
        parts.append((name, value))
    return parts


ANY_NUMBER = (1, 20000)
"""Fewest and most random points that training may see."""

_OTHERS: tuple[tuple[str, float], ...] = (
    ("corners:{count}", 0.2),
    ("lidar", 0.2),
    ("grid:{spacing}", 0.16),
    ("tof:{spacing}", 0.08),
    ("points:{count}+cut:{cut:.2f}", 0.2),
    ("points:{count}+reach:{reach:.2f}", 0.16),
)
"""What `mixture` draws besides plain random points, with the share of each."""


def mixture(
    sample: Sample,
    rng: np.random.Generator,
    points: tuple[int, int] = (5, 20000),
    corrupted: float = 0.2,
    others: float = 0.5,
) -> Sample:
    """A random sensor for training variety: any pattern, a share of `corrupted` with noise and outliers.

    Uniform random points, their number log-uniform in `points` and at most a third of the frame; for a share
    of `others`, another pattern.
    """
    count = int(np.exp(rng.uniform(np.log(points[0]), np.log(points[1]))))
    count = max(1, min(count, sample.image.shape[-1] * sample.image.shape[-2] // 3))
    spec = f"points:{count}"
    if rng.random() < others:
        names, shares = zip(*_OTHERS, strict=True)
        spec = str(rng.choice(names, p=shares)).format(
            count=min(count, 1500),
            spacing=int(rng.integers(6, 40)),
            cut=rng.uniform(0.2, 0.7),
            reach=rng.uniform(2, 6),
        )
    if spec != "lidar" and rng.random() < corrupted:
        spec += f"+noise:{rng.uniform(0, 0.05):.3f}+outliers:{rng.uniform(0, 0.03):.3f}"
    measured = _any_lidar(sample, rng) if spec == "lidar" else sparsify(sample, spec, rng)
    # A reach below everything in view leaves nothing to learn from.
    return measured if bool(measured.sparse.any()) else sparsify(sample, f"points:{count}", rng)


def _any_lidar(sample: Sample, rng: np.random.Generator) -> Sample:
    """A virtual scanner of any make: 8 to 64 lines, its own tilt, opening angle, shot spacing and losses."""
    middle, half = np.radians(rng.uniform(-10, 5)), np.radians(rng.uniform(10, 25))
    sparse = patterns.rotating_lidar(
        sample.sparse if sample.target is None else sample.target,
        rng,
        sample.intrinsics,
        int(rng.choice([64, 32, 16, 8])),
        elevation=(float(middle - half), float(middle + half)),
        azimuth_step=float(np.radians(rng.uniform(0.1, 0.8))),
        dropout=float(rng.uniform(0, 0.2)),
    )
    return replace(sample, sparse=sparse)


def _shift(sparse: Tensor, rng: np.random.Generator, pixels: float) -> Tensor:
    angle = rng.uniform(0, 2 * np.pi)
    return corruption.misalignment(
        sparse, round(pixels * float(np.sin(angle))), round(pixels * float(np.cos(angle)))
    )
