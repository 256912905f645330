"""What comes out: masks, clouds, meshes, further formats, merged worlds, folders for splats, recordings."""

from __future__ import annotations

import json
import struct
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

import gbpn
from gbpn import cli
from gbpn.camera.pinhole import normals
from gbpn.distribution import DepthDistribution
from gbpn.errors import DatasetError, InputError
from gbpn.formats.cloud_files import Cloud
from gbpn.formats.depth_files import read_depth
from gbpn.formats.exr_files import exr
from gbpn.formats.point_clouds import read_rated_points
from gbpn.formats.poses import poses_of
from gbpn.jobs.completed_folder import CompletedFrame, read_frame
from gbpn.jobs.merging import Merging, in_the_air, merged, voxel_means
from gbpn.jobs.nerfstudio import write_nerfstudio
from gbpn.sigma.limit import SigmaLimit
from gbpn.synthetic.raycast import DepthBuffer, View, turn

K = np.array([[60.0, 0, 31.5], [0, 60, 23.5], [0, 0, 1]])


def completed(depth: torch.Tensor, std: torch.Tensor) -> gbpn.CompletedDepth:
    """An answer [48, 64] with its σ."""
    return gbpn.CompletedDepth(
        distribution=DepthDistribution.of_depth(depth[None, None], std=std[None, None]),
        image=torch.rand(3, *depth.shape, generator=torch.Generator().manual_seed(0)),
        sparse=torch.full((1, *depth.shape), 2.0),
        intrinsics=torch.from_numpy(K).float(),
    )


@pytest.fixture
def wall() -> gbpn.CompletedDepth:
    """2 m everywhere; σ grows from 1 % at the left to 20 % at the right."""
    depth = torch.full((48, 64), 2.0)
    return completed(depth, depth * torch.linspace(0.01, 0.2, 64))


def test_limits_are_metres_or_shares(wall: gbpn.CompletedDepth) -> None:
    np.testing.assert_array_equal(wall.trusted("5%"), wall.std <= 0.1)
    np.testing.assert_array_equal(wall.trusted(0.1), wall.std <= 0.1)
    np.testing.assert_array_equal(wall.trusted(), wall.std <= 0.1)  # 5 % unless told otherwise
    assert str(SigmaLimit.of("5%")) == "5%"
    for wrong in ("", "-1", "much", 0, float("nan")):
        with pytest.raises(InputError, match="largest sigma"):
            SigmaLimit.of(wrong)


def test_a_cloud_has_what_is_trusted_with_normals_and_sigma(
    wall: gbpn.CompletedDepth, tmp_path: Path
) -> None:
    xyz, colours = wall.to_point_cloud(tmp_path / "a.ply")
    assert len(xyz) == len(colours) == int(wall.trusted().sum())
    found, std, _ = read_rated_points(tmp_path / "a.ply")
    np.testing.assert_allclose(found, xyz, rtol=1e-6)
    np.testing.assert_allclose(std, wall.std[wall.trusted()], rtol=1e-6)
    np.testing.assert_allclose(wall.cloud().normals, np.tile([0, 0, -1], (len(xyz), 1)), atol=1e-5)
    everything, _ = wall.to_point_cloud(drop=0)
    assert len(everything) == 48 * 64


def test_normals_of_a_sphere_look_outwards() -> None:
    y, x = np.mgrid[-1:1:61j, -1:1:61j]
    inside = x**2 + y**2 < 0.8
    z = np.where(inside, 5 - np.sqrt(np.maximum(1 - x**2 - y**2, 0)), np.nan)
    found = normals(np.stack([x, y, z], axis=2))
    wanted = np.stack([x, y, z - 5], axis=2)
    middle = x**2 + y**2 < 0.5
    assert (np.einsum("...k,...k", found, wanted)[middle] > 0.99).all()


