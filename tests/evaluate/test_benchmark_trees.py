"""KITTI and VOID from download to table: trees laid out and encoded as their archives unpack, made frames.

A camera looks along a plane: what a measurement says and what is true are known for every pixel, so a wrong
scale, crop, list or pairing of files shows as an error in metres.
"""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from typer.testing import CliRunner

from gbpn.cli import app
from gbpn.datasets import open_dataset

DRIVE, DATE = "2011_09_26_drive_0002_sync", "2011_09_26"
FOCAL, CENTRE = 721.5377, (172.854, 609.5593)
"""Of KITTI's left colour camera: pixels, row and column."""
RECTIFIED = f"{FOCAL} 0 {CENTRE[1]} 44.85728 0 {FOCAL} {CENTRE[0]} 0.2163791 0 0 1 0.002745884"


def evaluated(output: Path, *arguments: object) -> dict:
    command = ["eval", *map(str, arguments), "--no-pictures", "-o", str(output)]
    result = CliRunner().invoke(app, command, catch_exceptions=False)
    assert result.exit_code == 0, result.output
    report = json.loads((output / "report.json").read_text())
    assert not report["failed"]
    return report | {"screen": result.output}


def written(path: Path, values: np.ndarray) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.fromarray(values).save(path)


def stored(depth: np.ndarray) -> np.ndarray:
    """Metres as both benchmarks store them: 16 bits, 1/256 m, 0 for unknown."""
    return np.round(256 * depth).astype(np.uint16)


