"""Depth maps smaller than their picture: where their pixels lie, and what their means do to an answer."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch.nn import functional

from gbpn.distribution import DepthDistribution
from gbpn.errors import InputError
from gbpn.measurements.areas import AreaGrid, agreeing, centre_depths, same_view

SIZES = [
    ((4, 6), (20, 30)),
    ((3, 5), (12, 20)),
    ((7, 9), (31, 44)),
    ((5, 5), (5, 5)),
    ((192, 256), (1440, 1920)),
]


@pytest.mark.parametrize(("small", "large"), SIZES)
def test_a_constant_keeps_its_value_and_a_ramp_has_its_value_at_the_centres(small, large) -> None:
    """The half-pixel convention: a ramp's mean over a cell is the ramp at (i + ½)·H/h − ½."""
    grid = AreaGrid.of(small, large)
    y, x = (torch.arange(n, dtype=torch.float64) for n in large)
    ramp = 1 + 0.1 * y[:, None] + 0.01 * x
    rows = (torch.arange(small[0]) + 0.5) * large[0] / small[0] - 0.5
    columns = (torch.arange(small[1]) + 0.5) * large[1] / small[1] - 0.5
    wanted = 1 + 0.1 * rows[:, None] + 0.01 * columns
    # a pixel that two cells share is of one depth all over: a small part of a pixel's step, 0.1, is lost
    torch.testing.assert_close(grid.means(ramp), wanted.double(), rtol=0, atol=5e-3)
    row, column = grid.centres
    assert (row[:, 0] - rows).abs().max() <= 0.5 + 1e-6
    assert (column - columns).abs().max() <= 0.5 + 1e-6


def test_whole_factors_are_average_pooling() -> None:
    maps = torch.rand(2, 1, 20, 30)
    torch.testing.assert_close(AreaGrid.of((4, 6), (20, 30)).means(maps), functional.avg_pool2d(maps, 5))


@given(st.integers(1, 9), st.integers(1, 9), st.integers(0, 25), st.integers(0, 25))
def test_every_cell_has_a_pixel_of_its_own(rows: int, columns: int, more: int, wider: int) -> None:
    grid = AreaGrid.of((rows, columns), (rows + more, columns + wider))
    cells = torch.arange(1.0, rows * columns + 1).view(rows, columns)
    assert torch.equal(grid.at_centres(grid.placed(cells)), cells)
    assert int((grid.placed(cells) > 0).sum()) == rows * columns


def test_cells_finer_than_pixels_are_refused() -> None:
    with pytest.raises(InputError, match="smaller than pixels"):
        AreaGrid.of((10, 10), (10, 9))


@pytest.mark.parametrize(
    ("small", "large", "same"),
    [
        ((192, 256), (1440, 1920), True),
        ((96, 128), (480, 640), True),
        ((180, 320), (720, 1280), True),
        ((192, 256), (1080, 1920), False),  # 4:3 and 16:9
        ((256, 192), (1440, 1920), False),  # turned
        ((135, 240), (1080, 1918), True),  # cut by less than a pixel of the depth
    ],
)
def test_the_shape_says_whether_the_view_is_the_same(small, large, same) -> None:
    assert same_view(small, large) is same


def of_depth(mean: torch.Tensor) -> DepthDistribution:
    return DepthDistribution.of_depth(mean)


@pytest.mark.parametrize(("small", "large"), SIZES[:4])
def test_exact_agreement_gives_back_every_mean(small, large) -> None:
    torch.manual_seed(0)
    grid = AreaGrid.of(small, large)
    truth = torch.rand(1, 1, *large) + 1
    sparse = grid.placed(grid.means(truth))
    answer = of_depth(torch.full((1, 1, *large), 1.5))
    mean = agreeing(grid, sparse, answer, exact=True).mean
    torch.testing.assert_close(grid.means(mean), grid.means(truth), rtol=1e-4, atol=1e-4)


def test_agreement_brings_an_answer_nearer_to_the_truth_and_invents_nothing() -> None:
    torch.manual_seed(0)
    y, x = torch.meshgrid(torch.linspace(0, 3, 60), torch.linspace(0, 4, 80), indexing="ij")
    truth = (2 + 0.3 * torch.sin(y) * torch.cos(x))[None, None]
    grid = AreaGrid.of((12, 16), (60, 80))
    means = grid.means(truth)
    means[..., 3, 4] = 0  # a hole
    start = truth + 0.2 + 0.1 * x
    start[..., :5, :5] = torch.nan  # nothing reached this corner
    mean = agreeing(grid, grid.placed(means), of_depth(start)).mean
    assert bool(mean[..., :5, :5].isnan().all())
    inner = mean[..., 10:, 10:] - truth[..., 10:, 10:]
    assert inner.square().mean().sqrt() < 0.2 * (start - truth)[..., 10:, 10:].square().mean().sqrt()


