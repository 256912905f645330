"""Point clouds, calibration files and projection; round trips through the real LiDAR maps."""

from __future__ import annotations

import struct
from pathlib import Path

import numpy as np
import pytest
import torch
from typer.testing import CliRunner

from gbpn.camera import pinhole as camera
from gbpn.cli import app
from gbpn.errors import BackendError, DatasetError, InputError
from gbpn.formats.calibration import (
    intrinsics_of,
    kitti_calibration,
    kitti_intrinsics,
    read_extrinsics,
    read_intrinsics,
)
from gbpn.formats.depth_files import KITTI_SCALE, read_depth, write_depth
from gbpn.formats.point_clouds import lzf_decompress, read_points
from gbpn.sensors.projection import project, remove_see_through

RNG = np.random.default_rng(3)
POINTS = RNG.uniform(-5, 5, (50, 3)).astype(np.float32)


def write_ply(path: Path, points: np.ndarray, encoding: str) -> None:
    header = (
        f"ply\nformat {encoding} 1.0\ncomment by a test\nelement vertex {len(points)}\nproperty uchar red\n"
        "property float x\nproperty float y\nproperty double z\nelement face 1\n"
        "property list uchar int vertex_indices\nend_header\n"
    )
    if encoding == "ascii":
        lines = "".join(f"7 {x!r} {y!r} {z!r}\n" for x, y, z in points.astype(float).tolist())
        path.write_text(f"{header}{lines}3 0 1 2\n")
        return
    order = "<" if "little" in encoding else ">"
    body = b"".join(struct.pack(f"{order}Bffd", 7, *point) for point in points.tolist())
    path.write_bytes(header.encode() + body + struct.pack(f"{order}Biii", 3, 0, 1, 2))


def lzf_literals(plain: bytes) -> bytes:
    """Valid LZF that never points back."""
    runs = [plain[start : start + 32] for start in range(0, len(plain), 32)]
    return b"".join(bytes([len(run) - 1]) + run for run in runs)


def write_pcd(path: Path, points: np.ndarray, encoding: str) -> None:
    header = (
        "# .PCD v0.7\nVERSION 0.7\nFIELDS normal x y z\nSIZE 4 4 4 4\nTYPE F F F F\nCOUNT 3 1 1 1\n"
        f"WIDTH {len(points)}\nHEIGHT 1\nVIEWPOINT 0 0 0 1 0 0 0\nPOINTS {len(points)}\nDATA {encoding}\n"
    )
    table = np.concatenate([np.ones_like(points), points], axis=1).astype("<f4")
    if encoding == "ascii":
        path.write_text(header + "\n".join(" ".join(repr(float(v)) for v in row) for row in table) + "\n")
    elif encoding == "binary":
        path.write_bytes(header.encode() + table.tobytes())
    else:
        plain = table[:, :3].tobytes() + table[:, 3:].T.tobytes()
        packed = lzf_literals(plain)
        path.write_bytes(header.encode() + struct.pack("<II", len(packed), len(plain)) + packed)


@pytest.mark.parametrize("encoding", ["ascii", "binary_little_endian", "binary_big_endian"])
def test_ply(tmp_path: Path, encoding: str) -> None:
    write_ply(tmp_path / "c.ply", POINTS, encoding)
    np.testing.assert_array_equal(read_points(tmp_path / "c.ply"), POINTS)


def test_ply_of_another_library(tmp_path: Path) -> None:
    plyfile = pytest.importorskip("plyfile")
    table = np.array([tuple(point) for point in POINTS], dtype=[("x", "f4"), ("y", "f4"), ("z", "f4")])
    plyfile.PlyData([plyfile.PlyElement.describe(table, "vertex")]).write(tmp_path / "c.ply")
    np.testing.assert_array_equal(read_points(tmp_path / "c.ply"), POINTS)


