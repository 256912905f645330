"""How surfaces lie, how sharp edges are, what pattern lies on them: by shapes whose answer is known."""

from __future__ import annotations

import math

import pytest
import torch
from torch import Tensor

from gbpn.metrics.surfaces import SURFACES, depth_edges, map_errors, surface_errors

CAMERA = torch.tensor([[[60.0, 0, 31.5], [0, 60.0, 23.5], [0, 0, 1]]])
HEIGHT, WIDTH = 48, 64


def wall(tilt: float = 0.0) -> Tensor:
    """[1, 1, H, W]: a wall three metres away, turned by `tilt` degrees about the vertical axis."""
    x = (torch.arange(WIDTH, dtype=torch.float64) - CAMERA[0, 0, 2]) / CAMERA[0, 0, 0]
    across = 3 / (1 + math.tan(math.radians(tilt)) * x)
    return across.expand(1, 1, HEIGHT, WIDTH).clone()


def of(prediction: Tensor, target: Tensor) -> dict[str, float]:
    return {name: float(value) for name, value in surface_errors(prediction, target, CAMERA).items()}


@pytest.mark.parametrize("tilt", [5.0, 20.0, -35.0])
def test_the_error_of_the_normal_is_the_tilt(tilt: float) -> None:
    found = of(wall(tilt), wall())
    assert list(found) == list(SURFACES)
    assert found["normal_degrees"] == pytest.approx(abs(tilt), rel=0.01)
    assert of(2 * wall(tilt), wall())["normal_degrees"] == pytest.approx(abs(tilt), rel=0.01)


def test_errors_at_edges_and_away_from_them_are_kept_apart() -> None:
    target = wall()
    target[..., 32:] = 5.0
    near = depth_edges(target)[0, 0, 10]
    assert near.nonzero().flatten().tolist() == list(range(29, 35))
    wrong = target.clone()
    wrong[..., 30] += 0.5
    wrong[..., 10] += 0.2
    found = of(wrong, target)
    assert found["rmse_edges"] == pytest.approx((0.5**2 / 6) ** 0.5, rel=1e-6)
    assert found["rmse_away"] == pytest.approx((0.2**2 / (WIDTH - 6)) ** 0.5, rel=1e-6)


def test_a_pattern_is_found_at_its_own_period() -> None:
    draw = torch.Generator().manual_seed(1)
    target = wall() * (1 + 1e-4 * torch.randn(1, 1, HEIGHT, WIDTH, generator=draw, dtype=torch.float64))
    columns = torch.arange(WIDTH)
    two = of(target * (1 + 0.01 * (-1.0) ** columns), target)
    four = of(target * (1 + 0.01 * torch.sin(columns * math.pi / 2)), target)
    assert of(target, target)["pattern_2"] == pytest.approx(1)
    assert two["pattern_2"] > 50
    assert two["pattern_4"] < 1.5
    assert four["pattern_4"] > 50
    assert four["pattern_2"] < 0.8 * four["pattern_4"]


def test_what_is_not_known_does_not_count() -> None:
    target, wrong = wall(), wall(10)
    target[..., :20] = 0
    wrong[..., 50:] = torch.nan
    spoiled = wrong.clone()
    spoiled[..., :20] = 99
    assert of(wrong, target) == pytest.approx(of(spoiled, target), nan_ok=True)
    nothing = of(wrong, torch.zeros_like(target))
    assert all(math.isnan(value) for value in nothing.values())


def test_a_map_has_no_height() -> None:
    target = wall(25)
    exact = {k: float(v) for k, v in map_errors(target.log() - 3.3, target, CAMERA).items()}
    assert exact["rel"] == pytest.approx(0, abs=1e-6)
    assert exact["correlation"] == pytest.approx(1)
    assert exact["normal_degrees"] == pytest.approx(0, abs=0.1)
    flat = {k: float(v) for k, v in map_errors(torch.zeros_like(target), target, CAMERA).items()}
    assert flat["normal_degrees"] == pytest.approx(25, rel=0.01)
    assert flat["rel"] > 0.05