def test_the_centre_of_a_mixed_area_is_measured_as_its_own_surface() -> None:
    """A step inside a cell: the mean lies between both surfaces, the centre pixel on one of them."""
    grid = AreaGrid.of((1, 2), (5, 10))
    truth = torch.full((1, 1, 5, 10), 1.0)
    truth[..., 6:] = 3.0  # the second cell is one column of 1 m and four of 3 m
    means = grid.means(truth)
    assert means[0, 0, 0, 1] == pytest.approx(2.6)
    sparse = grid.placed(means)
    told = centre_depths(grid, sparse, of_depth(truth))
    torch.testing.assert_close(told, grid.placed(grid.at_centres(truth)))
    nothing = centre_depths(grid, sparse, of_depth(torch.full_like(truth, torch.nan)))
    torch.testing.assert_close(nothing, sparse)


@given(st.integers(1, 12), st.integers(0, 40))
def test_a_centre_is_the_nearest_pixel_and_of_two_the_first(cells: int, more: int) -> None:
    pixels = cells + more
    row, column = AreaGrid.of((cells, cells), (pixels, pixels)).centres
    for cell in range(cells):
        # twice the distance from (cell + ½)·pixels/cells − ½, times the cells: whole numbers
        apart = [abs(2 * cells * pixel - ((2 * cell + 1) * pixels - cells)) for pixel in range(pixels)]
        assert int(row[cell, 0]) == int(column[cell]) == apart.index(min(apart))


@given(st.integers(1, 9), st.integers(0, 30))
def test_shares_are_the_overlap_of_pixels_and_cells(cells: int, more: int) -> None:
    pixels = cells + more
    grid = AreaGrid.of((cells, 1), (pixels, 1))
    size = pixels / cells
    for cell in range(cells):
        for pixel in range(pixels):
            overlap = min((cell + 1) * size, pixel + 1) - max(cell * size, pixel)
            assert float(grid.rows[cell, pixel]) == pytest.approx(max(overlap, 0) / size, abs=1e-6)


@given(st.integers(2, 60), st.integers(2, 60), st.integers(1, 9))
def test_an_enlarged_map_shows_the_same_and_a_turned_or_longer_one_does_not(
    rows: int, columns: int, factor: int
) -> None:
    size = (rows * factor, columns * factor)
    assert same_view((rows, columns), size)
    assert not same_view((rows, columns), (size[0], size[1] + 2 * factor + 2))
    assert same_view((rows, columns), (size[0], size[1] + factor - 1))
    assert same_view((rows, columns), (size[0], size[1] - factor + 1))  # cut by less than one of its pixels


def test_a_mean_with_a_hole_is_unknown_and_others_do_not_feel_it() -> None:
    maps = torch.rand(2, 1, 12, 20)
    grid = AreaGrid.of((3, 5), (12, 20))
    holed = maps.clone()
    holed[0, 0, 5, 6], holed[1, 0, 0, 0] = torch.nan, torch.inf
    wanted = grid.means(maps)
    wanted[0, 0, 1, 1] = wanted[1, 0, 0, 0] = torch.nan
    torch.testing.assert_close(grid.means(holed), wanted, equal_nan=True)


def test_a_centre_never_differs_from_its_mean_by_more_than_three_times() -> None:
    """However wild the answer is; and what was not measured stays so."""
    draw = torch.Generator().manual_seed(0)
    grid = AreaGrid.of((3, 5), (12, 20))
    wild = torch.exp(6 * torch.randn(1, 1, 12, 20, generator=draw))
    row, column = grid.centres
    wild[0, 0, row[0, 0], column[0]] = 1e9  # sixteen times the mean of its area
    means = torch.rand(1, 1, 3, 5, generator=draw) + 1
    means[0, 0, 1, 1] = 0
    told = grid.at_centres(centre_depths(grid, grid.placed(means), of_depth(wild)))
    assert told[0, 0, 1, 1] == 0
    ratio = (told / means)[means > 0]
    assert float(ratio.max()) == pytest.approx(3.0)
    assert float(ratio.min()) == pytest.approx(1 / 3)


def test_agreement_never_goes_through_the_camera_nor_far_at_once() -> None:
    grid = AreaGrid.of((3, 4), (12, 16))
    answer = of_depth(torch.full((1, 1, 12, 16), 8.0))
    tiny = agreeing(grid, grid.placed(torch.full((1, 1, 3, 4), 1e-3)), answer).mean
    torch.testing.assert_close(tiny, torch.full_like(tiny, 1.0))  # three corrections, each halves at most
    far = agreeing(grid, grid.placed(torch.full((1, 1, 3, 4), 80.0)), answer).mean
    torch.testing.assert_close(far, torch.full_like(far, 80.0))
