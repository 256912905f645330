"""What pictures on surfaces are painted with: noise that repeats, colours, slabs with joints."""

from __future__ import annotations

import colorsys

import numpy as np

__all__ = ["SIZE", "X", "Y", "hsv", "noise", "slabs", "tinted"]

SIZE = 256
"""Pixels of a side."""
Y, X = np.mgrid[0:SIZE, 0:SIZE] / SIZE
"""[SIZE, SIZE] each pixel's place down and to the right, 0 … 1."""


def noise(rng: np.random.Generator, *, low: float = 2, fall: float = 1.0, stretch: float = 1.0) -> np.ndarray:
    """[SIZE, SIZE] repeating noise of mean 0 and deviation 1; amplitude ~ frequency^−fall above `low`."""
    fy, fx = np.fft.fftfreq(SIZE)[:, None] * SIZE, np.fft.rfftfreq(SIZE)[None] * SIZE
    radius = np.hypot(fy * stretch, fx)
    spectrum = np.where(radius >= low, np.maximum(radius, 1) ** -fall, 0)
    phase = rng.standard_normal(radius.shape) + 1j * rng.standard_normal(radius.shape)
    noise = np.fft.irfft2(spectrum * phase, (SIZE, SIZE))
    return np.asarray(noise / max(float(noise.std()), 1e-9))


def hsv(hue: float, saturation: float, value: float) -> np.ndarray:
    return np.array(colorsys.hsv_to_rgb(hue % 1, min(max(saturation, 0), 1), min(max(value, 0), 1)))


def tinted(colour: np.ndarray, shade: np.ndarray) -> np.ndarray:
    return np.asarray(colour * shade[..., None])


def slabs(
    rng: np.random.Generator, rows: int, columns: int, shift: float, joint: float, spread: float
) -> tuple[np.ndarray, np.ndarray]:
    """(shade of each pixel's slab, 1 in the joints) of bricks in `rows` × `columns`."""
    row = np.floor(Y * rows).astype(int)
    x = (X * columns + (row % 2) * shift) % columns
    shade = 1 + spread * rng.standard_normal((rows, columns))[row, x.astype(int) % columns]
    dy, dx = np.abs(Y * rows - np.round(Y * rows)) / rows, np.abs(x - np.round(x)) / columns
    edge = np.minimum(dx, dy) * SIZE
    return shade, np.clip(joint + 0.5 - edge, 0, 1)
