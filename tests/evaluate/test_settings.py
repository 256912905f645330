"""Measurements are the same for every method, order and process."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch

from gbpn import Sample
from gbpn.errors import InputError
from gbpn.evaluate.settings import Setting


def dense(name: str = "a") -> Sample:
    depth = torch.rand(1, 30, 40, generator=torch.Generator().manual_seed(0)) + 1
    return Sample(
        image=torch.rand(3, 30, 40, generator=torch.Generator().manual_seed(1)),
        sparse=torch.zeros(1, 30, 40),
        intrinsics=torch.tensor([[30.0, 0, 20], [0, 30, 15], [0, 0, 1]]),
        target=depth,
        name=name,
    )


def test_the_released_protocol_takes_the_same_positions_in_every_frame() -> None:
    first = Setting(points=100).measure(dense("a"))
    other = Setting(points=100).measure(dense("b"))
    assert torch.equal(first.sparse, other.sparse)
    wanted = np.random.RandomState(0).choice(1200, 100, replace=False)
    assert set(np.flatnonzero(first.sparse.numpy())) == set(wanted)
    assert torch.equal(first.sparse[first.sparse > 0], first.target[first.sparse > 0])


def test_seeds_differ_and_repeat() -> None:
    setting = Setting(points=50, noise=0.05)
    assert torch.equal(setting.measure(dense(), 3).sparse, setting.measure(dense(), 3).sparse)
    assert not torch.equal(setting.measure(dense(), 3).sparse, setting.measure(dense(), 4).sparse)


def test_noise_is_relative_and_bounded() -> None:
    clean, noisy = (Setting(points=200, noise=n).measure(dense()).sparse for n in (0.0, 0.03))
    ratio = noisy[clean > 0] / clean[clean > 0]
    assert 0.02 < float((ratio - 1).abs().max()) <= 0.03 + 1e-6
    assert torch.equal(noisy > 0, clean > 0)


def test_a_sensor_keeps_its_own_points() -> None:
    given = Setting(points=300).measure(dense())
    assert torch.equal(Setting().measure(given).sparse, given.sparse)
    fewer = Setting(points=40).measure(given).sparse
    assert int((fewer > 0).sum()) == 40
    assert torch.equal(fewer[fewer > 0], given.sparse[fewer > 0])


def test_lines_thin_out() -> None:
    counts = [int((Setting(lines=n).measure(dense()).sparse > 0).sum()) for n in (8, 16, 32, 64)]
    assert counts == sorted(counts)
    assert counts[0] > 0


def test_any_other_sensor_by_name() -> None:
    assert bool((Setting(pattern="grid:5+missing:0.2").measure(dense()).sparse > 0).any())


def test_settings_name_themselves() -> None:
    assert Setting().key == "as given"
    assert Setting(points=500, noise=0.02).key == "points=500 noise=0.02"
    assert Setting(points=500).describe() == {"points": 500}


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"points": 5, "lines": 8}, "one of points, lines and pattern"),
        ({"noise": 2.0}, "a share in"),
        ({"points": 0}, "at least 1"),
    ],
)
def test_nonsense_is_refused(wrong, message) -> None:
    with pytest.raises(InputError, match=message):
        Setting(**wrong)


def test_nothing_to_measure_is_said() -> None:
    with pytest.raises(InputError, match="no measurement and no ground truth"):
        Setting().measure(replace(dense(), target=None))


def test_the_same_points_at_a_smaller_size() -> None:
    frame = dense()
    whole, half = (Setting(points=40, scale=scale).measure(frame) for scale in (1.0, 0.5))
    assert half.target is not None
    assert half.image.shape[-2:] == half.target.shape[-2:] == (15, 20)
    assert set(half.sparse[half.sparse > 0].tolist()) <= set(whole.sparse[whole.sparse > 0].tolist())
    assert int((half.sparse > 0).sum()) >= 30  # some share a pixel
    assert set(half.target.unique().tolist()) <= set(frame.target.unique().tolist())  # nothing is blurred
    assert half.intrinsics[0, 0] == 15
    scan = Setting(scale=0.5).measure(replace(whole, target=whole.sparse))  # as LiDAR held against LiDAR
    assert torch.equal(scan.target, half.sparse)


def test_options_of_the_data_name_the_setting() -> None:
    setting = Setting(data=(("points", 150),), noise=0.02)
    assert setting.describe() == {"points": 150, "noise": 0.02}
    assert Setting(pattern="tof:8", name="64 zones", frames=3).key == "name=64 zones"
