"""Depth of another size, of another camera, with the sensor's own confidence, and what is kept of it."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

import gbpn
from gbpn.errors import GbpnError, InputError
from gbpn.formats.confidence_files import read_weights, weights_of
from gbpn.formats.point_clouds import read_rated_points
from gbpn.formats.point_tables import read_point_table
from gbpn.inputs.measurements import DepthSensor
from gbpn.inputs.reading import as_measurements, frame_inputs
from gbpn.jobs.sources import Sensor
from gbpn.measurements.areas import AreaGrid
from gbpn.model.pipeline import SparseDepth
from gbpn.sensors.other_camera import reprojected

HEIGHT, WIDTH = 40, 56
CAMERA = (50.0, 50.0, 27.5, 19.5)


def small_map() -> np.ndarray:
    """[10, 14] metres: a quarter of the picture's size."""
    return np.linspace(1, 3, 140, dtype=np.float32).reshape(10, 14)


def test_a_smaller_map_of_the_same_shape_is_areas() -> None:
    found = as_measurements(small_map(), HEIGHT, WIDTH)
    assert found.areas == (10, 14)
    assert "areas of 4×4 pixels" in found.notice
    grid = AreaGrid.of((10, 14), (HEIGHT, WIDTH))
    torch.testing.assert_close(grid.at_centres(found.sparse)[0], torch.from_numpy(small_map()))
    assert int((found.sparse > 0).sum()) == 140


def test_a_larger_map_goes_to_the_pixels_it_lies_in() -> None:
    large = np.full((2 * HEIGHT, 2 * WIDTH), 3.0, np.float32)
    large[1, 2] = 2.0  # of the pixels 2 × 2 that share (0, 1), the nearest wins
    found = as_measurements(large, HEIGHT, WIDTH)
    assert found.areas is None
    assert found.sparse[0, 0, 1] == 2.0
    assert int((found.sparse > 0).sum()) == HEIGHT * WIDTH


def test_areas_come_back_with_their_means(completer: gbpn.DepthCompleter, picture: np.ndarray) -> None:
    small = small_map()
    small[4, 5] = 0  # a hole stays one
    result = completer(picture, small, CAMERA, keep_measured=True)
    grid = AreaGrid.of((10, 14), (HEIGHT, WIDTH))
    means = grid.means(torch.from_numpy(result.depth)).numpy()
    np.testing.assert_allclose(means[small > 0], small[small > 0], rtol=1e-4)
    assert result.change.max() < 1e-3
    assert np.isfinite(result.depth[17, 21])
    loose = completer(picture, small, CAMERA)
    assert loose.areas == (10, 14)
    assert loose.change.mean() < 0.05