@pytest.mark.parametrize("encoding", ["ascii", "binary", "binary_compressed"])
def test_pcd(tmp_path: Path, encoding: str) -> None:
    write_pcd(tmp_path / "c.pcd", POINTS, encoding)
    np.testing.assert_array_equal(read_points(tmp_path / "c.pcd"), POINTS)


def test_lzf_points_back_into_what_it_wrote() -> None:
    # "ab", then copy 7 + 2 + 2 bytes from 2 back: an overlapping, repeating copy.
    assert lzf_decompress(bytes([1]) + b"ab" + bytes([7 << 5, 2, 1]), 13) == b"ab" * 6 + b"a"
    with pytest.raises(ValueError, match="damaged"):
        lzf_decompress(bytes([1 << 5, 9]), 3)


def test_bin_and_npy_drop_what_is_not_finite(tmp_path: Path) -> None:
    np.concatenate([POINTS, np.zeros((50, 1), np.float32)], axis=1).astype("<f4").tofile(tmp_path / "c.bin")
    np.testing.assert_array_equal(read_points(tmp_path / "c.bin"), POINTS)
    np.save(tmp_path / "c.npy", np.vstack([POINTS, [[np.nan, 0, 0]]]))
    assert len(read_points(tmp_path / "c.npy")) == 50


def las(points: np.ndarray, count: int | None = None) -> bytes:
    """Version 1.2, format 0, millimetres; `count` is what the header declares."""
    head = bytearray(227)
    head[:4], head[24:26] = b"LASF", bytes([1, 2])
    struct.pack_into("<HII", head, 94, 227, 227, 0)
    struct.pack_into("<BHI", head, 104, 0, 20, len(points) if count is None else count)
    struct.pack_into("<6d", head, 131, 0.001, 0.001, 0.001, 10, 20, 30)
    body = np.zeros(len(points), np.dtype([("xyz", "<i4", 3), ("rest", "V8")]))
    body["xyz"] = np.round((points - [10, 20, 30]) / 0.001)
    return bytes(head) + body.tobytes()


def test_las(tmp_path: Path) -> None:
    (tmp_path / "c.las").write_bytes(las(POINTS))
    np.testing.assert_allclose(read_points(tmp_path / "c.las"), POINTS, atol=0.001)
    (tmp_path / "c.las").write_bytes(las(POINTS, 2**32 - 1))
    with pytest.raises(DatasetError, match="4294967295 points of 20 bytes are declared"):
        read_points(tmp_path / "c.las")
    (tmp_path / "c.las").write_bytes(b"LASF")
    with pytest.raises(DatasetError, match="no LAS header"):
        read_points(tmp_path / "c.las")


def test_laspy_agrees(tmp_path: Path) -> None:
    laspy = pytest.importorskip("laspy", reason="needs pip install laspy[lazrs]")
    for name, version in (("c.las", "1.2"), ("d.las", "1.4"), ("c.laz", "1.4")):
        cloud = laspy.create(point_format=0 if version == "1.2" else 6, file_version=version)
        cloud.x, cloud.y, cloud.z = POINTS.T.astype(float)
        cloud.write(tmp_path / name)
        np.testing.assert_allclose(read_points(tmp_path / name), laspy.read(tmp_path / name).xyz)
        np.testing.assert_allclose(read_points(tmp_path / name), POINTS, atol=0.01)
    whole = bytearray((tmp_path / "c.laz").read_bytes())
    whole[-60:-20] = b"\xff" * 40
    (tmp_path / "c.laz").write_bytes(whole)  # the process that unpacks it ends, this one does not
    with pytest.raises(DatasetError, match="damaged records"):
        read_points(tmp_path / "c.laz")


