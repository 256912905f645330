"""The reach of one measurement, where it is known."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from gbpn import Sample
from gbpn.config import named
from gbpn.evaluate import influence
from gbpn.evaluate.methods import method_entry
from gbpn.evaluate.settings import Setting
from gbpn.model.cost import FLOPS_PER_MESSAGE, messages


@pytest.fixture
def wall() -> Sample:
    """A grey wall with a column of measurements at x = 4 and one at x = 24, y = 10."""
    sparse = torch.zeros(1, 20, 32)
    sparse[0, :, 4], sparse[0, 10, 24] = 2.0, 3.0
    camera = torch.tensor([[30.0, 0, 16], [0, 30, 10], [0, 0, 1]])
    return Sample(image=torch.full((3, 20, 32), 0.5), sparse=sparse, intrinsics=camera, name="wall")


def test_the_nearest_point_has_its_cell_and_no_more(wall: Sample) -> None:
    assert influence.central_measurement(wall) == (10, 24)
    found = {
        one.method: one.values for one in influence.influences(wall, [method_entry("nearest")], Setting())
    }
    cell = found["nearest"]
    assert set(np.unique(cell.round(4))) == {0.0, 1.0}
    assert cell[10, 24] == pytest.approx(1)
    assert cell[10, 4] == 0


def test_belief_propagation_reaches_all_and_local_steps_as_many_pixels(wall: Sample) -> None:
    found = influence.influences(wall, [method_entry("gbp_handmade")], Setting())
    told = {one.method: influence.reach(one, 10, 24) for one in found}
    by_hand = next(one for one in found if one.method == "gbp_handmade, 1 iteration")
    assert (by_hand.values[:, 6:] > 0).mean() > 0.99
    local = next(one for one in found if one.method.startswith("local"))
    rows, columns = np.nonzero(local.values > 0)
    assert max(abs(rows - 10).max(), abs(columns - 24).max()) <= 18
    assert int(told["local scheme, 18 steps"]["farthest [pixels]"]) <= 18 * 2**0.5
    assert local.values[10, 24] == 1
    picture = influence.picture(wall, found)
    assert picture.shape[2] == 3


def test_steps_are_convex_and_one_step_is_one_ring() -> None:
    image = torch.rand(3, 9, 11, generator=torch.Generator().manual_seed(0))
    value = influence.spread(image, 4, 5, influence._RING, 8)
    assert value.min() >= 0
    assert value.max() <= 1 + 1e-6


def test_messages_are_those_of_the_published_network() -> None:
    count = messages(named("gbpn-2"), 256, 320)
    assert count == 13 * (12 + 12) * 256 * 320
    assert FLOPS_PER_MESSAGE * count / 1e9 == pytest.approx(0.26, abs=0.005)  # as the paper prints
    assert messages(named("v3"), 10, 10) == 3 * 4 * 100
    assert messages(named("v1"), 10, 10) == 0
