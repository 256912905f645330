"""Sensors one pixel at a time, as their definitions say it, against the fast forms."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from gbpn.sample import Sample
from gbpn.sensors import patterns
from gbpn.sensors.other_camera import reprojected
from gbpn.sensors.projection import nearest_values, points_to_sparse, remove_see_through
from gbpn.sensors.sampling import areas, sparsify
from gbpn.sensors.speckles import drop_speckles
from gbpn.synthetic.raycast import turn


def depths(seed: int, height: int = 9, width: int = 13, share: float = 0.4) -> Tensor:
    """[1, H, W]: whole numbers of metres, 2 to 6, so that limits are met exactly."""
    draw = torch.Generator().manual_seed(seed)
    known = torch.rand(1, height, width, generator=draw) < share
    return torch.randint(2, 7, (1, height, width), generator=draw).float() * known


@given(st.integers(0, 1000), st.integers(0, 3), st.integers(0, 3))
@settings(max_examples=25)
def test_a_point_is_seen_through_if_another_nearby_is_nearer_by_more_than_the_step(
    seed: int, rows: int, columns: int
) -> None:
    sparse = depths(seed)
    found = remove_see_through(sparse, rows=rows, columns=columns, step=0.5)
    for row, column in torch.nonzero(sparse[0]).tolist():
        window = sparse[
            0, max(row - rows, 0) : row + rows + 1, max(column - columns, 0) : column + columns + 1
        ]
        nearest = float(window[window > 0].min())
        here = float(sparse[0, row, column])
        assert float(found[0, row, column]) == (here if here <= 1.5 * nearest + 1e-5 else 0.0)
    assert not found[sparse == 0].any()


@given(st.integers(0, 1000), st.integers(1, 11), st.integers(1, 15))
@settings(max_examples=25)
def test_a_zone_measures_the_mean_of_what_is_known_in_it_at_its_middle(
    seed: int, rows: int, columns: int
) -> None:
    depth = depths(seed)
    height, width = depth.shape[-2:]
    found = patterns.time_of_flight(depth, (rows, columns))
    rows, columns = min(rows, height), min(columns, width)
    wanted = torch.zeros_like(depth)
    for i in range(rows):
        for j in range(columns):
            zone = depth[
                0,
                i * height // rows : math.ceil((i + 1) * height / rows),
                j * width // columns : math.ceil((j + 1) * width / columns),
            ]
            if (zone > 0).any():
                middle = int((i + 0.5) * height / rows), int((j + 0.5) * width / columns)
                wanted[0, middle[0], middle[1]] = zone[zone > 0].mean()
    torch.testing.assert_close(found, wanted, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("side", [1, 2, 4, 50])
def test_blocks_are_zones_of_so_many_pixels(side: int) -> None:
    depth = depths(0, 12, 20)
    zones = (max(12 // side, 1), max(20 // side, 1))
    assert torch.equal(patterns.block_means(depth, side), patterns.time_of_flight(depth, zones))


@given(st.integers(0, 1000))
@settings(max_examples=25)
def test_speckles_are_pixels_that_too_few_neighbours_agree_with(seed: int) -> None:
    depth = depths(seed, share=0.9)
    found = drop_speckles(depth, neighbours=3, tolerance=0.5, nearest=3.0)
    height, width = depth.shape[-2:]
    for row in range(height):
        for column in range(width):
            here = float(depth[0, row, column])
            around = [
                float(depth[0, y, x])
                for y in range(max(row - 1, 0), min(row + 2, height))
                for x in range(max(column - 1, 0), min(column + 2, width))
                if (y, x) != (row, column)
            ]
            agreeing = sum(other > 0 and abs(other - here) <= 0.5 * min(other, here) for other in around)
            kept = agreeing >= 3 and here >= 3.0
            assert float(found[0, row, column]) == (here if kept else 0.0)


@given(st.integers(0, 1000))
@settings(max_examples=25)
def test_each_pixel_has_the_values_of_its_nearest_point(seed: int) -> None:
    rng = np.random.default_rng(seed)
    height, width, count = 6, 8, 120
    x, y = rng.uniform(-1.5, width + 0.5, count), rng.uniform(-1.5, height + 0.5, count)
    depth, values = rng.uniform(1, 9, count), rng.uniform(1, 2, (2, count))
    found = nearest_values(x, y, depth, values, height, width)
    for row in range(height):
        for column in range(width):
            here = [k for k in range(count) if (round(y[k]), round(x[k])) == (row, column)]
            wanted = values[:, min(here, key=lambda k: depth[k])] if here else np.zeros(2)
            np.testing.assert_allclose(found[:, row, column], wanted, rtol=1e-6)
    inside = (np.rint(x) >= 0) & (np.rint(x) < width) & (np.rint(y) >= 0) & (np.rint(y) < height)
    points = torch.from_numpy(np.stack([x, y, depth], axis=1)[inside])
    sparse = points_to_sparse(points, height, width)[0].numpy()
    np.testing.assert_allclose(sparse, nearest_values(x, y, depth, depth[None], height, width)[0], rtol=1e-6)


@pytest.mark.parametrize("lines", [64, 16, 8])
def test_scan_lines_by_elevation_are_equal_bins_of_the_angle(lines: int) -> None:
    """Every (64 / lines)-th of 64 between −24.9° and 2°; what is beyond joins the outermost."""
    depth = 3 + torch.rand(1, 90, 12, generator=torch.Generator().manual_seed(0))
    matrix = torch.tensor([[60.0, 0.0, 5.5], [0.0, 70.0, 30.2], [0.0, 0.0, 1.0]])
    found = patterns.elevation_lines(depth, matrix, lines)
    low, high = math.radians(-24.9), math.radians(2.0)
    for row in range(90):
        for column in range(12):
            x, y = (column - 5.5) / 60, (row - 30.2) / 70
            angle = math.asin(-y / math.sqrt(x * x + y * y + 1))
            label = min(max(math.floor((angle - low) / (high - low) * 64), 0), 63)
            kept = label % (64 // lines) == 0
            assert bool(found[0, row, column] > 0) == kept, (row, column)


def test_corners_are_peaks_of_the_harris_response() -> None:
    """det − 0.05 trace² of the gradients' covariance over 5 × 5 pixels, one pixel at a time."""
    draw = torch.Generator().manual_seed(4)
    image = torch.rand(3, 14, 17, generator=draw)
    grey = np.pad(image.mean(0).double().numpy(), 1, mode="edge")
    right, down = (grey[1:-1, 2:] - grey[1:-1, :-2]) / 2, (grey[2:, 1:-1] - grey[:-2, 1:-1]) / 2
    response = np.zeros((14, 17))
    for row in range(14):
        for column in range(17):
            window = slice(max(row - 2, 0), row + 3), slice(max(column - 2, 0), column + 3)
            xx, yy, xy = (
                float((a[window] * b[window]).sum() / 25)
                for a, b in ((right, right), (down, down), (right, down))
            )
            response[row, column] = xx * yy - xy * xy - 0.05 * (xx + yy) ** 2
    depth = torch.full((1, 14, 17), 2.0)
    depth[0, :3] = 0  # unknown: no corner is measured there
    found = patterns.corners(depth, np.random.default_rng(0), image, 10_000)[0].numpy() > 0
    for row in range(14):
        for column in range(17):
            around = response[max(row - 2, 0) : row + 3, max(column - 2, 0) : column + 3]
            peak = response[row, column] >= around.max() and response[row, column] > 0 and row >= 3
            assert bool(found[row, column]) == peak, (row, column)


