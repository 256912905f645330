"""Many frames as one: laws of merging, of folders for splats, and of what is read back."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from gbpn.errors import DatasetError, GbpnError, InputError
from gbpn.formats.cloud_files import Cloud
from gbpn.formats.images import read_pixels
from gbpn.formats.point_clouds import read_points
from gbpn.formats.poses import OPENGL
from gbpn.jobs.completed_folder import CompletedFrame, frames_of, read_frame
from gbpn.jobs.merging import Merging, in_the_air, merged, voxel_means
from gbpn.jobs.nerfstudio import write_nerfstudio
from gbpn.sigma.limit import SigmaLimit
from gbpn.synthetic.raycast import turn

K = np.array([[50.0, 0, 15.5], [0, 45, 10.0], [0, 0, 1]])
SIZE = (20, 32)


def posed(seed: int) -> np.ndarray:
    rng = np.random.default_rng(seed)
    pose = np.eye(4)
    pose[:3, :3], pose[:3, 3] = turn(*rng.uniform(-1, 1, 3)), rng.uniform(-3, 3, 3)
    return pose


def frame(depth: np.ndarray, pose: np.ndarray | None, std: np.ndarray | None = None, name: str = "f"):
    rng = np.random.default_rng(0)
    image = rng.integers(0, 256, (*depth.shape, 3), dtype=np.uint8)
    return CompletedFrame(
        name=name, image=image, depth=depth.astype(np.float32), std=std, intrinsics=K, pose=pose
    )


def in_world(one: CompletedFrame) -> np.ndarray:
    """[H, W, 3] by the definition of a camera: K⁻¹ times the pixel, times depth, turned and moved."""
    y, x = np.mgrid[: one.depth.shape[0], : one.depth.shape[1]]
    rays = np.stack([x, y, np.ones_like(x)], axis=2) @ np.linalg.inv(one.intrinsics).T
    assert one.pose is not None
    return (rays * one.depth[..., None]) @ one.pose[:3, :3].T + one.pose[:3, 3]


EVERYTHING = Merging(voxel=0, votes=0)


@given(st.integers(0, 200))
def test_every_pixel_is_where_its_camera_says(seed: int) -> None:
    rng = np.random.default_rng(seed)
    near, far = rng.uniform(1, 2, 2), rng.uniform(0, 0.5, 2)
    slopes = [
        a + b * np.linspace(0, 1, SIZE[1])[None].repeat(SIZE[0], 0) for a, b in zip(near, far, strict=True)
    ]
    frames = [frame(depth, posed(seed + k)) for k, depth in enumerate(slopes)]
    cloud, shares = merged(frames, EVERYTHING)
    wanted = np.concatenate([in_world(one).reshape(-1, 3) for one in frames])
    np.testing.assert_allclose(cloud.points, wanted, atol=1e-4)
    np.testing.assert_array_equal(cloud.colours, np.concatenate([f.image.reshape(-1, 3) for f in frames]))
    assert shares == [1.0, 1.0]
    assert cloud.std is None


def test_only_what_is_trusted_is_merged_and_its_sigma_comes_along() -> None:
    depth = np.full(SIZE, 2.0)
    depth[0, :3] = np.nan, 0, -1  # no depth, whatever σ says
    std = np.linspace(0.01, 0.2, SIZE[1], dtype=np.float32)[None].repeat(SIZE[0], 0)
    one = frame(depth, np.eye(4), std)
    there = np.isfinite(depth) & (depth > 0)
    np.testing.assert_array_equal(one.trusted(), there & (std <= 0.1))  # 5 % of 2 m
    np.testing.assert_array_equal(one.trusted(SigmaLimit.of(0.05)), there & (std <= 0.05))
    np.testing.assert_array_equal(replace(one, std=None).trusted(), there)
    cloud, _ = merged([one], replace(EVERYTHING, max_sigma=SigmaLimit.of(0.05)))
    np.testing.assert_array_equal(cloud.std, std[one.trusted(SigmaLimit.of(0.05))])
    assert cloud.normals is not None
    np.testing.assert_allclose(np.linalg.norm(cloud.normals, axis=1), 1, rtol=1e-5)
    # one frame without σ, and there is none of the whole
    assert merged([one, replace(one, std=None)], EVERYTHING)[0].std is None


def wall(metres: float, std: float = 0.0) -> CompletedFrame:
    return frame(np.full(SIZE, metres), np.eye(4), np.full(SIZE, std, np.float32))


def shares_of(frames: list[CompletedFrame], **settings: object) -> list[float]:
    return merged(frames, Merging(voxel=0, max_sigma=SigmaLimit.of(9), **settings))[1]


@pytest.mark.parametrize(
    ("away", "std", "agree"),
    [(0.0, 0.0, True), (0.019, 0.0, True), (0.021, 0.0, False), (0.1, 0.1, True), (0.4, 0.1, False)],
)
def test_frames_agree_within_their_sigmas_or_a_share_of_the_depth(
    away: float, std: float, agree: bool
) -> None:
    """2 % of 1 m, or twice the σ of both together: √2 · 2 · 0.1 m."""
    near, far = wall(1.0, std), wall(1.0 + away, std)
    assert shares_of([near, far])[0] == float(agree)


@pytest.mark.parametrize("away", [0.019, 0.021])
def test_without_sigmas_only_the_share_of_the_depth_counts(away: float) -> None:
    near, far = (replace(wall(metres), std=None) for metres in (1.0, 1.0 + away))
    assert merged([near, far], Merging(voxel=0))[1][0] == float(away < 0.02)


def test_as_many_votes_as_are_asked_for() -> None:
    same = [wall(1.0) for _ in range(4)]
    for votes in range(5):
        assert shares_of(same, votes=votes, neighbours=8) == [float(votes <= 3)] * 4
    # only the neighbours in the sequence are asked, the nearest first
    odd = [wall(1.0), wall(1.0), wall(3.0), wall(5.0)]
    assert shares_of(odd, votes=1, neighbours=1)[:2] == [1.0, 1.0]
    assert shares_of([wall(1.0), wall(3.0), wall(1.0)], votes=1, neighbours=1)[0] == 0.0


def test_those_who_see_past_a_pixel_outvote_those_who_agree() -> None:
    """As many as agree are enough; one that sees something nearer sees the pixel hidden and says nothing."""
    me = wall(1.0)
    assert shares_of([me, wall(1.0), wall(3.0)], votes=1)[0] == 0.0  # one against one
    assert shares_of([me, wall(1.0), wall(1.0), wall(3.0)], votes=1)[0] == 1.0
    assert shares_of([me, wall(1.0), wall(0.5), wall(0.5)], votes=1)[0] == 1.0
    assert shares_of([me, wall(1.0), wall(1.03)], votes=1)[0] == 1.0  # neither agrees nor contradicts


def test_what_no_other_frame_looks_at_has_no_votes() -> None:
    here = wall(2.0)
    aside = replace(here, pose=np.array([[1.0, 0, 0, 0.32], [0, 1, 0, 0.4], [0, 0, 1, 0], [0, 0, 0, 1]]))
    # 50 · 0.32 / 2 = 8 columns and 45 · 0.4 / 2 = 9 rows are out of the other's sight
    share = (SIZE[1] - 8) * (SIZE[0] - 9) / (SIZE[0] * SIZE[1])
    assert shares_of([here, aside]) == pytest.approx([share, share])
    backwards = np.diag([-1.0, 1.0, -1.0, 1.0])
    assert shares_of([here, replace(here, pose=backwards)]) == [0.0, 0.0]


@pytest.mark.parametrize(
    "wrong",
    [{"voxel": -1.0}, {"votes": -1}, {"votes": 3, "neighbours": 2}, {"tolerance": 0.0}, {"tolerance": 1.0}],
)
def test_settings_that_cannot_be(wrong: dict) -> None:
    with pytest.raises(InputError, match="merging wants"):
        Merging(**wrong)


def cloud_of(points: np.ndarray, std: np.ndarray | None = None, seed: int = 0) -> Cloud:
    rng = np.random.default_rng(seed)
    facing = rng.normal(size=points.shape)
    facing /= np.linalg.norm(facing, axis=1, keepdims=True)
    colours = rng.integers(0, 256, points.shape).astype(np.uint8)
    return Cloud(points=points, colours=colours, normals=facing, std=std)


@given(st.integers(0, 500), st.integers(1, 60), st.sampled_from([0.1, 0.35, 2.0]))
def test_a_voxel_is_the_weighted_mean_of_its_points(seed: int, count: int, side: float) -> None:
    rng = np.random.default_rng(seed)
    std = rng.uniform(0.001, 0.1, count).astype(np.float32)
    cloud = cloud_of(rng.uniform(-1, 1, (count, 3)), std, seed)
    thin = voxel_means(cloud, side)
    assert thin.std is not None
    assert thin.normals is not None
    assert cloud.normals is not None
    cells: dict[tuple[int, ...], list[int]] = {}
    for number, point in enumerate(cloud.points):
        cells.setdefault(tuple(np.floor(point / side).astype(int)), []).append(number)
    assert len(thin) == len(cells)
    found = {tuple(np.floor(point / side).astype(int)): k for k, point in enumerate(thin.points)}
    for cell, members in cells.items():
        weight = (1 / std[members].astype(np.float64) ** 2)[:, None]
        mean = (weight * cloud.points[members]).sum(0) / weight.sum()
        k = found[cell]
        np.testing.assert_allclose(thin.points[k], mean, atol=1e-9)
        assert thin.std[k] == std[members].min()
        colour = (weight * cloud.colours[members]).sum(0) / weight.sum()
        assert np.abs(thin.colours[k] - colour).max() <= 0.5 + 1e-6
        facing = (weight * cloud.normals[members]).sum(0)
        np.testing.assert_allclose(thin.normals[k], facing / np.linalg.norm(facing), atol=1e-6)


def test_without_sigma_all_points_of_a_voxel_count_alike() -> None:
    cloud = cloud_of(np.array([[0.1, 0.1, 0.1], [0.3, 0.1, 0.1], [0.5, 0.4, 0.4]]))
    np.testing.assert_allclose(voxel_means(cloud, 1.0).points, [[0.3, 0.2, 0.2]])
    assert voxel_means(cloud, 1.0).std is None
    assert len(voxel_means(cloud, 0)) == len(voxel_means(cloud, 1e-3)) == 3
    empty = cloud_of(np.zeros((0, 3)))
    assert len(voxel_means(empty, 0.1)) == 0
    with pytest.raises(InputError, match="too small for a cloud of this extent"):
        voxel_means(cloud_of(np.array([[0.0, 0, 0], [1e3, 1e3, 1e3]])), 1e-6)


def test_a_sigma_of_nothing_does_not_take_all_the_weight() -> None:
    cloud = cloud_of(np.array([[0.1, 0, 0], [0.3, 0, 0]]), np.array([0.0, 1e-4], np.float32))
    np.testing.assert_allclose(voxel_means(cloud, 1.0).points[0, 0], 0.2)


def test_thinning_happens_in_the_world_and_once_more_over_all_frames() -> None:
    frames = [wall(1.02), wall(1.02)]
    cloud, _ = merged(frames, Merging(voxel=0.07, votes=0, max_sigma=SigmaLimit.of(9)))
    cells = {tuple(cell) for cell in np.floor(in_world(frames[0]).reshape(-1, 3) / 0.07).astype(int)}
    assert len(cloud) == len(cells)


@pytest.fixture
def splats(tmp_path: Path) -> tuple[Path, list[CompletedFrame]]:
    rng = np.random.default_rng(1)
    frames = []
    for k in range(3):
        depth, std = rng.uniform(1, 5, SIZE), rng.uniform(0.001, 0.3, SIZE).astype(np.float32)
        depth[3, 4], depth[5, 6], depth[7, 8] = np.nan, 64.9, 65.5
        std[5, 6] = std[7, 8] = 0.001
        frames.append(frame(depth, posed(k), std, name=f"{k:03}"))
    cloud, _ = merged(frames, EVERYTHING)
    write_nerfstudio(tmp_path, frames, cloud, max_sigma=SigmaLimit.of(0.1))
    return tmp_path, frames


def test_a_folder_for_splats_shows_every_pixel_where_it_is(
    splats: tuple[Path, list[CompletedFrame]],
) -> None:
    """Read as its trainers do: centres at ½, OpenGL's axes, millimetres."""
    folder, frames = splats
    told = json.loads((folder / "transforms.json").read_text())
    assert told["camera_model"] == "OPENCV"
    assert len(told["frames"]) == 3
    for one, entry in zip(frames, told["frames"], strict=True):
        assert (entry["h"], entry["w"]) == SIZE
        stored = np.asarray(Image.open(folder / entry["depth_file_path"])).astype(float)
        metres = stored * told["depth_unit_scale_factor"]
        mask = np.asarray(Image.open(folder / entry["depth_mask_path"]))
        trusted = one.trusted(SigmaLimit.of(0.1)) & (one.depth < 65)
        np.testing.assert_array_equal(mask, np.where(trusted, 255, 0))
        np.testing.assert_array_equal(metres > 0, trusted)
        assert trusted[5, 6]
        assert not trusted[7, 8]  # beyond what 16 bits of millimetres hold
        np.testing.assert_array_equal(read_pixels(folder / entry["file_path"]), one.image)
        y, x = np.mgrid[: SIZE[0], : SIZE[1]] + 0.5
        ray = np.stack(
            [(x - entry["cx"]) / entry["fl_x"], -(y - entry["cy"]) / entry["fl_y"], -np.ones(SIZE)], 2
        )
        pose = np.array(entry["transform_matrix"])
        world = (ray * metres[..., None]) @ pose[:3, :3].T + pose[:3, 3]
        np.testing.assert_allclose(world[trusted], in_world(one)[trusted], atol=0.04)
        np.testing.assert_allclose(pose, one.pose @ OPENGL)


