"""A small tree of scenes, and weights that were never trained."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

HEIGHT, WIDTH, FRAMES = 40, 56, 5


def write_scene(folder: Path, seed: int, frames: int = FRAMES, missing: float = 0.1, times: int = 1) -> None:
    """A slanted wall with a box before it, seen in `frames` pictures; some pixels without depth."""
    rng = np.random.default_rng(seed)
    (folder / "color").mkdir(parents=True)
    (folder / "depth").mkdir()
    y, x = np.mgrid[:HEIGHT, :WIDTH]
    for k in range(frames):
        depth = 3 + 0.02 * x + 0.01 * k
        box = (abs(y - 20 + k) < 8) & (abs(x - 25 - k) < 9)
        depth = np.where(box, 1.5, depth)
        colour = np.stack([np.where(box, 200, 60), 90 + y, 120 + x], -1) + rng.integers(
            -4, 4, (HEIGHT, WIDTH, 3)
        )
        depth[rng.random(depth.shape) < missing] = 0
        colour, depth = (maps.repeat(times, 0).repeat(times, 1) for maps in (colour, depth))
        Image.fromarray(colour.clip(0, 255).astype(np.uint8)).save(folder / "color" / f"{k:04d}.png")
        Image.fromarray((depth * 1000).astype(np.uint16)).save(folder / "depth" / f"{k:04d}.png")
    meta = {
        "dataset": "toys",
        "K": [[50, 0, 27.5], [0, 50, 19.5], [0, 0, 1]],
        "depth_scale": 1000,
        "role": "evaluation",
    }
    (folder / "meta.json").write_text(json.dumps(meta))


@pytest.fixture(scope="session")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two scenes of five frames in the pool's layout."""
    root = tmp_path_factory.mktemp("pool")
    write_scene(root / "toys" / "box", 0)
    write_scene(root / "toys" / "wall", 1)
    return root


@pytest.fixture(scope="session")
def whole_pool(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One frame of every scene that is looked at."""
    root = tmp_path_factory.mktemp("whole")
    rooms = ("nyuv2/test_public", "nyuv2/test_public_640x480", "tum_rgbd/a", "icl_nuim/a", "middlebury2014/a")
    for seed, name in enumerate(rooms):
        write_scene(root / name, seed, frames=1, missing=0, times=4 if "640" in name else 1)
    street = root / "kitti" / "odometry_00"
    write_scene(street, 9, frames=1, times=4)
    (street / "depth").rename(street / "lidar_raw")
    ring = (np.arange(4 * HEIGHT) % 64 + 1).astype(np.uint8)[:, None].repeat(4 * WIDTH, 1)
    for kind in ("lidar_filtered", "gt_accum"):
        (street / kind).mkdir()
        (street / kind / "0000.png").write_bytes((street / "lidar_raw" / "0000.png").read_bytes())
    (street / "ring").mkdir()
    Image.fromarray(ring).save(street / "ring" / "0000.png")
    return root


@pytest.fixture(scope="session")
def weights(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with two small models, `v3` and `v9`, with random weights."""
    from gbpn.model.models import build
    from gbpn.weights.files import save

    folder = tmp_path_factory.mktemp("weights")
    for seed, name in enumerate(("v3", "v9")):
        torch.manual_seed(seed)
        model = build(name, width=0.125)
        with torch.no_grad():
            for parameter in model.parameters():
                if parameter.dim() > 1:
                    parameter.normal_(0, 0.05)
        save(model, folder / f"{name}.safetensors")
    return folder


@pytest.fixture(scope="session")
def mapped(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A small model with a depth-like map, with random weights."""
    from gbpn.model.models import build
    from gbpn.weights.files import save

    torch.manual_seed(3)
    model = build("small-smooth", width=0.25)
    with torch.no_grad():
        model.first.prior.last.weight.normal_(0, 0.05)
    path = tmp_path_factory.mktemp("mapped") / "mapped.safetensors"
    save(model, path)
    return path
