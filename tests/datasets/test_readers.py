"""NYUv2, KITTI, VOID and own folders, on miniature trees in the true formats."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

from gbpn.datasets import open_dataset
from gbpn.datasets.nyuv2 import INTRINSICS
from gbpn.errors import DatasetError, InputError

RNG = np.random.default_rng(0)
P_RECT = "721.5377 0 609.5593 44.85728 0 721.5377 172.854 0.2163791 0 0 1 0.002745884"


def write_picture(path: Path, height: int, width: int) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.fromarray(RNG.integers(0, 255, (height, width, 3), dtype=np.uint8)).save(path)


def write_depth16(path: Path, height: int, width: int, density: float = 0.1) -> np.ndarray:
    path.parent.mkdir(parents=True, exist_ok=True)
    values = RNG.integers(300, 1200, (height, width)) * (RNG.random((height, width)) < density)
    Image.fromarray(values.astype(np.uint16)).save(path)
    return values / 256


# NYUv2


def write_h5(path: Path, height: int = 480, width: int = 640) -> np.ndarray:
    h5py = pytest.importorskip("h5py")
    path.parent.mkdir(parents=True, exist_ok=True)
    depth = RNG.uniform(0.7, 9, (height, width)).astype(np.float32)
    with h5py.File(path, "w") as file:
        file["rgb"] = RNG.integers(0, 255, (3, height, width), dtype=np.uint8)
        file["depth"] = depth
    return depth


def test_nyuv2(tmp_path: Path) -> None:
    depth = write_h5(tmp_path / "val" / "official" / "00001.h5")
    write_h5(tmp_path / "train" / "attic_0001a" / "00001.h5")
    write_h5(tmp_path / "train" / "attic_0001b" / "00006.h5")
    dataset = open_dataset("nyuv2", tmp_path)
    assert dataset.names == ["val/official/00001"]
    assert open_dataset("nyuv2", tmp_path, "train").names == [
        "train/attic_0001a/00001",
        "train/attic_0001b/00006",
    ]
    sample = dataset.load(0)
    assert tuple(sample.image.shape) == (3, 228, 304)
    assert not bool(sample.sparse.any())
    fx, fy, cx, cy = INTRINSICS
    expected = torch.tensor([[fx / 2, 0, cx / 2 - 8], [0, fy / 2, cy / 2 - 6], [0, 0, 1]])
    torch.testing.assert_close(sample.intrinsics, expected)
    # PIL's triangle filter at factor 2: weights 1/8, 3/8, 3/8, 1/8 in each direction.
    weights = np.array([1, 3, 3, 1]) / 8
    window = depth[2 * 106 - 1 : 2 * 106 + 3, 2 * 108 - 1 : 2 * 108 + 3]
    assert float(sample.target[0, 100, 100]) == pytest.approx(float(weights @ window @ weights), rel=1e-5)
    assert torch.equal(dataset.frame(0).target[0], torch.from_numpy(depth))


def test_a_part_of_the_training_scenes_is_held_out_and_the_evaluation_is_whole(tmp_path: Path) -> None:
    for scene in range(5):
        for frame in range(3):
            write_h5(tmp_path / "train" / f"room_{scene}" / f"{frame:05}.h5", 8, 8)
    for frame in range(4):
        write_h5(tmp_path / "val" / "official" / f"{frame:05}.h5", 8, 8)
    everything = open_dataset("nyuv2", tmp_path, "train").names
    assert len(everything) == 15
    for holdout in (0.2, 0.5):
        train, held, evaluation = (
            open_dataset("nyuv2", tmp_path, split, holdout=holdout).names
            for split in ("train", "validation", "evaluation")
        )
        assert sorted(train + held) == everything
        scenes = {name.split("/")[1] for name in held}
        assert len(held) == 3 * len(scenes) > 0  # whole scenes, of which the other part shows nothing
        assert evaluation == [f"val/official/{frame:05}" for frame in range(4)]


def test_a_smaller_nyuv2_frame_has_the_camera_that_goes_with_it(tmp_path: Path) -> None:
    write_h5(tmp_path / "val" / "official" / "00001.h5", 120, 320)
    fx, fy, cx, cy = INTRINSICS
    expected = torch.tensor([[fx / 2, 0, cx / 2], [0, fy / 4, cy / 4], [0, 0, 1]])
    torch.testing.assert_close(open_dataset("nyuv2", tmp_path).frame(0).intrinsics, expected)


def test_nyuv2_problems_are_named(tmp_path: Path) -> None:
    with pytest.raises(DatasetError, match=r"expected ROOT/\{train/<scene>"):
        open_dataset("nyuv2", tmp_path)
    (tmp_path / "val" / "official").mkdir(parents=True)
    (tmp_path / "val" / "official" / "00001.h5").write_bytes(b"not hdf5")
    write_h5(tmp_path / "val" / "official" / "00002.h5")
    import h5py

    with h5py.File(tmp_path / "val" / "official" / "00002.h5", "a") as file:
        del file["depth"]
    dataset = open_dataset("nyuv2", tmp_path)
    for index in range(2):
        with pytest.raises(DatasetError, match=rf"0000{index + 1}\.h5: not a readable HDF5 file"):
            dataset.load(index)
    with pytest.raises(InputError, match="split must be one of train, validation, evaluation"):
        open_dataset("nyuv2", tmp_path, "val")


# KITTI

DRIVE = "2011_09_26_drive_0001_sync"


def write_drive(root: Path, merged: bool) -> dict[str, np.ndarray]:
    depths = {}
    lidar = root / "train" if merged else root / "data_depth_velodyne" / "train"
    annotated = root / "train" if merged else root / "data_depth_annotated" / "train"
    raw = root / "train" / DRIVE if merged else root / "raw" / DRIVE[:10] / DRIVE
    for camera in ("image_02", "image_03"):
        for frame in ("0000000005", "0000000006"):
            depths[f"{camera}/{frame}"] = write_depth16(
                lidar / DRIVE / "proj_depth" / "velodyne_raw" / camera / f"{frame}.png", 375, 1242
            )
            write_depth16(
                annotated / DRIVE / "proj_depth" / "groundtruth" / camera / f"{frame}.png", 375, 1242, 0.3
            )
            write_picture(raw / camera / "data" / f"{frame}.png", 375, 1242)
    calibration = (raw if merged else raw.parent) / "calib_cam_to_cam.txt"
    other = P_RECT.replace("44.85728", "-339.5242").replace("609.5593", "600.0")
    calibration.write_text(f"calib_time: 09-Jan-2012 13:57:47\nP_rect_02: {P_RECT}\nP_rect_03: {other}\n")
    return depths


@pytest.mark.parametrize("merged", [False, True])
def test_kitti_drives_in_both_layouts(tmp_path: Path, merged: bool) -> None:
    depths = write_drive(tmp_path, merged)
    dataset = open_dataset("kitti", tmp_path, "train")
    assert len(dataset) == 4
    assert dataset.names[0] == f"train/{DRIVE}/image_02/0000000005"
    whole, cropped = dataset.frame(0), dataset.load(0)
    np.testing.assert_allclose(whole.sparse[0].numpy(), depths["image_02/0000000005"], rtol=1e-6)
    assert tuple(cropped.image.shape) == (3, 352, 1216)
    assert torch.equal(cropped.sparse, whole.sparse[:, 23:, 13:1229])
    assert float(cropped.intrinsics[0, 2]) == pytest.approx(609.5593 - 13)
    assert float(cropped.intrinsics[1, 2]) == pytest.approx(172.854 - 23)
    assert float(dataset.frame(3).intrinsics[0, 2]) == 600.0


def test_kitti_selection_and_test(tmp_path: Path) -> None:
    selection = tmp_path / "depth_selection" / "val_selection_cropped"
    name = "2011_09_26_drive_0002_sync_{}_0000000005_image_02"
    write_picture(selection / "image" / f"{name.format('image')}.png", 352, 1216)
    write_depth16(selection / "velodyne_raw" / f"{name.format('velodyne_raw')}.png", 352, 1216)
    write_depth16(selection / "groundtruth_depth" / f"{name.format('groundtruth_depth')}.png", 352, 1216)
    (selection / "intrinsics").mkdir()
    (selection / "intrinsics" / f"{name.format('image')}.txt").write_text("721.5 0 596.5 0 721.5 149.8 0 0 1")
    sample = open_dataset("kitti", tmp_path, "selection").load(0)
    assert tuple(sample.image.shape) == (3, 352, 1216)
    assert sample.target is not None
    assert float(sample.intrinsics[1, 2]) == pytest.approx(149.8)
    assert len(open_dataset("kitti", tmp_path)) == 1, "evaluation means the selection"

    test = tmp_path / "test_depth_completion_anonymous"
    write_picture(test / "image" / "0000000000.png", 352, 1216)
    write_depth16(test / "velodyne_raw" / "0000000000.png", 352, 1216)
    (test / "intrinsics").mkdir()
    (test / "intrinsics" / "0000000000.txt").write_text("721.5 0 596.5 0 721.5 149.8 0 0 1")
    assert open_dataset("kitti", tmp_path, "test").load(0).target is None


def test_kitti_problems_are_named(tmp_path: Path) -> None:
    for split, message in (
        ("train", "no LiDAR maps of split 'train'"),
        ("selection", "no val_selection_cropped"),
    ):
        with pytest.raises(DatasetError, match=message):
            open_dataset("kitti", tmp_path, split)
    write_drive(tmp_path, merged=False)
    lidar = tmp_path / "data_depth_velodyne" / "train" / DRIVE / "proj_depth" / "velodyne_raw"
    Image.fromarray(np.ones((375, 1242), np.uint8)).save(lidar / "image_02" / "0000000005.png")
    Image.fromarray(np.full((375, 1242), 90, np.uint16)).save(lidar / "image_02" / "0000000006.png")
    write_depth16(lidar / "image_03" / "0000000005.png", 100, 100)
    Image.fromarray(np.zeros((375, 1242), np.uint16)).save(lidar / "image_03" / "0000000006.png")
    dataset = open_dataset("kitti", tmp_path, "train")
    for index, message in enumerate(["expected 16-bit", "saved with 8 bits", r"\[100, 100\] but its image"]):
        with pytest.raises(DatasetError, match=message):
            dataset.load(index)
    assert not bool(dataset.load(3).sparse.any()), "a frame without returns is a frame"
    (tmp_path / "raw" / DRIVE[:10] / "calib_cam_to_cam.txt").unlink()
    with pytest.raises(DatasetError, match=r"expected one of .*calib_cam_to_cam\.txt"):
        open_dataset("kitti", tmp_path, "train")


# VOID


@pytest.mark.parametrize("prefix", ["", "void_release/void_500/", "void_500/"])
def test_void(tmp_path: Path, prefix: str) -> None:
    folder = tmp_path / "void_500"
    sequence = folder / "data" / "stairs4"
    (sequence / "image").mkdir(parents=True)
    np.savetxt(sequence / "K.txt", np.array([[514.6, 0, 315.3], [0, 514.6, 247.4], [0, 0, 1]]))
    names = ["1552695287.7134.png", "1552695288.0134.png"]
    for name in names:
        write_picture(sequence / "image" / name, 48, 64)
        write_depth16(sequence / "sparse_depth" / name, 48, 64, 0.05)
        write_depth16(sequence / "ground_truth" / name, 48, 64, 0.9)
    for kind in ("image", "sparse_depth", "ground_truth"):
        lines = [f"{prefix}data/stairs4/{kind}/{name}" for name in names]
        (folder / f"test_{kind}.txt").write_text("\n".join(lines) + "\n")
    (folder / "test_intrinsics.txt").write_text(f"{prefix}data/stairs4/K.txt\n" * 2)
    dataset = open_dataset("void", tmp_path, points=500)
    assert dataset.names == [f"stairs4/{name[:-4]}" for name in names]
    sample = dataset.load(1)
    known = sample.target[sample.target > 0]
    assert 0.2 <= float(known.min()) <= float(known.max()) <= 5.0
    assert float(dataset.frame(1).target.max()) <= 1200 / 256
    assert len(open_dataset("void", folder)) == 2
    with pytest.raises(DatasetError, match=r"train_image\.txt: no such list; expected ROOT/void_<points>"):
        open_dataset("void", tmp_path, "train", points=500)
    (folder / "test_intrinsics.txt").write_text("data/stairs4/K.txt\n")
    with pytest.raises(DatasetError, match="differ in length"):
        open_dataset("void", tmp_path, points=500)


def test_void_holds_whole_sequences_out(tmp_path: Path) -> None:
    """Of four training sequences, a quarter is one; nothing is in both parts, and nothing is lost."""
    lists: dict[str, list[str]] = {
        kind: [] for kind in ("image", "sparse_depth", "ground_truth", "intrinsics")
    }
    for number in range(4):
        for frame in range(3):
            for kind in ("image", "sparse_depth", "ground_truth"):
                lists[kind].append(f"data/room{number}/{kind}/{frame}.png")
            lists["intrinsics"].append(f"data/room{number}/K.txt")
    for kind, lines in lists.items():
        (tmp_path / f"train_{kind}.txt").write_text("\n".join(lines) + "\n")
    for line in {line for lines in lists.values() for line in lines}:
        (tmp_path / line).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / line).touch()
    parts = {
        split: set(open_dataset("void", tmp_path, split, holdout=0.25).names)
        for split in ("train", "validation")
    }
    assert not parts["train"] & parts["validation"]
    assert len(parts["train"] | parts["validation"]) == 12
    assert len({name.split("/")[0] for name in parts["validation"]}) == 1
    assert len(parts["validation"]) == 3
    assert len(open_dataset("void", tmp_path, "train")) == 12


# Own folders


def test_own_folder(tmp_path: Path) -> None:
    for name in ("b", "a"):
        write_picture(tmp_path / "rgb" / f"{name}.png", 33, 65)
        write_depth16(tmp_path / "sparse" / f"{name}.png", 33, 65)
    (tmp_path / "gt").mkdir()
    np.save(tmp_path / "gt" / "a.npy", np.full((33, 65), 2.5, np.float32))
    np.save(tmp_path / "gt" / "b.npy", np.full((33, 65), np.nan, np.float32))
    (tmp_path / "intrinsics.txt").write_text("70 71 32 16\n")
    dataset = open_dataset("folder", tmp_path, scale=1)
    assert dataset.names == ["a", "b"]
    with pytest.warns(UserWarning, match="millimetres read as metres"):
        sample = dataset.load(0)
    assert float(sample.target.max()) == 2.5
    assert sample.intrinsics.tolist() == [[70, 0, 32], [0, 71, 16], [0, 0, 1]]
    unscaled = open_dataset("folder", tmp_path)
    with pytest.raises(InputError, match="integers without a unit"):
        unscaled.load(0)
    (tmp_path / "gt" / "b.npy").unlink()
    with pytest.raises(DatasetError, match="no depth file called b"):
        open_dataset("folder", tmp_path)


def test_globs_and_lists(tmp_path: Path) -> None:
    for capture in ("one", "two"):
        write_picture(tmp_path / capture / "rgb" / "0.jpg", 32, 40)
        (tmp_path / capture / "sparse").mkdir()
        np.savez(tmp_path / capture / "sparse" / "0.npz", depth=np.ones((32, 40)))
    with pytest.warns(UserWarning, match="60° along the longer side is assumed"):
        dataset = open_dataset("folder", str(tmp_path / "*" / "rgb" / "*.jpg"))
    assert dataset.names == ["one/rgb/0", "two/rgb/0"]
    assert float(dataset.load(1).sparse.sum()) == 32 * 40

    (tmp_path / "K.txt").write_text("50 0 20 0 50 16 0 0 1")
    (tmp_path / "frames.txt").write_text(
        "# mine\none/rgb/0.jpg one/sparse/0.npz - K.txt\ntwo/rgb/0.jpg, -, -, K.txt\n"
    )
    listed = open_dataset("folder", tmp_path / "frames.txt")
    assert len(listed) == 2
    assert listed.load(0).target is None
    assert not bool(listed.load(1).sparse.any())
    (tmp_path / "frames.txt").write_text("a b c d e\n")
    with pytest.raises(InputError, match="line 1"):
        open_dataset("folder", tmp_path / "frames.txt")
    with pytest.raises(DatasetError, match="no such folder; expected ROOT"):
        open_dataset("folder", tmp_path / "nowhere")
    with pytest.raises(DatasetError, match="none of rgb, image, images, color"):
        open_dataset("folder", tmp_path)
    with pytest.raises(DatasetError, match="no picture found"):
        open_dataset("folder", str(tmp_path / "*.bmp"))
