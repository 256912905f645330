"""Poses, confidences and lenses in the layouts people have: each the same as by its definition."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image
from scipy.spatial.transform import Rotation

from gbpn.errors import DatasetError, GbpnError, InputError
from gbpn.formats.camera_files import lens_of
from gbpn.formats.cloud_files import Cloud, write_cloud
from gbpn.formats.confidence_files import read_weights, weights_of
from gbpn.formats.point_clouds import read_points, read_rated_points
from gbpn.formats.poses import poses_of, read_matrix
from gbpn.synthetic.raycast import turn


def posed(seed: int) -> np.ndarray:
    rng = np.random.default_rng(seed)
    pose = np.eye(4)
    pose[:3, :3], pose[:3, 3] = turn(*rng.uniform(-3, 3, 3)), rng.uniform(-5, 5, 3)
    return pose


POSES = [posed(k) for k in range(3)]
NAMES = ["000010", "000011", "000012"]


def seven_scenes(folder: Path) -> Path:
    for name, pose in zip(NAMES, POSES, strict=True):
        np.savetxt(folder / f"frame-{name}.pose.txt", pose)
    return folder


def short_matrices(folder: Path) -> Path:
    for name, pose in zip(NAMES, POSES, strict=True):
        (folder / f"{int(name)}.txt").write_text(", ".join(map(repr, pose[:3].ravel().tolist())))
    return folder


def kitti(folder: Path) -> Path:
    np.savetxt(folder / "poses.txt", [pose[:3].ravel() for pose in POSES], header="poses")
    return folder / "poses.txt"


def nerfstudio(folder: Path) -> Path:
    """OpenGL's camera looks along −z, with y up: the second and third axis are turned around."""
    frames = []
    for name, pose in zip(NAMES, POSES, strict=True):
        turned = pose.copy()
        turned[:3, 1:3] *= -1
        frames.append({"file_path": f"images/{name}.png", "transform_matrix": turned.tolist()})
    (folder / "transforms.json").write_text(json.dumps({"frames": frames[::-1]}))
    return folder


def colmap(folder: Path) -> Path:
    """World to camera, as a quaternion (w first) and a translation, in units of half a metre."""
    (folder / "cameras.txt").write_text("1 PINHOLE 10 10 5 5 5 5\n")
    (folder / "points3D.txt").write_text("")
    lines = []
    for number, (name, pose) in enumerate(zip(NAMES, POSES, strict=True), 1):
        back = np.linalg.inv(pose)
        x, y, z, w = Rotation.from_matrix(back[:3, :3]).as_quat().tolist()
        move = " ".join(map(repr, (2 * back[:3, 3]).tolist()))
        lines.append(f"{number} {w!r} {x!r} {y!r} {z!r} {move} 1 cam/{name}.png\n\n")
    (folder / "images.txt").write_text("".join(lines))
    return folder


LAYOUTS: dict[str, Callable[[Path], Path]] = {
    "7-Scenes": seven_scenes,
    "3×4": short_matrices,
    "KITTI": kitti,
    "nerfstudio": nerfstudio,
    "COLMAP": colmap,
}


@pytest.mark.parametrize("layout", LAYOUTS)
def test_every_layout_gives_the_same_poses(layout: str, tmp_path: Path) -> None:
    found = poses_of(LAYOUTS[layout](tmp_path), NAMES, units=0.5 if layout == "COLMAP" else 1.0)
    assert list(found) == NAMES
    for name, pose in zip(NAMES, POSES, strict=True):
        np.testing.assert_allclose(found[name], pose, atol=1e-6)
    if layout == "KITTI":
        with pytest.raises(InputError, match="3 poses for 4 frames"):
            poses_of(tmp_path / "poses.txt", [*NAMES, "x"])
        return
    assert list(poses_of(LAYOUTS[layout](tmp_path), [*NAMES[1:], "000099"], units=0.5)) == NAMES[1:]
    with pytest.raises(DatasetError, match="none of the 1 frames has a pose in it; one is called '99'"):
        poses_of(LAYOUTS[layout](tmp_path), ["99"])