def test_masks_of_pictures_are_named_per_frame_only_if_asked_for(
    splats: tuple[Path, list[CompletedFrame]], tmp_path: Path
) -> None:
    folder, frames = splats
    entry = json.loads((folder / "transforms.json").read_text())["frames"][0]
    assert "mask_path" not in entry
    cloud, _ = merged(frames, EVERYTHING)
    place = write_nerfstudio(tmp_path / "again", frames, cloud, mask_pictures=True)
    entry = json.loads(place.read_text())["frames"][0]
    assert "depth_mask_path" not in entry
    assert (tmp_path / "again" / entry["mask_path"]).is_file()
    assert len(read_points(tmp_path / "again" / "points3D.ply")) == len(cloud)
    with pytest.raises(InputError, match="f has no pose"):
        write_nerfstudio(tmp_path / "b", [frame(np.ones(SIZE), None)], cloud)


def completed(folder: Path, name: str, one: CompletedFrame) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    np.save(folder / f"{name}_depth.npy", one.depth)
    if one.std is not None:
        np.save(folder / f"{name}_std.npy", one.std)
    (folder / f"{name}.json").write_text(json.dumps({"intrinsics": one.intrinsics.tolist()}))


@pytest.mark.parametrize("calibrated", [True, False])
def test_what_was_completed_is_read_back(tmp_path: Path, calibrated: bool) -> None:
    std = np.full(SIZE, 0.02, np.float32) if calibrated else None
    one = frame(np.full(SIZE, 2.5), posed(1), std, name="a")
    completed(tmp_path / "out", "a", one)
    (tmp_path / "in").mkdir()
    for name in ("b", "a"):
        Image.fromarray(one.image).save(tmp_path / "in" / f"{name}.png")
    (tmp_path / "in" / "a.txt").touch()
    found = frames_of(tmp_path / "in", tmp_path / "out")
    assert found == {"a": tmp_path / "in" / "a.png"}  # b was not completed
    back = read_frame(tmp_path / "out", "a", found["a"], one.pose)
    for field in ("image", "depth", "std", "intrinsics", "pose"):
        np.testing.assert_array_equal(getattr(back, field), getattr(one, field))
    record = tmp_path / "out" / "a.json"
    good = record.read_text()
    record.write_text(json.dumps({"intrinsics": (-one.intrinsics).tolist()}))
    with pytest.raises(GbpnError, match="positive focal lengths"):
        read_frame(tmp_path / "out", "a", found["a"])
    record.write_text(good)
    Image.fromarray(one.image[1:]).save(tmp_path / "in" / "a.png")
    with pytest.raises(DatasetError, match="give the one that was completed"):
        read_frame(tmp_path / "out", "a", found["a"])
    (tmp_path / "out" / "a_depth.npy").unlink()
    with pytest.raises(DatasetError, match=r"no image of .* was completed into it"):
        frames_of(tmp_path / "in", tmp_path / "out")
    for images, folder in (("none", "out"), ("in", "none")):
        with pytest.raises(DatasetError, match="wanted a folder of images"):
            frames_of(tmp_path / images, tmp_path / folder)


