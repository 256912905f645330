"""Parameters by iteration as corrections of shared maps."""

from __future__ import annotations

import pytest
import torch

import gbpn
from gbpn.mrf import NonLocalEdges, SymmetricEdges
from gbpn.network.iteration_corrections import FARTHEST, IterationCorrections, corrected_far, corrected_local

HEIGHT, WIDTH = 16, 24


def local() -> SymmetricEdges:
    return SymmetricEdges(
        weight=torch.rand(1, 1, 4, HEIGHT, WIDTH),
        difference=torch.randn(1, 1, 4, HEIGHT, WIDTH),
        damping=torch.rand(1, 1, HEIGHT, WIDTH),
    )


def far() -> NonLocalEdges:
    return NonLocalEdges(
        weight=torch.rand(1, 1, 3, HEIGHT, WIDTH),
        difference=torch.randn(1, 1, 3, HEIGHT, WIDTH),
        offset=torch.randn(1, 1, 3, 2, HEIGHT, WIDTH),
        damping=torch.rand(1, 1, HEIGHT, WIDTH),
    )


@pytest.mark.parametrize(("edges", "each"), [(0, 1), (3, 5)])
def test_shapes_and_limits(edges: int, each: int) -> None:
    part = IterationCorrections(6, 4, edges)
    said = part(100 * torch.randn(2, 6, HEIGHT // 4, WIDTH // 4))
    assert said.shape == (2, 4, each, HEIGHT, WIDTH)
    assert said.abs().max() <= FARTHEST
    part.start()
    assert not part(torch.randn(2, 6, HEIGHT // 4, WIDTH // 4)).any()


def test_corrections_are_what_the_layer_says_while_small_and_at_the_limit_when_large() -> None:
    part = IterationCorrections(2, 3, 0)
    part.start()  # without a bias
    features = torch.randn(1, 2, 4, 6, generator=torch.Generator().manual_seed(0))
    with torch.no_grad():
        part.last.weight.normal_(generator=torch.Generator().manual_seed(1))
        part.last.weight.mul_(1e-3)
        said = part.last(features)
        torch.testing.assert_close(part.coarse(features), said, rtol=1e-4, atol=1e-6)
        part.last.weight.mul_(1e6)
        torch.testing.assert_close(part.coarse(features), FARTHEST * part.last(features).sign())
    constant = torch.full((1, 3, 4, 6), 0.7)
    torch.testing.assert_close(part.enlarged(constant), torch.full((1, 3, 1, HEIGHT, WIDTH), 0.7))


def test_no_correction_repeats_the_shared_maps() -> None:
    near, learned, nothing = local(), far(), torch.zeros(1, 3, 5, HEIGHT, WIDTH)
    one, other = corrected_local(near, nothing), corrected_far(learned, nothing)
    for t in range(3):
        torch.testing.assert_close(one.damping[:, t], near.damping[:, 0])
        torch.testing.assert_close(other.weight[:, t], learned.weight[:, 0])
    assert one.weight is near.weight


def test_each_iteration_is_corrected_by_its_own() -> None:
    near, learned = local(), far()
    change = torch.zeros(1, 2, 5, HEIGHT, WIDTH)
    change[:, 1, 0], change[:, 1, 1], change[:, 1, 3] = 0.5, -0.5, 1.0
    one, other = corrected_local(near, change), corrected_far(learned, change)
    torch.testing.assert_close(one.damping[:, 1], torch.sigmoid(torch.logit(near.damping[:, 0]) + 0.5))
    torch.testing.assert_close(other.damping[:, 1], torch.sigmoid(torch.logit(learned.damping[:, 0]) - 0.5))
    torch.testing.assert_close(other.weight[:, 1, 1], learned.weight[:, 0, 1] * torch.e)
    torch.testing.assert_close(other.weight[:, 1, 0], learned.weight[:, 0, 0])
    torch.testing.assert_close(other.weight[:, 0], learned.weight[:, 0])


def test_backends_agree_on_a_field_of_shared_and_own_parameters() -> None:
    """Weights of local edges shared, damping and learned edges by iteration: forward and gradient."""
    torch.manual_seed(1)
    model = gbpn.build("small-prior", width=0.25)
    for part in (model.first.corrections.last, model.second.corrections.last):
        torch.nn.init.normal_(part.weight, std=0.05)
    image, sparse = torch.rand(1, 3, 64, 64), torch.zeros(1, 1, 64, 64)
    sparse[:, :, ::7, ::9] = 1 + torch.rand(1, 1, 10, 8)
    model.eval()
    answers, gradients = [], []
    for backend in ("reference", "auto"):
        model.use_backend(backend)
        model.zero_grad()
        answer = model(image, sparse).mean
        answer.square().mean().backward()
        answers.append(answer.detach())
        gradients.append(model.first.corrections.last.weight.grad.clone())
    torch.testing.assert_close(*answers, rtol=1e-4, atol=1e-4)
    torch.testing.assert_close(*gradients, rtol=1e-3, atol=1e-5)
    assert gradients[0].any()


def test_they_are_instead_of_dynamic_parameters() -> None:
    with pytest.raises(gbpn.GbpnError, match="set dynamic=False"):
        gbpn.build("gbpn-1", width=0.25, iteration_corrections=True)
