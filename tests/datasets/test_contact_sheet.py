"""Contact sheets show what they say."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image
from typer.testing import CliRunner

from gbpn.cli import app
from gbpn.cli.dataset_facts import samples_per_second
from gbpn.datasets import SyntheticDataset
from gbpn.datasets.contact_sheet import _strip, contact_sheet, depth_edges, depth_picture, grown
from gbpn.datasets.selection import evenly_spaced


def test_a_sheet_has_a_row_per_frame_and_four_columns(tmp_path: Path) -> None:
    dataset = SyntheticDataset("", count=5, height=60, width=80)
    contact_sheet(dataset, evenly_spaced(len(dataset), 3), tmp_path / "sheet.png", tile_width=100)
    with Image.open(tmp_path / "sheet.png") as sheet:
        assert sheet.size == (400, 3 * (75 + 14))
        assert np.array(sheet).std() > 10
    assert evenly_spaced(len(dataset), 3) == [0, 1, 3]
    assert evenly_spaced(len(dataset), 50) == [0, 1, 2, 3, 4]


def test_single_pixels_are_seen_in_a_small_sheet() -> None:
    """In the third column too, if its target is as sparse as the measurements in the second."""
    sample = SyntheticDataset("", count=1, height=120, width=160).load(0)
    sparse = torch.zeros(1, 120, 160)
    sparse[0, 10::40, 10::40] = sample.target[0, 10::40, 10::40]
    strip = np.array(_strip(replace(sample, sparse=sparse, target=sparse), 40))[14:]
    picture, second, third, _ = np.split(strip, 4, axis=1)
    np.testing.assert_array_equal(second, third)
    assert (np.abs(third.astype(int) - 0.35 * picture).max(2) > 25).sum() >= 9


def test_edges_are_where_depth_jumps() -> None:
    depth = torch.full((1, 4, 6), 2.0)
    depth[:, :, 3:] = 3.0
    depth[:, 0, 0] = 0.0
    edges = depth_edges(depth)
    assert np.argwhere(edges[0].numpy()).tolist() == [[row, 2] for row in range(4)]


def test_near_is_red_far_is_blue_unknown_is_black() -> None:
    pixels = np.array(depth_picture(torch.tensor([[[0.0, 1.0, 10.0]]]), (1.0, 10.0)))[0].astype(int)
    assert pixels[0].tolist() == [0, 0, 0]
    assert pixels[1][0] > pixels[1][2]
    assert pixels[2][2] > pixels[2][0]


def test_the_command_describes_a_dataset(tmp_path: Path) -> None:
    sheet = tmp_path / "sheet.png"
    result = CliRunner().invoke(
        app, ["info", "--dataset", "synthetic", "--split", "train", "--sheet", str(sheet), "--frames", "2"]
    )
    assert result.exit_code == 0, result.output
    assert "frames: 1000" in result.output
    assert "none: choose a pattern" in result.output
    assert sheet.is_file()


def test_loading_speed_is_a_number() -> None:
    assert (
        samples_per_second(SyntheticDataset("", count=2, height=60, width=80), "varied", count=2, repeats=1)
        > 0
    )


@pytest.mark.parametrize("radius", [1, 2])
def test_a_measurement_covers_its_square_and_the_nearest_is_on_top(radius: int) -> None:
    """One pixel at a time; where no measurement is near, nothing is drawn."""
    draw = torch.Generator().manual_seed(0)
    sparse = 5 * torch.rand(1, 9, 12, generator=draw) * (torch.rand(1, 9, 12, generator=draw) < 0.08)
    found = grown(sparse, radius)[0]
    for row in range(9):
        for column in range(12):
            window = sparse[
                0, max(row - radius, 0) : row + radius + 1, max(column - radius, 0) : column + radius + 1
            ]
            known = window[window > 0]
            wanted = float(known.min()) if len(known) else 0.0
            assert float(found[row, column]) == pytest.approx(wanted, rel=1e-5)


def test_colours_span_all_but_the_outermost_depths() -> None:
    """From the depth that 2 % of the pixels are nearer than to the one that 2 % are farther than."""
    sample = SyntheticDataset("", count=1, height=60, width=80).load(0)
    depth = torch.linspace(1, 9, 4800).view(1, 60, 80)
    strip = np.array(_strip(replace(sample, target=depth, sparse=torch.zeros_like(depth)), 80))[14:]
    ends = (float(depth.quantile(0.02)), float(depth.quantile(0.98)))
    np.testing.assert_array_equal(np.split(strip, 4, axis=1)[2], np.array(depth_picture(depth, ends)))


def test_what_is_dim_is_a_third_of_the_picture_and_edges_are_red() -> None:
    sample = SyntheticDataset("", count=1, height=60, width=80).load(0)
    depth = torch.full((1, 60, 80), 2.0)
    depth[..., 40:] = 4.0
    strip = np.array(_strip(replace(sample, target=depth, sparse=torch.zeros_like(depth)), 80))[14:]
    picture, second, _, outlined = (part.astype(int) for part in np.split(strip, 4, axis=1))
    assert np.abs(second - 0.35 * picture).max() <= 1
    changed = np.argwhere((outlined != picture).any(axis=2))
    assert set(changed[:, 1]) == {39}
    assert len(changed) == 60
    assert outlined[30, 39].tolist() == [255, 26, 26]
