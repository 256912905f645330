"""The pool layout: on a miniature tree, and on the real one where it is there."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image

from gbpn.datasets import MixedDataset, open_dataset
from gbpn.datasets.decoded import Decoded
from gbpn.errors import DatasetError, InputError
from gbpn.sensors.patterns import fixed_positions

K = [[200.0, 0, 20.5], [0, 200.0, 15.5], [0, 0, 1]]


def write_png16(path: Path, values: np.ndarray) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.fromarray(values.astype(np.uint16)).save(path)


def write_scene(
    folder: Path, role: str, frames: int = 4, size: tuple[int, int] = (30, 40), dataset: str = "own"
) -> None:
    rng = np.random.default_rng(0)
    (folder / "color").mkdir(parents=True)
    meta = {"dataset": dataset, "K": K, "depth_scale": 1000.0, "role": role}
    (folder / "meta.json").write_text(json.dumps(meta))
    for frame in range(frames):
        pixels = rng.integers(0, 255, (*size, 3), dtype=np.uint8)
        Image.fromarray(pixels).save(folder / "color" / f"{frame:04}.jpg")
        write_png16(folder / "depth" / f"{frame:04}.png", rng.integers(500, 5000, size))


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    write_scene(tmp_path / "own" / "kitchen", "train")
    write_scene(tmp_path / "own" / "office", "evaluation", size=(31, 41))
    write_scene(tmp_path / "nyuv2" / "test", "evaluation", size=(240, 320), frames=1, dataset="NYU Depth v2")
    return tmp_path


def test_splits_follow_roles_and_hold_out_the_tail(tree: Path) -> None:
    assert MixedDataset(tree, "evaluation").names == ["nyuv2/test/0000"] + [
        f"own/office/{i:04}" for i in range(4)
    ]
    assert MixedDataset(tree, "train", holdout=0.25).names == [f"own/kitchen/{i:04}" for i in range(3)]
    assert MixedDataset(tree, "validation", holdout=0.25).names == ["own/kitchen/0003"]
    assert len(MixedDataset(tree, "all")) == 9
    assert len(MixedDataset(tree / "own" / "office")) == 4
    assert len(open_dataset("pool", tree, split="evaluation", scenes=("own",))) == 4


def test_at_least_the_share_is_held_out_of_every_scene(tmp_path: Path) -> None:
    """Never less than the share, less than one frame more; the last frames, each once."""
    write_scene(tmp_path / "own" / "hall", "train", frames=7)
    for holdout in (0.01, 0.1, 0.2, 0.5, 0.6):
        names = {
            split: MixedDataset(tmp_path, split, holdout=holdout).names for split in ("train", "validation")
        }
        assert names["train"] + names["validation"] == [f"own/hall/{i:04}" for i in range(7)]
        assert holdout * 7 <= len(names["validation"]) < holdout * 7 + 1


def test_scenes_of_few_frames_can_be_shown_more_often(tree: Path) -> None:
    write_scene(tree / "street" / "one", "train", frames=2)
    options: dict[str, Any] = {"holdout": 0.5, "repeat": {"street": 3}}
    kitchen = [f"own/kitchen/{i:04}" for i in range(2)]
    assert MixedDataset(tree, "train", **options).names == kitchen + 3 * ["street/one/0000"]
    assert MixedDataset(tree, "validation", **options).names.count("street/one/0001") == 1
    with pytest.raises(InputError, match="repeat must count scenes once or more"):
        MixedDataset(tree, "train", repeat={"street": 0})


def test_a_frame_is_metres_with_its_camera(tree: Path) -> None:
    sample = MixedDataset(tree, scenes=("own",)).load(0)
    assert tuple(sample.image.shape) == (3, 31, 41)
    assert 0.5 <= float(sample.target.min()) <= float(sample.target.max()) <= 5.0
    assert not bool(sample.sparse.any())
    assert torch.equal(sample.intrinsics, torch.tensor(K))


def test_nyu_scenes_get_the_benchmarks_crop(tree: Path) -> None:
    dataset = MixedDataset(tree, scenes=("nyuv2",))
    assert tuple(dataset.load(0).image.shape) == (3, 228, 304)
    assert float(dataset.load(0).intrinsics[0, 2]) == 20.5 - 8
    assert tuple(dataset.frame(0).image.shape) == (3, 240, 320)
    assert tuple(MixedDataset(tree, scenes=("nyuv2",), crop=False).load(0).image.shape) == (3, 240, 320)


@pytest.mark.parametrize("kind", ["memory", "folder"])
def test_the_cache_changes_nothing(tree: Path, tmp_path: Path, kind: str) -> None:
    cache = True if kind == "memory" else str(tmp_path / "decoded")
    plain, cached = MixedDataset(tree, "all"), MixedDataset(tree, "all", cache=cache)
    for index in (0, 3, 3):
        assert torch.equal(plain.load(index).image, cached.load(index).image)
        assert torch.equal(plain.load(index).target, cached.load(index).target)


def test_decoded_files_serve_others_until_theirs_change(tmp_path: Path) -> None:
    source, made = tmp_path / "a.bin", []

    def decode() -> np.ndarray:
        made.append(1)
        return np.frombuffer(source.read_bytes(), np.uint8)

    source.write_bytes(bytes([1, 2]))
    for _ in range(2):
        one = Decoded(tmp_path / "kept")
        assert one.of(source, decode).tolist() == one.of(source, decode).tolist() == [1, 2]
    assert len(made) == 1
    source.write_bytes(bytes([3, 4, 5]))
    assert Decoded(tmp_path / "kept").of(source, decode).tolist() == [3, 4, 5]
    with pytest.raises(DatasetError, match=r"nothing\.bin cannot be read"):
        Decoded(tmp_path / "kept").of(tmp_path / "nothing.bin", decode)


def test_lidar_scenes_hold_out_rings(tmp_path: Path) -> None:
    scene = tmp_path / "street" / "drive"
    write_scene(scene, "train", frames=1)
    (scene / "depth" / "0000.png").unlink()
    (scene / "depth").rmdir()
    depth = np.full((30, 40), 2000)
    ring = np.repeat(np.arange(30)[:, None], 40, axis=1)  # row r was seen by laser r − 1; row 0 by none
    depth[0] = 0
    for kind in ("lidar_raw", "lidar_filtered"):
        write_png16(scene / kind / "0000.png", depth)
    (scene / "ring").mkdir()
    Image.fromarray(ring.astype(np.uint8)).save(scene / "ring" / "0000.png")
    sample = MixedDataset(tmp_path, "all").load(0)
    assert np.flatnonzero(sample.sparse[0, :, 0].numpy()).tolist() == list(range(1, 30, 2))
    assert np.flatnonzero(sample.target[0, :, 0].numpy()).tolist() == list(range(2, 30, 2))
    eight = MixedDataset(tmp_path, "all", lines=8).load(0)
    assert np.flatnonzero(eight.sparse[0, :, 0].numpy()).tolist() == [1, 9, 17, 25]
    write_png16(scene / "gt_accum" / "0000.png", np.full((30, 40), 2000))
    full = MixedDataset(tmp_path, "all").load(0)
    assert bool((full.target == 2).all())
    assert int((full.sparse > 0).sum()) == 29 * 40
    rings = MixedDataset(tmp_path, "all", accumulated=False).load(0)
    assert torch.equal(rings.sparse, sample.sparse)
    assert torch.equal(rings.target, sample.target)


def test_measurements_and_target_come_from_folders_beside_exact_depth(tree: Path) -> None:
    kitchen, rng = tree / "own" / "kitchen", np.random.default_rng(1)
    maps = {name: rng.integers(500, 5000, (4, 30, 40)) for name in ("lidar_raw", "stereo", "kinect")}
    rings = rng.integers(0, 65, (4, 30, 40))
    for frame in range(4):
        for name, values in maps.items():
            write_png16(kitchen / name / f"{frame:04}.png", values[frame])
        ring = Image.fromarray(rings[frame].astype(np.uint8))
        (kitchen / "ring").mkdir(exist_ok=True)
        ring.save(kitchen / "ring" / f"{frame:04}.png")
    data = MixedDataset(tree, "train", holdout=0, sensors=("lidar_raw", "stereo"), target="kinect", lines=16)
    for frame in range(4):
        sample = data.frame(frame)
        assert sample.target is not None
        assert np.allclose(sample.target[0] * 1000, maps["kinect"][frame], atol=1e-3)
        wanted = maps["stereo"][frame] if frame % 2 else maps["lidar_raw"][frame]
        kept = 1 if frame % 2 else (rings[frame] > 0) & ((rings[frame] - 1) % 4 == 0)
        assert np.allclose(sample.sparse[0] * 1000, wanted * kept, atol=1e-3)
    both = MixedDataset(tree, "all", sensors="stereo")
    measured = {name: bool(both.frame(i).sparse.any()) for i, name in enumerate(both.names)}
    assert all(there == name.startswith("own/kitchen") for name, there in measured.items())
    with pytest.raises(DatasetError, match=r"no scene has a folder sonar.*kinect, lidar_raw, stereo"):
        MixedDataset(tree, "train", sensors=("sonar",))
    with pytest.raises(DatasetError, match="no scene has a folder kinect"):
        MixedDataset(tree / "own" / "office", target="kinect")


def test_what_is_missing_or_broken_is_named(tree: Path, tmp_path: Path) -> None:
    with pytest.raises(DatasetError, match=r"no such folder; expected ROOT/<dataset>/<scene>"):
        MixedDataset(tmp_path / "nowhere")
    (tmp_path / "empty").mkdir()
    with pytest.raises(DatasetError, match=r"no meta\.json"):
        MixedDataset(tmp_path / "empty")
    with pytest.raises(DatasetError, match="no frame with role 'train' among scenes nyuv2"):
        MixedDataset(tree, "train", scenes=("nyuv2",))
    for share in (-0.1, 1.0, 1.5):
        with pytest.raises(InputError, match="holdout must be a share"):
            open_dataset("pool", tree, holdout=share)
    with pytest.raises(InputError, match="split must be one of"):
        MixedDataset(tree, "test")
    with pytest.raises(InputError, match="unknown dataset kind"):
        open_dataset("nyu", tree)
    with pytest.raises(InputError, match="pool has no option 'scale'; there are scenes, holdout"):
        open_dataset("pool", tree, scale=1000)

    office = tree / "own" / "office"
    (office / "color" / "0000.jpg").write_bytes(b"\xff\xd8 not a picture")
    (office / "depth" / "0001.png").unlink()
    write_png16(office / "depth" / "0002.png", np.full((5, 5), 900))
    (office / "depth" / "0003.png").write_bytes((office / "depth" / "0003.png").read_bytes()[:200])
    dataset = MixedDataset(office)
    for index, message in enumerate(
        [
            r"0000\.jpg: not a readable image",
            r"0001\.png: no such",
            r"0002\.jpg: the image is \[31, 41\]",
            r"0003\.png: not a",
        ]
    ):
        with pytest.raises(DatasetError, match=message):
            dataset.load(index)
    (office / "meta.json").write_text("{")
    with pytest.raises(DatasetError, match=r"meta\.json: not a readable JSON file"):
        MixedDataset(office)


def test_every_shared_scene_loads(shared: Path) -> None:
    dataset = MixedDataset(shared / "data", "all")
    scenes: dict[str, int] = {}
    for index, name in enumerate(dataset.names):
        scenes.setdefault(name.rsplit("/", 1)[0], index)
    assert len(scenes) >= 13
    for scene, index in scenes.items():
        sample = dataset.load(index)
        known = float((sample.target > 0).float().mean())
        assert 0.01 < known <= 1, scene
        if "kitti" in scene:
            assert 0.005 < float((sample.sparse > 0).float().mean()) < 0.06, scene
    assert not any("sealed" in name for name in dataset.names)
    train, held = (set(MixedDataset(shared / "data", split).names) for split in ("train", "validation"))
    assert not train & held
    assert len(train) + len(held) == 795 + 100 + 107 + 20


def test_the_benchmark_processing_gives_the_independently_measured_number(shared: Path) -> None:
    """Nearest measurement, 500 fixed positions, 218 frames: 0.2251 m RMSE, 0.0907 m MAE (BASELINES.md)."""
    from scipy.ndimage import distance_transform_edt

    dataset = MixedDataset(shared / "data" / "nyuv2" / "test_public")
    assert len(dataset) == 218
    rmse, mae = [], []
    for index in range(len(dataset)):
        target = dataset.load(index).target
        sparse = fixed_positions(target, 500)[0].numpy()
        _, (rows, columns) = distance_transform_edt(sparse == 0, return_indices=True)
        error = (sparse[rows, columns] - target[0].numpy())[target[0].numpy() > 1e-3]
        rmse.append(np.sqrt(np.mean(error**2)))
        mae.append(np.abs(error).mean())
    assert np.mean(rmse) == pytest.approx(0.2251, abs=2e-4)
    assert np.mean(mae) == pytest.approx(0.0907, abs=2e-4)
