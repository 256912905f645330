"""Example scenes that come with the package: rooms and a street, rendered, with exact depth.

    sample = gbpn.scenes.load("kitchen")    # image, intrinsics, target; sparse is all zero

The files beside this module are fixed; README.md there says what is in them and how they were made.
"""

from __future__ import annotations

import json
from importlib.resources import files
from typing import Any

import torch

from gbpn.errors import InputError
from gbpn.sample import Sample

__all__ = ["describe", "load", "names"]

ROOMS = ("living_room", "bedroom", "kitchen", "music_room")
STREETS = ("street",)


def names() -> list[str]:
    """Every scene: rooms first (depth up to 6 m), then the street (up to 115 m)."""
    return [*ROOMS, *STREETS]


def describe(name: str) -> dict[str, Any]:
    """scene.json: `intrinsics`, `pose` (camera to world, floor at z = 0), `depth_scale`, `floor_box`."""
    if name not in names():
        raise InputError(f"there is no example scene {name!r}: choose from {', '.join(names())}")
    found: dict[str, Any] = json.loads((files(__package__) / name / "scene.json").read_text("utf-8"))
    return found


def load(name: str) -> Sample:
    """One scene: `target` is its exact depth (0 = sky); `sparse` is empty until a pattern fills it."""
    import numpy as np
    from PIL import Image

    scene = describe(name)
    folder = files(__package__) / name
    with (folder / "image.jpg").open("rb") as stream, Image.open(stream) as picture:
        image = torch.from_numpy(np.array(picture.convert("RGB"))).permute(2, 0, 1).float() / 255  # [3, H, W]
    with (folder / "depth.png").open("rb") as stream, Image.open(stream) as picture:
        stored = np.array(picture).astype(np.float32)
    target = torch.from_numpy(stored)[None] / scene["depth_scale"]  # [1, H, W]
    return Sample(
        image=image,
        sparse=torch.zeros_like(target),
        intrinsics=torch.tensor(scene["intrinsics"], dtype=torch.float32),
        target=target,
        name=name,
    )