def street(height: int, width: int, top: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Picture, 64 scan lines and annotated depth of a road 1.65 m below the camera, up to 80 m away."""
    rows = np.arange(height)[:, None] + top - CENTRE[0]
    with np.errstate(divide="ignore"):
        far = np.where(rows > 0, 1.65 * FOCAL / np.maximum(rows, 1e-9), np.inf)
    depth = np.broadcast_to(np.where(far < 80, far, 0), (height, width))
    first = int(np.argmax(depth[:, 0] > 0))
    scanned = np.zeros(height, bool)
    scanned[np.linspace(first, height - 1, 64).round().astype(int)] = True
    lidar = depth * scanned[:, None] * (np.arange(width) % 3 == 0)
    picture = np.random.default_rng(0).integers(0, 255, (height, width, 3), dtype=np.uint8)
    return picture, lidar, depth


def kitti_tree(root: Path) -> None:
    """depth_selection.zip, data_depth_velodyne.zip, data_depth_annotated.zip and one raw drive, unpacked."""
    selected = root / "depth_selection" / "val_selection_cropped"
    picture, lidar, depth = street(352, 1216, top=23)
    for frame in ("0000000005", "0000000008"):
        name = f"{DRIVE}_{{}}_{frame}_image_02"
        written(selected / "image" / f"{name.format('image')}.png", picture)
        written(selected / "velodyne_raw" / f"{name.format('velodyne_raw')}.png", stored(lidar))
        written(selected / "groundtruth_depth" / f"{name.format('groundtruth_depth')}.png", stored(depth))
        (selected / "intrinsics").mkdir(exist_ok=True)
        matrix = f"{FOCAL} 0.0 {CENTRE[1] - 13} 0.0 {FOCAL} {CENTRE[0] - 23} 0.0 0.0 1.0"
        (selected / "intrinsics" / f"{name.format('image')}.txt").write_text(matrix)
    picture, lidar, depth = street(375, 1242, top=0)
    for split in ("train", "val"):
        drive = DRIVE.replace("0002", "0001") if split == "train" else DRIVE
        for camera in ("image_02", "image_03"):
            mapped = root / split / drive / "proj_depth"
            written(mapped / "velodyne_raw" / camera / "0000000005.png", stored(lidar))
            written(mapped / "groundtruth" / camera / "0000000005.png", stored(depth))
            written(root / DATE / drive / camera / "data" / "0000000005.png", picture)
    calibration = f"calib_time: 09-Jan-2012 13:57:47\nP_rect_02: {RECTIFIED}\nP_rect_03: {RECTIFIED}\n"
    (root / DATE / "calib_cam_to_cam.txt").write_text(calibration)


def void_tree(root: Path, points: int, frames: int) -> None:
    """One density of void_release.zip: a wall that recedes to the right, seen by 640×480 pixels."""
    folder, name = root / f"void_{points}", "birthplace_of_internet"
    sequence = folder / "data" / name
    depth = np.broadcast_to(np.linspace(1.0, 6.0, 640), (480, 640))
    random = np.random.default_rng(points)
    kinds = ("image", "sparse_depth", "validity_map", "ground_truth", "absolute_pose")
    lists: dict[str, list[str]] = {kind: [] for kind in (*kinds, "intrinsics")}
    for k in range(frames):
        time = f"1552695287.{1000 + k}"
        chosen = np.zeros(480 * 640, bool)
        chosen[random.choice(chosen.size, points, replace=False)] = True
        chosen = chosen.reshape(480, 640)
        written(sequence / "image" / f"{time}.png", random.integers(0, 255, (480, 640, 3), dtype=np.uint8))
        written(sequence / "sparse_depth" / f"{time}.png", stored(depth * chosen))
        written(sequence / "validity_map" / f"{time}.png", (255 * chosen).astype(np.uint8))
        written(sequence / "ground_truth" / f"{time}.png", stored(depth))
        (sequence / "absolute_pose").mkdir(exist_ok=True)
        np.savetxt(sequence / "absolute_pose" / f"{time}.txt", np.eye(4)[:3])
        for kind in kinds:
            suffix = "txt" if kind == "absolute_pose" else "png"
            lists[kind].append(f"data/{name}/{kind}/{time}.{suffix}")
        lists["intrinsics"].append(f"data/{name}/K.txt")
    np.savetxt(sequence / "K.txt", [[514.638, 0, 315.267], [0, 514.638, 247.358], [0, 0, 1]])
    for kind, entries in lists.items():
        for split in ("train", "test"):
            (folder / f"{split}_{kind}.txt").write_text("\n".join(entries) + "\n")


def test_kitti_as_it_is_unpacked(tmp_path: Path) -> None:
    kitti_tree(tmp_path / "kitti")
    report = evaluated(tmp_path / "out", "kitti", "--data", tmp_path / "kitti", "--method", "linear")
    assert report["samples"] == 2
    (row,) = report["rows"]
    assert (
        row["rmse"] < 0.5
    )  # between lines of a plane that falls away; a wrong scale is off by tens of metres
    assert row["rel"] < 0.02
    assert {"GBPN", "BP-Net"} <= {entry["method"] for entry in report["published"]}
    assert "GBPN (published)" in report["screen"]
    page = (tmp_path / "out" / "index.html").read_text()
    assert "0.6816" in page  # the paper's RMSE stands beside, in metres
    lines = evaluated(
        tmp_path / "lines", "kitti", "--suite", "lines", "--data", tmp_path / "kitti", "--method", "linear"
    )
    errors = {row["setting"]["lines"]: row["rmse"] for row in lines["rows"]}
    counts = [row["measurements"] for row in lines["rows"]]
    assert list(errors) == [8, 16, 32, 64]
    assert counts == sorted(counts)
    assert errors[64] == row["rmse"] < errors[8]


@pytest.mark.parametrize(("split", "frames"), [("train", 2), ("val", 2)])
def test_kittis_drives_as_they_are_unpacked(tmp_path: Path, split: str, frames: int) -> None:
    kitti_tree(tmp_path)
    command = ("kitti", "--data", tmp_path, "--split", split, "--method", "linear")
    report = evaluated(tmp_path / "out", *command)
    assert report["samples"] == frames
    assert report["rows"][0]["rmse"] < 0.5
    sample = open_dataset("kitti", tmp_path, split).load(0)
    known = sample.target[0] > 0
    rows = np.nonzero(known.numpy())[0]
    wanted = 1.65 * FOCAL / (rows - float(sample.intrinsics[1, 2]))  # the camera moved with the crop
    np.testing.assert_allclose(sample.target[0][known].numpy(), wanted, atol=1 / 256)


def test_void_as_it_is_unpacked(tmp_path: Path) -> None:
    root = tmp_path / "void_release"
    for points in (150, 500, 1500):
        void_tree(root, points, frames=1)
    report = evaluated(tmp_path / "out", "void", "--data", root, "--method", "linear")
    rows = {row["setting"]["points"]: row for row in report["rows"]}
    assert list(rows) == [1500, 500, 150]
    for points, row in rows.items():
        assert row["measurements"] == points
        assert row["rmse"] < 0.1
    assert "Targets outside 0.2 to 5 m" in report["protocol"]
    assert {entry["setting"]["points"] for entry in report["published"]} == {1500, 500, 150}
    sample = open_dataset("void", root, points=150).load(0)
    assert float(sample.target.max()) <= 5.0 < float(open_dataset("void", root).frame(0).target.max())
