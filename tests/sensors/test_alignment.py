"""Rotations between a scanner and a camera: their arithmetic, and that planted ones are found."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from scipy.spatial.transform import Rotation as Reference

from gbpn.camera.rotation import Rotation, rotations
from gbpn.errors import InputError
from gbpn.inputs.measurements import Measurements, rotated_measurements
from gbpn.sensors.alignment import FEWEST_FRAMES, aligned
from gbpn.sensors.edges import FrameEdges, depth_edges, picture_edges
from scanned import scanned, scans

WITHIN = 0.2
"""Degrees; a pixel of these frames is about 0.2°."""
angles = st.floats(-3, 3)


def edges(wrong: Rotation | None, count: int = 12) -> list[FrameEdges]:
    seen = [scanned(sample, wrong) for sample in scans(count)]
    return [FrameEdges.of(sample.image, sample.sparse, sample.intrinsics) for sample in seen]


@given(angles, angles, angles)
def test_rotations_are_those_of_scipy(x: float, y: float, z: float) -> None:
    expected = Reference.from_rotvec([x, y, z], degrees=True).as_matrix()
    assert np.allclose(Rotation(x=x, y=y, z=z).matrix, expected, atol=1e-12)
    assert np.allclose(rotations(np.array([[-x, -y, -z]]))[0] @ expected, np.eye(3), atol=1e-12)


@pytest.mark.parametrize(
    ("rotation", "moved"), [(Rotation(x=0, y=1, z=0), (1, 0)), (Rotation(x=1, y=0, z=0), (0, -1))]
)
def test_signs_are_as_documented(rotation: Rotation, moved: tuple[int, int]) -> None:
    """About y to the right, about x up: a degree is tan(1°) · focal pixels."""
    camera = torch.tensor([[500.0, 0, 60], [0, 500, 40], [0, 0, 1]])
    sparse = torch.zeros(1, 81, 121)
    sparse[0, 40, 60] = 2.0
    found = rotated_measurements(Measurements(sparse=sparse, std=sparse / 10, areas=(3, 4)), camera, rotation)
    row, column = (int(where[0]) for where in torch.nonzero(found.sparse[0], as_tuple=True))
    pixels = round(500 * np.tan(np.radians(1)))
    assert (column - 60, row - 40) == (moved[0] * pixels, moved[1] * pixels)
    assert found.sparse.max() == pytest.approx(2 * np.cos(np.radians(1)), rel=1e-6)
    assert found.std is not None
    assert float(found.std[0, row, column]) == pytest.approx(0.2)
    assert found.areas is None
    assert found.weight is None


def test_ground_that_recedes_is_no_edge_and_a_box_is_one() -> None:
    depth = np.zeros((101, 141))
    rows = np.arange(12, 101, 4)
    depth[rows, ::2] = 400.0 / (rows[:, None] - 8)  # nearness is linear: a plane, 100 m to 4.3 m away
    pixels, _, _ = depth_edges(depth, 300.0)
    assert len(pixels) == 0
    box = depth.copy()
    box[40:81:4, 50:91:2] = 3.0
    pixels, axis, weight = depth_edges(box, 300.0)
    assert set(np.unique(pixels[axis == 0, 0])) == {49.0, 91.0}
    assert set(np.unique(pixels[axis == 1, 1])) == {38.0, 82.0}
    assert ((weight > 0) & (weight <= 1)).all()


def test_edges_of_pictures_are_those_of_their_axis_and_nothing_in_the_mean() -> None:
    grey = np.zeros((90, 120), np.float32)
    grey[:, 60:] = 1.0
    across, down = picture_edges(grey, 100.0)
    assert across[45, 59:61].min() > 1
    assert abs(down[45]).max() < 0.1
    noise = picture_edges(np.random.default_rng(0).random((90, 120), np.float32), 100.0)
    assert np.abs(noise.mean(axis=(1, 2))).max() < 0.02


@pytest.mark.parametrize(
    "wrong", [Rotation(x=0.7, y=-0.6, z=0.4), Rotation(x=-0.3, y=1.9, z=-0.8), Rotation(x=0, y=0, z=1.5)]
)
def test_planted_rotations_are_found(wrong: Rotation) -> None:
    found = aligned(edges(wrong))
    assert found.clear
    left = Reference.from_matrix(found.rotation.matrix @ wrong.matrix)
    assert np.degrees(left.magnitude()) < WITHIN, (str(found.rotation), str(wrong))


def test_where_none_is_planted_none_is_worth_telling() -> None:
    found = aligned(edges(None))
    assert found.rotation.degrees < WITHIN


def test_pictures_of_other_places_prove_nothing() -> None:
    frames = [scanned(sample) for sample in scans()]
    others = [*frames[3:], *frames[:3]]
    mixed = [FrameEdges.of(a.image, b.sparse, a.intrinsics) for a, b in zip(frames, others, strict=True)]
    assert not aligned(mixed).clear


def test_too_few_edges_are_refused_in_words() -> None:
    flat = [FrameEdges.of(torch.rand(3, 40, 50), torch.ones(1, 40, 50), torch.eye(3) * 50)] * 9
    with pytest.raises(InputError, match=f"at least {FEWEST_FRAMES} frames; got 0 of 9"):
        aligned(flat)
