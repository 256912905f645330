"""How the density of measurements changes a field."""

from __future__ import annotations

import copy
from itertools import pairwise

import pytest
import torch

import gbpn
from gbpn.config import Start
from gbpn.network.density import FEATURES, DensityResponse, Response, density_features, redamped, respond


def mask(count: int, height: int = 64, width: int = 96, seed: int = 0) -> torch.Tensor:
    generator = torch.Generator().manual_seed(seed)
    chosen = torch.randperm(height * width, generator=generator)[:count]
    out = torch.zeros(height * width, dtype=torch.bool)
    out[chosen] = True
    return out.view(1, 1, height, width)


def test_features_grow_with_the_number_of_measurements() -> None:
    means = [density_features(mask(count)).mean(dim=(2, 3))[0] for count in (0, 1, 10, 100, 1000, 6000)]
    for fewer, more in pairwise(means):
        assert (more > fewer).all()
    assert means[0].shape == (FEATURES,)
    assert density_features(mask(0)).isfinite().all()


def test_features_are_local() -> None:
    left = mask(0)
    left[..., :16, :16] = True
    fine = density_features(left)[0, 0]
    assert fine.shape == (8, 12)
    assert (fine[:2, :2] > fine[5, 5] + 1).all()


def test_features_of_a_mirrored_frame_are_mirrored() -> None:
    some = mask(200)
    torch.testing.assert_close(density_features(some.flip(-1)), density_features(some).flip(-1))


def test_before_training_nothing_changes() -> None:
    change = respond([DensityResponse(8, Start()), DensityResponse(8)], mask(50))
    for name in ("unary", "local", "far"):
        assert torch.equal(getattr(change, name), torch.ones(1, 1, 64, 96))
    assert torch.equal(change.damping, torch.zeros(1, 1, 64, 96))
    torch.testing.assert_close(change.share, torch.full((1, 1, 64, 96), 0.5))


def test_it_starts_where_the_start_says() -> None:
    change = respond([DensityResponse(0, Start(learned=0.01, share=0.2))], mask(50))
    torch.testing.assert_close(change.far, torch.full((1, 1, 64, 96), 0.01), rtol=1e-4, atol=0)
    torch.testing.assert_close(change.share, torch.full((1, 1, 64, 96), 0.2))


def test_few_and_many_can_start_at_a_rule() -> None:
    """500 points of a NYUv2 frame as without it; one point follows the map, 20,000 are trusted."""
    torch.manual_seed(0)
    start = Start(share=0.07, share_of_few=2.1, trust_in_many=2.8)
    said = [respond([DensityResponse(4, start)], mask(n, 224, 304)) for n in (1, 500, 20000)]
    one, usual, many = ([maps.mean().item() for maps in (s.unary, s.share)] for s in said)
    torch.testing.assert_close(usual, [1.0, 0.07], rtol=0.15, atol=0.03)
    assert 0.8 < one[0] <= 1.05
    assert one[1] > 0.7
    assert 10 < many[0] < 60
    assert many[1] < 0.12


def test_responses_add_up() -> None:
    torch.manual_seed(0)
    one, other = DensityResponse(4, Start()), DensityResponse(4)
    for part in (one, other):
        torch.nn.init.normal_(part.function[-1].weight, std=0.02)
    some = mask(80)
    both, alone = respond([one, other], some), respond([one], some)
    assert not torch.equal(alone.unary, both.unary)
    with torch.no_grad():  # two of the same are one of twice the size
        for part in (other.constant, other.function[-1].weight, other.function[-1].bias):
            part.zero_()
    torch.testing.assert_close(respond([one, other], some).unary, alone.unary)
    doubled = copy.deepcopy(one)
    with torch.no_grad():
        for part in (doubled.constant, doubled.function[-1].weight, doubled.function[-1].bias):
            part.mul_(2)
    torch.testing.assert_close(respond([one, one], some).local, respond([doubled], some).local)


