"""The depth-like map: its steps, what they make of a field, and the decoder that draws it."""

from __future__ import annotations

import pytest
import torch
from torch.nn import functional

import gbpn
from gbpn.mrf import MRF, SYMMETRIC_RING, NonLocalEdges, SymmetricEdges
from gbpn.network.depth_prior import (
    LARGEST_STEP,
    PriorDecoder,
    PriorHead,
    far_steps,
    local_steps,
    squeezed,
    with_far_steps,
    with_local_steps,
)

HEIGHT, WIDTH = 6, 8


def edges(kinds: int = 4, seed: int = 0) -> SymmetricEdges:
    generator = torch.Generator().manual_seed(seed)
    shape = (1, 1, kinds, HEIGHT, WIDTH)
    return SymmetricEdges(
        weight=torch.rand(shape, generator=generator, dtype=torch.float64) + 0.5,
        difference=0.01 * torch.randn(shape, generator=generator, dtype=torch.float64),
        damping=torch.zeros(1, 1, HEIGHT, WIDTH, dtype=torch.float64),
    )


def bumps(amount: float = 1e-4) -> torch.Tensor:
    """A map [1, 1, H, W] whose steps are too small to be squeezed."""
    generator = torch.Generator().manual_seed(3)
    return amount * torch.randn(1, 1, HEIGHT, WIDTH, generator=generator, dtype=torch.float64)


def test_steps_are_squeezed_and_never_too_large() -> None:
    step = torch.linspace(-4, 4, 41, dtype=torch.float64, requires_grad=True)
    assert squeezed(step).abs().max() < LARGEST_STEP
    torch.testing.assert_close(squeezed(-step), -squeezed(step))
    torch.testing.assert_close(squeezed(1e-4 * step), 1e-4 * step, rtol=3e-3, atol=0)
    assert torch.autograd.gradcheck(squeezed, (step + 1e-3).detach().requires_grad_())


def test_local_steps_are_neighbour_minus_pixel() -> None:
    prior = bumps()
    steps = local_steps(prior, SYMMETRIC_RING)
    right, below = steps[0, 0], steps[0, 1]
    torch.testing.assert_close(right[:, :-1], squeezed(prior[0, 0, :, 1:] - prior[0, 0, :, :-1]))
    torch.testing.assert_close(below[:-1], squeezed(prior[0, 0, 1:] - prior[0, 0, :-1]))


def test_a_map_enlarged_twice_has_half_the_steps() -> None:
    column = torch.arange(16.0).expand(1, 1, 12, 16) * 0.002
    large = functional.interpolate(column, scale_factor=2, mode="bilinear", align_corners=False)
    small_step = local_steps(column, ((0, 1),))[0, 0, 5, 7]
    large_step = local_steps(large, ((0, 1),))[0, 0, 10, 14]
    torch.testing.assert_close(large_step, small_step / 2, rtol=0.01, atol=0)


@pytest.mark.parametrize("kinds", [2, 4])
def test_both_forms_of_a_field_get_the_same_differences(kinds: int) -> None:
    local, share = edges(kinds), torch.full((1, 1, HEIGHT, WIDTH), 0.7, dtype=torch.float64)
    one = with_local_steps(local, bumps(0.1), share).directed()
    other = with_local_steps(local.directed(), bumps(0.1), share)
    inside = other.weight > 0
    torch.testing.assert_close(one.difference[inside], other.difference[inside])


def test_a_flat_map_changes_nothing() -> None:
    local, share = edges(), torch.full((1, 1, HEIGHT, WIDTH), 0.7, dtype=torch.float64)
    flat = torch.zeros(1, 1, HEIGHT, WIDTH, dtype=torch.float64)
    assert torch.equal(with_local_steps(local, flat, share).difference, local.difference)


