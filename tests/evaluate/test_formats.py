"""`gbpn eval` on miniature trees in the original formats, with no further flags."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from typer.testing import CliRunner

from gbpn.cli import app
from gbpn.errors import InputError

RNG = np.random.default_rng(0)


def picture(path: Path, height: int, width: int) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.fromarray(RNG.integers(0, 255, (height, width, 3), dtype=np.uint8)).save(path)


def depth16(path: Path, height: int, width: int, density: float) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    values = RNG.integers(300, 1200, (height, width)) * (RNG.random((height, width)) < density)
    values[0, 0] = 20000  # KITTI's own check of 16 bits
    Image.fromarray(values.astype(np.uint16)).save(path)


def nyuv2(root: Path) -> None:
    h5py = pytest.importorskip("h5py")
    path = root / "val" / "official" / "00001.h5"
    path.parent.mkdir(parents=True)
    with h5py.File(path, "w") as file:
        file["rgb"] = RNG.integers(0, 255, (3, 480, 640), dtype=np.uint8)
        file["depth"] = RNG.uniform(0.7, 9, (480, 640)).astype(np.float32)


def kitti(root: Path) -> None:
    folder = root / "depth_selection" / "val_selection_cropped"
    name = "2011_09_26_drive_0002_sync_{}_0000000005_image_02"
    picture(folder / "image" / f"{name.format('image')}.png", 352, 1216)
    depth16(folder / "velodyne_raw" / f"{name.format('velodyne_raw')}.png", 352, 1216, 0.05)
    depth16(folder / "groundtruth_depth" / f"{name.format('groundtruth_depth')}.png", 352, 1216, 0.2)
    (folder / "intrinsics").mkdir()
    (folder / "intrinsics" / f"{name.format('image')}.txt").write_text("721.5 0 596.5 0 721.5 149.8 0 0 1")


def void(root: Path, points: int = 1500) -> None:
    name = f"void_{points}"
    sequence = root / name / "data" / "stairs0"
    lists: dict[str, list[str]] = {"image": [], "sparse_depth": [], "ground_truth": [], "intrinsics": []}
    for frame in ("1552097950.2672", "1552097951.1672"):
        picture(sequence / "image" / f"{frame}.png", 48, 64)
        depth16(sequence / "sparse_depth" / f"{frame}.png", 48, 64, 0.02)
        depth16(sequence / "ground_truth" / f"{frame}.png", 48, 64, 0.9)
        for kind in ("image", "sparse_depth", "ground_truth"):
            lists[kind].append(f"{name}/data/stairs0/{kind}/{frame}.png")
        lists["intrinsics"].append(f"{name}/data/stairs0/K.txt")
    (sequence / "K.txt").write_text("500 0 32\n0 500 24\n0 0 1\n")
    for kind, entries in lists.items():
        (root / name / f"test_{kind}.txt").write_text("\n".join(entries) + "\n")


def folder(root: Path) -> None:
    picture(root / "rgb" / "a.png", 40, 50)
    (root / "K.txt").write_text("50 0 25\n0 50 20\n0 0 1\n")
    (root / "gt").mkdir()
    np.save(root / "gt" / "a.npy", RNG.uniform(1, 4, (40, 50)).astype(np.float32))


@pytest.mark.parametrize(
    ("kind", "write", "frames"),
    [("nyuv2", nyuv2, 1), ("kitti", kitti, 1), ("void", void, 2), ("folder", folder, 1)],
)
def test_original_formats(kind, write, frames, tmp_path) -> None:
    write(tmp_path / "data")
    command = ["eval", kind, "--data", str(tmp_path / "data"), "-o", str(tmp_path / "report")]
    result = CliRunner().invoke(app, [*command, "--method", "nearest"], catch_exceptions=False)
    assert result.exit_code == 0, result.output
    data = json.loads((tmp_path / "report" / "report.json").read_text())
    assert (data["dataset"], data["samples"], data["failed"]) == (kind, frames, [])
    assert data["rows"][0]["rmse"] > 0
    assert data["rows"][0]["measurements"] > 0
    assert (tmp_path / "report" / "index.html").stat().st_size > 10_000


def test_void_with_all_its_numbers_of_points(tmp_path) -> None:
    for points in (150, 500, 1500):
        void(tmp_path / "data", points)
    command = ["eval", "void", "--data", str(tmp_path / "data"), "--method", "nearest", "--no-pictures"]
    found = {}
    for more in ([], ["--points", "500"], ["--option", "depth_range=None"]):
        folder = tmp_path / f"report{len(found)}"
        result = CliRunner().invoke(app, [*command, *more, "-o", str(folder)], catch_exceptions=False)
        assert result.exit_code == 0, result.output
        found[" ".join(more)] = json.loads((folder / "report.json").read_text())
    rows = found[""]["rows"]
    assert [row["setting"] for row in rows] == [{"points": n} for n in (1500, 500, 150)]
    assert len({row["rmse"] for row in rows}) == 3  # each its own list of files
    assert [row["setting"] for row in found["--points 500"]["rows"]] == [{"points": 500}]
    assert found["--points 500"]["rows"][0]["rmse"] == rows[1]["rmse"]
    assert {row["setting"]["points"] for row in found[""]["published"]} == {150, 500, 1500}
    assert "outside 0.2 to 5 m count as unknown" in found[""]["protocol"]
    whole = found["--option depth_range=None"]
    assert whole["rows"][0]["pixels"] > rows[0]["pixels"]  # one pixel lies at 78 m
    assert "count as unknown" not in whole["protocol"]
    one = CliRunner().invoke(
        app, [*command, "--data", str(tmp_path / "data" / "void_150"), "-o", str(tmp_path / "one")]
    )
    assert one.exit_code == 0, one.output
    assert json.loads((tmp_path / "one" / "report.json").read_text())["rows"][0]["setting"] == {"points": 150}


def test_options_of_the_dataset(tmp_path) -> None:
    folder(tmp_path / "data")
    (tmp_path / "data" / "gt" / "a.npy").unlink()
    Image.fromarray(np.full((40, 50), 1500, np.uint16)).save(tmp_path / "data" / "gt" / "a.png")
    command = ["eval", "folder", "--data", str(tmp_path / "data"), "--method", "nearest", "--no-pictures"]
    result = CliRunner().invoke(
        app, [*command, "--option", "scale=500", "-o", str(tmp_path / "report")], catch_exceptions=False
    )
    assert result.exit_code == 0, result.output
    data = json.loads((tmp_path / "report" / "report.json").read_text())
    rows = {row["method"]: row for row in data["rows"]}
    assert not data["failed"]
    assert set(rows) == {"default", "nearest"}  # the embedded weights come along
    assert rows["nearest"]["rmse"] == 0.0
    assert "Read with scale=500." in data["protocol"]
    for wrong, said in (("scale", "KEY=VALUE"), ("depth=2", "folder has no option 'depth'")):
        with pytest.raises(InputError, match=said):
            CliRunner().invoke(app, [*command, "--option", wrong], catch_exceptions=False)


def test_a_submission_from_the_command_line(tmp_path) -> None:
    test = tmp_path / "data" / "test_depth_completion_anonymous"
    picture(test / "image" / "0000000000.png", 352, 1216)
    depth16(test / "velodyne_raw" / "0000000000.png", 352, 1216, 0.05)
    (test / "intrinsics").mkdir()
    (test / "intrinsics" / "0000000000.txt").write_text("721.5 0 596.5 0 721.5 149.8 0 0 1")
    command = ["eval", "kitti", "--data", str(tmp_path / "data"), "--split", "test", "--method", "nearest"]
    result = CliRunner().invoke(
        app, [*command, "--submission", "-o", str(tmp_path / "out")], catch_exceptions=False
    )
    assert result.exit_code == 0, result.output
    assert [path.name for path in (tmp_path / "out").iterdir()] == ["0000000000.png"]
    stored = np.asarray(Image.open(tmp_path / "out" / "0000000000.png"))
    assert (stored.dtype, stored.shape, stored.min() > 0) == (np.dtype(np.uint16), (352, 1216), True)
