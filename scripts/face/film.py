"""The looping film: points are added to a photo one after the other, depth takes shape, doubt shrinks."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from PIL import Image

from face import canvas
from gbpn import scenes
from gbpn.predict import DepthCompleter
from gbpn.sensors import patterns
from gbpn.show import pictures
from gbpn.show.pictures import Array

SCENE, SEED = "living_room", 7
COUNTS = (1, 2, 3, 5, 8, 12, 18, 25, 40, 60, 90, 130, 200, 300, 500)
HOLD, BLEND, END = 420, 60, 2200
"""Milliseconds that a step stands, that each picture between two steps stands, and that the last one does."""
BETWEEN = 3
FACTOR, WORDS, GAP = 1.25, 15, 10
LARGEST = 2_000_000
"""Bytes."""


@dataclass(frozen=True)
class Step:
    """What is known from so many points."""

    sparse: Array
    depth: Array
    sigma: Array
    error: float
    """RMSE in metres, over the pixels that were not measured as well."""


def steps(completer: DepthCompleter) -> list[Step]:
    """Nested sets of random points, completed."""
    sample = scenes.load(SCENE)
    assert sample.target is not None
    rng = np.random.default_rng(SEED)
    drawn = patterns.random_points(sample.target, rng, max(COUNTS))
    places = rng.permutation(np.flatnonzero(drawn.numpy()))
    exact = sample.target[0].numpy()
    found = []
    for count in COUNTS:
        sparse = torch.zeros_like(drawn)
        chosen = torch.from_numpy(places[:count])
        sparse.view(-1)[chosen] = drawn.view(-1)[chosen]
        result = completer(sample.image, sparse, sample.intrinsics, sigmas=True)
        error = float(np.sqrt(np.mean((result.depth - exact)[exact > 0] ** 2)))
        found.append(Step(sparse[0].numpy(), result.depth, result.std, error))
    return found


def draw(completer: DepthCompleter, path: Path) -> None:
    """Write the animated WebP."""
    done = steps(completer)
    ends = [*done[1:], done[-1]]
    pages, durations = [], []
    for step, following in zip(done, ends, strict=True):
        pages.append(_page(step, step.depth, step.sigma))
        durations.append(HOLD)
        for number in range(1, BETWEEN + 1) if following is not step else ():
            share = number / (BETWEEN + 1)
            depth = (1 - share) * step.depth + share * following.depth
            sigma = np.exp((1 - share) * np.log(step.sigma) + share * np.log(following.sigma))
            pages.append(_page(following, depth, sigma))
            durations.append(BLEND)
    durations[-1] = END
    pages[0].save(
        path, save_all=True, append_images=pages[1:], duration=durations, loop=0, quality=62, method=6
    )
    assert path.stat().st_size <= LARGEST, path.stat().st_size


def _page(step: Step, depth: Array, sigma: Array) -> Image.Image:
    sample = scenes.load(SCENE)
    assert sample.target is not None
    low, high = pictures.value_range(sample.target[0].numpy())
    rows, columns = np.nonzero(step.sparse)
    paint = pictures.colours(step.sparse[rows, columns][None], low, high, pictures.DEPTH)[0]
    places = (np.stack([columns, rows], 1) + 0.5) * FACTOR
    radius = 5.0 if rows.size <= 40 else 5.0 * (40 / rows.size) ** 0.3
    photo = canvas.with_points(canvas.enlarged(pictures.photo(sample.image), FACTOR), places, paint, radius)
    top = 1.0
    count = f"{rows.size} point" + "s" * (rows.size > 1)
    cards = [
        canvas.card(photo, f"{count} measured", WORDS),
        canvas.card(
            canvas.enlarged(pictures.colours(depth, low, high, pictures.DEPTH), FACTOR),
            f"depth, errs by {_length(step.error)}",
            WORDS,
            (low, high, pictures.DEPTH),
        ),
        canvas.card(
            canvas.enlarged(pictures.colours(sigma, 0, top, pictures.ERROR), FACTOR),
            f"± σ, typically {_length(float(np.median(sigma)))}",
            WORDS,
            (0, top, pictures.ERROR),
        ),
    ]
    return canvas.tiled([cards], GAP)


def _length(metres: float) -> str:
    return f"{100 * metres:.0f} cm" if metres < 1 else f"{metres:.1f} m"