@pytest.mark.parametrize("seed", range(6))
def test_cameras_that_are_turned_agree_on_the_wall_that_both_see(seed: int) -> None:
    """By the definition of a camera: a pixel is confirmed if the other one's picture holds its place."""
    rng = np.random.default_rng(seed)
    normal, distance = np.array([0.1, -0.2, -1.0]), -6.0  # a wall that both look at
    frames = []
    for _ in range(2):
        pose = np.eye(4)
        pose[:3, :3], pose[:3, 3] = (
            turn(*(rng.uniform(-1, 1, 3) * (0.1, 0.1, 1.0))),
            rng.uniform(-0.5, 0.5, 3),
        )
        rays = in_world(frame(np.ones(SIZE), pose)) - pose[:3, 3]
        frames.append(frame((distance - pose[:3, 3] @ normal) / (rays @ normal), pose))
    _, shares = merged(frames, Merging(voxel=0))
    for one, other, share in zip(frames, frames[::-1], shares, strict=True):
        assert other.pose is not None
        there = (
            np.linalg.inv(other.pose) @ np.append(in_world(one).reshape(-1, 3), np.ones((640, 1)), axis=1).T
        )
        pixel = np.rint((K @ there[:3] / there[2])[:2])
        inside = (pixel >= 0).all(axis=0) & (pixel[0] < SIZE[1]) & (pixel[1] < SIZE[0])
        assert 0.1 < share == pytest.approx(float(inside.mean()), abs=0.01)


