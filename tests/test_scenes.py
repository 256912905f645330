"""The example scenes: complete, small, and geometrically true."""

from __future__ import annotations

from importlib.resources import files

import numpy as np
import pytest
import torch

from gbpn import scenes
from gbpn.camera.pinhole import points
from gbpn.errors import InputError

ALL = scenes.names()


def world_points(name: str) -> np.ndarray:
    """[H, W, 3] world coordinates of every pixel."""
    sample = scenes.load(name)
    assert sample.target is not None
    local = points(sample.target[None].double(), sample.intrinsics[None].double())[0].permute(1, 2, 0).numpy()
    pose = np.array(scenes.describe(name)["pose"])
    return local @ pose[:3, :3].T + pose[:3, 3]


@pytest.mark.parametrize("name", ALL)
def test_scene_is_a_picture_with_dense_depth(name: str) -> None:
    sample = scenes.load(name)
    assert sample.target is not None
    height, width = sample.image.shape[1:]
    assert (height, width) == ((176, 608) if name in scenes.STREETS else (240, 320))
    assert sample.name == name
    assert int(sample.sparse.count_nonzero()) == 0
    assert 0.15 < float(sample.image.mean()) < 0.75
    assert float(sample.image.std()) > 0.12  # neither fog nor night
    known = sample.target[sample.target > 0]
    assert known.numel() > (0.8 if name in scenes.STREETS else 0.95) * height * width
    assert float(known.min()) > 0.5
    assert float(known.max()) < (130 if name in scenes.STREETS else 8)
    assert float(sample.intrinsics[0, 2]) == (width - 1) / 2


@pytest.mark.parametrize("name", ALL)
def test_floor_is_a_plane_at_the_camera_s_height(name: str) -> None:
    """Back-projected without the pose, floor pixels lie on one plane; the pose says which."""
    sample, scene = scenes.load(name), scenes.describe(name)
    assert sample.target is not None
    left, top, right, bottom = scene["floor_box"]
    assert (right - left) * (bottom - top) > 300
    local = points(sample.target[None].double(), sample.intrinsics[None].double())[0]
    floor = local[:, top:bottom, left:right].reshape(3, -1).T.numpy()
    centre = floor.mean(axis=0)
    normal = np.linalg.svd(floor - centre, full_matrices=False)[2][2]
    off_plane = np.abs((floor - centre) @ normal)
    # Rounding moves a point along its ray by half a step; a shallow ray turns that into less height.
    assert off_plane.max() < 0.75 / scene["depth_scale"]
    pose = np.array(scene["pose"])
    up = pose[2, :3]  # world z in camera coordinates
    assert abs(normal @ up) > 0.9999
    assert abs(abs(centre @ normal) - pose[2, 3]) < 0.005


@pytest.mark.parametrize("name", scenes.ROOMS)
def test_rooms_are_closed_boxes(name: str) -> None:
    """Nothing lies below the floor, and what is furthest left, right and ahead are upright walls."""
    depth = scenes.load(name).target
    assert depth is not None
    world = world_points(name)[depth[0].numpy() > 0]
    assert world[:, 2].min() > -0.003
    assert 2.0 < world[:, 2].max() < 3.0
    far = world[:, 1].max()
    assert np.mean(world[:, 1] > far - 0.01) > 0.08  # the far wall fills part of the picture


@pytest.mark.parametrize("name", ALL)
def test_depth_edges_lie_on_image_edges(name: str) -> None:
    """Moving the depth against the picture in any direction makes its edges fit the picture's less well."""
    sample = scenes.load(name)
    assert sample.target is not None
    inverse = 1 / sample.target[0].clamp(min=1e-3) * (sample.target[0] > 0)
    grey = sample.image.mean(0)

    def slope(field: torch.Tensor) -> torch.Tensor:
        dy, dx = torch.gradient(field)
        return torch.hypot(dx, dy)

    edges = (slope(inverse) > 0.02 * inverse.max()).float()
    strength = slope(grey)

    def fit(dx: int, dy: int) -> float:
        moved = torch.roll(edges, (dy, dx), (0, 1))
        inside = torch.zeros_like(moved)
        inside[4:-4, 4:-4] = 1
        moved = moved * inside
        return float((strength * moved).sum() / moved.sum())

    here = fit(0, 0)
    around = [fit(dx, dy) for dx, dy in ((2, 0), (-2, 0), (0, 2), (0, -2), (2, 2), (-2, -2))]
    assert edges.sum() > 500
    assert here > max(around)


def test_unknown_scene_names_the_known_ones() -> None:
    with pytest.raises(InputError, match="living_room"):
        scenes.load("garage")


def test_all_files_together_are_small() -> None:
    folder = files("gbpn.scenes")
    size = sum(len(item.read_bytes()) for name in ALL for item in (folder / name).iterdir() if item.is_file())
    assert size < 600_000