def test_further_formats(wall: gbpn.CompletedDepth, tmp_path: Path) -> None:
    names = ("glb", "mesh", "tiff", "exr", "kitti", "mask")
    files = {path.name for path in wall.save(tmp_path, "f", cloud=True, also=names)}
    assert {
        "f.ply",
        "f.glb",
        "f_mesh.glb",
        "f_depth.tiff",
        "f_depth.exr",
        "f_kitti.png",
        "f_mask.png",
    } <= files
    mask = np.asarray(Image.open(tmp_path / "f_mask.png"))
    np.testing.assert_array_equal(mask == 255, wall.trusted())
    for name, scale in (("f_depth.tiff", None), ("f_kitti.png", 256)):
        np.testing.assert_allclose(read_depth(tmp_path / name, scale)[0].numpy(), wall.depth, atol=1 / 256)
    for name in ("f.glb", "f_mesh.glb"):
        content = (tmp_path / name).read_bytes()
        assert struct.unpack_from("<4sII", content) == (b"glTF", 2, len(content))
    with pytest.raises(InputError, match="choose from ply"):
        wall.save(tmp_path, "f", also=("docx",))


def test_an_exr_is_read_by_others(tmp_path: Path) -> None:
    openexr = pytest.importorskip("OpenEXR", reason="needs pip install OpenEXR")
    values = np.random.default_rng(0).random((5, 7)).astype(np.float32)
    values[2, 3] = np.nan
    (tmp_path / "a.exr").write_bytes(exr(values))
    pixels = openexr.File(str(tmp_path / "a.exr")).channels()["Z"].pixels
    np.testing.assert_array_equal(pixels, values)
    assert read_depth(tmp_path / "a.exr")[0, 2, 3] == 0  # not measured


def test_voxels_are_weighted_means() -> None:
    cloud = Cloud(
        points=np.array([[0.01, 0, 0], [0.03, 0, 0], [0.5, 0.5, 0.5]]),
        colours=np.array([[0, 0, 0], [200, 0, 0], [9, 9, 9]], np.uint8),
        std=np.array([0.01, 0.02, 0.1], np.float32),
    )
    thin = voxel_means(cloud, 0.1)
    np.testing.assert_allclose(sorted(thin.points[:, 0]), [0.014, 0.5], atol=1e-9)
    np.testing.assert_allclose(sorted(thin.std), [0.01, 0.1])
    assert len(voxel_means(cloud, 0)) == 3


def posed_frame(x: float, yaw: float, name: str) -> CompletedFrame:
    """A room of 4 m with a box in it, seen from a place at its back; exact depth."""
    rotation, eye = turn(yaw), np.array([x, 0.0, -1.5])
    buffer = DepthBuffer(View(intrinsics=K, rotation=rotation, position=eye, height=48, width=64))
    buffer.box(np.zeros(3), np.full(3, 2.0), 0.0, (0,) * 6, inside=True)
    buffer.box(np.array([0.2, 0.5, 0.5]), np.full(3, 0.4), 0.3, (1,) * 6)
    pose = np.eye(4)
    pose[:3, :3], pose[:3, 3] = rotation, eye
    return CompletedFrame(
        name=name,
        image=np.where(buffer.material[..., None] == 1, [200, 30, 30], [90, 90, 120]).astype(np.uint8),
        depth=buffer.depth,
        std=np.full((48, 64), 0.004, np.float32),
        intrinsics=K,
        pose=pose,
    )


@pytest.fixture(scope="module")
def sequence() -> list[CompletedFrame]:
    return [posed_frame(0.15 * k - 0.3, 0.05 * k - 0.1, f"{k:04}") for k in range(5)]


def off_the_surfaces(cloud: Cloud) -> np.ndarray:
    """[N] metres from the nearest wall; the box is left out by its colour."""
    wall = cloud.colours[:, 0] < 120
    return np.abs(2.0 - np.abs(cloud.points[wall]).max(axis=1))


def test_frames_meet_in_the_world(sequence: list[CompletedFrame]) -> None:
    cloud, shares = merged(sequence, Merging(voxel=0.02, votes=1))
    assert min(shares) > 0.85  # the outer frames see what no other does
    assert off_the_surfaces(cloud).max() < 0.02
    assert 1000 < len(cloud) < 5 * 48 * 64
    towards = np.einsum("nk,nk->n", _known(cloud.normals), cloud.points)
    assert (towards[cloud.colours[:, 0] < 120] < 0).mean() > 0.97  # walls look inwards