def test_laz_says_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    content = bytearray(las(POINTS))
    content[104] |= 0x80
    (tmp_path / "c.laz").write_bytes(bytes(content))
    with monkeypatch.context() as patch:
        patch.setattr("gbpn.formats.las_files.find_spec", lambda _: None)
        with pytest.raises(BackendError, match="pip install laspy"):
            read_points(tmp_path / "c.laz")
    struct.pack_into("<I", content, 107, 2**32 - 1)
    (tmp_path / "c.laz").write_bytes(bytes(content))
    with pytest.raises(DatasetError, match="are believed"):
        read_points(tmp_path / "c.laz")


def test_broken_clouds_are_named(tmp_path: Path) -> None:
    with pytest.raises(DatasetError, match="no such point cloud"):
        read_points(tmp_path / "c.bin")
    (tmp_path / "c.bin").write_bytes(b"\0" * 20)
    with pytest.raises(DatasetError, match="after whole x y z intensity records"):
        read_points(tmp_path / "c.bin")
    for name in ("c.ply", "c.pcd"):
        (tmp_path / name).write_text("hello")
        with pytest.raises(DatasetError, match=f"{name}: not a readable"):
            read_points(tmp_path / name)
    write_ply(tmp_path / "short.ply", POINTS, "binary_little_endian")
    (tmp_path / "short.ply").write_bytes((tmp_path / "short.ply").read_bytes()[:400])
    with pytest.raises(DatasetError, match=r"short\.ply"):
        read_points(tmp_path / "short.ply")
    (tmp_path / "c.xyz").write_text("1 2 3")
    with pytest.raises(DatasetError, match=r"point clouds are \.bin"):
        read_points(tmp_path / "c.xyz")


# SigmaCalibration

VELO = np.array([[0, -1, 0], [0, 0, -1], [1, 0, 0]], float)  # scanner x ahead, y left, z up
SHIFT = np.array([0.01, -0.08, -0.27])
P2 = np.array([[700.0, 0, 600, 45], [0, 700, 170, 0.2], [0, 0, 1, 0.003]])


def text(matrix: np.ndarray) -> str:
    return " ".join(f"{value:.9e}" for value in matrix.reshape(-1))


def write_kitti(folder: Path, kind: str) -> Path:
    folder.mkdir(exist_ok=True)
    rigid = np.hstack([VELO, SHIFT[:, None]])
    if kind == "raw":
        (folder / "calib_cam_to_cam.txt").write_text(
            f"calib_time: 09-Jan-2012\nR_rect_00: {text(np.eye(3))}\nP_rect_02: {text(P2)}\n"
        )
        (folder / "calib_velo_to_cam.txt").write_text(f"R: {text(VELO)}\nT: {text(SHIFT)}\n")
        return folder
    if kind == "odometry":
        (folder / "calib.txt").write_text(f"P2: {text(P2)}\nTr: {text(rigid)}\n")
        return folder
    (folder / "000000.txt").write_text(
        f"P2: {text(P2)}\nR0_rect: {text(np.eye(3))}\nTr_velo_to_cam: {text(rigid)}\n"
    )
    return folder / "000000.txt"


@pytest.mark.parametrize("kind", ["raw", "odometry", "object"])
def test_kitti_calibration_projects_as_the_full_matrix_does(tmp_path: Path, kind: str) -> None:
    calibration = kitti_calibration(write_kitti(tmp_path, kind))
    point = np.array([20.0, 3.0, -1.0])  # ahead, left, below the scanner
    expected = P2 @ np.append(VELO @ point + SHIFT, 1)
    seen = calibration.to_camera.numpy() @ np.append(point, 1)
    got = calibration.intrinsics.numpy() @ seen[:3]
    np.testing.assert_allclose(got, expected, rtol=1e-9)
    assert expected[0] / expected[2] < 600, "left of the axis is left in the picture"
    assert expected[1] / expected[2] > 170, "below is below"