@given(st.sampled_from(["tof", "blocks"]), st.integers(1, 30), st.integers(1, 25), st.integers(1, 25))
@settings(max_examples=40)
def test_the_areas_of_a_pattern_are_as_many_as_its_measurements(
    name: str, value: int, height: int, width: int
) -> None:
    """Along rows and along columns, where zones are larger than the picture too; other patterns have none."""
    spec = f"{name}:{value}"
    rows, columns = areas(spec, (height, width)) or (0, 0)
    depth = torch.full((1, height, width), 2.0)
    sample = Sample(
        image=torch.zeros(3, height, width), sparse=depth, target=depth, intrinsics=torch.eye(3), name="a"
    )
    there = sparsify(sample, spec, np.random.default_rng(0)).sparse[0] > 0
    assert int(there.any(dim=1).sum()) == rows
    assert int(there.any(dim=0).sum()) == columns
    assert areas("points:5", (height, width)) is None


def seen_from(seed: int, ratio: float = 1.5) -> tuple[Tensor, Tensor, Tensor, Tensor, tuple[int, int]]:
    """A depth camera's map of a slanted wall, both cameras, the way from one to the other, picture size."""
    rng = np.random.default_rng(seed)
    size = (int(24 * ratio), int(30 * ratio))
    own = torch.tensor([[30.0, 0.0, 14.5], [0.0, 28.0, 11.5], [0.0, 0.0, 1.0]])
    camera = torch.tensor([[30.0 * ratio, 0, size[1] / 2], [0, 28.0 * ratio, size[0] / 2], [0, 0, 1]])
    pose = torch.eye(4, dtype=torch.float64)
    pose[:3, :3] = torch.from_numpy(turn(*(rng.uniform(-1, 1, 3) * (0.15, 0.15, 0.8))))
    pose[:3, 3] = torch.from_numpy(rng.uniform(-0.1, 0.1, 3))
    row, column = torch.meshgrid(torch.arange(24.0), torch.arange(30.0), indexing="ij")
    return (2 + 0.01 * row + 0.02 * column)[None], own, camera, pose, size


