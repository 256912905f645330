"""The doubt that surroundings leave: laws of its features and of the answers that carry it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import gbpn
from gbpn.distribution import DepthDistribution, SigmaCalibration
from gbpn.errors import CheckpointError
from gbpn.model.loading import load
from gbpn.sigma.doubt import with_doubt
from gbpn.sigma.surroundings import FEATURES, HIDDEN, doubt, factors, features, sound
from gbpn.train import surroundings_calibration
from gbpn.weights.files import save


def numbers(seed: int = 0, last: float = 1.0) -> tuple[tuple[float, ...], ...]:
    """Of a head that was not fitted."""
    rng, count = np.random.default_rng(seed), len(FEATURES)
    sizes = (count * HIDDEN, HIDDEN, HIDDEN * HIDDEN, HIDDEN, HIDDEN, 1)
    layers = [rng.normal(0, 0.3, size) for size in sizes]
    layers[-2] *= last
    layers[-1] *= last
    return tuple(tuple(map(float, part)) for part in (np.zeros(count), np.ones(count), *layers))


Maps = tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, np.ndarray]


def scene(height: int, width: int, points: int, seed: int = 0) -> Maps:
    """mean, precision, log σ over depth, measurements and picture of a made-up answer."""
    rng = np.random.default_rng(seed)
    mean = (2 + rng.random((height, width)) + (np.arange(width) > width // 2)).astype(np.float32)
    sparse = np.zeros((height, width), np.float32)
    at = rng.choice(height * width, min(points, height * width), replace=False)
    sparse.reshape(-1)[at] = mean.reshape(-1)[at]
    precision, picture = (rng.random((height, width)).astype(np.float32) for _ in range(2))
    return mean, precision, np.log(precision + 0.1), sparse, picture


SIZES = pytest.mark.parametrize("size", [(1, 1), (1, 7), (33, 65), (40, 56)])


@SIZES
def test_features_have_a_value_for_every_cell(size: tuple[int, int]) -> None:
    given_ = scene(*size, 5)
    found = features(*given_)
    assert found.shape == (len(FEATURES), -(-size[0] // 2), -(-size[1] // 2))
    assert np.isfinite(found).all()
    factor = doubt(*given_, numbers=numbers())
    assert factor.shape == size
    assert factor.dtype == np.float32
    assert ((factor >= 0.1 - 1e-6) & (factor <= 10 + 1e-4)).all()


@settings(max_examples=20, deadline=None)
@given(unit=st.sampled_from([1e-3, 0.3048, 7.0, 1000.0]), seed=st.integers(0, 99))
def test_another_unit_of_depth_changes_nothing(unit: float, seed: int) -> None:
    mean, precision, log_std, sparse, picture = scene(30, 44, 9, seed)
    one = features(mean, precision, log_std, sparse, picture)
    other = features(mean * np.float32(unit), precision, log_std, sparse * np.float32(unit), picture)
    np.testing.assert_allclose(one, other, atol=2e-3)


def test_what_is_far_from_measurements_or_beyond_them_is_told() -> None:
    mean, precision, log_std, sparse, picture = scene(40, 60, 0)
    mean[:], mean[:, 40:] = 2.0, 6.0
    sparse[10, 10], sparse[30, 10] = 2.0, 2.2
    found = dict(zip(FEATURES, features(mean, precision, log_std, sparse, picture), strict=True))
    away = found["distance to the nearest measurement"]
    assert away[5, 5] == 0
    assert away[5, 25] == pytest.approx(np.log1p(40))
    beyond = found["how far beyond all measurements"]
    assert not beyond[:, :19].any()
    assert beyond[5, 25] == pytest.approx(np.log(6 / 2.2), abs=0.01)
    assert (found["change of depth next to the pixel"][:, 19:21] > -1).all()
    assert (found["number of measurements"] == np.float32(np.log(2))).all()


def test_a_flipped_scene_has_flipped_doubt() -> None:
    given_ = scene(40, 56, 30)
    straight = doubt(*given_, numbers=numbers())
    mean, precision, log_std, sparse, picture = (maps[:, ::-1].copy() for maps in given_)
    turned = doubt(mean, precision, log_std, sparse, picture, numbers())
    # of two measurements that are equally near either may be the nearest
    assert np.mean(np.abs(turned[:, ::-1] / straight - 1) < 1e-3) > 0.85
    np.testing.assert_allclose(turned[:, ::-1], straight, rtol=0.1)


def test_a_head_without_weights_leaves_sigma_alone() -> None:
    assert (doubt(*scene(20, 30, 5), numbers=numbers(last=0.0)) == 1).all()
    assert (factors(np.full((len(FEATURES), 3, 4), 9.0), numbers(last=0.0)) == 0).all()


def answer(maps: Maps, around: tuple[tuple[float, ...], ...]) -> DepthDistribution:
    mean, precision, log_std = (torch.from_numpy(one)[None, None] for one in maps[:3])
    ends = SigmaCalibration(knots=(-9.0, 9.0), log_std=(9.0, -9.0), relative=True, surroundings=around)
    return DepthDistribution(
        mean=mean, confidence_logit=-log_std, belief_precision=precision, calibration=ends
    )


def test_doubt_is_a_factor_on_the_stated_sigma_of_each_image() -> None:
    one, two = scene(20, 30, 5), scene(20, 30, 9, seed=1)
    alone = [
        with_doubt(answer(maps, numbers()), torch.from_numpy(maps[3])[None, None], [maps[4]])
        for maps in (one, two)
    ]
    plain = answer(one, ())
    assert with_doubt(plain, torch.from_numpy(one[3])[None, None], [one[4]]) is plain
    assert alone[0].doubt is not None
    torch.testing.assert_close(alone[0].unchecked_std, plain.unchecked_std * alone[0].doubt)
    np.testing.assert_allclose(alone[0].doubt[0, 0].numpy(), doubt(*one, numbers=numbers()), rtol=1e-4)
    both = [torch.from_numpy(np.stack(pair))[:, None] for pair in zip(one, two, strict=True)]
    batch = replace(answer(one, numbers()), mean=both[0], belief_precision=both[1], confidence_logit=-both[2])
    found = with_doubt(batch, both[3], [one[4], two[4]]).doubt
    assert found is not None
    for index in range(2):
        expected = alone[index].doubt
        assert expected is not None
        assert torch.equal(found[index], expected[0])


def test_numbers_that_do_not_fit_are_refused(tmp_path: Path) -> None:
    good = numbers()
    assert sound(good)
    assert not sound(good[:-1])
    assert not sound((*good[:-1], (float("nan"),)))
    assert not sound((good[0], tuple(0.0 for _ in good[1]), *good[2:]))
    model = gbpn.build("small", width=0.25)
    model.calibration = SigmaCalibration(
        knots=(-1.0, 1.0), log_std=(0.0, -1.0), relative=True, surroundings=good
    )
    kept = load(save(model, tmp_path / "good.safetensors")).calibration
    assert kept == model.calibration
    model.calibration = replace(model.calibration, surroundings=good[1:])
    with pytest.raises(CheckpointError, match="surroundings"):
        load(save(model, tmp_path / "bad.safetensors"))


@pytest.mark.parametrize("lines", [False, True])
def test_patterns_are_drawn_from_many(lines: bool) -> None:
    rng = np.random.default_rng(0)
    drawn = {surroundings_calibration.random_pattern(rng, lines).split(":")[0] for _ in range(400)}
    assert drawn == ({"given", "lines"} if lines else drawn)
    assert len(drawn) >= (2 if lines else 7)