def test_pictures_of_a_rig_are_found_with_their_folders(tmp_path: Path) -> None:
    assert list(poses_of(colmap(tmp_path), ["cam/000011"])) == ["cam/000011"]


@given(st.lists(st.integers(0, 400), min_size=1, max_size=6, unique=True), st.integers(-20, 420))
def test_times_take_the_nearest_pose_within_a_twentieth_of_a_second(
    tmp_path_factory: pytest.TempPathFactory, times: list[int], asked: int
) -> None:
    path = tmp_path_factory.mktemp("tum") / "poses.txt"
    rows = []
    for time in times:
        x, y, z, w = Rotation.from_matrix(posed(time)[:3, :3]).as_quat()
        rows.append([time / 100, *posed(time)[:3, 3], 2 * x, 2 * y, 2 * z, 2 * w])
    np.savetxt(path, rows, fmt="%.17g")
    name = f"{asked / 100:.2f}"
    apart = [abs(time - asked) for time in times]
    if min(apart) > 5:
        with pytest.raises(DatasetError, match="none of the 1 frames"):
            poses_of(path, [name])
        return
    if min(apart) == 5:  # in between by rounding
        return
    found = poses_of(path, [name, "no time"])
    assert any(
        np.allclose(found[name], posed(time), atol=1e-8)
        for time, gap in zip(times, apart, strict=True)
        if gap == min(apart)
    )


@pytest.mark.parametrize("text", ["1 2 3", "a b c d", " ".join("1" * 13), ""])
def test_what_is_no_pose(tmp_path: Path, text: str) -> None:
    (tmp_path / "1.txt").write_text(text)
    with pytest.raises(DatasetError):
        read_matrix(tmp_path / "1.txt")
    with pytest.raises(GbpnError):
        poses_of(tmp_path / "1.txt", ["1"])


@pytest.mark.parametrize(("factor", "fits"), [(1.0, True), (1.003, True), (1.01, False), (np.nan, False)])
def test_a_pose_turns_and_moves_only(tmp_path: Path, factor: float, fits: bool) -> None:
    """Rounding in a file is let through, a scale is not."""
    np.savetxt(tmp_path / "1.txt", POSES[0] * np.array([factor] * 3 + [1.0]))
    if fits:
        assert "1" in poses_of(tmp_path, ["1"])
        return
    with pytest.raises(DatasetError, match="must turn and move, nothing else"):
        poses_of(tmp_path, ["1"])


# --- confidences -------------------------------------------------------------------------------------------

BYTES = np.array([[0, 51, 102], [153, 204, 255]], np.uint8)


@pytest.mark.parametrize(
    ("given", "wanted"),
    [
        (BYTES, BYTES / 255),
        (BYTES.astype(np.int64), BYTES / 255),
        (BYTES[None], BYTES / 255),
        (BYTES[..., None], BYTES / 255),
        (np.array([[0, 1, 2]]), [[0, 0.25, 1]]),
        (np.array([[0, 1, 3]], np.uint8), [[0, 1 / 255, 3 / 255]]),
        (np.array([[True, False]]), [[1, 0]]),
        (np.array([[0.0, 0.3, 1.0]]), [[0, 0.3, 1]]),
    ],
)
def test_confidences_of_every_kind(given: np.ndarray, wanted: np.ndarray) -> None:
    found = weights_of(given)
    assert found.dtype == np.float32
    np.testing.assert_allclose(found, wanted, rtol=1e-6)


@pytest.mark.parametrize(
    "wrong", [np.array([[256]]), np.array([[-1]]), np.array([[1.001]]), np.zeros((2, 3, 2))]
)
def test_what_is_no_confidence(wrong: np.ndarray) -> None:
    with pytest.raises(InputError, match="confidence"):
        weights_of(wrong)


