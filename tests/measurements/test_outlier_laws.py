"""Outliers found one pixel at a time, as the settings say it, against the fast form."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from gbpn.distribution import DepthDistribution
from gbpn.measurements.outliers import SETTINGS, OutlierSettings, contradicted, suspects

HEIGHT, WIDTH = 9, 14


def measurements(seed: int, count: int, wild: float, width: int = WIDTH) -> Tensor:
    """[1, 1, H, W]: a wall at 2 m, a share of its points moved up to ten times nearer or farther."""
    draw = torch.Generator().manual_seed(seed)
    place = torch.randperm(HEIGHT * width, generator=draw)[:count]
    moved = torch.rand(count, generator=draw) < wild
    factor = torch.exp(4.6 * torch.rand(count, generator=draw) - 2.3)
    out = torch.zeros(HEIGHT * width)
    out[place] = 2.0 * torch.where(moved, factor, torch.tensor(1.0))
    return out.view(1, 1, HEIGHT, width)


def plainly_suspect(sparse: Tensor, rules: OutlierSettings) -> Tensor:
    """By the words of the settings; where neighbours are equally far, any of them may be the nearest."""
    depth = sparse[0, 0]
    places = torch.nonzero(depth > 0).tolist()
    out = torch.zeros_like(sparse, dtype=torch.bool)
    if len(places) < rules.fewest:
        return out
    lonely = []
    for row, column in places:
        others = [place for place in places if place != [row, column]]
        others.sort(key=lambda place: (place[0] - row) ** 2 + (place[1] - column) ** 2)
        alike = [
            abs(math.log(depth[y, x] / depth[row, column])) < rules.alike
            for y, x in others[: rules.neighbours]
        ]
        if sum(alike) < rules.support:
            lonely.append((row, column))
    if len(lonely) <= rules.most_suspects * len(places):
        for row, column in lonely:
            out[0, 0, row, column] = True
    return out


@given(seed=st.integers(0, 10_000), count=st.integers(18, 60), wild=st.sampled_from([0.05, 0.15, 0.4]))
@settings(max_examples=40)
def test_suspects_are_those_with_too_few_neighbours_alike(seed: int, count: int, wild: float) -> None:
    """On a line of irregular steps no two neighbours are equally far: the order is one."""
    draw = torch.Generator().manual_seed(seed)
    steps = torch.randperm(count, generator=draw).cumsum(0) + 3 * torch.arange(count).square()
    sparse = torch.zeros(1, 1, 1, int(steps.max()) + 1)
    line = measurements(seed, count, wild, width=math.ceil(count / HEIGHT) + 4)
    sparse[0, 0, 0, steps] = line[line > 0][:count]
    rules = replace(SETTINGS, neighbours=4 + seed % 3)
    found = suspects(sparse, rules)
    wanted = plainly_suspect(sparse, rules)
    assert torch.equal(torch.zeros_like(wanted) if found is None else found, wanted)


@pytest.mark.parametrize("count", [SETTINGS.fewest - 1, SETTINGS.fewest])
def test_images_are_tested_from_the_fewest_measurements_on(count: int) -> None:
    sparse = measurements(0, count, 0.0)
    row, column = torch.nonzero(sparse[0, 0])[count // 2].tolist()
    sparse[0, 0, row, column] = 9.0
    found = suspects(sparse)
    assert (found is not None) == (count >= SETTINGS.fewest)


@given(seed=st.integers(0, 10_000))
def test_a_suspect_is_dropped_by_the_words_of_the_settings(seed: int) -> None:
    draw = torch.Generator().manual_seed(seed)
    shape = (2, 1, HEIGHT, WIDTH)
    mean, precision, sparse, chance = (torch.rand(shape, generator=draw) for _ in range(4))
    precision = torch.exp(8 * precision - 6) * (precision > 0.15)  # a part of the image is not reached
    mean = torch.where((precision > 0) | (chance > 0.15), torch.exp(mean), torch.nan)  # or any number there
    sparse = torch.exp(8 * sparse - 4)
    suspect = chance < 0.3
    without = DepthDistribution(mean=mean, confidence_logit=mean, belief_precision=precision)
    dropped = contradicted(sparse, suspect, without)
    for image in range(2):
        reached = precision[image] > 0
        usual, middle = (maps[image][reached].median().item() for maps in (precision, mean))
        for place in torch.nonzero(suspect[image]).tolist():
            at = (image, *place)
            there = bool(precision[at] > 0)
            expected = mean[at].item() if there else middle
            distance = abs(math.log(sparse[at].item() / expected))
            sure = there and precision[at].item() > SETTINGS.sure * usual
            limit = SETTINGS.contradiction if sure else SETTINGS.absurd
            assert bool(dropped[at]) == (distance > limit), (at, distance, limit)
    assert not bool((dropped & ~suspect).any())


def test_where_nothing_is_reached_nothing_is_known_and_nothing_dropped() -> None:
    nothing = torch.full((1, 1, HEIGHT, WIDTH), torch.nan)
    without = DepthDistribution(
        mean=nothing, confidence_logit=nothing, belief_precision=torch.zeros_like(nothing)
    )
    sparse = torch.full_like(nothing, 5.0)
    assert not contradicted(sparse, sparse > 0, without).any()
