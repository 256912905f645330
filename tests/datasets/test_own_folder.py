"""A folder of one's own: divided for training, cameras of every format, and what a person is told."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

from gbpn.datasets import open_dataset
from gbpn.errors import DatasetError, InputError
from gbpn.formats.depth_files import likely_scale
from gbpn.train.recipe import named

SIZE = (48, 64)


def write(folder: Path, count: int, truth: bool = True) -> Path:
    rng = np.random.default_rng(0)
    for place in ("rgb", *(["gt"] if truth else [])):
        (folder / place).mkdir(parents=True)
    for frame in range(count):
        pixels = rng.integers(0, 255, (*SIZE, 3), dtype=np.uint8)
        Image.fromarray(pixels).save(folder / "rgb" / f"{frame:03}.png")
        if truth:
            np.save(folder / "gt" / f"{frame:03}.npy", rng.uniform(1, 3, SIZE).astype(np.float32))
    (folder / "intrinsics.txt").write_text("60 60 31.5 23.5")
    return folder


def test_a_part_is_held_out(tmp_path: Path) -> None:
    root = write(tmp_path / "mine", 10)
    parts = {
        split: open_dataset("folder", root, split, holdout=0.2).names
        for split in ("train", "validation", "evaluation")
    }
    assert parts["train"] == [f"{i:03}" for i in range(8)]
    assert parts["validation"] == ["008", "009"]
    assert len(parts["evaluation"]) == 10
    assert len(open_dataset("folder", root, "train")) == 10, "without a holdout all frames serve"


def test_whole_folders_of_a_glob_are_held_out(tmp_path: Path) -> None:
    for name in "abcd":
        write(tmp_path / name, 2)
    glob = str(tmp_path / "*" / "rgb" / "*.png")
    train = open_dataset("folder", glob, "train", holdout=0.25).names
    held_out = open_dataset("folder", glob, "validation", holdout=0.25).names
    assert {name[0] for name in held_out} == {"d"}
    assert {name[0] for name in train} == set("abc")


def test_trees_of_their_own_go_before_a_holdout(tmp_path: Path) -> None:
    write(tmp_path / "mine" / "train", 4)
    write(tmp_path / "mine" / "validation", 2)
    assert len(open_dataset("folder", tmp_path / "mine", "train", holdout=0.5)) == 4
    assert len(open_dataset("folder", tmp_path / "mine", "validation", holdout=0.5)) == 2


def test_training_wants_ground_truth(tmp_path: Path) -> None:
    root = write(tmp_path / "mine", 3, truth=False)
    with pytest.raises(DatasetError, match="no ground truth for 2 of 2 frames; training wants"):
        open_dataset("folder", root, "train", holdout=0.1)


def test_a_lens_is_removed_from_all_parts(tmp_path: Path) -> None:
    root = write(tmp_path / "mine", 1)
    (root / "intrinsics.txt").unlink()
    (root / "camera.yaml").write_text(
        "K: [60, 0, 31.5, 0, 60, 23.5, 0, 0, 1]\nD: [-0.2, 0, 0, 0]\nwidth: 64\nheight: 48\n"
    )
    plain = root / "rgb" / "000.png"
    sample = open_dataset("folder", root).load(0)
    assert sample.target is not None
    picture = torch.from_numpy(np.asarray(Image.open(plain)).transpose(2, 0, 1) / 255).float()
    assert float((sample.image - picture).abs().mean()) > 0.05
    assert float((sample.target == 0).float().mean()) > 0.01, "depth was moved too, and left gaps"
    assert sample.intrinsics[0].tolist() == [60.0, 0.0, 31.5]


def test_the_recipe_for_own_folders() -> None:
    recipe = named("folder")
    assert (recipe.dataset, recipe.start_from, recipe.dataset_options["holdout"]) == (
        "folder",
        "default",
        0.1,
    )
    assert named("small").changed(["dataset.kind=folder"]).dataset == "folder"


@pytest.mark.parametrize(
    ("shape", "middle", "words"),
    [
        ((240, 320), 2400, "most likely millimetres, --scale 1000"),
        ((240, 320), 11000, "most likely TUM's 1/5000 m, --scale 5000"),
        ((375, 1242), 4000, "most likely KITTI's 1/256 m, --scale 256"),
        ((240, 320), 60000, "half of them are below 60000"),
    ],
)
def test_the_likely_scale_is_named(shape: tuple[int, int], middle: int, words: str) -> None:
    assert words in likely_scale(np.full(shape, middle, np.uint16))


def test_the_question_for_the_scale_names_it(tmp_path: Path) -> None:
    Image.fromarray(np.full(SIZE, 2400, np.uint16)).save(tmp_path / "depth.png")
    from gbpn.formats.depth_files import read_depth

    with pytest.raises(InputError, match="most likely millimetres, --scale 1000"):
        read_depth(tmp_path / "depth.png")