def test_one_measurement_completes_the_whole_map() -> None:
    """With differences from the map alone, the exact answer is the map moved through the measurement."""
    prior, local = bumps(), edges()
    free = SymmetricEdges(
        weight=local.weight, difference=torch.zeros_like(local.difference), damping=local.damping
    )
    measured = torch.zeros(1, 1, HEIGHT, WIDTH, dtype=torch.float64)
    measured[0, 0, 2, 3] = 1.0
    field = MRF(
        depth=0.4 * measured,
        weight=100 * measured,
        local=with_local_steps(free, prior, torch.ones_like(prior)),
    )
    mean = gbpn.infer(field, solver="exact").belief.mean
    torch.testing.assert_close(mean, 0.4 + prior - prior[0, 0, 2, 3], rtol=0, atol=1e-6)


def test_far_steps_follow_the_offset() -> None:
    slope = 0.001
    prior = slope * torch.arange(16.0).expand(1, 1, 12, 16).contiguous()
    offset = torch.zeros(1, 1, 2, 2, 12, 16)
    offset[:, :, 0, 1], offset[:, :, 1, 0] = 4.0, 3.0  # to the right, and down
    steps = far_steps(prior, offset)
    assert steps.shape == (1, 1, 2, 12, 16)
    middle = steps[0, 0, :, 4:8, 4:10]
    torch.testing.assert_close(middle[0], torch.full_like(middle[0], -4 * slope), rtol=0.05, atol=1e-7)
    torch.testing.assert_close(middle[1], torch.zeros_like(middle[1]), rtol=0, atol=1e-7)


def test_far_steps_carry_gradients_to_map_and_offset() -> None:
    generator = torch.Generator().manual_seed(5)
    prior = torch.randn(1, 1, 8, 8, generator=generator, dtype=torch.float64, requires_grad=True)
    offset = torch.rand(1, 1, 2, 2, 8, 8, generator=generator, dtype=torch.float64) * 1.3 + 0.1
    assert torch.autograd.gradcheck(far_steps, (prior, offset.requires_grad_()), eps=1e-7, atol=1e-4)


def test_a_place_that_is_nowhere_spoils_its_step_and_no_memory() -> None:
    """torch's own gradient there ends the process."""
    torch.manual_seed(4)
    prior, offset = torch.rand(1, 1, 32, 48), 8 * torch.randn(1, 1, 2, 2, 32, 48)
    offset[0, 0, 1, 0, 8, 20] = torch.nan
    steps = far_steps(prior.requires_grad_(), offset.requires_grad_())
    assert steps[0, 0, 0].isfinite().all()
    row, column = torch.nonzero(steps[0, 0, 1].isnan(), as_tuple=True)
    assert bool(steps[0, 0, 1, 8, 20].isnan())
    assert int((row - 8).abs().max()) <= 3 >= int((column - 20).abs().max())
    steps[0, 0, 0].sum().backward()
    assert offset.grad[0, 0, 0].isfinite().all()


def test_learned_edges_get_their_share() -> None:
    prior = torch.randn(1, 1, 8, 8)
    far = NonLocalEdges(
        weight=torch.ones(1, 1, 3, 8, 8),
        difference=torch.randn(1, 1, 3, 8, 8),
        offset=torch.randn(1, 1, 3, 2, 8, 8),
        damping=torch.zeros(1, 1, 8, 8),
    )
    steps = far_steps(prior, far.offset)
    none, half = (with_far_steps(far, steps, torch.full_like(prior, s)).difference for s in (0.0, 0.5))
    assert torch.equal(none, far.difference)
    torch.testing.assert_close(half - far.difference, steps / 2)