def _known(values: np.ndarray | None) -> np.ndarray:
    assert values is not None
    return values


def test_what_one_frame_invents_is_voted_out(sequence: list[CompletedFrame]) -> None:
    """A frame with a screen at 1 m that no other one sees."""
    wrong = sequence[2].depth.copy()
    wrong[10:30, 20:40] = 1.0
    frames = [*sequence[:2], replace(sequence[2], depth=wrong), *sequence[3:]]
    voted, shares = merged(frames, Merging(voxel=0.02, votes=1))
    trusting, _ = merged(frames, Merging(voxel=0.02, votes=0))
    assert off_the_surfaces(trusting).max() > 0.5
    assert off_the_surfaces(voted).max() < 0.05
    assert shares[2] < 0.9
    with pytest.raises(InputError, match="no pose"):
        merged([replace(sequence[0], pose=None)])


def test_pixels_between_two_surfaces_belong_to_neither() -> None:
    step = np.full((6, 9), 3.0, np.float32)
    step[:, :4], step[:, 4] = 1.0, 2.0
    wanted = np.zeros((6, 9), bool)
    wanted[:, 4] = True
    np.testing.assert_array_equal(in_the_air(step), wanted)
    rows = np.arange(48, dtype=np.float32)[:, None] + np.zeros((1, 9), np.float32)
    road = 1.65 * 700 / (rows + 20)  # a street from 58 m to 17 m, seen from a car
    assert not in_the_air(road).any()
    step[2, 4] = np.nan
    assert not in_the_air(np.full((3, 3), np.nan)).any()
    assert not in_the_air(step)[2, 4]


def test_a_nerfstudio_folder_says_where_pixels_are(sequence: list[CompletedFrame], tmp_path: Path) -> None:
    """Read as nerfstudio does: depth of a pixel, its ray in OpenGL's axes, the pose; a point of the room."""
    cloud, _ = merged(sequence, Merging(voxel=0.05))
    place = write_nerfstudio(tmp_path / "ns", sequence, cloud, max_sigma=SigmaLimit.of(0.1))
    told = json.loads(place.read_text())
    assert told["ply_file_path"] == "points3D.ply"
    frame, depth = told["frames"][3], read_depth(tmp_path / "ns" / "depths" / "0003.png", 1000)[0].numpy()
    row, column = 7, 41
    ray = [(column + 0.5 - frame["cx"]) / frame["fl_x"], -(row + 0.5 - frame["cy"]) / frame["fl_y"], -1]
    found = np.array(frame["transform_matrix"]) @ [*(np.array(ray) * depth[row, column]), 1]
    assert np.abs(np.abs(found[:3]).max() - 2) < 2e-3  # on a wall
    assert (tmp_path / "ns" / frame["file_path"]).is_file()
    assert np.asarray(Image.open(tmp_path / "ns" / frame["depth_mask_path"])).min() == 255
    back = poses_of(tmp_path / "ns", ["0003"])
    np.testing.assert_allclose(back["0003"], sequence[3].pose, atol=1e-9)
    write_nerfstudio(tmp_path / "ns", sequence, cloud, mask_pictures=True)
    assert "mask_path" in json.loads(place.read_text())["frames"][0]


def test_poses_in_the_layouts_people_have(tmp_path: Path) -> None:
    pose = np.eye(4)
    pose[:3, :3], pose[:3, 3] = turn(0.3, -0.2, 0.1), (1.0, 2.0, 3.0)
    (tmp_path / "seven").mkdir()
    np.savetxt(tmp_path / "seven" / "frame-000010.pose.txt", pose)
    np.testing.assert_allclose(poses_of(tmp_path / "seven", ["000010", "000020"])["000010"], pose, atol=1e-9)
    np.savetxt(tmp_path / "kitti.txt", pose[:3].reshape(1, 12))
    np.testing.assert_allclose(poses_of(tmp_path / "kitti.txt", ["a"])["a"], pose)
    w = np.sqrt(1 + np.trace(pose[:3, :3])) / 2
    turned = pose[:3, :3]
    axis = [turned[2, 1] - turned[1, 2], turned[0, 2] - turned[2, 0], turned[1, 0] - turned[0, 1]]
    quaternion = [*(np.array(axis) / (4 * w)), w]
    np.savetxt(tmp_path / "tum.txt", [[100.0, 1, 2, 3, *quaternion]], header="timestamp tx ty tz qx qy qz qw")
    found = poses_of(tmp_path / "tum.txt", ["100.01", "200.0", "name"])
    assert list(found) == ["100.01"]
    np.testing.assert_allclose(found["100.01"], pose, atol=1e-9)
    with pytest.raises(gbpn.GbpnError, match="none of the 1 frames has a pose"):
        poses_of(tmp_path / "seven", ["000011"])