def test_calibration_problems_are_named(tmp_path: Path) -> None:
    with pytest.raises(DatasetError, match="expected calib_cam_to_cam"):
        kitti_calibration(tmp_path)
    write_kitti(tmp_path, "raw")
    (tmp_path / "calib_velo_to_cam.txt").unlink()
    with pytest.raises(DatasetError, match=r"no calib_velo_to_cam\.txt beside"):
        kitti_calibration(tmp_path)
    with pytest.raises(DatasetError, match="neither P_rect_03 nor P3"):
        kitti_intrinsics(tmp_path / "calib_cam_to_cam.txt", 3)
    (tmp_path / "K.txt").write_text("1 2 3")
    with pytest.raises(DatasetError, match=r"K\.txt: intrinsics are .* got 3 numbers"):
        read_intrinsics(tmp_path / "K.txt")
    with pytest.raises(InputError, match="positive focal"):
        intrinsics_of(np.array([0, 1, 2, 3]))
    (tmp_path / "T.txt").write_text(" ".join(["1"] * 12))
    with pytest.raises(DatasetError, match="must be a rotation"):
        read_extrinsics(tmp_path / "T.txt")
    (tmp_path / "K.json").write_text('{"K": [[50, 0, 20], [0, 51, 10], [0, 0, 1]]}')
    assert read_intrinsics(tmp_path / "K.json").tolist() == [[50, 0, 20], [0, 51, 10], [0, 0, 1]]


# Projection


def test_the_nearest_point_wins_and_what_is_outside_is_gone() -> None:
    points = np.array([[0, 0, 5.0], [0, 0, 3.0], [0, 0, -3.0], [100, 0, 1], [0.1, 0, 2.0]])
    sparse = project(points, torch.tensor([[10.0, 0, 2], [0, 10, 1], [0, 0, 1]]), 3, 5)
    expected = torch.zeros(1, 3, 5)
    expected[0, 1, 2] = 2.0  # 0.1 · 10 / 2 = half a pixel, rounded to even
    assert torch.equal(sparse, expected)
    with pytest.raises(InputError, match=r"points must be \[N, 3\]"):
        project(points[:, :2], torch.eye(3), 3, 5)


def test_projection_undoes_back_projection() -> None:
    depth = torch.from_numpy(RNG.uniform(1, 50, (1, 40, 60)) * (RNG.random((1, 40, 60)) < 0.2)).float()
    intrinsics = torch.tensor([[50.0, 0, 31.2], [0, 52.0, 18.9], [0, 0, 1]])
    points = camera.points(depth[None], intrinsics[None])[0][:, depth[0] > 0].T.numpy()
    torch.testing.assert_close(project(points, intrinsics, 40, 60), depth, rtol=1e-5, atol=0)


def test_what_is_seen_through_a_surface_goes_and_the_surface_stays() -> None:
    sparse = torch.zeros(1, 30, 30)
    sparse[0, ::2, ::2] = 20.0
    sparse[0, 10:20, 10:20] = 0
    sparse[0, 10:20:2, 11:20:2] = 5.0  # a near object …
    sparse[0, 15, 14] = 20.0  # … and a point of the wall behind it
    kept = remove_see_through(sparse)
    assert float(kept[0, 15, 14]) == 0
    assert torch.equal(kept == 5, sparse == 5)
    assert float(kept[0, 2, 2]) == 20
    assert not bool(remove_see_through(torch.zeros(1, 5, 5)).any())