def test_a_large_picture_with_areas_is_reduced_and_answers_at_its_size(
    completer: gbpn.DepthCompleter, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("gbpn.engine.resizing.MOST_PIXELS", 40 * 56)
    image = np.random.default_rng(0).integers(0, 255, (80, 112, 3), dtype=np.uint8)
    result = completer(image, small_map(), keep_measured=True, sigma=0.01, confidence=np.full((10, 14), 2))
    assert result.depth.shape == (80, 112)
    assert result.change.max() < 1e-3


def test_another_camera_sees_the_same_plane() -> None:
    """A depth camera 5 cm to the left, of half the focal length, sees a wall: so does the colour camera."""
    depth = torch.full((1, 24, 32), 2.0)
    own = torch.tensor([[25.0, 0, 15.5], [0, 25, 11.5], [0, 0, 1]])
    camera = torch.tensor([[50.0, 0, 27.5], [0, 50, 19.5], [0, 0, 1]])
    pose = torch.eye(4, dtype=torch.float64)
    pose[0, 3] = 0.04  # of the colour camera's picture, 50 · 0.04 / 2 = 1 pixel
    seen, more = reprojected(depth, torch.ones(1, 24, 32), own, pose, camera, (HEIGHT, WIDTH))
    row, column = np.nonzero(seen[0].numpy())
    assert bool((seen[seen > 0] == 2.0).all())
    assert bool((more[0][seen[0] > 0] == 1).all())
    # depth pixel (r, c) lies at 2·(r − 11.5) + 19.5 and 2·(c − 15.5) + 27.5 + 1
    assert set(np.unique(row)) <= {2 * r - 4 for r in range(24)} | {2 * r - 3 for r in range(24)}
    assert len(row) > 0.9 * (HEIGHT / 2) * (WIDTH / 2)
    assert {int(c) % 2 for c in column} <= {0, 1}


def test_what_the_colour_camera_cannot_see_is_dropped() -> None:
    """A box before a wall: beside it, the depth camera sees wall that the box hides from the other one."""
    depth = torch.full((1, 40, 56), 4.0)
    depth[:, 10:30, 20:36] = 1.0
    own = torch.tensor([[50.0, 0, 27.5], [0, 50, 19.5], [0, 0, 1]])
    pose = torch.eye(4, dtype=torch.float64)
    pose[0, 3] = 0.2  # the box moves by 10 pixels, the wall by 2.5
    seen, _ = reprojected(depth, torch.zeros(0, 40, 56), own, pose, own, (40, 56))
    box = seen[0, 11:29, 31:45]  # inside the box as the colour camera sees it
    assert bool((box[box > 0] == 1.0).all())
    assert bool((seen[0, :, :25] > 1.5).any())  # wall on the other side is still there
    pose[0, 3] = 100.0
    with pytest.raises(InputError, match="none of the 2240 depth pixels"):
        reprojected(depth, torch.zeros(0, 40, 56), own, pose, own, (40, 56))


def test_the_call_takes_another_camera(completer: gbpn.DepthCompleter, picture: np.ndarray) -> None:
    own, pose = (12.5, 12.5, 6.5, 4.5), np.eye(4)
    result = completer(picture, small_map(), CAMERA, depth_intrinsics=own, depth_to_image=pose)
    assert result.areas is None
    assert 100 < int((result.sparse > 0).sum()) <= 140
    for wrong, text in ((np.eye(3), "3×4 or 4×4"), (2 * np.eye(4), "rotation")):
        with pytest.raises(InputError, match=text):
            completer(picture, small_map(), CAMERA, depth_intrinsics=own, depth_to_image=wrong)


def test_confidences_become_weights(tmp_path: Path) -> None:
    levels = np.array([[0, 1, 2]], np.uint8)
    np.testing.assert_array_equal(weights_of(levels), [[0, 0.25, 1]])
    np.testing.assert_allclose(weights_of(np.array([[0, 51, 255]], np.uint8)), [[0, 0.2, 1]])
    np.testing.assert_array_equal(weights_of(np.array([[0.0, np.nan, 0.5]])), [[0, 0, 0.5]])
    Image.fromarray(levels).save(tmp_path / "c.png")
    np.testing.assert_array_equal(read_weights(tmp_path / "c.png"), [[0, 0.25, 1]])
    for wrong in (np.array([[300]]), np.array([[1.5]]), np.array([[-1]]), np.zeros(3)):
        with pytest.raises(InputError, match="confidence"):
            weights_of(wrong)


def test_the_stated_formula_is_what_the_field_gets(
    completer: gbpn.DepthCompleter, picture: np.ndarray
) -> None:
    """w / (1/p + σ²), with p the precision without either and σ in the field's unit."""
    pipeline = completer.model.pipeline(check_sigmas=False)
    encoding = pipeline.encode(torch.from_numpy(picture).permute(2, 0, 1)[None] / 255)
    depth = torch.zeros(1, 1, HEIGHT, WIDTH)
    depth[..., 5::9, 7::9] = 2.0
    plain = pipeline.first_stage(encoding, SparseDepth(depth=depth))
    std, weight = torch.full_like(depth, 0.3), torch.full_like(depth, 0.25)
    rated = pipeline.first_stage(encoding, SparseDepth(depth=depth, std=std, weight=weight))
    there = plain.field.weight > 0
    noise = plain.unit.variance(torch.tensor(2.0), torch.tensor(0.3))
    torch.testing.assert_close(rated.field.weight[there], (0.25 / (1 / plain.field.weight + noise))[there])


def test_sigma_and_confidence_in_all_their_forms(picture: np.ndarray, depth: np.ndarray) -> None:
    there = torch.from_numpy(depth)[None] > 0

    def std_of(sigma: object) -> torch.Tensor:
        return frame_inputs(picture, depth, CAMERA, None, DepthSensor(sigma=sigma)).std[there]

    measured = torch.from_numpy(depth)[None][there]
    torch.testing.assert_close(std_of(0.02), torch.full_like(measured, 0.02))
    torch.testing.assert_close(std_of("2%"), 0.02 * measured)
    torch.testing.assert_close(std_of(0.1 * depth), 0.1 * measured)
    confidence = np.where(depth > 2, 2, 0).astype(np.uint8)
    found = frame_inputs(picture, depth, CAMERA, None, DepthSensor(confidence=confidence))
    assert torch.equal(found.sparse > 0, torch.from_numpy(depth)[None] > 2)
    for sensor, text in (
        (DepthSensor(sigma="much"), "no such depth file"),
        (DepthSensor(sigma=-1.0), "negative"),
        (DepthSensor(sigma=1e30), "at most 1000 metres"),
        (DepthSensor(sigma="1e30%"), "at most 1000 metres"),
        (DepthSensor(sigma=100 * depth), "unit"),
        (DepthSensor(sigma=depth[:5]), "size of the depth"),
        (DepthSensor(confidence=confidence[:5]), "size of the depth"),
    ):
        with pytest.raises(GbpnError, match=text):
            frame_inputs(picture, depth, CAMERA, None, sensor)


def test_a_noisy_measurement_is_followed_less(completer: gbpn.DepthCompleter, picture: np.ndarray) -> None:
    points = np.array([[x, y, 2.0] for x in range(4, 56, 8) for y in range(4, 40, 8)])
    points[10, 2] = 3.0
    x, y = points[10, :2].astype(int)
    sure = completer(picture, np.column_stack([points, np.zeros(len(points))]), CAMERA)
    std = np.where(points[:, 2] > 2.5, 2.0, 0.0)
    doubted = completer(picture, np.column_stack([points, std]), CAMERA)
    weight = np.where(points[:, 2] > 2.5, 0.001, 1.0)
    light = completer(picture, np.column_stack([points, 0 * std, weight]), CAMERA)
    assert 3 - doubted.depth[y, x] > 10 * (3 - sure.depth[y, x]) > 0
    assert 3 - light.depth[y, x] > 10 * (3 - sure.depth[y, x])


def test_columns_of_tables_arrays_and_clouds(tmp_path: Path, picture: np.ndarray, depth: np.ndarray) -> None:
    (tmp_path / "t.csv").write_text("depth,x,y,weight\n2.5,3,4,0.5\n1.5,6,7,1\n")
    assert read_point_table(tmp_path / "t.csv").tolist() == [[3, 4, 2.5, 0, 0.5], [6, 7, 1.5, 0, 1]]
    found = as_measurements(tmp_path / "t.csv", HEIGHT, WIDTH)
    assert found.std is None
    assert found.weight[0, 4, 3] == 0.5
    np.savez(tmp_path / "d.npz", depth=depth, sigma=0.1 * depth, confidence=np.ones_like(depth))
    found = as_measurements(tmp_path / "d.npz", HEIGHT, WIDTH)
    torch.testing.assert_close(found.std, 0.1 * torch.from_numpy(depth)[None])
    header = "ply\nformat ascii 1.0\nelement vertex 2\n" + "".join(
        f"property float {name}\n" for name in ("x", "y", "z", "sigma", "confidence")
    )
    (tmp_path / "c.ply").write_text(header + "end_header\n0 0 2 0.1 0.5\n0.1 0 2 0.2 0\n")
    points, std, weight = read_rated_points(tmp_path / "c.ply")
    assert points.shape == (2, 3)
    np.testing.assert_allclose(std, [0.1, 0.2], rtol=1e-6)
    np.testing.assert_allclose(weight, [0.5, 0.0])
    Image.fromarray(picture).save(tmp_path / "i.png")
    sensor = Sensor(intrinsics=torch.tensor([[50.0, 0, 27.5], [0, 50, 19.5], [0, 0, 1]]))
    inputs = sensor.read(tmp_path / "i.png", tmp_path / "c.ply")
    assert int((inputs.sparse > 0).sum()) == 1  # the other has no weight
    assert inputs.std[inputs.sparse > 0].item() == pytest.approx(0.1)


@pytest.mark.parametrize("sigma", ["1e308", "1e30", "inf", "21"])
def test_a_sigma_that_none_can_be_is_told(tmp_path: Path, sigma: str, picture: np.ndarray) -> None:
    """In a column of a cloud or of a table; beyond float32 it would be infinite."""
    names = "".join(f"property float {name}\n" for name in ("x", "y", "z", "std"))
    header = f"ply\nformat ascii 1.0\nelement vertex 2\n{names}end_header\n"
    (tmp_path / "c.ply").write_text(f"{header}0 0 2 0.1\n0.1 0 2 {sigma}\n")
    (tmp_path / "c.csv").write_text(f"x,y,depth,std\n3,4,2,0.1\n6,7,2,{sigma}\n")
    Image.fromarray(picture).save(tmp_path / "i.png")
    sensor = Sensor(intrinsics=torch.tensor([[50.0, 0, 27.5], [0, 50, 19.5], [0, 0, 1]]))
    for suffix in ("ply", "csv"):
        with pytest.raises(InputError, match=r"metres|finite"):
            sensor.read(tmp_path / "i.png", tmp_path / f"c.{suffix}")


def test_measured_pixels_are_kept(completer: gbpn.DepthCompleter, picture: np.ndarray) -> None:
    rng = np.random.default_rng(3)
    dense = (2 + 0.3 * rng.random((HEIGHT, WIDTH))).astype(np.float32)
    dense[10:25, 20:40] = 0
    free = completer(picture, dense, CAMERA)
    kept = completer(picture, dense, CAMERA, keep_measured=True)
    there = dense > 0
    np.testing.assert_array_equal(kept.depth[there], dense[there])
    assert free.change.max() > 1e-5
    assert kept.change.max() == 0
    middle = kept.depth[16:19, 29:31], free.depth[16:19, 29:31]
    np.testing.assert_allclose(*middle, atol=0.05)  # far inside the hole little changes


def test_an_outlier_is_not_kept(completer: gbpn.DepthCompleter, picture: np.ndarray) -> None:
    dense = np.full((HEIGHT, WIDTH), 2.0, np.float32)
    dense[20, 30] = 60.0
    result = completer(picture, dense, CAMERA, keep_measured=True)
    assert result.dropped[20, 30]
    assert result.depth[20, 30] < 10
