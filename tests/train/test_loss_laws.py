"""Losses one pixel at a time, as their definitions say it; and what no loss may depend on."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import fields, replace
from statistics import mean as average

import pytest
import torch
from torch import Tensor

from gbpn.distribution import DepthDistribution
from gbpn.train.losses import l1_loss, l2_loss, probability_loss, scale_free_loss
from gbpn.train.map_loss import SHAPE_DISTANCES, shape_loss

LOSSES: dict[str, Callable[[DepthDistribution, Tensor], Tensor]] = {
    "probability": lambda a, t: probability_loss(a, t, alpha1=0.3, alpha2=2.0),
    "scale-free": scale_free_loss,
    "l1": l1_loss,
    "l2": l2_loss,
    "shape": lambda a, t: shape_loss(a.mean.nan_to_num(0.0), t),
}
EVERY = pytest.mark.parametrize("name", LOSSES)


def example(height: int = 6, width: int = 9) -> tuple[DepthDistribution, Tensor]:
    """Three images of very unlike depth and errors, pixels unknown, not reached, and logits beyond limits."""
    draw = torch.Generator().manual_seed(2)
    shape = (3, 1, height, width)
    scale = torch.tensor([1.0, 6.0, 50.0]).double().view(3, 1, 1, 1)
    known, off, logit, reached = (torch.rand(shape, generator=draw, dtype=torch.float64) for _ in range(4))
    target = scale * (0.5 + known) * (known > 0.25)
    mean = scale * (0.5 + known) + scale * (off - 0.4) * torch.tensor([0.1, 1.0, 3.0]).view(3, 1, 1, 1)
    seen = reached > 0.2
    answer = DepthDistribution(
        mean=torch.where(seen, mean, torch.nan),
        confidence_logit=30 * logit - 15,
        belief_precision=seen.double(),
    )
    return answer, target


def pixels(answer: DepthDistribution, target: Tensor, image: int) -> list[tuple[float, float, float]]:
    """(mean, target, logit) of what counts in one image."""
    counts = (target[image] > 0) & (answer.belief_precision[image] > 0)
    maps = (answer.mean, target, answer.confidence_logit)
    return list(zip(*(values[image][counts].tolist() for values in maps), strict=True))


def test_the_probability_loss_is_its_definition() -> None:
    answer, target = example()
    wanted = []
    for image in range(3):
        here = pixels(answer, target, image)
        largest = max(abs(m - t) for m, t, _ in here)
        wanted.append(
            average(
                (2.0 * (m - t) ** 2 + 0.3 * abs(m - t)) / largest / (1 + math.exp(-c))
                + math.log(1 + math.exp(-c))
                for m, t, c in here
            )
        )
    assert float(LOSSES["probability"](answer, target)) == pytest.approx(average(wanted), rel=1e-9)


@pytest.mark.parametrize("nearly", [0.0, 1e-9])
def test_an_answer_without_error_pays_for_its_doubt_alone(nearly: float) -> None:
    answer, target = example()
    perfect = DepthDistribution(
        mean=target + nearly,
        confidence_logit=answer.confidence_logit,
        belief_precision=answer.belief_precision,
    )
    wanted = [
        average(math.log(1 + math.exp(-c)) for _, _, c in pixels(answer, target, image)) for image in range(3)
    ]
    assert float(probability_loss(perfect, target)) == pytest.approx(
        average(wanted), rel=1e-2 if nearly else 1e-9
    )


@pytest.mark.parametrize("options", [{}, {"alpha1": 0.3, "alpha2": 2.0, "doubt": 0.5, "balance": 0.2}])
def test_the_scale_free_loss_is_its_definition(options: dict[str, float]) -> None:
    answer, target = example()
    said = {"alpha1": 1.0, "alpha2": 10.0, "doubt": 0.03, "balance": 0.05, **options}
    wanted = []
    for image in range(3):
        here = pixels(answer, target, image)
        depths = sorted(t for _, t, _ in here)
        unit = depths[(len(depths) - 1) // 2]
        off = [abs(m - t) / unit for m, t, _ in here]
        share = said["balance"] / (said["balance"] + average(off))
        depth = average(said["alpha1"] * d + said["alpha2"] * d * d for d in off)
        limited = [(abs(m - t) / t / 0.05, max(-8.0, min(8.0, c))) for m, t, c in here]
        surprise = average(d * math.exp(c) - c for d, c in limited)
        wanted.append(share * depth + said["doubt"] * surprise)
    assert float(scale_free_loss(answer, target, **options)) == pytest.approx(average(wanted), rel=1e-9)


@pytest.mark.parametrize("size", [(6, 9), (3, 20), (20, 2), (1, 1)])
def test_the_shape_loss_is_its_definition(size: tuple[int, int]) -> None:
    """Pairs of pixels that lie 1, 4 or 16 apart, along rows and along columns, one by one."""
    answer, target = example(*size)
    prior, (height, width) = answer.confidence_logit, size
    wanted = []
    for image in range(3):
        known = {
            (y, x): float(prior[image, 0, y, x] - target[image, 0, y, x].log())
            for y in range(height)
            for x in range(width)
            if target[image, 0, y, x] > 0
        }
        middle = average(known.values()) if known else 0.0
        total = average(abs(e - middle) for e in known.values()) if known else 0.0
        for distance in SHAPE_DISTANCES:
            for down, across in ((distance, 0), (0, distance)):
                steps = [
                    abs(known[y + down, x + across] - e)
                    for (y, x), e in known.items()
                    if (y + down, x + across) in known
                ]
                total += (average(steps) if steps else 0.0) / (2 * len(SHAPE_DISTANCES))
        wanted.append(total)
    assert float(shape_loss(prior, target)) == pytest.approx(average(wanted), rel=1e-9)


def part(whole: DepthDistribution, index: int) -> DepthDistribution:
    """The answer for one image of a batch."""
    maps = {
        one.name: value[index : index + 1]
        for one in fields(whole)
        if isinstance(value := getattr(whole, one.name), Tensor)
    }
    return replace(whole, **maps)


@EVERY
def test_a_batch_is_the_mean_of_its_images(name: str) -> None:
    answer, target = example()
    alone = [LOSSES[name](part(answer, k), target[k : k + 1]) for k in range(3)]
    torch.testing.assert_close(LOSSES[name](answer, target), torch.stack(alone).mean())


@EVERY
def test_what_is_unknown_or_not_reached_changes_nothing(name: str) -> None:
    """Neither a number that stands where the target is unknown, nor NaN where nothing was inferred."""
    answer, target = example()
    counts = (target > 0) & answer.observed
    if name == "shape":  # of a map that is drawn everywhere
        counts = target > 0
    other = DepthDistribution(
        mean=torch.where(counts, answer.mean, 1e3),
        confidence_logit=torch.where(counts, answer.confidence_logit, 5.0),
        belief_precision=answer.belief_precision,
    )
    wanted = LOSSES[name](answer, target)
    if name != "shape":
        torch.testing.assert_close(LOSSES[name](other, target), wanted)
    torch.testing.assert_close(LOSSES[name](answer, torch.where(target > 0, target, torch.nan)), wanted)


@EVERY
def test_mirrored_images_cost_the_same(name: str) -> None:
    answer, target = example()
    torch.testing.assert_close(LOSSES[name](answer.flipped(), target.flip(-1)), LOSSES[name](answer, target))


@pytest.mark.parametrize("name", ["scale-free", "shape"])
def test_the_limit_of_a_loss_that_is_not_pushed_further(name: str) -> None:
    """Beyond its limit a logit has no gradient; the shape of a map has none along its height."""
    answer, target = example()
    logit = answer.confidence_logit.clone().requires_grad_()
    if name == "shape":
        (gradient,) = torch.autograd.grad(shape_loss(logit, target), logit)
        torch.testing.assert_close(gradient.sum(dim=(1, 2, 3)), torch.zeros(3).double(), rtol=0, atol=1e-12)
        return
    moved = DepthDistribution(
        mean=answer.mean, confidence_logit=logit, belief_precision=answer.belief_precision
    )
    (gradient,) = torch.autograd.grad(scale_free_loss(moved, target), logit)
    counts = (target > 0) & answer.observed
    beyond = logit.detach().abs() > 8
    assert not gradient[beyond].any()
    assert bool((gradient[counts & ~beyond] != 0).all())
