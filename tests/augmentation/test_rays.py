"""Augmentation moves pixels, colours and the camera together: every pixel keeps the ray it was seen along."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from gbpn.augmentation import geometry
from gbpn.augmentation.augmentations import (
    KittiAugmentation,
    NyuAugmentation,
    VariedAugmentation,
    colour_jitter,
    principal_colour_noise,
)
from gbpn.sample import Sample

HEIGHT, WIDTH = 90, 120


def labelled(height: int = HEIGHT, width: int = WIDTH) -> Sample:
    """Each pixel says which one it is: `target` its number (from 1), red its column, green its row."""
    rows, columns = np.mgrid[:height, :width].astype(np.float32)
    sparse = torch.zeros(1, height, width)
    sparse[0, height // 2, width // 2] = 1.0
    return Sample(
        image=torch.from_numpy(np.stack([columns / (width - 1), rows / (height - 1), 0 * rows])),
        sparse=sparse,
        target=torch.from_numpy(1 + rows * width + columns)[None],
        intrinsics=torch.tensor([[100.0, 0, 0.47 * width], [0, 95.0, 0.55 * height], [0, 0, 1]]),
        name="labelled",
    )


def rays(sample: Sample, x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """[2, N]: x/z and y/z of pixels."""
    k = sample.intrinsics.double().numpy()
    return np.stack([(x - k[0, 2]) / k[0, 0], (y - k[1, 2]) / k[1, 1]])


def compare(before: Sample, after: Sample) -> tuple[np.ndarray, np.ndarray]:
    """Rays [2, N] of all pixels after a step that came from inside the frame, and of where they came from."""
    label = after.target[0].numpy()
    y, x = np.nonzero(label > 0)
    number = label[y, x].round().astype(int) - 1
    width = before.image.shape[-1]
    return rays(after, x, y), rays(before, number % width, number // width)


def pixels_off(before: Sample, after: Sample) -> np.ndarray:
    """[2, N] difference of the rays in pixels of the frame before."""
    new, old = compare(before, after)
    return (new - old) * np.array([[100.0], [95.0]])


def test_colours_lie_on_the_pixels_of_their_target() -> None:
    """Where colour is smooth, the column it says is on average the column of the target beside it."""
    sample = labelled()
    for degrees in (0.0, 4.0):
        for seed in range(6):
            moved = VariedAugmentation(
                height=60, width=80, degrees=degrees, flip=0, depth_variation=0, jitter=0, grey=0
            )(sample, np.random.default_rng(seed))
            label = moved.target[0].numpy()
            inner = np.zeros_like(label, dtype=bool)
            inner[4:-4, 4:-4] = label[4:-4, 4:-4] > 0
            number = label[inner].astype(int) - 1
            colour = moved.image.numpy()[:, inner] + 0.5 / 255  # PIL rounds down
            column = colour[0] * (WIDTH - 1) - number % WIDTH
            row = colour[1] * (HEIGHT - 1) - number // WIDTH
            assert abs(column.mean()) < 0.12
            assert abs(row.mean()) < 0.12
            assert np.abs(column).max() < 1.2
            assert np.abs(row).max() < 1.2


@pytest.mark.parametrize("size", [(60, 80), (90, 120), (40, 110), (150, 130), (20, 30)])
@pytest.mark.parametrize("native", [0.0, 1.0])
def test_varied_frames_keep_their_rays(size: tuple[int, int], native: float) -> None:
    """Without a turn: no pixel off by more than the nearest one, and none off on average."""
    sample, biases, offsets = labelled(), [], set()
    for seed in range(8):
        moved = VariedAugmentation(
            height=size[0], width=size[1], native=native, degrees=0, flip=0, depth_variation=0
        )(sample, np.random.default_rng(seed))
        off = pixels_off(sample, moved)
        assert tuple(moved.image.shape) == (3, *size)
        cover = max(size[0] / HEIGHT, size[1] / WIDTH)
        twice = 1 / (1.5 * cover) if cover < 0.5 and not native else 0.0  # rounded once more on the way
        assert np.abs(off).max() <= 0.51 * (1 + twice)
        biases.append(off.mean(axis=1))
        offsets.add(tuple(moved.intrinsics[:2, 2].tolist()))
        assert float((moved.target > 0).float().mean()) > 0.97, "the frame is covered"
    assert np.abs(np.mean(biases, axis=0)).max() < 0.04 + 0.2 * twice
    assert len(offsets) > 1 or size == (HEIGHT, WIDTH)


@pytest.mark.parametrize("size", [(60, 80), (45, 80), (120, 130), (20, 30)])
def test_the_edges_of_a_result_lie_inside_the_frame_and_on_it_where_they_just_cover(
    size: tuple[int, int],
) -> None:
    """Edges are half a pixel beyond the centres of the outermost pixels, before and after."""
    sample = labelled()
    before, full = sample.intrinsics.double().numpy(), np.array([WIDTH, HEIGHT])
    for seed in range(8):
        for zoom in (1.0, 1.5):
            moved = VariedAugmentation(height=size[0], width=size[1], zoom=zoom, degrees=0, flip=0)(
                sample, np.random.default_rng(seed)
            )
            after = moved.intrinsics.double().numpy()
            low, high = (
                (edge - after[:2, 2]) / after.diagonal()[:2] * before.diagonal()[:2] + before[:2, 2]
                for edge in (np.array([-0.5, -0.5]), np.array([size[1], size[0]]) - 0.5)
            )
            assert (low > -0.501).all()
            assert (high < full - 0.499).all()
            if zoom == 1:
                tight = int(size[0] * WIDTH > size[1] * HEIGHT)  # the axis that the result just covers
                assert low[tight] == pytest.approx(-0.5, abs=1e-3)
                assert high[tight] == pytest.approx(full[tight] - 0.5, abs=1e-3)


def test_a_turn_is_a_roll_about_the_optical_axis() -> None:
    """With square pixels, one rotation takes all old rays to the new ones."""
    sample = labelled()
    sample.intrinsics[1, 1] = 100.0
    angles = []
    for seed in range(12):
        moved = VariedAugmentation(height=60, width=80, degrees=5, zoom=1.3, flip=0, depth_variation=0)(
            sample, np.random.default_rng(seed)
        )
        new, old = compare(sample, moved)
        a, b = (new * old).sum(), (new[1] * old[0] - new[0] * old[1]).sum()
        angle = np.arctan2(b, a)
        turn = np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])
        off = 100 * (new - turn @ old)
        assert np.abs(off).max() < 0.8
        assert np.abs(off.mean(axis=1)).max() < 0.08
        angles.append(np.degrees(angle))
    assert -5.1 < min(angles) < -2
    assert 2 < max(angles) < 5.1


def test_a_flip_mirrors_rays() -> None:
    sample = labelled()
    for flip in (0.0, 1.0):
        moved = VariedAugmentation(height=60, width=80, degrees=0, flip=flip, depth_variation=0)(
            sample, np.random.default_rng(0)
        )
        new, old = compare(sample, moved)
        assert np.abs((new[0] - (-1 if flip else 1) * old[0]) * 100).max() < 0.51
        assert np.abs((new[1] - old[1]) * 95).max() < 0.51


def test_the_kitti_crop_keeps_rays_and_leaves_the_sky() -> None:
    sample, tops = labelled(), set()
    for seed in range(30):
        moved = KittiAugmentation(height=60, width=70, top_margin=20)(sample, np.random.default_rng(seed))
        new, old = compare(sample, moved)
        sign = np.sign((new[0] * old[0]).sum())  # mirrored or not
        assert np.allclose(new[0], sign * old[0], atol=1e-5)
        assert np.allclose(new[1], old[1], atol=1e-5)
        first = int(moved.target[0].min()) - 1
        tops.add(first // WIDTH)
        assert tuple(moved.target.shape) == (1, 60, 70)
    assert min(tops) == 20
    assert max(tops) == 30
    low = KittiAugmentation(height=80, width=120, top_margin=20)(sample, np.random.default_rng(0))
    assert int(low.target[0].min() - 1) // WIDTH == 10  # a frame too low for the margin


def test_the_nyu_recipe_scales_intrinsics_with_the_picture() -> None:
    """It leaves the half pixel and the roll out, as released: within half a pixel without a turn."""
    sample = labelled(240, 320)
    smooth = Sample(
        image=sample.image,
        sparse=sample.sparse,
        target=(2 + sample.image[:1]).contiguous(),  # 2 m + column / 319
        intrinsics=sample.intrinsics,
        name="smooth",
    )
    sizes, factors = [], []
    for seed in range(12):
        recipe = NyuAugmentation(degrees=0, jitter=0, points=77)
        moved = recipe(smooth, np.random.default_rng(seed))
        assert tuple(moved.image.shape) == (3, 228, 304)
        assert int((moved.sparse > 0).sum()) == 77
        measured = moved.sparse > 0
        assert torch.equal(moved.sparse[measured], moved.target[measured])
        column = moved.image[0, 100].numpy() * 319
        x = np.arange(304)
        away = (x - float(moved.intrinsics[0, 2])) / float(moved.intrinsics[0, 0])
        back = (column - float(smooth.intrinsics[0, 2])) / 100.0
        sign = np.sign((away * back).sum())
        assert np.abs(away - sign * back).max() * 100 < 1.9  # 8 bits of colour for 320 columns
        assert np.abs((away - sign * back).mean()) * 100 < 0.8
        factors.append(float(moved.target[0, 100].mean() / (2 + moved.image[0, 100].mean())))
        sizes.append(float(moved.intrinsics[0, 0]) / 100.0)
    assert 1 <= min(sizes) < 1.15
    assert 1.3 < max(sizes) <= 1.5
    assert 0.6 <= min(factors) < 0.8
    assert 1.2 < max(factors) <= 1.4


def test_depths_grow_by_the_factor_only() -> None:
    sample = labelled()
    plain = VariedAugmentation(height=60, width=80, flip=0, depth_variation=0.0)
    grown = VariedAugmentation(height=60, width=80, flip=0, depth_variation=0.4)
    factors = []
    for seed in range(20):
        one, other = (recipe(sample, np.random.default_rng(seed)) for recipe in (plain, grown))
        assert torch.equal(one.image, other.image)
        assert torch.equal(one.intrinsics, other.intrinsics)
        known = one.target > 0
        ratio = other.target[known] / one.target[known]
        assert float(ratio.max() - ratio.min()) < 1e-5
        factors.append(float(ratio.mean()))
    assert 0.6 <= min(factors) < 0.75
    assert 1.25 < max(factors) <= 1.4


# --- pixel maps --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("size", [(45, 60), (180, 240), (91, 119), (30, 240)])
def test_a_change_of_size_keeps_rays(size: tuple[int, int]) -> None:
    sample = labelled()
    moved = geometry.resize(sample, *size)
    off = pixels_off(sample, moved)
    assert np.abs(off).max() <= 0.51
    assert np.abs(off.mean(axis=1)).max() <= 0.01 + 0.5 * (
        size[0] * 2 == HEIGHT
    )  # ties of halving go one way
    k = moved.intrinsics.double().numpy()
    for axis, length in enumerate((WIDTH, HEIGHT)):  # colour says where a pixel came from
        colour = moved.image[axis].numpy().mean(axis=axis) * (length - 1)
        ray = (np.arange(len(colour)) - k[axis, 2]) / k[axis, axis]
        back = ray * float(sample.intrinsics[axis, axis]) + float(sample.intrinsics[axis, 2])
        # 8 bits of colour, and PIL rounds ties up
        assert abs((colour - back)[5:-5].mean()) < (0.15 if len(colour) < length else 0.3)
    there = np.argwhere(moved.sparse[0].numpy() > 0)
    assert len(there) == 1
    back = (there[0] + 0.5) * np.array([HEIGHT / size[0], WIDTH / size[1]]) - 0.5
    assert (
        np.abs(back - [HEIGHT // 2, WIDTH // 2]).max() <= 0.5 * max(HEIGHT / size[0], WIDTH / size[1]) + 1e-9
    )


def test_crops_and_pads_undo_each_other() -> None:
    sample = labelled()
    padded = geometry.pad(sample, 3, 4, 5, 6)
    assert tuple(padded.target.shape) == (1, HEIGHT + 11, WIDTH + 7)
    assert int((padded.target > 0).sum()) == HEIGHT * WIDTH
    assert torch.equal(padded.image[:, :, 0], padded.image[:, :, 3])
    again = geometry.crop(padded, 5, 3, HEIGHT, WIDTH)
    for one, other in zip(
        (sample.image, sample.sparse, sample.target, sample.intrinsics),
        (again.image, again.sparse, again.target, again.intrinsics),
        strict=True,
    ):
        torch.testing.assert_close(one, other)


# --- colour ------------------------------------------------------------------------------------------------


def test_jitter_of_grey_is_brightness_and_of_nothing_is_nothing() -> None:
    grey = torch.full((3, 4, 5), 0.4)
    factors = []
    for seed in range(60):
        changed = colour_jitter(grey.clone(), np.random.default_rng(seed), 0.3)
        assert float(changed.max() - changed.min()) < 1e-6
        factors.append(float(changed.mean()) / 0.4)
    assert 0.7 <= min(factors) < 0.75
    assert 1.25 < max(factors) <= 1.3
    image = torch.rand(3, 6, 7, generator=torch.Generator().manual_seed(0))
    torch.testing.assert_close(colour_jitter(image.clone(), np.random.default_rng(0), 0.0), image)
    strong = colour_jitter(image.clone(), np.random.default_rng(0), 3.0)
    assert float(strong.min()) >= 0
    assert float(strong.max()) <= 1


def test_jitter_keeps_hues_and_orders() -> None:
    """Every step is an affine map towards grey: grey pixels stay grey, the order of pixels stays."""
    shade = torch.linspace(0.3, 0.6, 20).expand(3, 4, 20).contiguous()
    for seed in range(20):
        changed = colour_jitter(shade.clone(), np.random.default_rng(seed), 0.4)
        assert float((changed[0] - changed[1]).abs().max()) < 1e-6
        assert bool((changed[0, 0].diff() > 0).all())
    tinted = shade * torch.tensor([1.2, 1.0, 0.7])[:, None, None]
    luma = torch.tensor([0.299, 0.587, 0.114])[:, None, None]
    spread = []
    for seed in range(20):
        changed = colour_jitter(tinted.clone(), np.random.default_rng(seed), 0.2)
        colour = changed - (luma * changed).sum(0)
        before = tinted - (luma * tinted).sum(0)
        ratio = colour / before
        assert float(ratio.std()) < 0.02
        spread.append(float(ratio.mean()))
    assert min(spread) < 0.85
    assert max(spread) > 1.15


def test_principal_colour_noise_shifts_along_the_colours_there_are() -> None:
    line = torch.linspace(0.3, 0.7, 50)
    direction = torch.tensor([0.5, 1.0, 0.2])
    image = (0.2 + direction[:, None] * line)[:, None].expand(3, 10, 50).contiguous()
    lengths = []
    for seed in range(300):
        shift = (principal_colour_noise(image, np.random.default_rng(seed), 0.1) - image).mean(
            dim=(1, 2)
        ) + 0.5 / 255
        along = float((shift * direction).sum() / direction.norm())
        across = shift - along * direction / direction.norm()
        assert float(across.abs().max()) < 2 / 255
        lengths.append(along)
    wanted = 0.1 * float(line.std() * direction.norm())  # deviation × √eigenvalue
    assert float(np.std(lengths)) == pytest.approx(wanted, rel=0.15)


def test_a_frame_turns_about_its_middle() -> None:
    """Without zoom, the pixel in the middle stays where it is, however far the picture turns."""
    before = labelled(61, 81)
    turning = VariedAugmentation(
        height=61, width=81, zoom=1.0, native=0.0, degrees=30.0, flip=0.0, jitter=0.0, grey=0.0,
        depth_variation=0.0,
    )  # fmt: skip
    turned = [turning(before, np.random.default_rng(seed)).target[0] for seed in range(8)]
    assert all(target[30, 40] == before.target[0, 30, 40] for target in turned)
    assert sum(bool(target[30, 0] != before.target[0, 30, 0]) for target in turned) > 4
