"""Patterns: counts, seeds, subsets, nesting."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from gbpn.camera import pinhole as camera
from gbpn.errors import InputError
from gbpn.sample import Sample
from gbpn.sensors import corruption, patterns, sampling, selections


def scene(height: int = 48, width: int = 64, seed: int = 0, known: float = 0.8) -> Sample:
    """A random textured frame with holes in its depth."""
    rng = np.random.default_rng(seed)
    depth = rng.uniform(1, 10, (1, height, width)) * (rng.random((1, height, width)) < known)
    return Sample(
        image=torch.from_numpy(rng.random((3, height, width), dtype=np.float32)),
        sparse=torch.zeros(1, height, width),
        target=torch.from_numpy(depth.astype(np.float32)),
        intrinsics=camera.default_intrinsics(height, width),
        name=f"scene {seed}",
    )


def generator(seed: int = 0) -> np.random.Generator:
    return np.random.default_rng(seed)


SPECS = [f"{name}:{value:g}" for name, (value, _, _) in sampling.PATTERNS.items() if name != "given"]


@pytest.mark.parametrize("spec", SPECS)
@pytest.mark.parametrize("size", [(1, 1), (1, 7), (33, 65), (48, 64)])
def test_a_pattern_keeps_values_and_depends_on_its_seed_only(spec: str, size: tuple[int, int]) -> None:
    sample = scene(*size)
    if spec.startswith("fixed"):
        spec = f"fixed:{min(500, size[0] * size[1])}"
    before = sample.target.clone()
    first = sampling.sparsify(sample, spec, generator(3)).sparse
    again = sampling.sparsify(sample, spec, generator(3)).sparse
    assert torch.equal(first, again)
    assert torch.equal(sample.target, before), "the input was changed"
    kept = first > 0
    if spec.startswith(("tof", "blocks", "centres")):
        low, high = before[before > 0].min(), before.max()
        assert bool(((first[kept] >= low - 1e-5) & (first[kept] <= high + 1e-5)).all())
    else:
        assert torch.equal(first[kept], before[kept])


@given(count=st.integers(1, 4000), seed=st.integers(0, 2**32 - 1))
@settings(max_examples=30, deadline=None)
def test_random_points_are_as_many_as_wanted_or_as_there_are(count: int, seed: int) -> None:
    depth = scene(seed=1).target
    kept = patterns.random_points(depth, generator(seed), count)
    assert int((kept > 0).sum()) == min(count, int((depth > 0).sum()))


def test_other_seeds_give_other_points() -> None:
    depth = scene().target
    assert not torch.equal(
        patterns.random_points(depth, generator(0), 100), patterns.random_points(depth, generator(1), 100)
    )


def test_the_fixed_positions_are_the_legacy_generators_and_take_empty_pixels_too() -> None:
    depth = torch.ones(1, 228, 304)
    kept = patterns.fixed_positions(depth, 500)
    expected = np.random.RandomState(0).choice(228 * 304, 500, replace=False)
    assert set(np.flatnonzero(kept.numpy())) == set(expected)
    depth.view(-1)[torch.from_numpy(expected[:40])] = 0
    assert int((patterns.fixed_positions(depth, 500) > 0).sum()) == 460


@pytest.mark.parametrize("rule", ["elevation", "lidar"])
def test_scan_lines_are_nested(rule: str) -> None:
    sample = scene(known=1.0)
    by_lines = [
        sampling.sparsify(sample, f"{rule}:{lines}", generator()).sparse > 0 for lines in (64, 32, 16, 8)
    ]
    for more, fewer in pairwise(by_lines):
        assert bool((fewer <= more).all())
        assert 0 < int(fewer.sum()) < int(more.sum())


def test_released_scan_lines_are_disjoint_subsets() -> None:
    sample = scene(known=1.0)
    by_lines = [sampling.sparsify(sample, f"lines:{n}", generator()).sparse > 0 for n in (32, 16, 8)]
    assert all(int(mask.sum()) > 0 for mask in by_lines)
    assert int(torch.stack(by_lines).sum(dim=0).max()) == 1
    assert torch.equal(patterns.pitch_lines(sample.target, sample.intrinsics, 64), sample.target)


def test_released_scan_lines_by_hand() -> None:
    # One column straight ahead (x = cx): pitch = atan((y − cy)/fy), spaced to give labels 0 … 64 exactly.
    pitch = np.linspace(-0.4, 0.4, 65)
    depth = torch.zeros(1, 1001, 3)
    rows = np.rint(500 + 1000 * np.tan(pitch)).astype(int)
    depth[0, rows, 1] = 5.0
    intrinsics = torch.tensor([[1000.0, 0, 1], [0, 1000.0, 500], [0, 0, 1]])
    kept = patterns.pitch_lines(depth, intrinsics, 16)
    assert np.flatnonzero(kept[0, :, 1].numpy()).tolist() == rows[2::4].tolist()


def test_the_virtual_lidar_has_as_many_rows_of_points_as_beams() -> None:
    depth = torch.full((1, 400, 3), 5.0)
    intrinsics = torch.tensor([[500.0, 0, 1], [0, 500.0, 100], [0, 0, 1]])
    kept = patterns.rotating_lidar(depth, generator(), intrinsics, 16, azimuth_step=0.001)
    assert len(np.flatnonzero(kept[0, :, 1].numpy())) == 16
    assert not bool(patterns.rotating_lidar(depth, generator(), intrinsics, reach=4.0).any())


def test_corners_find_corners() -> None:
    image = torch.zeros(3, 40, 40)
    image[:, 10:30, 10:30] = 1
    kept = patterns.corners(torch.ones(1, 40, 40), generator(), image, 4)
    places = np.argwhere(kept[0].numpy() > 0)
    assert len(places) == 4
    for corner in ([10, 10], [10, 29], [29, 10], [29, 29]):
        assert np.abs(places - corner).max(axis=1).min() <= 2


def test_grid_spacing_and_zones() -> None:
    depth = torch.ones(1, 30, 40)
    assert int(patterns.regular_grid(depth, generator(), 10).sum()) == 12
    depth[:, :15, :20] = 3
    zones = patterns.time_of_flight(depth, (2, 2))
    assert sorted(zones[zones > 0].tolist()) == [1, 1, 1, 3]


@given(share=st.floats(0.05, 0.9), seed=st.integers(0, 1000))
@settings(max_examples=20, deadline=None)
def test_holes_remove_about_the_share(share: float, seed: int) -> None:
    left = float((patterns.holes(torch.ones(1, 60, 80), generator(seed), share) > 0).float().mean())
    assert 1 - share - 0.25 <= left <= 1 - share + 1e-6  # a mean in float32


@given(theta=st.floats(0, 0.3), seed=st.integers(0, 1000))
@settings(max_examples=20, deadline=None)
def test_noise_stays_within_theta(theta: float, seed: int) -> None:
    sparse = scene().target
    noisy = corruption.relative_noise(sparse, generator(seed), theta)
    assert bool(((noisy - sparse).abs() <= theta * sparse * (1 + 1e-5) + 1e-6).all())
    assert torch.equal(noisy > 0, sparse > 0)


def test_misalignment_moves_everything_and_loses_only_the_border() -> None:
    sparse = scene().target
    moved = corruption.misalignment(sparse, 3, -2)
    assert torch.equal(moved[:, 3:, :-2], sparse[:, :-3, 2:])
    assert not bool(moved[:, :3].any())
    assert not bool(moved[:, :, -2:].any())
    assert torch.equal(corruption.misalignment(sparse, 0, 0), sparse)
    assert not bool(corruption.misalignment(sparse, 100, 0).any())


def test_outliers_and_missing_touch_their_share() -> None:
    sparse = torch.full((1, 100, 100), 2.0)
    assert int((corruption.outliers(sparse, generator(), 0.1) != 2).sum()) == pytest.approx(1000, abs=150)
    assert int((corruption.missing(sparse, generator(), 0.3) == 0).sum()) == pytest.approx(3000, abs=200)


@given(seed=st.integers(0, 10_000))
@settings(max_examples=60, deadline=None)
def test_the_mixture_always_measures_something_and_never_beyond_the_frame(seed: int) -> None:
    sample = scene(seed=seed)
    measured = sampling.mixture(sample, generator(seed)).sparse
    assert bool((measured > 0).any())
    assert torch.equal(measured, sampling.mixture(sample, generator(seed)).sparse)


def test_a_mixture_without_others_is_random_points_only() -> None:
    sample = scene()
    counts = {
        int((sampling.mixture(sample, generator(seed), (20, 40), 0.0, 0.0).sparse > 0).sum())
        for seed in range(30)
    }
    assert counts <= set(range(20, 41))
    assert len(counts) > 5


def test_empty_depth_gives_no_measurement() -> None:
    empty = scene(known=0.0)
    for spec in SPECS:
        assert not bool(sampling.sparsify(empty, spec, generator()).sparse.any()), spec


@pytest.mark.parametrize("spec", ["dots:5", "points:many", "points:5+nosie:1", "points:-1", "grid:nan"])
def test_a_wrong_spec_is_explained(spec: str) -> None:
    with pytest.raises(InputError, match=r"choose from|number"):
        sampling.parse(spec)


def test_lines_must_divide_sixty_four() -> None:
    with pytest.raises(InputError, match="divide 64"):
        patterns.elevation_lines(torch.ones(1, 4, 4), torch.eye(3), 48)


def test_selections_keep_what_their_names_say() -> None:
    rng = np.random.default_rng(0)
    sparse = torch.from_numpy(rng.uniform(1, 9, (1, 40, 60)).astype(np.float32))
    near = selections.nearest_share(sparse, 0.25)
    assert float((near > 0).float().mean()) == pytest.approx(0.25, abs=0.01)
    assert near[near > 0].max() < sparse[near == 0].min()
    side = selections.one_side(sparse, rng, 0.3)
    assert float((side > 0).float().mean()) == pytest.approx(0.3, abs=0.02)
    corner = selections.one_corner(sparse, rng, 0.5)[0] > 0
    assert int(corner.sum()) == 20 * 30
    assert corner[[0, 0, -1, -1], [0, -1, 0, -1]].sum() == 1
    image = torch.zeros(3, 40, 60)
    image[:, :, 30:] = torch.rand(3, 40, 30)
    assert not selections.dark_points(sparse, rng, image, 100)[..., 45:].any()
    textured = selections.textured_points(sparse, rng, image, 100)
    assert int((textured > 0).sum()) == 100
    assert not textured[..., :29].any()
    lines = selections.rows(sparse, rng, 4)[0] > 0
    assert lines.any(1).sum() == 4
    assert (lines.all(1) == lines.any(1)).all()
