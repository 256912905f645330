"""Training recipes and the view: one sample per (seed, epoch, index), in any worker and order."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch.utils.data import DataLoader

from gbpn.augmentation.augmentations import (
    AUGMENTATIONS,
    KittiAugmentation,
    NyuAugmentation,
    VariedAugmentation,
    colour_jitter,
    principal_colour_noise,
)
from gbpn.datasets.training_view import TrainingView, collate
from gbpn.errors import InputError
from gbpn.sample import Sample

K = torch.tensor([[260.0, 0, 162.0], [0, 260.0, 126.0], [0, 0, 1]])


class Frames:
    """A few random frames in memory."""

    def __init__(self, count: int = 6, height: int = 240, width: int = 320, sparse: bool = False) -> None:
        rng = np.random.default_rng(5)
        self.names = [f"frame {index}" for index in range(count)]
        self.samples = [
            Sample(
                image=torch.from_numpy(rng.random((3, height, width), dtype=np.float32)),
                sparse=torch.from_numpy(
                    (rng.random((1, height, width)) < 0.04).astype(np.float32) * 4 * sparse
                ).float(),
                target=torch.from_numpy(rng.uniform(1, 5, (1, height, width)).astype(np.float32)),
                intrinsics=K,
                name=name,
            )
            for name in self.names
        ]

    def __len__(self) -> int:
        return len(self.samples)

    def load(self, index: int) -> Sample:
        return self.samples[index]

    frame = load


def same(first: Sample, second: Sample) -> bool:
    return all(
        torch.equal(getattr(first, part), getattr(second, part))
        for part in ("image", "sparse", "target", "intrinsics")
    )


@pytest.mark.parametrize("name", ["nyu", "varied"])
def test_the_sample_depends_on_seed_epoch_and_index_only(name: str) -> None:
    frames = Frames()
    forwards = TrainingView(frames, AUGMENTATIONS[name](), seed=7)
    backwards = TrainingView(frames, AUGMENTATIONS[name](), seed=7)
    expected = [forwards[index] for index in range(6)]
    for index in reversed(range(6)):
        assert same(expected[index], backwards[index])
    forwards.set_epoch(1)
    assert not same(expected[0], forwards[0])
    assert not same(expected[0], TrainingView(frames, AUGMENTATIONS[name](), seed=8)[0])


def test_workers_give_the_same_samples_as_one_process() -> None:
    view = TrainingView(Frames(4), VariedAugmentation(height=64, width=96), seed=1)
    alone = collate([view[index] for index in range(4)])
    (batch,) = DataLoader(view, batch_size=4, num_workers=2, collate_fn=collate)
    assert torch.equal(batch.image, alone.image)
    assert torch.equal(batch.sparse, alone.sparse)
    assert batch.names == alone.names == tuple(f"frame {index}" for index in range(4))


def test_the_released_nyu_recipe_has_its_sizes_counts_and_intrinsics() -> None:
    view = TrainingView(Frames(3, 480, 640), NyuAugmentation(), seed=0)
    for epoch in range(3):
        view.set_epoch(epoch)
        for index in range(3):
            sample = view[index]
            assert tuple(sample.image.shape) == (3, 228, 304)
            assert int((sample.sparse > 0).sum()) == 500
            assert torch.equal(sample.sparse[sample.sparse > 0], sample.target[sample.sparse > 0])
            scale = float(sample.intrinsics[0, 0]) * 2 / 260
            rows = round(240 * scale)
            assert 240 <= rows <= 360
            assert float(sample.intrinsics[1, 2]) == pytest.approx(
                126 * rows / 480 - (rows - 228) // 2, abs=1e-3
            )


def test_the_released_nyu_recipe_undone_is_the_frame() -> None:
    frames = Frames(1)
    calm = NyuAugmentation(zoom=1.0, degrees=0.0, jitter=0.0, depth_variation=0.0, points=10)
    sample = TrainingView(frames, calm, seed=0)[0]
    target = frames.samples[0].target[:, 6:234, 8:312]
    assert torch.equal(sample.target, target) or torch.equal(
        sample.target, frames.samples[0].target.flip(-1)[:, 6:234, 8:312]
    )


def test_the_released_kitti_recipe_crops_below_the_sky() -> None:
    view = TrainingView(Frames(2, 375, 1242, sparse=True), KittiAugmentation(), seed=0)
    for epoch in range(4):
        view.set_epoch(epoch)
        sample = view[0]
        assert tuple(sample.image.shape) == (3, 288, 1216)
        top = 126 - float(sample.intrinsics[1, 2])
        assert 50 <= top <= 87
        assert bool(sample.sparse.any())


def test_a_frame_smaller_than_the_kitti_crop_is_explained() -> None:
    with pytest.raises(InputError, match="smaller than the crop 288×1216"):
        TrainingView(Frames(1), KittiAugmentation())[0]


def test_the_varied_recipe_takes_any_size_and_keeps_a_real_sensors_points() -> None:
    for height, width in ((100, 130), (240, 320), (375, 1242), (480, 640)):
        sample = TrainingView(Frames(1, height, width, sparse=True), VariedAugmentation())[0]
        assert tuple(sample.image.shape) == (3, 192, 256)
        measured = sample.sparse[sample.sparse > 0]
        assert measured.numel() > 50
        assert float(measured.std()) < 1e-5, "points were interpolated"
        assert bool((sample.target > 0).float().mean() > 0.8)


def test_native_frames_keep_their_pixels_and_small_ones_are_still_warped() -> None:
    recipe = VariedAugmentation(height=40, width=50, native=1.0, jitter=0.0, grey=0.0, depth_variation=0.0)
    sample = Frames(1, 60, 80).frame(0)
    for seed in range(4):
        seen = recipe(sample, np.random.default_rng(seed))
        windows = sample.image.unfold(1, 40, 1).unfold(2, 50, 1)  # [3, 21, 31, 40, 50]
        matches = [
            (windows - image[:, None, None]).abs().amax(dim=(0, 3, 4)) < 1e-6
            for image in (seen.image, seen.image.flip(-1))
        ]
        assert sum(int(match.sum()) for match in matches) == 1
    assert recipe(Frames(1, 30, 80).frame(0), np.random.default_rng(0)).image.shape == (3, 40, 50)


def test_frames_are_mirrored_as_often_as_asked() -> None:
    sample = Frames(1, 40, 50).frame(0)
    for flip in (0.0, 1.0):
        recipe = VariedAugmentation(height=40, width=50, native=1.0, flip=flip, jitter=0.0, grey=0.0)
        for seed in range(4):
            seen = recipe(sample, np.random.default_rng(seed)).image
            torch.testing.assert_close(seen, sample.image.flip(-1) if flip else sample.image)


def test_the_depth_of_the_varied_recipe_follows_its_pixels() -> None:
    # The plane Z = 2 + X stays a plane of that slope under zoom and turn if the intrinsics follow.
    height, width = 240, 320
    x = (torch.arange(width) - K[0, 2]) / K[0, 0]
    plane = (2 / (1 - x)).expand(height, width)[None].contiguous()
    sample = Sample(
        image=torch.zeros(3, height, width), sparse=torch.zeros_like(plane), target=plane, intrinsics=K
    )
    for seed in range(5):
        seen = VariedAugmentation(pattern="points:10")(sample, np.random.default_rng(seed))
        known = seen.target[0] > 0
        rows, columns = torch.nonzero(known, as_tuple=True)
        ray_x = (columns - seen.intrinsics[0, 2]) / seen.intrinsics[0, 0]
        ray_y = (rows - seen.intrinsics[1, 2]) / seen.intrinsics[1, 1]
        inverse = (1 / seen.target[0][known]).double()
        design = torch.stack([ray_x.double(), ray_y.double(), torch.ones_like(inverse)], dim=1)
        solution = torch.linalg.lstsq(design, inverse[:, None]).solution
        residual = (design @ solution)[:, 0] - inverse
        assert float(residual.abs().max() / inverse.mean()) < 0.01
        slope = torch.linalg.vector_norm(solution[:2]) / solution[2]
        assert float(slope) == pytest.approx(1.0, abs=0.01)


def test_jitter_keeps_the_range_and_none_is_none() -> None:
    image = torch.rand(3, 20, 30, generator=torch.Generator().manual_seed(0))
    before = image.clone()
    for seed in range(10):
        jittered = colour_jitter(image, np.random.default_rng(seed))
        assert float(jittered.min()) >= 0
        assert float(jittered.max()) <= 1
    assert torch.equal(image, before), "the input was changed"
    torch.testing.assert_close(colour_jitter(image, np.random.default_rng(0), 0.0), image)
    assert float((principal_colour_noise(image, np.random.default_rng(0), 0.0) - image).abs().max()) < 1 / 255


def test_batches_need_one_size_and_all_or_no_targets() -> None:
    small, large = Frames(1, 40, 50).samples[0], Frames(1, 40, 60).samples[0]
    with pytest.raises(InputError, match="frames of one size"):
        collate([small, large])
    bare = Sample(image=small.image, sparse=small.sparse, intrinsics=small.intrinsics)
    with pytest.raises(InputError, match="all or none"):
        collate([small, bare])
    assert collate([bare]).target is None


def test_a_view_cuts_the_size_it_is_set_to() -> None:
    view = TrainingView(Frames(), VariedAugmentation(height=96, width=128), seed=1)
    plain = view[0].image
    view.set_size((64, 80))
    assert view[0].image.shape == (3, 64, 80)
    view.set_size(None)
    assert torch.equal(view[0].image, plain)
