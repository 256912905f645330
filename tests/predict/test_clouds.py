"""Points of a scanner: what is projected lies where it was, and says which point it is."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import gbpn
from gbpn.camera.lens import Lens, undistorted_picture
from gbpn.errors import InputError
from gbpn.inputs.clouds import as_points, as_transform, cloud_inputs, project
from gbpn.inputs.reading import as_image
from gbpn.synthetic.raycast import turn

CAMERA = (60.0, 55.0, 28.0, 20.0)
SIZE = (40, 56)


def back(x: np.ndarray, y: np.ndarray, depth: np.ndarray) -> np.ndarray:
    """[N, 3] the points that the pixels show."""
    fx, fy, cx, cy = CAMERA
    return np.stack([(x - cx) / fx * depth, (y - cy) / fy * depth, depth], axis=1)


def moved(seed: int) -> np.ndarray:
    """[4, 4] scanner → camera."""
    rng = np.random.default_rng(seed)
    pose = np.eye(4)
    pose[:3, :3], pose[:3, 3] = turn(*rng.uniform(-1, 1, 3)), rng.uniform(-1, 1, 3)
    return pose


@settings(max_examples=25)
@given(st.integers(0, 1000), st.integers(1, 60))
def test_pixels_become_points_and_pixels_again(seed: int, count: int) -> None:
    """Whatever the pose of the scanner; and `kept` numbers the points in the order of the pixels."""
    rng = np.random.default_rng(seed)
    place = rng.choice(SIZE[0] * SIZE[1], count, replace=False)
    y, x = np.divmod(place, SIZE[1])
    depth = rng.uniform(0.5, 50, count).astype(np.float32)
    pose = moved(seed)
    points = (back(x, y, depth.astype(np.float64)) - pose[:3, 3]) @ pose[:3, :3]  # camera → scanner
    found = project(points, CAMERA, pose, SIZE, see_through=True)
    wanted = np.zeros(SIZE, np.float32)
    wanted[y, x] = depth
    np.testing.assert_allclose(found.sparse, wanted, rtol=1e-5)
    np.testing.assert_array_equal(found.kept, np.argsort(place))
    short = project(np.column_stack([points, depth]), CAMERA, pose[:3], SIZE, see_through=True)
    np.testing.assert_array_equal(short.sparse, found.sparse)  # further columns do not matter


def test_the_nearest_of_a_pixel_is_kept_and_what_shines_through_is_not() -> None:
    x, y = np.array([10, 10, 12, 40]), np.array([8, 8, 9, 30])
    points = back(x, y, np.array([5.0, 2.0, 4.0, 7.0]))
    assert project(points, CAMERA, None, SIZE, see_through=True).kept.tolist() == [1, 2, 3]
    assert project(points, CAMERA, None, SIZE).kept.tolist() == [1, 3]  # 4 m shines past 2 m beside it
    behind = np.concatenate([points, -points])
    assert project(behind, CAMERA, None, SIZE, see_through=True).kept.tolist() == [1, 2, 3]


@pytest.mark.parametrize("form", ["array", "list", "tensor", "float32", "file"])
def test_every_form_of_a_cloud_is_the_same(form: str, tmp_path: Path) -> None:
    points = np.random.default_rng(0).normal(size=(20, 3)).astype(np.float32).astype(np.float64)
    np.save(tmp_path / "p.npy", points)
    forms: dict[str, Any] = {
        "array": points,
        "list": points.tolist(),
        "tensor": torch.from_numpy(points).requires_grad_(),
        "float32": points.astype(np.float32),
        "file": tmp_path / "p.npy",
    }
    found = as_points(forms[form])
    assert found.dtype == np.float64
    np.testing.assert_allclose(found, points, rtol=1e-6)


def test_transforms_in_every_form_and_what_is_none(tmp_path: Path) -> None:
    pose = moved(3)
    np.savetxt(tmp_path / "T.txt", pose)
    for form in (pose, pose[:3], torch.from_numpy(pose), pose.tolist(), tmp_path / "T.txt"):
        found = as_transform(form)
        assert found is not None
        np.testing.assert_allclose(found.numpy(), pose, atol=1e-9)
    assert as_transform(None) is None
    nearly = pose.copy()
    nearly[:3, :3] *= 1.002  # as rounding in a file does
    assert as_transform(nearly) is not None
    for wrong in (pose * np.nan, np.eye(3), pose[:2], 1.02 * pose):
        with pytest.raises(InputError, match="transform must"):
            as_transform(wrong)


def test_a_picture_needs_its_size_and_camera() -> None:
    points = back(np.array([3]), np.array([4]), np.array([2.0]))
    for size in (None, (40,), (40, 56, 3)):
        with pytest.raises(InputError, match=r"size must be \(height, width\)"):
            project(points, CAMERA, None, size)
    with pytest.raises(InputError, match="give intrinsics"):
        project(points, None, None, SIZE)
    assert project(points, CAMERA, size=SIZE).sparse.shape == SIZE


def test_a_lens_bends_the_picture_and_not_the_points(tmp_path: Path, picture: np.ndarray) -> None:
    """A scanner has none: its points are projected straight, and the picture is made straight."""
    (tmp_path / "camera.yaml").write_text(
        "image_width: 56\nimage_height: 40\ncamera_matrix: {data: [60, 0, 28, 0, 55, 20, 0, 0, 1]}\n"
        "distortion_model: plumb_bob\ndistortion_coefficients: {data: [-0.2, 0.02, 0, 0, 0]}\n"
    )
    points = back(np.array([5, 50]), np.array([6, 33]), np.array([2.0, 3.0]))
    bent = cloud_inputs(picture, points, tmp_path / "camera.yaml")
    straight = cloud_inputs(picture, points, CAMERA)
    torch.testing.assert_close(bent.sparse, straight.sparse)
    torch.testing.assert_close(bent.intrinsics, straight.intrinsics)
    assert torch.equal(straight.image, as_image(picture))
    lens = Lens(kind="radtan", parameters=(-0.2, 0.02))
    torch.testing.assert_close(bent.image, undistorted_picture(straight.image, straight.intrinsics, lens))
    assert any("distortion is removed" in notice for notice in bent.notices)
    assert straight.notices == ()


def test_sensors_of_maps_do_not_go_with_clouds(completer: gbpn.DepthCompleter, picture: np.ndarray) -> None:
    points = back(np.array([3]), np.array([4]), np.array([2.0]))
    for more in ({"sigma": 0.1}, {"confidence": np.ones((1, 1))}, {"depth_intrinsics": CAMERA}):
        with pytest.raises(InputError, match="belong to sparse depth, not to a cloud"):
            completer(picture, cloud=points, intrinsics=CAMERA, **more)
    with pytest.raises(InputError, match="and not both"):
        completer(picture, np.ones(SIZE, np.float32), CAMERA, cloud=points)