def test_confidence_files(tmp_path: Path) -> None:
    np.save(tmp_path / "a.npy", BYTES)
    np.savez(tmp_path / "a.npz", weight=BYTES)
    Image.fromarray(BYTES).save(tmp_path / "a.png")
    for suffix in (".npy", ".npz", ".png"):
        np.testing.assert_allclose(read_weights(tmp_path / f"a{suffix}"), BYTES / 255, rtol=1e-6)
    np.save(tmp_path / "b.npy", BYTES.astype(np.int64) * 2)
    with pytest.raises(DatasetError, match=r"b\.npy: confidences are 0 to 2"):
        read_weights(tmp_path / "b.npy")


# --- lenses ------------------------------------------------------------------------------------------------


def test_a_lens_of_zeros_is_none_and_names_are_those_of_ros_and_kalibr() -> None:
    assert lens_of("plumb_bob", [0.0] * 5) is None
    assert lens_of("", []) is None
    for name in ("plumb_bob", "rational_polynomial", "radtan", " Plumb_Bob "):
        found = lens_of(name, [0.1, 0.2])
        assert found is not None
        assert (found.kind, found.parameters[:3]) == ("radtan", (0.1, 0.2, 0.0))
    unnamed = lens_of("", [0.1])
    assert unnamed is not None
    assert unnamed.kind == "radtan"
    fisheye = lens_of("equidistant", [0.0] * 4)
    assert fisheye is not None  # its angles are not tangents, with any parameters
    with pytest.raises(DatasetError, match="wants its four parameters"):
        lens_of("equidistant", [])
    with pytest.raises(DatasetError, match="'omni' is not known"):
        lens_of("omni", [0.1])


def test_a_thin_prism_that_does_nothing_is_left_out() -> None:
    eight = [0.1 * k for k in range(1, 9)]
    found = lens_of("rational_polynomial", [*eight, 0.0, 0.0, 0.0, 0.0])
    assert found is not None
    assert found.parameters == pytest.approx(eight)
    with pytest.raises(GbpnError, match="at most 8"):
        lens_of("rational_polynomial", [*eight, 0.1, 0.0, 0.0, 0.0])


# --- clouds ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("normals", [True, False])
@pytest.mark.parametrize("rated", [True, False])
def test_a_cloud_in_a_file_is_the_cloud(tmp_path: Path, normals: bool, rated: bool) -> None:
    rng = np.random.default_rng(0)
    cloud = Cloud(
        points=rng.normal(size=(9, 3)).astype(np.float32),
        colours=rng.integers(0, 256, (9, 3), dtype=np.uint8),
        normals=rng.normal(size=(9, 3)).astype(np.float32) if normals else None,
        std=rng.random(9).astype(np.float32) if rated else None,
    )
    path = write_cloud(tmp_path / "c.ply", cloud)
    np.testing.assert_array_equal(read_points(path), cloud.points)
    _, std, weight = read_rated_points(path)
    assert weight is None
    if rated:
        np.testing.assert_array_equal(std, cloud.std)
    else:
        assert std is None
    header, _, body = path.read_bytes().partition(b"end_header\n")
    names = [line.split()[-1] for line in header.decode().splitlines() if line.startswith("property")]
    kinds = [(name, "u1" if name in ("red", "green", "blue") else "<f4") for name in names]
    table = np.frombuffer(body, np.dtype(kinds))
    assert len(table) == len(cloud) == 9
    np.testing.assert_array_equal(np.stack([table[c] for c in ("red", "green", "blue")], 1), cloud.colours)
    if cloud.normals is not None:
        np.testing.assert_array_equal(np.stack([table[c] for c in ("nx", "ny", "nz")], 1), cloud.normals)
    with pytest.raises(InputError, match=r"written as \.ply or \.glb"):
        write_cloud(tmp_path / "c.obj", cloud)
