"""The unit of depth: errors, other units and medians follow from what `into` and `out` do to a depth."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from gbpn.measurements import unit as depth_unit
from gbpn.measurements.unit import DepthUnit

KINDS = pytest.mark.parametrize("kind", ["metric", "median", "log"])


def depths(seed: int = 0, middle: float = 3.0) -> Tensor:
    """[2, 1, 5, 7] metres, each frame with a scale of its own and pixels that were not measured."""
    draw = torch.rand(2, 1, 5, 7, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
    scale = torch.tensor([middle, 40 * middle], dtype=torch.float64).view(2, 1, 1, 1)
    return torch.where(draw > 0.4, draw, 0.0) * scale


@KINDS
def test_noise_is_what_a_depth_moves_by_in_the_unit(kind: str) -> None:
    depth = depths()
    unit, measured = DepthUnit.of(kind, depth), depth > 0
    std = 1e-6 * (1 + depth.flip(-1))
    moved = (unit.into(depth + std) - unit.into(depth)).square()
    torch.testing.assert_close(unit.variance(depth, std)[measured], moved[measured], rtol=1e-4, atol=0)
    assert unit.variance(depth, std).isfinite().all()  # also where nothing is measured


@KINDS
def test_depth_relative_to_another_unit_is_that_depth_over_its_metres(kind: str) -> None:
    depth = depths()
    unit, other = DepthUnit.of(kind, depth), DepthUnit.of(kind, depths(1, middle=0.7))
    seen, measured = unit.relative_to(other, unit.into(depth)), depth > 0
    wanted = depth if kind == "metric" else depth / other.metres
    torch.testing.assert_close(seen[measured], wanted[measured])
    torch.testing.assert_close(
        unit.relative_to(unit, unit.into(depth))[measured], (depth / unit.metres)[measured]
    )


@KINDS
def test_what_was_not_measured_is_zero_in_every_unit(kind: str) -> None:
    depth = depths()
    inside = DepthUnit.of(kind, depth).into(depth)
    assert not inside[depth == 0].any()


@pytest.mark.parametrize("kind", ["median", "log"])
def test_one_unit_is_the_median_measurement(kind: str) -> None:
    depth = depths()
    for index, frame in enumerate(depth):
        values = frame[frame > 0]
        metres = DepthUnit.of(kind, depth).metres[index]
        assert 2 * int((values < metres).sum()) <= len(values) >= 2 * int((values > metres).sum())
        assert bool((values == metres).any())


@given(present=st.lists(st.lists(st.booleans(), min_size=6, max_size=6), min_size=1, max_size=4))
def test_the_median_by_sorting_is_the_median(present: list[list[bool]]) -> None:
    """What other runtimes compute; rows of any number of values, also none."""
    there = torch.tensor(present)
    values = torch.where(there, torch.rand(there.shape, dtype=torch.float64) + 0.1, torch.nan)
    wanted = values.nanmedian(dim=1).values.nan_to_num(1.0)
    frames = values[:, None, None]  # [B, 1, 1, W]
    assert torch.equal(depth_unit._medians(frames), wanted)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(depth_unit, "values_are_known", lambda: False)
        assert torch.equal(depth_unit._medians(frames), wanted)
