"""The probability loss against the released numbers and against hand-computed ones."""

from __future__ import annotations

import math

import pytest
import torch

from gbpn import DepthDistribution
from gbpn.errors import InputError
from gbpn.train.losses import l1_loss, l2_loss, probability_loss, scale_free_loss
from gbpn.train.map_loss import SHAPE_DISTANCES, shape_loss


def answer(
    mean: torch.Tensor, logit: torch.Tensor, precision: torch.Tensor | None = None
) -> DepthDistribution:
    precision = torch.ones_like(mean) if precision is None else precision
    return DepthDistribution(mean=mean, confidence_logit=logit, belief_precision=precision)


def test_by_hand() -> None:
    mean = torch.tensor([[2.0, 3.0], [9.0, 5.0]]).view(1, 1, 2, 2)
    target = torch.tensor([[2.5, 1.0], [0.0, 5.0]]).view(1, 1, 2, 2)  # one unknown
    logit = torch.tensor([[0.0, 1.0], [7.0, -1.0]]).view(1, 1, 2, 2)
    sigmoid = lambda x: 1 / (1 + math.exp(-x))  # noqa: E731
    cost = sigmoid(0) * (3 * 0.25 + 2 * 0.5) / 2 + sigmoid(1) * (3 * 4 + 2 * 2) / 2
    doubt = -math.log(sigmoid(0)) - math.log(sigmoid(1)) - math.log(sigmoid(-1))
    loss = probability_loss(answer(mean, logit), target, alpha1=2, alpha2=3)
    assert loss.item() == pytest.approx((cost + doubt) / 3, rel=1e-6)
    assert l2_loss(answer(mean, logit), target).item() == pytest.approx((0.25 + 4) / 3)
    assert l1_loss(answer(mean, logit), target).item() == pytest.approx((0.5 + 2) / 3)


def test_unobserved_pixels_give_no_loss_and_no_gradient() -> None:
    mean = torch.tensor([1.0, torch.nan, 3.0]).view(1, 1, 1, 3).requires_grad_()
    logit = torch.tensor([0.5, 0.1, -0.5]).view(1, 1, 1, 3).requires_grad_()
    precision = torch.tensor([1.0, 0.0, 1.0]).view(1, 1, 1, 3)
    target = torch.tensor([2.0, 2.0, 2.0]).view(1, 1, 1, 3)
    for loss in (probability_loss, l2_loss, l1_loss):
        value = loss(answer(mean, logit, precision), target)
        keep = [0, 2]
        seen = answer(mean[..., keep], logit[..., keep])
        torch.testing.assert_close(value, loss(seen, target[..., keep]))
        (gradient,) = torch.autograd.grad(value, mean)
        assert torch.isfinite(gradient).all()
        assert gradient.flatten()[1] == 0


def test_nothing_known_costs_nothing() -> None:
    mean = torch.full((2, 1, 3, 3), torch.nan, requires_grad=True)
    loss = probability_loss(
        answer(mean, torch.zeros(2, 1, 3, 3), torch.zeros(2, 1, 3, 3)), torch.ones(2, 1, 3, 3)
    )
    loss.backward()
    assert loss.item() == 0
    assert not mean.grad.any()


def test_the_batch_is_the_mean_of_its_images() -> None:
    torch.manual_seed(0)
    mean, logit, target = torch.rand(3, 1, 4, 5) + 1, torch.randn(3, 1, 4, 5), torch.rand(3, 1, 4, 5) + 1
    single = [
        probability_loss(answer(mean[i : i + 1], logit[i : i + 1]), target[i : i + 1]) for i in range(3)
    ]
    torch.testing.assert_close(probability_loss(answer(mean, logit), target), torch.stack(single).mean())


def test_a_target_of_another_shape_is_refused() -> None:
    with pytest.raises(InputError, match="target must have shape"):
        probability_loss(answer(torch.ones(1, 1, 2, 2), torch.ones(1, 1, 2, 2)), torch.ones(1, 2, 2))


@pytest.mark.parametrize(("data", "alpha1"), [("nyu", 1.0), ("kitti", 0.1)])
def test_released_loss_and_its_gradient(golden, data: str, alpha1: float) -> None:
    g = golden("op_loss_metrics")
    mean, logit = (g[k].double().requires_grad_() for k in ("pred", "conf"))
    loss = probability_loss(answer(mean, logit), g["target"].double(), alpha1=alpha1, alpha2=1.0)
    torch.testing.assert_close(loss, g[f"loss_{data}"], rtol=1e-12, atol=0)
    loss.backward()
    torch.testing.assert_close(mean.grad, g[f"grad_pred_{data}"], rtol=1e-10, atol=1e-14)
    torch.testing.assert_close(logit.grad, g[f"grad_conf_{data}"], rtol=1e-10, atol=1e-14)