def test_real_sweeps_survive_the_way_through_points_and_files(shared: Path, tmp_path: Path) -> None:
    """lidar_raw → points of the scanner → .bin and .ply → `gbpn project` → the same map."""
    folder = shared / "data" / "kitti" / "odometry_00"
    given = read_depth(folder / "lidar_raw" / "000000.png", KITTI_SCALE)
    calibration = kitti_calibration(write_kitti(tmp_path, "odometry"))
    matrix = calibration.intrinsics.float()
    seen = camera.points(given[None].double(), matrix[None].double())[0][:, given[0] > 0].T.numpy()
    backward = np.linalg.inv(calibration.to_camera.numpy())
    scanner = seen @ backward[:3, :3].T + backward[:3, 3]
    np.hstack([scanner, np.zeros((len(scanner), 1))]).astype("<f4").tofile(tmp_path / "sweep.bin")
    write_ply(tmp_path / "sweep.ply", scanner.astype(np.float32), "binary_little_endian")
    for name in ("sweep.bin", "sweep.ply"):
        result = CliRunner().invoke(
            app,
            ["project", str(tmp_path / name), "-o", str(tmp_path / "out.npy"), "--calib", str(tmp_path),
             "--image", str(folder / "color" / "000000.jpg"), "--keep-see-through",
             "--preview", str(tmp_path / "preview.png")],
        )  # fmt: skip
        assert result.exit_code == 0, result.output
        projected = read_depth(tmp_path / "out.npy")
        torch.testing.assert_close(projected, given, rtol=1e-4, atol=1e-3)
        assert (tmp_path / "preview.png").stat().st_size > 1000


def test_removal_agrees_with_the_filtered_sweeps(shared: Path) -> None:
    for scene, frame in (("odometry_00", "000004"), ("raw_2011_09_26", "0000000020")):
        folder = shared / "data" / "kitti" / scene
        raw = read_depth(folder / "lidar_raw" / f"{frame}.png", KITTI_SCALE)
        filtered = read_depth(folder / "lidar_filtered" / f"{frame}.png", KITTI_SCALE)
        measured = raw > 0
        agree = (remove_see_through(raw)[measured] > 0) == (filtered[measured] > 0)
        assert float(agree.float().mean()) > 0.97


# The command


def run(*arguments: object) -> tuple[int, str]:
    result = CliRunner().invoke(app, ["project", *(str(argument) for argument in arguments)])
    return result.exit_code, result.output if result.exception is None else str(result.exception)


def test_the_command_with_plain_matrices(tmp_path: Path) -> None:
    np.save(tmp_path / "c.npy", np.array([[0, 0, 4.0], [1, 0, 4.0]]))
    (tmp_path / "T.txt").write_text("1 0 0 0  0 1 0 0  0 0 1 1")
    code, output = run(
        tmp_path / "c.npy", "-o", tmp_path / "d.png", "--size", "20x10", "--intrinsics", "10,10,9,5",
        "--extrinsics", tmp_path / "T.txt",
    )  # fmt: skip
    assert code == 0, output
    assert "2 kept" in output
    depth = read_depth(tmp_path / "d.png", 256)
    assert float(depth[0, 5, 9]) == 5
    assert float(depth[0, 5, 11]) == 5


def test_the_command_explains_what_is_missing(tmp_path: Path) -> None:
    cloud = tmp_path / "c.npy"
    np.save(cloud, np.array([[0, 0, -4.0]]))
    out = tmp_path / "d.npy"
    for arguments, message in (
        ((cloud, "-o", out, "--size", "20x10"), "the camera is needed"),
        ((cloud, "-o", out, "--intrinsics", "10,10,9,5"), "the size is needed"),
        ((cloud, "-o", out, "--size", "20", "--intrinsics", "10,10,9,5"), "must be WIDTHxHEIGHT"),
        ((cloud, "-o", out, "--size", "20x10", "--intrinsics", "wide"), "must be fx,fy,cx,cy or a file"),
        (
            (cloud, "-o", out, "--size", "20x10", "--intrinsics", "10,10,9,5"),
            "none of its 1 points falls into",
        ),
        ((cloud, "-o", out, "--calib", tmp_path, "--intrinsics", "1,1,1,1"), "not both"),
    ):
        code, output = run(*arguments)
        assert code != 0
        assert message in output
    assert not out.exists()


def test_depth_written_for_submission_reads_back_with_the_benchmarks_scale(tmp_path: Path) -> None:
    write_depth(tmp_path / "d.png", torch.full((1, 3, 3), 12.5), 256)
    assert bool((read_depth(tmp_path / "d.png", 256) == 12.5).all())
