"""Invented scenes: the answer is known, and it is the right one."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch

from gbpn.datasets import SyntheticDataset, open_dataset
from gbpn.errors import InputError
from gbpn.synthetic.raycast import NEAR, DepthBuffer, View, turn


def view(
    yaw: float = 0.3, pitch: float = -0.1, roll: float = 0.05, position: tuple[float, ...] = (0, 0, 0)
) -> View:
    return View(
        intrinsics=np.array([[30.0, 0, 19.5], [0, 30.0, 14.5], [0, 0, 1]]),
        rotation=turn(yaw, pitch, roll),
        position=np.array(position, dtype=float),
        height=30,
        width=40,
    )


def march(buffer: DepthBuffer, inside) -> np.ndarray:
    """Independent answer: walk along each ray in small steps, then bisect where `inside` first turns true."""
    steps = np.linspace(NEAR, 12, 3000)
    out = np.full(buffer.depth.shape, np.inf)
    for row in range(0, 30, 3):
        for column in range(0, 40, 3):
            ray = buffer.direction[:, row, column].astype(float)
            at = inside(buffer.view.position + steps[:, None] * ray)
            if at.any():
                high = steps[at.argmax()]
                low = high - (steps[1] - steps[0])
                for _ in range(40):
                    middle = (low + high) / 2
                    if inside((buffer.view.position + middle * ray)[None])[0]:
                        high = middle
                    else:
                        low = middle
                out[row, column] = high
    return out[::3, ::3]


def test_solids_agree_with_marching_along_the_rays() -> None:
    buffer = DepthBuffer(view())
    box_centre, half, yaw = np.array([1.0, 0.4, 3.0]), np.array([0.6, 0.5, 0.8]), 0.7
    ball, pole = np.array([0.2, -0.3, 2.2]), np.array([2.2, 0.2, 3.5])
    buffer.box(box_centre, half, yaw, (0,) * 6)
    buffer.sphere(ball, 0.5, 1)
    buffer.cylinder(pole, 0.3, 1.0, 2)
    buffer.ground(1.5, 3, reach=11.0)

    def inside(points: np.ndarray) -> np.ndarray:
        local = (points - box_centre) @ turn(yaw)
        in_box = (np.abs(local) < half).all(-1)
        in_ball = ((points - ball) ** 2).sum(-1) < 0.25
        in_pole = ((points - pole)[:, [0, 2]] ** 2).sum(-1) < 0.09
        in_pole &= np.abs(points[:, 1] - pole[1]) < 1.0
        return in_box | in_ball | in_pole | (points[:, 1] > 1.5)

    expected = march(buffer, inside)
    got = buffer.depth[::3, ::3]
    # A pole without lids differs where a ray enters through its top; at grazing hits the march steps over.
    near = np.isfinite(expected) & np.isfinite(got) & (expected < 10)
    agree = np.abs(got[near] - expected[near]) < 1e-3
    assert agree.mean() > 0.97
    assert set(np.unique(buffer.material)) == {-1, 0, 1, 2, 3}


def test_a_room_is_left_through_its_walls() -> None:
    buffer = DepthBuffer(view(position=(0.4, -0.2, 0.3)))
    half = np.array([2.0, 1.2, 3.0])
    buffer.box(np.zeros(3), half, 0.0, tuple(range(6)), inside=True)
    points = buffer.view.position[:, None, None] + buffer.depth * buffer.direction
    distance = np.abs(np.abs(points) - half[:, None, None])
    assert distance.min(axis=0).max() < 1e-4
    assert (np.abs(points) < half[:, None, None] + 1e-4).all()
    face = distance.argmin(axis=0) * 2 + (np.take_along_axis(points, distance.argmin(0)[None], 0)[0] > 0)
    assert (face == buffer.material).mean() > 0.99
    towards = (buffer.normal * buffer.direction).sum(axis=0)
    assert (towards < 0).all(), "normals point at the camera"


def test_things_behind_or_beside_the_camera_are_not_seen() -> None:
    buffer = DepthBuffer(view(yaw=0, pitch=0, roll=0))
    buffer.sphere(np.array([0.0, 0, -3]), 1.0, 0)
    buffer.box(np.array([50.0, 0, 3]), np.ones(3), 0.0, (0,) * 6)
    buffer.cylinder(np.array([0.0, -50, 3]), 0.2, 1.0, 0)
    assert np.isinf(buffer.depth).all()


@pytest.mark.parametrize("kind", ["room", "street"])
def test_frames_depend_on_split_seed_and_index_only(kind: str) -> None:
    first = SyntheticDataset("", "train", kinds=(kind,), height=60, width=80)
    again = SyntheticDataset("", "train", kinds=(kind,), height=60, width=80)
    for index in (3, 0):
        one, other = first.load(index), again.load(index)
        assert torch.equal(one.image, other.image)
        assert torch.equal(one.target, other.target)
    for different in (
        SyntheticDataset("", "evaluation", kinds=(kind,), height=60, width=80).load(3),
        SyntheticDataset("", "train", kinds=(kind,), height=60, width=80, seed=1).load(3),
        first.load(4),
    ):
        assert not torch.equal(first.load(3).target, different.target)


def test_frames_are_plausible() -> None:
    dataset = open_dataset("synthetic", "", split="evaluation", count=12, height=60, width=80)
    assert len(dataset) == 12
    for index in range(12):
        sample = dataset.load(index)
        known = (sample.target > 0).float().mean()
        assert bool(torch.isfinite(sample.target).all())
        assert float(sample.target.max()) < (13 if sample.name.startswith("room") else 100)
        assert float(known) == 1 if sample.name.startswith("room") else 0.4 < float(known) <= 1
        assert float(sample.image.std()) > 0.03
        field = 2 * math.atan(40 / float(sample.intrinsics[0, 0]))
        assert math.radians(49) < field < math.radians(76)


def test_wrong_options_are_explained() -> None:
    with pytest.raises(InputError, match="kinds are room, street"):
        SyntheticDataset("", kinds=("forest",))
    with pytest.raises(InputError, match="must be positive"):
        SyntheticDataset("", count=0)
    with pytest.raises(InputError, match="split must be"):
        SyntheticDataset("", "test")
