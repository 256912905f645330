"""Where to measure next: laws of the rule, on fields small enough to be solved outright."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import gbpn
from gbpn.engine.suggestion import _in_series, conductances, suggest
from gbpn.errors import InputError

WEIGHT = 1e4


def links(height: int, width: int, seed: int | None = None) -> torch.Tensor:
    """[1, 4, 1, H, W] edges to the 4 neighbours, the same both ways; 0 across the border."""
    rng = np.random.default_rng(seed)
    right = (
        torch.ones(height, width) if seed is None else torch.from_numpy(rng.uniform(0.1, 3, (height, width)))
    )
    below = (
        torch.ones(height, width) if seed is None else torch.from_numpy(rng.uniform(0.1, 3, (height, width)))
    )
    right[:, -1], below[-1] = 0, 0
    out = torch.zeros(1, 4, 1, height, width)
    out[0, 0, 0, :, 1:], out[0, 2, 0] = right[:, :-1].float(), right.float()
    out[0, 1, 0, 1:], out[0, 3, 0] = below[:-1].float(), below.float()
    return out


def maps(height: int, width: int, value: float) -> torch.Tensor:
    return torch.full((1, 1, height, width), value)


def covariance_outright(edges: torch.Tensor, measured: np.ndarray) -> np.ndarray:
    """[N, N] the inverse of the whole precision matrix."""
    height, width = measured.shape
    number = np.arange(height * width).reshape(height, width)
    matrix = np.zeros((height * width,) * 2)
    right, below = edges[0, 2, 0].double().numpy(), edges[0, 3, 0].double().numpy()
    matrix[number[:, :-1], number[:, 1:]] = matrix[number[:, 1:], number[:, :-1]] = -right[:, :-1]
    matrix[number[:-1], number[1:]] = matrix[number[1:], number[:-1]] = -below[:-1]
    matrix[np.diag_indices(len(matrix))] = measured.ravel() + 1e-4 - matrix.sum(1)
    return np.linalg.inv(matrix)


def gain_outright(edges: torch.Tensor, measured: np.ndarray, std: np.ndarray) -> np.ndarray:
    """[N] what the rule promises each pixel."""
    covariance = covariance_outright(edges, measured)
    variance = np.diag(covariance)
    share = covariance**2 / np.outer(variance, variance)
    return (share * std.ravel() ** 2).sum(1) * variance / (variance + 1 / WEIGHT)


@settings(max_examples=20, deadline=None)
@given(st.integers(3, 9), st.integers(3, 9), st.integers(0, 100))
def test_the_best_pixel_is_the_one_whose_measurement_explains_most(
    height: int, width: int, seed: int
) -> None:
    rng = np.random.default_rng(seed)
    edges = links(height, width, seed)
    measured = np.zeros((height, width), np.float32)
    measured[rng.integers(height), rng.integers(width)] = WEIGHT
    std = rng.uniform(0.1, 1, (height, width)).astype(np.float32)
    found = suggest(
        edges,
        torch.from_numpy(measured)[None, None],
        maps(height, width, WEIGHT),
        torch.from_numpy(std)[None, None],
        1,
    )[0]
    wanted = np.where(measured.ravel() > 0, -1, gain_outright(edges, measured, std))
    assert wanted[found.y * width + found.x] == pytest.approx(wanted.max(), rel=1e-4)
    assert found.gain == pytest.approx(wanted.max() / (std**2).sum(), rel=1e-3)


def test_a_row_is_halved_and_halved_again() -> None:
    """Between two measured ends, the middle tells most, then the middles of what is left."""
    width = 33
    measured = torch.zeros(1, 1, 1, width)
    measured[..., 0] = measured[..., -1] = WEIGHT
    found = suggest(links(1, width), measured, maps(1, width, WEIGHT), maps(1, width, 1.0), 3)
    assert found[0].x == 16
    assert {found[1].x, found[2].x} <= set(range(6, 27)) - {16}
    gains = [one.gain for one in found]
    assert gains == sorted(gains, reverse=True)
    assert 0 < sum(gains) <= 1


def test_nothing_is_said_twice_nor_where_it_is_known() -> None:
    measured = torch.zeros(1, 1, 4, 4)
    measured[..., 0, 0] = WEIGHT
    found = suggest(links(4, 4), measured, maps(4, 4, WEIGHT), maps(4, 4, 1.0), 100)
    assert len({(one.x, one.y) for one in found}) == len(found) == 15
    assert (0, 0) not in {(one.x, one.y) for one in found}


def test_a_cut_edge_lets_nothing_through() -> None:
    """Of two halves without a link, the one that is not measured is worth more."""
    edges = links(6, 12)
    edges[0, 2, 0, :, 5] = edges[0, 0, 0, :, 6] = 1e-9
    measured = torch.zeros(1, 1, 6, 12)
    measured[..., 3, 2] = WEIGHT
    (found,) = suggest(edges, measured, maps(6, 12, WEIGHT), maps(6, 12, 1.0), 1)
    assert found.x >= 6


def test_cells_keep_the_conductance_of_a_uniform_field() -> None:
    """n cells of side s in a row of links 1: s in series over s lines in parallel is 1 again."""
    across, down = conductances(links(12, 20), 4)
    torch.testing.assert_close(across, torch.ones(3, 4, dtype=torch.float64))
    torch.testing.assert_close(down, torch.ones(2, 5, dtype=torch.float64))


def test_a_session_suggests_with_and_without_measurements(
    completer: gbpn.DepthCompleter, picture: np.ndarray
) -> None:
    session = completer.session(picture)
    height, width = picture.shape[:2]
    for _ in range(4):
        found = session.suggest(3)
        assert len(found) == 3
        assert all(0 <= one.x < width and 0 <= one.y < height for one in found)
        there = {(one.x, one.y) for one in session.measurements}
        assert not there & {(one.x, one.y) for one in found}
        session.add(found[0].x, found[0].y, 2.0)
    with pytest.raises(InputError, match="at least one"):
        session.suggest(0)


def test_the_command_line_suggests_what_a_session_does(
    weights, completer: gbpn.DepthCompleter, scene, depth: np.ndarray
) -> None:
    from typer.testing import CliRunner

    from gbpn.cli import app

    words = ["suggest", str(scene / "image.png"), str(scene / "points.csv"), "-n", "3"]
    result = CliRunner().invoke(app, [*words, "--weights", str(weights), "--device", "cpu"])
    assert result.exit_code == 0, result.output
    session = completer.session(str(scene / "image.png"))
    rows, columns = np.nonzero(depth)
    session.add(columns, rows, depth[rows, columns])
    wanted = [f"{one.x},{one.y},{one.gain:.4f}" for one in session.suggest(3)]
    assert result.output.split() == ["x,y,gain", *wanted]


@settings(max_examples=10, deadline=None)
@given(st.integers(3, 7), st.integers(3, 7), st.integers(0, 100))
def test_the_second_is_sought_as_if_the_first_had_been_measured(height: int, width: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    edges = links(height, width, seed)
    measured = np.zeros((height, width))
    std = rng.uniform(0.5, 2, (height, width)).astype(np.float32)
    known = torch.from_numpy(measured).float()[None, None]
    unary, deviation = maps(height, width, WEIGHT), torch.from_numpy(std)[None, None]
    first, second = suggest(edges, known, unary, deviation, 2)
    before = covariance_outright(edges, measured)
    chosen = first.y * width + first.x
    explained = before[:, chosen] ** 2 / np.diag(before) / (before[chosen, chosen] + 1 / WEIGHT)
    left = std.astype(np.float64) * np.sqrt(np.clip(1 - explained, 0, 1)).reshape(height, width)
    measured[first.y, first.x] = WEIGHT
    gains = gain_outright(edges, measured, left)
    gains[chosen] = -np.inf
    assert gains[second.y * width + second.x] == pytest.approx(gains.max(), rel=1e-4)
    total = float((std.astype(np.float64) ** 2).sum())
    assert second.gain == pytest.approx(gains.max() / total, rel=1e-3)


def test_links_are_those_that_inference_read(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where the density of the measurements has changed them."""
    torch.manual_seed(0)
    model = gbpn.build("small-prior", width=0.5)
    for name, values in model.named_parameters():
        if name.endswith("response.constant"):
            values.data.add_(0.1)  # as training may leave it: every kind of precision changes
    session = gbpn.DepthCompleter(model).session(np.zeros((32, 64, 3), np.uint8), [60, 60, 31, 15])
    session.add([5, 40], [6, 20], [2.0, 3.0])
    seen: list[torch.Tensor] = []

    def looking(
        links: torch.Tensor, measured: torch.Tensor, unary: torch.Tensor, *rest: object
    ) -> list[object]:
        seen.extend((links, measured, unary))
        return []

    monkeypatch.setattr("gbpn.engine.session.suggest", looking)
    session.suggest()
    field = session.stages()[-1].field
    edges = field.local.directed().weight[:, -1]
    np.testing.assert_array_equal(seen[0].numpy(), session._looks[0].padded.cropped(edges).numpy())
    there = seen[1] > 0
    assert int(there.sum()) == 2
    np.testing.assert_array_equal(seen[2][there].numpy(), seen[1][there].numpy())
    assert not torch.equal(
        seen[0],
        session._looks[0].padded.cropped(session.stages()[-1].parameters.local.directed().weight[:, -1]),
    )


@pytest.mark.parametrize("side", [1, 2, 3, 4, 5])
@pytest.mark.parametrize(("lines", "pixels"), [(6, 12), (5, 11), (3, 7)])
def test_links_from_centre_to_centre_are_in_series_and_lines_are_beside_each_other(
    side: int, lines: int, pixels: int
) -> None:
    """One pair of cells at a time; of a cell's two middle pixels the first is its centre."""
    links = 0.1 + torch.rand(
        lines, pixels - 1, dtype=torch.float64, generator=torch.Generator().manual_seed(side)
    )
    found = _in_series(links, side)
    cells = [range(start, min(start + side, pixels)) for start in range(0, pixels, side)]
    centres = [cell[(len(cell) - 1) // 2] for cell in cells]
    groups = [range(start, min(start + side, lines)) for start in range(0, lines, side)]
    assert found.shape == (len(groups), len(cells) - 1)
    for row, group in enumerate(groups):
        for gap in range(len(cells) - 1):
            between = links[list(group), centres[gap] : centres[gap + 1]]
            assert float(found[row, gap]) == pytest.approx(float((1 / (1 / between).sum(1)).sum()))