@pytest.mark.parametrize("seed", range(6))
def test_a_depth_pixel_lies_where_the_other_camera_sees_it(seed: int) -> None:
    """Turned and moved, one point at a time; what goes with a measurement goes along."""
    depth, own, camera, pose, size = seen_from(seed)
    others = torch.rand(1, 24, 30, generator=torch.Generator().manual_seed(seed))
    found, more = reprojected(depth, others, own, pose, camera, size)
    wanted: dict[tuple[int, int], tuple[float, float]] = {}
    for row in range(24):
        for column in range(30):
            pixel = torch.tensor([column, row, 1.0]).double()
            point = torch.linalg.inv(own.double()) @ pixel * depth[0, row, column]
            moved = pose[:3, :3] @ point + pose[:3, 3]
            x, y, _ = (camera.double() @ moved / moved[2]).tolist()
            at, z = (round(y), round(x)), float(moved[2])
            if 0 <= at[0] < size[0] and 0 <= at[1] < size[1] and z < wanted.get(at, (math.inf, 0))[0]:
                wanted[at] = z, float(others[0, row, column])
    kept = [tuple(place) for place in torch.nonzero(found[0]).tolist()]
    assert len(kept) > 0.9 * len(wanted) > 100
    for at in kept:
        assert (float(found[0][at]), float(more[0][at])) == pytest.approx(wanted[at], rel=1e-5)
    assert not more[0][found[0] == 0].any()


@pytest.mark.parametrize("ratio", [1.0, 2.5, 3.5, 5.5])
def test_nothing_is_seen_between_the_squares_of_a_nearer_surface(ratio: float) -> None:
    """However many pixels of the picture a depth pixel covers."""
    depth, own, camera, _, size = seen_from(0, ratio)
    depth[:] = 4.0
    depth[..., :15] = 1.0  # a board before a wall
    pose = torch.eye(4, dtype=torch.float64)
    pose[0, 3] = 0.2  # the other camera, further left, sees the board before what the first saw of the wall
    found, _ = reprojected(depth, torch.zeros(0, 24, 30), own, pose, camera, size)
    board = torch.nonzero(found[0] == 1.0)
    top, left = board.min(0).values.tolist()
    bottom, right = board.max(0).values.tolist()
    assert not (found[0, top : bottom + 1, left : right + 1] == 4.0).any()
    assert (found[0, :, right + math.ceil(ratio) + 1 :] == 4.0).any()


def test_a_reach_includes_its_end() -> None:
    depth = torch.tensor([[[1.0, 2.0, 3.0], [2.0, 3.0, 4.0]]]).repeat(1, 20, 20)
    assert set(patterns.near_only(depth, 3.0).unique().tolist()) == {0.0, 1.0, 2.0, 3.0}
    camera = torch.tensor([[60.0, 0, 29.5], [0, 60.0, 19.5], [0, 0, 1]])
    shot = patterns.rotating_lidar(depth, np.random.default_rng(0), camera, reach=3.0)
    assert set(shot.unique().tolist()) == {0.0, 1.0, 2.0, 3.0}