def command(monkeypatch: pytest.MonkeyPatch, *words: object) -> None:
    monkeypatch.setattr("sys.argv", ["gbpn", *map(str, words)])
    with pytest.raises(SystemExit) as stopped:
        cli.main()
    assert not stopped.value.code


@pytest.mark.parametrize(
    ("name", "values"),
    [
        ("a_std.npy", np.zeros((12, 0), np.float32)),
        ("a_depth.npy", np.ones((48, 64, 3), np.float32)),
        ("a_depth.npy", np.ones((48, 64), np.int32)),
    ],
)
def test_completed_files_that_do_not_fit_are_told(tmp_path: Path, name: str, values: np.ndarray) -> None:
    Image.fromarray(np.zeros((48, 64, 3), np.uint8)).save(tmp_path / "a.png")
    (tmp_path / "a.json").write_text(json.dumps({"intrinsics": K.tolist()}))
    for kind in ("depth", "std"):
        np.save(tmp_path / f"a_{kind}.npy", np.ones((48, 64), np.float32))
    assert read_frame(tmp_path, "a", tmp_path / "a.png").trusted().shape == (48, 64)
    np.save(tmp_path / name, values)
    with pytest.raises(DatasetError, match=r"a_depth.npy|std"):
        read_frame(tmp_path, "a", tmp_path / "a.png")
    (tmp_path / "a.json").write_text(json.dumps({"intrinsics": (0 * K).tolist()}))
    with pytest.raises(InputError, match="positive focal lengths"):
        read_frame(tmp_path, "a", tmp_path / "a.png")


def test_the_commands_from_small_depth_to_a_world(
    sequence: list[CompletedFrame],
    weights: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    for part in ("color", "depth", "confidence", "poses"):
        (tmp_path / part).mkdir()
    for frame in sequence[:2]:
        Image.fromarray(frame.image).save(tmp_path / "color" / f"{frame.name}.png")
        small = frame.depth.reshape(12, 4, 16, 4).mean(axis=(1, 3))
        Image.fromarray((small * 1000).astype(np.uint16)).save(tmp_path / "depth" / f"{frame.name}.png")
        np.save(tmp_path / "confidence" / f"{frame.name}.npy", np.full((12, 16), 2, np.uint8))
        np.savetxt(tmp_path / "poses" / f"{frame.name}.txt", frame.pose)
    monkeypatch.chdir(tmp_path)
    camera = ",".join(str(K[place]) for place in ((0, 0), (1, 1), (0, 2), (1, 2)))
    command(
        monkeypatch, "complete", "color", "depth", "--scale", 1000, "--intrinsics", camera, "-o", "out",
        "--weights", weights, "--device", "cpu", "--confidence", "confidence", "--sigma", "1%",
        "--keep-measured", "--also", "exr",
    )  # fmt: skip
    record = json.loads((tmp_path / "out" / "0000.json").read_text())
    assert record["change"]["largest"] < 1e-3
    assert (tmp_path / "out" / "0001_depth.exr").is_file()
    words = ["merge", "color", "out", "--poses", "poses", "-o", "w.ply", "--nerfstudio", "ns", "--votes", 0]
    try:
        import rerun  # noqa: F401

        words += ["--rerun", "w.rrd"]
    except ImportError:
        pass
    command(monkeypatch, *words)
    assert "2 frames" in capsys.readouterr().out
    assert len(read_rated_points(tmp_path / "w.ply")[0]) > 500
    assert (tmp_path / "ns" / "points3D.ply").is_file()
    assert "--rerun" not in words or (tmp_path / "w.rrd").stat().st_size > 1000