@given(st.integers(0, 500))
def test_a_pixel_in_the_air_has_a_nearer_and_a_farther_neighbour(seed: int) -> None:
    """Of its eight, each by more than 5 % of its own depth; one pixel at a time, holes among them."""
    rng = np.random.default_rng(seed)
    depth = 2 * np.exp(rng.normal(0, 0.06, (6, 8)))
    depth[rng.random((6, 8)) < 0.2] = rng.choice([np.nan, 0.0, -1.0])
    found = in_the_air(depth)
    for row in range(6):
        for column in range(8):
            here = depth[row, column]
            near = depth[max(row - 1, 0) : row + 2, max(column - 1, 0) : column + 2]
            known = near[np.isfinite(near) & (near > 0)]
            between = here > 0 and (known > 1.05 * here).any() and (known < 0.95 * here).any()
            assert bool(found[row, column]) == bool(between), (row, column)


@pytest.mark.parametrize(("away", "std", "agree"), [(0.27, 0.1, True), (0.29, 0.1, False)])
def test_the_sigmas_of_both_frames_count(away: float, std: float, agree: bool) -> None:
    """Twice √2 · 0.1 m, and 2 % of 1 m beside it: 0.2835 m."""
    assert shares_of([wall(1.0, std), wall(1.0 + away, std)])[0] == float(agree)
    for own, other in ((std, 0.0), (0.0, std)):  # of one alone: 0.201 m
        assert shares_of([wall(1.0, own), wall(1.0 + away, other)])[0] == 0.0
        assert shares_of([wall(1.0, own), wall(1.2, other)])[0] == 1.0


def test_frames_before_and_after_are_asked_alike() -> None:
    """Two neighbours of the middle one agree with it, the first and the last do not."""
    frames = [wall(metres) for metres in (3.0, 1.0, 1.0, 1.0, 3.0)]
    assert shares_of(frames, votes=2, neighbours=2)[2] == 1.0
    assert shares_of([frames[k] for k in (1, 0, 1, 0, 1)], votes=1, neighbours=2)[2] == 0.0


def test_a_limit_is_the_largest_sigma_that_is_trusted() -> None:
    depth, std = np.array([2.0, 2.0, 4.0]), np.array([0.5, 0.25, 0.5])
    assert SigmaLimit.of(0.25).keeps(depth, std).tolist() == [False, True, False]
    assert SigmaLimit.of("12.5%").keeps(depth, std).tolist() == [False, True, True]
