"""Laws of one-dimensional Gaussians in information form."""

from __future__ import annotations

import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from torch import Tensor

from gbpn import Gaussian

law = settings(deadline=None, derandomize=True, max_examples=60, suppress_health_check=[HealthCheck.too_slow])

SHAPES = ((), (3,), (2, 1, 4))
precisions = st.one_of(st.just(0.0), st.floats(1e-6, 1e6))
weights = st.floats(1e-6, 1e6)
means = st.floats(-100, 100)
steps = st.floats(-10, 10)


def tensor(draw: st.DrawFn, elements: st.SearchStrategy[float], shape: tuple[int, ...]) -> Tensor:
    count = int(torch.Size(shape).numel())
    values = draw(st.lists(elements, min_size=count, max_size=count))
    return torch.tensor(values, dtype=torch.float64).view(shape)


def number(value: float) -> Tensor:
    return torch.tensor(value, dtype=torch.float64)


@st.composite
def some(draw: st.DrawFn, *kinds: str) -> list[Gaussian | Tensor]:
    """One Gaussian for each 'g', edge weight for 'w' and difference for 'r', all of one random shape."""
    shape = draw(st.sampled_from(SHAPES))
    out: list[Gaussian | Tensor] = []
    for kind in kinds:
        if kind == "g":
            out.append(Gaussian.observing(tensor(draw, means, shape), tensor(draw, precisions, shape)))
        else:
            out.append(tensor(draw, weights if kind == "w" else steps, shape))
    return out


def assert_same(one: Gaussian, other: Gaussian, scale: float | Tensor = 1.0) -> None:
    """Equal to 1e-12 of each part's own size, or of the terms it was made of."""
    for part in ("information", "precision"):
        a, b = getattr(one, part), getattr(other, part)
        assert bool(((a - b).abs() <= 1e-12 * (a.abs() + b.abs()) + 1e-12 * scale).all()), (part, a, b)


@law
@given(some("g", "g", "g"))
def test_product_is_commutative_and_associative(gs: list[Gaussian]) -> None:
    a, b, c = gs
    assert_same(a * b, b * a, 0.0)
    terms = sum(g.information.abs() for g in gs)
    assert_same((a * b) * c, a * (b * c), terms)


@law
@given(some("g"))
def test_nothing_is_the_identity(gs: list[Gaussian]) -> None:
    (a,) = gs
    assert_same(a * Gaussian.identity_like(a.precision), a, 0.0)
    assert_same(a / Gaussian.identity_like(a.precision), a, 0.0)


@law
@given(some("g", "g"))
def test_quotient_undoes_the_product(gs: list[Gaussian]) -> None:
    a, b = gs
    terms = a.information.abs() + b.information.abs() + a.precision + b.precision
    assert_same((a * b) / b, a, terms)


@law
@given(some("g", "g"))
def test_product_of_two_measurements_is_their_weighted_mean(gs: list[Gaussian]) -> None:
    a, b = gs
    both = a.informed & b.informed
    mean = (a.mean * a.precision + b.mean * b.precision) / (a.precision + b.precision)
    torch.testing.assert_close((a * b).mean[both], mean[both], rtol=1e-9, atol=1e-9)


@law
@given(some("g", "w", "r"))
def test_a_message_is_never_more_precise_than_its_edge_or_its_sender(parts: list) -> None:
    sender, weight, difference = parts
    message = sender.across(weight, difference)
    assert bool((message.precision <= weight * (1 + 1e-15)).all())
    assert bool((message.precision <= sender.precision * (1 + 1e-15)).all())
    assert bool((message.informed == sender.informed).all())


@law
@given(some("w", "r"))
def test_an_uninformed_sender_sends_exactly_nothing(parts: list[Tensor]) -> None:
    weight, difference = parts
    message = Gaussian.identity_like(weight).across(weight, difference)
    assert bool((message.information == 0).all())
    assert bool((message.precision == 0).all())