def test_scale_free_loss_does_not_know_the_unit_of_depth() -> None:
    generator = torch.Generator().manual_seed(0)
    target = 1 + torch.rand(2, 1, 6, 7, generator=generator)
    mean = target + 0.1 * torch.randn(2, 1, 6, 7, generator=generator)
    logit = torch.randn(2, 1, 6, 7, generator=generator)

    def loss(scale: float) -> torch.Tensor:
        distribution = DepthDistribution(
            mean=mean * scale, confidence_logit=logit, belief_precision=torch.ones_like(mean)
        )
        return scale_free_loss(distribution, target * scale)

    torch.testing.assert_close(loss(1.0), loss(30.0))


def test_scale_free_loss_by_hand() -> None:
    target = torch.tensor([[[[2.0, 2.0], [2.0, 0.0]]]])
    mean = torch.tensor([[[[2.2, 2.0], [1.8, 9.0]]]])
    distribution = DepthDistribution(
        mean=mean, confidence_logit=torch.zeros_like(mean), belief_precision=torch.ones_like(mean)
    )
    far_off = 0.2 / 3  # mean |d| in units of the median, 2 m
    depth = far_off + 10.0 * (0.02 / 3)
    surprise = far_off / 0.05  # the same pixels, relative to their own depth; logit 0
    wanted = 0.05 / (0.05 + far_off) * depth + 0.03 * surprise
    torch.testing.assert_close(scale_free_loss(distribution, target), torch.tensor(wanted))


def test_scale_free_confidence_is_best_where_it_says_the_expected_error() -> None:
    target = torch.full((1, 1, 8, 8), 2.0)
    mean = target * 1.02
    logit = torch.zeros_like(mean, requires_grad=True)
    optimiser = torch.optim.Adam([logit], lr=0.1)
    for _ in range(200):
        optimiser.zero_grad()
        distribution = DepthDistribution(
            mean=mean, confidence_logit=logit, belief_precision=torch.ones_like(mean)
        )
        scale_free_loss(distribution, target).backward()
        optimiser.step()
    torch.testing.assert_close(
        0.05 * torch.exp(-logit.detach()), torch.full_like(mean, 0.02), rtol=0.02, atol=0
    )


def test_scale_free_loss_counts_images_less_from_its_balance_on() -> None:
    """One image of small and one of large error: a small balance brings them to about the same weight."""
    target = torch.full((2, 1, 6, 7), 2.0)
    error = torch.tensor([0.001, 0.5]).view(2, 1, 1, 1).expand_as(target)

    def pull(balance: float) -> torch.Tensor:
        mean = (target + error).requires_grad_()
        distribution = DepthDistribution(
            mean=mean, confidence_logit=torch.zeros_like(mean), belief_precision=torch.ones_like(mean)
        )
        scale_free_loss(distribution, target, doubt=0.0, alpha2=0.0, balance=balance).backward()
        return mean.grad.abs().mean(dim=(1, 2, 3))

    even, uneven = pull(1e3), pull(1e-4)
    torch.testing.assert_close(even[0], even[1], rtol=1e-3, atol=0)
    assert uneven[0] > 100 * uneven[1]


def test_the_shape_of_a_map_does_not_know_its_height() -> None:
    generator = torch.Generator().manual_seed(4)
    target = 1 + torch.rand(2, 1, 20, 24, generator=generator, dtype=torch.float64)
    exact = target.log() + 3.7
    torch.testing.assert_close(shape_loss(exact, target), torch.zeros((), dtype=torch.float64))
    torch.testing.assert_close(shape_loss(exact, 5 * target), torch.zeros((), dtype=torch.float64))
    wrong = exact + torch.randn(exact.shape, generator=generator, dtype=torch.float64)
    assert shape_loss(wrong, target) > 1


def test_shape_loss_by_hand() -> None:
    """A step of 0.2 in the middle of a flat wall: mean |e − mean e| is 0.1, and one pair in three is off."""
    target = torch.full((1, 1, 1, 4), 2.0)
    prior = torch.tensor([0.0, 0.0, 0.2, 0.2]).view(1, 1, 1, 4)
    expected = 0.1 + (0.2 / 3) / (2 * len(SHAPE_DISTANCES))  # only steps of one pixel fit in
    torch.testing.assert_close(shape_loss(prior, target), torch.tensor(expected))


def test_unknown_targets_do_not_shape_a_map() -> None:
    target = torch.full((1, 1, 8, 8), 2.0)
    target[..., 4:] = 0
    prior = torch.randn(1, 1, 8, 8, requires_grad=True)
    loss = shape_loss(prior, target)
    (gradient,) = torch.autograd.grad(loss, prior)
    assert not gradient[..., 4:].any()
    assert gradient[..., :4].any()
    assert shape_loss(prior, torch.zeros_like(target)) == 0


def test_shape_loss_has_the_gradient_of_its_value() -> None:
    generator = torch.Generator().manual_seed(6)
    target = 1 + torch.rand(1, 1, 6, 7, generator=generator, dtype=torch.float64)
    prior = torch.randn(1, 1, 6, 7, generator=generator, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(lambda x: shape_loss(x, target), (prior,))