def test_the_decoder_starts_flat_and_every_part_of_it_learns() -> None:
    torch.manual_seed(0)
    decoder = PriorDecoder((8, 8, 12, 16, 24), (8, 12, 16))
    features = [torch.randn(2, c, 64 // 2**n, 96 // 2**n) for n, c in enumerate((8, 8, 12, 16, 24), 1)]
    assert decoder(features).shape == (2, 1, 64, 96)
    assert not decoder(features).any()
    torch.nn.init.normal_(decoder.last.weight)
    decoder(features).square().mean().backward()
    assert all(parameter.grad is not None and parameter.grad.any() for parameter in decoder.parameters())


def test_a_shared_decoder_draws_a_flat_map_at_first_and_learns_by_it() -> None:
    torch.manual_seed(0)
    head = PriorHead(8, 4)
    features = torch.randn(2, 8, 16, 24)
    assert head(features).shape == (2, 1, 32, 48)
    assert not head(features).any()
    model = gbpn.build("small-smooth", width=0.25, iterations=(3,)).train()
    torch.nn.init.normal_(model.first.prior.last.weight)
    camera = torch.tensor([[[60.0, 0, 32], [0, 60.0, 32], [0, 0, 1]]])
    model.first.draw_prior(torch.rand(1, 3, 64, 64), camera).square().mean().backward()
    for part in (model.first.encoder, model.first.decoder, model.first.prior):
        assert all(parameter.grad is not None for parameter in part.parameters())
    assert all(parameter.grad is None for parameter in model.first.heads.parameters())


def test_a_model_with_a_map_starts_as_the_one_without() -> None:
    image, sparse = torch.rand(1, 3, 64, 64), torch.zeros(1, 1, 64, 64)
    sparse[..., ::9, ::7] = 2.0
    plain = gbpn.build("small-2", width=0.25).eval()
    more = gbpn.build("small-2", width=0.25, prior=True, density=4).eval()
    more.load_state_dict({**more.state_dict(), **_fitting(plain, more)})
    with torch.inference_mode():
        one, other = plain(image, sparse), more(image, sparse)
    assert torch.equal(one.mean, other.mean)


def _fitting(plain: torch.nn.Module, more: torch.nn.Module) -> dict[str, torch.Tensor]:
    from gbpn.train.growth import grown

    return grown(plain.state_dict(), more.state_dict(), plain.config, more.config)


def test_a_map_needs_logarithms() -> None:
    with pytest.raises(gbpn.GbpnError, match="depth_scale='log'"):
        gbpn.build("gbpn-1", prior=True)


@pytest.mark.parametrize("place", [(0.0, 3.0), (2.0, 0.0), (-3.0, 5.0), (4.0, -2.0)])
def test_far_steps_of_a_slope_are_its_rise_along_the_offset(place: tuple[float, float]) -> None:
    """(This pixel) − (the pixel at row, column of the offset), on maps that are not square."""
    for height, width in ((24, 40), (40, 24)):
        row, column = torch.meshgrid(
            torch.arange(height).double(), torch.arange(width).double(), indexing="ij"
        )
        slope = (1e-4 * row + 3e-4 * column)[None, None]
        offset = torch.tensor(place).double().view(1, 1, 1, 2, 1, 1).expand(1, 1, 1, 2, height, width)
        steps = far_steps(slope, offset)[0, 0, 0, 8:-8, 8:-8]
        wanted = squeezed(torch.tensor(-(1e-4 * place[0] + 3e-4 * place[1])).double())
        torch.testing.assert_close(steps, wanted.expand_as(steps), rtol=1e-6, atol=1e-12)


def test_far_steps_beyond_the_border_read_the_border() -> None:
    generator = torch.Generator().manual_seed(2)
    prior = 1e-3 * torch.randn(1, 1, 8, 12, generator=generator, dtype=torch.float64)
    half = functional.avg_pool2d(prior, 2)[0, 0]
    for place, there in (((0.0, 99.0), half[:, -1:]), ((-99.0, 0.0), half[:1])):
        offset = torch.tensor(place).double().view(1, 1, 1, 2, 1, 1).expand(1, 1, 1, 2, 8, 12)
        wanted = functional.interpolate(
            squeezed(half - there)[None, None], scale_factor=2, mode="bilinear", align_corners=False
        )
        torch.testing.assert_close(far_steps(prior, offset)[:, 0], wanted)
