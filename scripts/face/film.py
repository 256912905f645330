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
TOP = 1.0
"""Metres of σ at which the colours end."""
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
    photos = [_photo(step) for step in done]
    photos_after = [*photos[1:], photos[-1]]
    for step, following, photo, after in zip(done, ends, photos, photos_after, strict=True):
        pages.append(_page(step, photo, step.depth, step.sigma))
        durations.append(HOLD)
        for number in range(1, BETWEEN + 1) if following is not step else ():
            share = number / (BETWEEN + 1)
            depth = (1 - share) * step.depth + share * following.depth
            sigma = np.exp((1 - share) * np.log(step.sigma) + share * np.log(following.sigma))
            pages.append(_page(following, after, depth, sigma))
            durations.append(BLEND)
    durations[-1] = END
    pages[0].save(
        path, save_all=True, append_images=pages[1:], duration=durations, loop=0, quality=62, method=4
    )
    assert path.stat().st_size <= LARGEST, path.stat().st_size


def _photo(step: Step) -> Image.Image:
    """The photo with its points, and how many there are."""
    low, high = _range()
    rows, columns = np.nonzero(step.sparse)
    paint = pictures.colours(step.sparse[rows, columns][None], low, high, pictures.DEPTH)[0]
    places = (np.stack([columns, rows], 1) + 0.5) * FACTOR
    radius = 5.0 if rows.size <= 40 else 5.0 * (40 / rows.size) ** 0.3
    photo = canvas.enlarged(pictures.photo(scenes.load(SCENE).image), FACTOR)
    words = "1 point measured" if rows.size == 1 else f"{rows.size} points measured"
    return canvas.card(canvas.with_points(photo, places, paint, radius), words, WORDS)


def _page(step: Step, photo: Image.Image, depth: Array, sigma: Array) -> Image.Image:
    low, high = _range()
    depth_words = f"depth, errs by {_length(step.error)}"
    sigma_words = f"± σ, typically {_length(float(np.median(sigma)))}"
    shown = [
        canvas.enlarged(pictures.colours(depth, low, high, pictures.DEPTH), FACTOR),
        canvas.enlarged(pictures.colours(sigma, 0, TOP, pictures.ERROR), FACTOR),
    ]
    cards = [
        photo,
        canvas.card(shown[0], depth_words, WORDS, (low, high, pictures.DEPTH)),
        canvas.card(shown[1], sigma_words, WORDS, (0, TOP, pictures.ERROR)),
    ]
    return canvas.tiled([cards], GAP)


def _range() -> tuple[float, float]:
    target = scenes.load(SCENE).target
    assert target is not None
    return pictures.value_range(target[0].numpy())


def _length(metres: float) -> str:
    return f"{100 * metres:.0f} cm" if metres < 1 else f"{metres:.1f} m"
