"""A small calibrated model with two stages, a textured picture, and measurements of a slanted wall."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import torch

import gbpn
from gbpn.distribution import SigmaCalibration
from gbpn.formats.images import write_image
from gbpn.sigma.surroundings import FEATURES, HIDDEN
from gbpn.weights.files import save

HEIGHT, WIDTH = 48, 64
CAMERA = (60.0, 60.0, 31.5, 23.5)

_SURROUNDINGS = (
    *((value,) * len(FEATURES) for value in (0.0, 1.0)),
    *(
        tuple(round(0.3 * math.sin(7 * k + size), 4) for k in range(size))
        for size in (len(FEATURES) * HIDDEN, HIDDEN, HIDDEN * HIDDEN, HIDDEN, HIDDEN, 1)
    ),
)
"""Of weights that look at surroundings too."""


def model_of(seed: int = 0, name: str = "small-2") -> gbpn.GBPN:
    torch.manual_seed(seed)
    model = gbpn.build(name, width=0.5)
    assert isinstance(model, gbpn.GBPN)
    for part in model.modules():  # heads that say something, norms that differ from nothing
        if isinstance(part, torch.nn.ConvTranspose2d):
            torch.nn.init.normal_(part.weight, std=0.03)
        if isinstance(part, torch.nn.BatchNorm2d):
            torch.nn.init.uniform_(part.weight, 0.8, 1.2)
    model.calibration = SigmaCalibration(
        knots=(-6.0, 0.0, 6.0), log_std=(0.0, -2.0, -4.0), relative=True, surroundings=_SURROUNDINGS
    )
    return model.eval()


def frame(seed: int = 0, count: int = 120, wrong: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """A picture, and `count` measurements of which `wrong` are gross errors."""
    rng = np.random.default_rng(seed)
    picture = rng.integers(0, 256, (HEIGHT // 4, WIDTH // 4, 3)).astype(np.uint8)
    picture = picture.repeat(4, 0).repeat(4, 1)
    depth = np.zeros((HEIGHT, WIDTH), np.float32)
    place = rng.choice(HEIGHT * WIDTH, count, replace=False)
    wall = np.linspace(2, 3, WIDTH, dtype=np.float32)[None].repeat(HEIGHT, 0)
    depth.flat[place] = wall.flat[place]
    depth.flat[place[:wrong]] *= 12
    return picture, depth


def points(depth: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rows, columns = np.nonzero(depth)
    return columns, rows, depth[rows, columns]


def written(folder: Path, count: int = 2, **options: Any) -> Path:
    """Frames as `gbpn complete` takes them: color/, depth/, K.txt; weights.safetensors with a card beside."""
    for number in range(count):
        picture, depth = frame(number, **options)
        write_image(folder / "color" / f"{number}.png", torch.from_numpy(picture).permute(2, 0, 1) / 255)
        (folder / "depth").mkdir(exist_ok=True)
        np.save(folder / "depth" / f"{number}.npy", depth)
    (folder / "K.txt").write_text(" ".join(map(str, CAMERA)))
    card = {"bfloat16": {}, "trained_for": {"focal": 30.0}}
    save(model_of(), folder / "weights.safetensors", card=card)
    return folder