def test_an_edge_without_weight_carries_nothing_even_from_nobody() -> None:
    zero, one = torch.zeros(1), torch.ones(1)
    for sender in (Gaussian(zero, zero), Gaussian(5 * one, one)):
        message = sender.across(zero, one)
        assert float(message.precision) == 0
        assert float(message.information) == 0


@law
@given(some("g", "w", "r"))
def test_across_is_the_mean_and_variance_form_of_the_paper(parts: list) -> None:
    sender, weight, difference = parts
    message = sender.across(weight, difference)
    known = sender.informed
    torch.testing.assert_close(
        message.variance[known], (sender.variance + 1 / weight)[known], rtol=1e-10, atol=0
    )
    torch.testing.assert_close(message.mean[known], (sender.mean + difference)[known], rtol=1e-9, atol=1e-9)


@law
@given(st.floats(1e-3, 1e3), means, st.floats(1e-3, 1e3), steps)
def test_across_is_the_marginal_of_the_two_variables(
    precision: float, mean: float, weight: float, difference: float
) -> None:
    """exp(−½ precision (x − mean)² − ½ weight (y − x − difference)²), integrated over x."""
    sender = Gaussian.observing(number(mean), number(precision))
    message = sender.across(number(weight), number(difference))
    joint = torch.tensor([[precision + weight, -weight], [-weight, weight]], dtype=torch.float64)
    information = torch.stack([number(precision * mean - weight * difference), number(weight * difference)])
    covariance = torch.linalg.inv(joint)
    torch.testing.assert_close(message.variance, covariance[1, 1], rtol=1e-8, atol=0)
    torch.testing.assert_close(message.mean, (covariance @ information)[1], rtol=1e-6, atol=1e-6)


@law
@given(some("g", "w", "r", "w", "r"))
def test_two_edges_in_a_row_are_one_softer_edge(parts: list) -> None:
    sender, w1, r1, w2, r2 = parts
    step_by_step = sender.across(w1, r1).across(w2, r2)
    at_once = sender.across(1 / (1 / w1 + 1 / w2), r1 + r2)
    assert_same(step_by_step, at_once, 100 * at_once.precision)


@law
@given(some("g", "g"), st.floats(0, 1))
def test_damping_runs_from_the_new_to_the_old(gs: list[Gaussian], share: float) -> None:
    new, old = gs
    assert_same(new.damped(old, torch.zeros(())), new, 0.0)
    assert_same(new.damped(old, torch.ones(())), old, 0.0)
    between = new.damped(old, number(share)).precision
    low, high = torch.minimum(new.precision, old.precision), torch.maximum(new.precision, old.precision)
    assert bool(((between >= low * (1 - 1e-12)) & (between <= high * (1 + 1e-12))).all())


def test_an_unobserved_value_has_no_mean_and_infinite_variance() -> None:
    g = Gaussian.observing(torch.tensor([3.0, 3.0]), torch.tensor([2.0, 0.0]))
    assert g.informed.tolist() == [True, False]
    assert g.mean.isnan().tolist() == [False, True]
    assert g.mean[0] == 3
    assert g.variance.tolist() == [0.5, float("inf")]


def test_the_gradient_of_the_mean_is_finite_beside_unobserved_values() -> None:
    information = torch.tensor([3.0, 0.0], requires_grad=True)
    precision = torch.tensor([2.0, 0.0], requires_grad=True)
    Gaussian(information, precision).mean[0].backward()
    torch.testing.assert_close(information.grad, torch.tensor([1 / 2, 0.0]))
    torch.testing.assert_close(precision.grad, torch.tensor([-3 / 4, 0.0]))


def test_where_picks_both_parts() -> None:
    a = Gaussian(torch.tensor([1.0, 2.0]), torch.tensor([3.0, 4.0]))
    b = Gaussian(torch.tensor([5.0, 6.0]), torch.tensor([7.0, 8.0]))
    picked = a.where(torch.tensor([True, False]), b)
    assert picked.information.tolist() == [1, 6]
    assert picked.precision.tolist() == [3, 8]
