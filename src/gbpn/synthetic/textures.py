"""Procedural colours of surfaces: a place on the surface in metres → RGB."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

__all__ = ["KINDS", "Texture", "grain_table", "paint", "random_material"]

KINDS = ("plain", "noise", "checker", "stripes", "bricks", "windows", "patches")
_GRAIN = 64
"""Side of the repeated table of random values."""


@dataclass(frozen=True, kw_only=True)
class Texture:
    """How a surface looks."""

    kind: str
    first: np.ndarray
    """[3] RGB in [0, 1]."""
    second: np.ndarray
    """[3] RGB in [0, 1]."""
    size: float
    """Metres of one period."""
    angle: float = 0.0
    """Radians by which the pattern is turned."""
    roughness: float = 0.1
    """Strength of the grain over everything."""


def random_material(
    rng: np.random.Generator, kinds: tuple[str, ...] = KINDS, sizes: tuple[float, float] = (0.1, 1.0)
) -> Texture:
    """Any look; half of the materials have low contrast, as most things do."""
    first = rng.uniform(0.08, 0.85) + rng.normal(0, rng.choice([0.03, 0.15], p=[0.7, 0.3]), 3)
    contrast = 0.08 if rng.random() < 0.5 else 0.3
    second = first + rng.normal(0, contrast) + rng.normal(0, 0.3 * contrast, 3)
    return Texture(
        kind=str(rng.choice(kinds)),
        first=first.clip(0.02, 0.98).astype(np.float32),
        second=second.clip(0.02, 0.98).astype(np.float32),
        size=float(np.exp(rng.uniform(*np.log(sizes)))),
        angle=float(rng.choice([0.0, np.pi / 2, rng.uniform(0, np.pi)], p=[0.6, 0.2, 0.2])),
        roughness=float(rng.uniform(0.0, 0.25)),
    )


def grain_table(rng: np.random.Generator) -> np.ndarray:
    """[GRAIN, GRAIN] float32 in [0, 1] that repeats without seams."""
    return rng.random((_GRAIN, _GRAIN), dtype=np.float32)


def paint(material: Texture, place: np.ndarray, grain: np.ndarray) -> np.ndarray:
    """[3, N] colours at `place` [2, N] metres."""
    cosine, sine = np.float32(np.cos(material.angle)), np.float32(np.sin(material.angle))
    u = (cosine * place[0] - sine * place[1]) / np.float32(material.size)
    v = (sine * place[0] + cosine * place[1]) / np.float32(material.size)
    share = _share(material.kind, u, v, grain)
    colour: np.ndarray = material.first[:, None] + share * (material.second - material.first)[:, None]
    if material.roughness > 0:
        fine = _smooth_noise(u * 4 + 7, v * 4 + 3, grain) - np.float32(0.5)
        colour += np.float32(material.roughness) * fine
    return colour


def _smooth_noise(u: np.ndarray, v: np.ndarray, grain: np.ndarray) -> np.ndarray:
    """Value noise with period 1 between independent values."""
    column, row = np.floor(u), np.floor(v)
    x, y = u - column, v - row
    x, y = x * x * (3 - 2 * x), y * y * (3 - 2 * y)
    left, top = column.astype(np.int32) % _GRAIN, row.astype(np.int32) % _GRAIN
    right, bottom = (left + 1) % _GRAIN, (top + 1) % _GRAIN
    upper = grain[top, left] + x * (grain[top, right] - grain[top, left])
    lower = grain[bottom, left] + x * (grain[bottom, right] - grain[bottom, left])
    noise: np.ndarray = upper + y * (lower - upper)
    return noise


def _share(kind: str, u: np.ndarray, v: np.ndarray, grain: np.ndarray) -> np.ndarray:
    """How much of the second colour, in [0, 1]."""
    share: np.ndarray
    if kind == "plain":
        share = np.zeros_like(u)
    elif kind == "noise":
        fine = _smooth_noise(3 * u, 3 * v, grain)
        share = np.float32(0.7) * _smooth_noise(u, v, grain) + np.float32(0.3) * fine
    elif kind == "checker":
        share = ((np.floor(u) + np.floor(v)) % 2).astype(np.float32)
    elif kind == "stripes":
        share = (u % 1 < np.float32(0.35)).astype(np.float32)
    elif kind == "bricks":
        shifted = u + np.float32(0.5) * (np.floor(3 * v) % 2)
        share = ((shifted % 1 < np.float32(0.06)) | (3 * v % 1 < np.float32(0.15))).astype(np.float32)
    elif kind == "windows":
        share = ((np.abs(u % 1 - 0.5) < 0.22) & (np.abs(v % 1 - 0.5) < 0.3)).astype(np.float32)
    else:  # patches
        share = grain[np.floor(v).astype(np.int32) % _GRAIN, np.floor(u).astype(np.int32) % _GRAIN]
    return share
