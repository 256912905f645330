"""A teacher's maps: where they lie in a cut, what counts as said, and that a run learns from them."""

from __future__ import annotations

import csv
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from test_runs import MACHINE, pool

from gbpn.augmentation import geometry
from gbpn.datasets import open_dataset
from gbpn.errors import InputError
from gbpn.sample import Sample
from gbpn.train.loop import train
from gbpn.train.recipe import named
from gbpn.train.teacher import Teacher, TeacherMaps, unexplained, write

__all__ = ["pool"]

SMALL = [
    "imagenet=no",
    "model.width=0.25",
    "batch=2",
    "steps=2",
    "validate_every=2",
    "validation_limit=1",
    "checkpoint_every=1",
    "average_from=1",
    "augmentation.height=64",
    "augmentation.width=64",
    "augmentation.flip=0",
    "augmentation.degrees=0",
]


def coordinates(rows: int, columns: int) -> torch.Tensor:
    """[2, rows, columns]: x and y of each pixel."""
    y, x = torch.meshgrid(torch.arange(rows), torch.arange(columns), indexing="ij")
    return torch.stack((x, y)).float()


def frame(rows: int, columns: int) -> Sample:
    camera = torch.tensor([[100.0, 0, columns / 2 - 0.5], [0, 110.0, rows / 2 - 3], [0, 0, 1]])
    nothing = torch.zeros(1, rows, columns)
    return Sample(
        image=torch.rand(3, rows, columns), sparse=nothing, target=nothing + 1, intrinsics=camera, name="one"
    )


def test_maps_lie_where_the_cut_lies(tmp_path) -> None:
    """A teacher that says each pixel's place says, in a zoomed cut, where its cells come from."""
    whole = frame(60, 80)
    maps = TeacherMaps(maps=coordinates(60, 80), intrinsics=whole.intrinsics, size=(60, 80))
    write(tmp_path / "maps.safetensors", {"one": maps})
    teacher = Teacher(tmp_path / "maps.safetensors")
    zoom = np.array([[1.5, 0, -20.0], [0, 1.5, -8.0], [0, 0, 1]])
    cut = geometry.warp(whole, zoom, 48, 64)
    centres = coordinates(12, 16) * 4 + 1.5  # of 4×4 cells, in pixels of the cut
    wanted = (centres - torch.tensor([-20.0, -8.0]).view(2, 1, 1)) / 1.5
    got, inside = teacher._cut(teacher.maps("one"), cut.intrinsics, 4.0, (12, 16))
    assert inside.all()
    torch.testing.assert_close(got, wanted, rtol=0, atol=1e-3)
    beyond = replace(cut, intrinsics=cut.intrinsics + torch.tensor([[0, 0, 40.0], [0, 0, 0], [0, 0, 0]]))
    _, inside = teacher._cut(teacher.maps("one"), beyond.intrinsics, 4.0, (12, 16))
    assert not inside.all()
    assert inside.any()


def test_what_is_linear_in_the_features_is_explained() -> None:
    torch.manual_seed(0)
    features = torch.randn(2, 5, 9, 7, dtype=torch.float64)
    known = torch.rand(2, 9, 7) < 0.8
    said = torch.einsum("dc,bchw->bdhw", torch.randn(3, 5, dtype=torch.float64), features) + 4
    assert unexplained(features, said, known) < 1e-6
    noise = torch.randn(2, 3, 9, 7, dtype=torch.float64)
    assert unexplained(features, noise, known) > 0.8
    only = torch.where(known[:, None], said, noise)  # cells that are not known do not count
    assert unexplained(features, only, known) < 1e-6
    assert unexplained(features, said, torch.zeros_like(known)) == 0


def test_the_gradient_is_that_of_the_best_linear_function() -> None:
    """The solution is a constant to autograd; finite differences find it anew each time."""
    torch.manual_seed(0)
    wanted, known = torch.randn(1, 2, 6, 5, dtype=torch.float64), torch.ones(1, 6, 5, dtype=torch.bool)
    features = torch.randn(1, 3, 6, 5, dtype=torch.float64, requires_grad=True)
    unexplained(features, wanted, known).backward()
    assert features.grad is not None
    step = torch.randn_like(features) * 1e-4
    ahead, behind = (unexplained((features + s * step).detach(), wanted, known) for s in (1, -1))
    torch.testing.assert_close((features.grad * step).sum(), (ahead - behind) / 2, rtol=2e-3, atol=1e-9)


def made(path: Path, pool: Path) -> Path:
    frames = open_dataset("pool", pool, "train", holdout=0.3)
    said = {}
    for index in range(1, len(frames)):  # one frame without
        sample = frames.load(index)
        rows, columns = sample.image.shape[-2:]
        maps = torch.nn.functional.avg_pool2d(sample.image, 4).half()
        said[sample.name] = TeacherMaps(maps=maps, intrinsics=sample.intrinsics, size=(rows, columns))
    write(path, said)
    return path


def test_a_run_with_a_teacher(pool, tmp_path) -> None:
    path = made(tmp_path / "maps.safetensors", pool)
    recipe = named("small").changed([*SMALL, f"teacher={path}", "dataset.holdout=0.3"])
    assert train(recipe, pool, tmp_path / "run", machine=MACHINE).finished
    with (tmp_path / "run" / "steps.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert 0 < float(rows[0]["teacher"]) <= 1


def test_what_cannot_be_followed_is_refused(pool, tmp_path) -> None:
    path = made(tmp_path / "maps.safetensors", pool)
    turned = named("small").changed([*SMALL, f"teacher={path}", "augmentation.degrees=5"])
    with pytest.raises(InputError, match="not mirrored or turned"):
        Teacher.of(turned, ["one"])
    recipe = named("small").changed([*SMALL, f"teacher={path}"])
    with pytest.raises(InputError, match="maps of none of the 1 frames"):
        Teacher.of(recipe, ["elsewhere/frame"])
    with pytest.raises(InputError, match="cannot be read"):
        Teacher.of(replace(recipe, teacher=str(tmp_path / "none.safetensors")), ["one"])
    assert Teacher.of(replace(recipe, teacher=""), ["one"]) is None
