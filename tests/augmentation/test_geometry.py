"""Intrinsics follow every geometric step: a 3D point stays on its pixel."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from gbpn.augmentation import geometry
from gbpn.errors import InputError
from gbpn.sample import Sample

INTRINSICS = torch.tensor([[80.0, 0, 47.3], [0, 80.0, 31.8], [0, 0, 1]])
POINT = np.array([0.31, -0.22, 2.0])
"""Camera coordinates of the one bright, measured spot."""


def spot(height: int = 64, width: int = 96) -> Sample:
    """A black frame with a smooth bright blob and one measurement where POINT projects."""
    x, y = pixel_of(POINT, INTRINSICS)
    rows, columns = np.mgrid[:height, :width]
    blob = np.exp(-((columns - x) ** 2 + (rows - y) ** 2) / 18)
    sparse = torch.zeros(1, height, width)
    sparse[0, round(y), round(x)] = float(POINT[2])
    target = torch.from_numpy(np.where(blob > 0.5, POINT[2], 9.0).astype(np.float32))[None]
    image = torch.from_numpy(blob.astype(np.float32)).expand(3, -1, -1).contiguous()
    return Sample(image=image, sparse=sparse, target=target, intrinsics=INTRINSICS, name="spot")


def pixel_of(point: np.ndarray, intrinsics: torch.Tensor) -> tuple[float, float]:
    projected = intrinsics.double().numpy() @ point
    return projected[0] / projected[2], projected[1] / projected[2]


def centre_of_blob(weights: torch.Tensor) -> tuple[float, float]:
    mass = weights.double().numpy()
    rows, columns = np.mgrid[: mass.shape[0], : mass.shape[1]]
    return float((columns * mass).sum() / mass.sum()), float((rows * mass).sum() / mass.sum())


def check(sample: Sample, point: np.ndarray, tolerance: float = 0.15) -> None:
    """Colour, measurement and target all lie where `point` projects."""
    x, y = pixel_of(point, sample.intrinsics)
    assert centre_of_blob(sample.image[0]) == pytest.approx((x, y), abs=tolerance)
    near = (sample.target[0] < 5) & (sample.target[0] > 0)
    assert centre_of_blob(near.float()) == pytest.approx((x, y), abs=0.6)
    row, column = np.argwhere(sample.sparse[0].numpy() > 0)[0]
    # Rounded to a pixel once before the step (then enlarged with it) and once after.
    assert abs(column - x) <= 0.51 * (1 + float(sample.intrinsics[0, 0] / INTRINSICS[0, 0]))
    assert abs(row - y) <= 0.51 * (1 + float(sample.intrinsics[1, 1] / INTRINSICS[1, 1]))


@given(top=st.integers(0, 10), left=st.integers(0, 20))
@settings(max_examples=10, deadline=None)
def test_crop(top: int, left: int) -> None:
    check(geometry.crop(spot(), top, left, 50, 70), POINT)


def test_pad() -> None:
    check(geometry.pad(spot(), 3, 4, 5, 6), POINT)
    assert tuple(geometry.pad(spot(), 3, 4, 5, 6).image.shape) == (3, 75, 103)


def test_flip_mirrors_the_scene() -> None:
    check(geometry.flip(spot()), POINT * [-1, 1, 1])


def test_flip_twice_is_nothing() -> None:
    once, twice = spot(), geometry.flip(geometry.flip(spot()))
    assert torch.equal(once.image, twice.image)
    assert torch.equal(once.sparse, twice.sparse)
    torch.testing.assert_close(once.intrinsics, twice.intrinsics)


@given(height=st.integers(33, 150), width=st.integers(40, 200))
@settings(max_examples=20, deadline=None)
def test_resize(height: int, width: int) -> None:
    check(geometry.resize(spot(), height, width), POINT, tolerance=0.25)


@given(degrees=st.floats(-20, 20))
@settings(max_examples=20, deadline=None)
def test_rotate_rolls_the_camera(degrees: float) -> None:
    # The picture turns counter-clockwise; y points down, so the point turns by −degrees about the axis.
    angle = math.radians(degrees)
    turned = np.array(
        [
            math.cos(angle) * POINT[0] + math.sin(angle) * POINT[1],
            -math.sin(angle) * POINT[0] + math.cos(angle) * POINT[1],
            POINT[2],
        ]
    )
    check(geometry.rotate(spot(), degrees), turned, tolerance=0.3)


def test_scaling_depth_scales_the_point() -> None:
    scaled = geometry.scale_depth(spot(), 1.7)
    check(scaled, POINT * 1.7)
    assert float(scaled.sparse.max()) == pytest.approx(3.4)


def test_points_are_never_averaged_and_the_nearer_wins() -> None:
    depth = torch.zeros(1, 4, 4)
    depth[0, 0, 0], depth[0, 0, 1], depth[0, 3, 3] = 7.0, 2.0, 5.0
    halved = geometry.move_points(depth, np.array([[0.5, 0, -0.25], [0, 0.5, -0.25], [0, 0, 1]]), 2, 2)
    assert halved.tolist() == [[[2.0, 0.0], [0.0, 5.0]]]


def test_center_crop_of_the_benchmark() -> None:
    frame = Sample(
        image=torch.zeros(3, 240, 320),
        sparse=torch.zeros(1, 240, 320),
        intrinsics=torch.tensor([[259.0, 0, 162.5], [0, 260.0, 126.5], [0, 0, 1]]),
    )
    cropped = geometry.center_crop(frame, 228, 304)
    assert float(cropped.intrinsics[0, 2]) == 154.5
    assert float(cropped.intrinsics[1, 2]) == 120.5


def test_a_crop_outside_says_so() -> None:
    with pytest.raises(InputError, match="leaves the image of 64×96"):
        geometry.crop(spot(), 0, 0, 65, 10)


@given(st.lists(st.floats(-2, 2), min_size=6, max_size=6))
def test_focal_lengths_follow_the_lengths_of_a_step_along_each_axis(numbers: list[float]) -> None:
    """Of any map of pixels; its principal point goes where the map sends it."""
    forward = np.eye(3)
    forward[:2] = np.array(numbers).reshape(2, 3)
    matrix = torch.tensor([[50.0, 0.0, 20.0], [0.0, 70.0, 11.0], [0.0, 0.0, 1.0]], dtype=torch.float64)
    found = geometry.follow(matrix, forward)
    origin, right, down = (forward @ np.array([x, y, 1.0]) for x, y in ((0, 0), (1, 0), (0, 1)))
    assert float(found[0, 0]) == pytest.approx(50 * np.linalg.norm(right - origin))
    assert float(found[1, 1]) == pytest.approx(70 * np.linalg.norm(down - origin))
    centre = forward @ np.array([20.0, 11.0, 1.0])
    np.testing.assert_allclose(found[:2, 2].numpy(), centre[:2])
    np.testing.assert_allclose(matrix[:2, 2].numpy(), (20.0, 11.0))
