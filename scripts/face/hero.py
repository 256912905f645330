"""The picture at the top: one photo and 40 points, and what follows from them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from PIL import Image

from face import canvas, space
from gbpn import scenes
from gbpn.answer import CompletedDepth
from gbpn.predict import DepthCompleter
from gbpn.sensors import patterns
from gbpn.show import pictures

SCENE, POINTS, SEED = "music_room", 40, 3
"""What is shown; the seed draws the points."""
FACTOR, WORDS, GAP = 2.25, 24, 16
LARGEST = 600_000
"""Bytes."""


def completed(completer: DepthCompleter, count: int = POINTS) -> CompletedDepth:
    """The scene with `count` random points."""
    sample = scenes.load(SCENE)
    assert sample.target is not None
    sparse = patterns.random_points(sample.target, np.random.default_rng(SEED), count)
    return completer(sample.image, sparse, sample.intrinsics, sigmas=True)


def depth_range() -> tuple[float, float]:
    target = scenes.load(SCENE).target
    assert target is not None
    return pictures.value_range(target[0].numpy())


def with_points(panel: Image.Image, result: CompletedDepth, factor: float, radius: float) -> Image.Image:
    """The measured points on a panel that shows the picture `factor` times enlarged."""
    low, high = depth_range()
    sparse = result.sparse[0].numpy()
    rows, columns = np.nonzero(sparse)
    paint = pictures.colours(sparse[rows, columns][None], low, high, pictures.DEPTH)[0]
    return canvas.with_points(panel, (np.stack([columns, rows], 1) + 0.5) * factor, paint, radius)


def draw(completer: DepthCompleter, path: Path) -> None:
    """Write the WebP."""
    result = completed(completer)
    low, high = depth_range()
    top = float(np.quantile(result.std, 0.98))
    photo = with_points(canvas.enlarged(pictures.photo(result.image), FACTOR), result, FACTOR, 8)
    depth = canvas.enlarged(pictures.colours(result.depth, low, high, pictures.DEPTH), FACTOR)
    sigma = canvas.enlarged(pictures.colours(result.std, 0, top, pictures.ERROR), FACTOR)
    sigma = with_points(sigma, result, FACTOR, 3.5)  # else the dark spots around them are taken for noise
    turned = space.seen_from(result, photo.size, yaw=-11, pitch=7, back=0.3)
    cards = [
        canvas.card(photo, f"one photo, {POINTS} measured points", WORDS),
        canvas.card(depth, "depth of every pixel", WORDS, (low, high, pictures.DEPTH)),
        canvas.card(sigma, "± σ: how sure it is", WORDS, (0, top, pictures.ERROR)),
        canvas.card(turned, "seen from elsewhere", WORDS),
    ]
    canvas.tiled([cards[:2], cards[2:]], GAP).save(path, quality=84, method=6)
    assert path.stat().st_size <= LARGEST, path.stat().st_size