def test_many_measurements_can_be_trusted_more() -> None:
    response = DensityResponse(1, Start())
    with torch.no_grad():
        first, _, last = response.function
        first.weight.fill_(0.25)
        first.bias.zero_()
        last.weight[Response._fields.index("unary")] = 0.1
    few, many = (respond([response], mask(count)).unary.mean() for count in (3, 3000))
    assert many > few


@pytest.mark.parametrize("change", [-3.0, 0.0, 0.7])
def test_redamped_adds_to_the_logit(change: float) -> None:
    damping = torch.linspace(0.01, 0.99, 20, dtype=torch.float64)
    shifted = redamped(damping, torch.full_like(damping, change))
    torch.testing.assert_close(shifted, torch.sigmoid(torch.logit(damping) + change))


def test_every_part_of_the_response_gets_a_gradient() -> None:
    torch.manual_seed(0)
    model = gbpn.build("small", width=0.25, prior=True, density=4, nonlocal_edges=2)
    torch.nn.init.normal_(model.first.prior.last.weight, std=0.1)
    torch.nn.init.normal_(model.first.response.function[-1].weight, std=0.01)
    image, sparse = torch.rand(2, 3, 64, 64), torch.zeros(2, 1, 64, 64)
    sparse[:, :, ::7, ::9] = 1 + torch.rand(2, 1, 10, 8)
    model(image, sparse).mean.square().mean().backward()
    constant = model.first.response.constant.grad
    assert constant is not None
    assert (constant != 0).all(), dict(zip(Response._fields, constant.tolist(), strict=True))
    assert all(p.grad is not None and p.grad.any() for p in model.first.response.function.parameters())


def test_the_image_is_drawn_once_for_any_density() -> None:
    torch.manual_seed(0)
    model = gbpn.build("small", width=0.25, prior=True, density=4).eval()
    torch.nn.init.normal_(model.first.response.function[-1].weight, std=0.05)
    encoding = model.pipeline().encode(torch.rand(1, 3, 64, 96))
    depth = torch.full((1, 1, 64, 96), 0.3)
    few, many = (encoding.parameters.field(depth, mask(count)) for count in (5, 2000))
    assert not torch.allclose(few.local.weight, many.local.weight)
    assert torch.equal(few.weight > 0, mask(5))


@pytest.mark.parametrize(("height", "width"), [(8, 8), (32, 96), (160, 64)])
def test_features_are_counts_in_windows_of_cells(height: int, width: int) -> None:
    """One cell at a time: 1, 5 and 17 cells around it as far as there are any, then the whole image."""
    some = mask(height * width // 30, height, width)
    cells = some.view(height // 8, 8, width // 8, 8).double().sum(dim=(1, 3))
    rows, columns = cells.shape
    wanted = torch.zeros(1, FEATURES, rows, columns, dtype=torch.float64)
    for row in range(rows):
        for column in range(columns):
            for channel, side in enumerate((1, 5, 17)):
                near = side // 2
                window = cells[max(row - near, 0) : row + near + 1, max(column - near, 0) : column + near + 1]
                wanted[0, channel, row, column] = (
                    window.sum() / (64 * window.numel()) + 0.25 / (8 * side) ** 2
                )
    wanted[0, 3] = cells.sum() / (height * width) + 0.25 / (height * width)
    wanted = (wanted.log() + 5) / 3
    torch.testing.assert_close(density_features(some).double(), wanted, rtol=1e-4, atol=1e-4)


def test_a_response_never_changes_a_precision_beyond_its_limit() -> None:
    """Whatever it learned: factors within exp(± 8), logits within ± 8, the share within 0 and 1."""
    for sign in (-1.0, 1.0):
        response = DensityResponse(0, Start())
        with torch.no_grad():
            response.constant.fill_(sign * 1e3)
        change = respond([response], mask(50))
        for name in ("unary", "local", "far"):
            torch.testing.assert_close(
                getattr(change, name).log(), torch.full((1, 1, 64, 96), 8 * sign), rtol=1e-4, atol=0
            )
        torch.testing.assert_close(change.damping, torch.full((1, 1, 64, 96), 8 * sign))
        torch.testing.assert_close(change.share, torch.full((1, 1, 64, 96), (1 + sign) / 2))
