"""An untrained model in a file, and a small scene to complete: plumbing does not need good depth."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

import gbpn
from gbpn.weights.files import save

HEIGHT, WIDTH = 40, 56


@pytest.fixture(scope="session")
def weights(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two stages, depth in logarithms: what the default weights are, but thin and untrained."""
    torch.manual_seed(0)
    model = gbpn.build("small-2", width=0.5)
    return save(model, tmp_path_factory.mktemp("weights") / "thin.safetensors")


@pytest.fixture(scope="session")
def completer(weights: Path) -> gbpn.DepthCompleter:
    return gbpn.DepthCompleter.from_pretrained(weights, device="cpu")


@pytest.fixture(scope="session")
def picture() -> np.ndarray:
    """[H, W, 3] uint8."""
    return np.random.default_rng(0).integers(0, 256, (HEIGHT, WIDTH, 3), dtype=np.uint8)


@pytest.fixture(scope="session")
def depth() -> np.ndarray:
    """[H, W] float32 metres at 30 pixels, 0 elsewhere."""
    rng = np.random.default_rng(1)
    out = np.zeros((HEIGHT, WIDTH), np.float32)
    out.reshape(-1)[rng.choice(out.size, 30, replace=False)] = rng.integers(1000, 4000, 30) / np.float32(1000)
    return out


@pytest.fixture
def scene(tmp_path: Path, picture: np.ndarray, depth: np.ndarray) -> Path:
    """A folder with image.png, depth.png (millimetres), depth.npy (metres) and points.csv."""
    Image.fromarray(picture).save(tmp_path / "image.png")
    Image.fromarray((depth * 1000).round().astype(np.uint16)).save(tmp_path / "depth.png")
    np.save(tmp_path / "depth.npy", depth)
    rows, columns = np.nonzero(depth)
    lines = [f"{x},{y},{depth[y, x]:.3f}" for y, x in zip(rows, columns, strict=True)]
    (tmp_path / "points.csv").write_text("x,y,depth\n" + "\n".join(lines) + "\n")
    return tmp_path
