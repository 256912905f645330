"""The exact solution: against a dense inverse, against finite differences, and where it refuses."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
import torch

from fields import dense_system, directed_field, symmetric_field
from gbpn import MRF, Gaussian, SymmetricEdges, infer
from gbpn.errors import BackendError, ConvergenceError, InputError, NonFiniteError
from gbpn.gbp import Status
from gbpn.gbp.exact import marginal_variance, solve
from gbpn.gbp.exact.solvers import dissection
from gbpn.mrf import SYMMETRIC_RING

SOLVERS = ("exact", "cg", "amg")
SIZES = ((1, 1), (1, 7), (7, 1), (5, 7), (9, 4))


@pytest.mark.parametrize("size", SIZES, ids=str)
@pytest.mark.parametrize("kinds", [2, 4])
@pytest.mark.parametrize("solver", SOLVERS)
def test_mean_is_that_of_the_dense_inverse(solver: str, kinds: int, size: tuple[int, int]) -> None:
    if solver == "amg":
        pytest.importorskip("pyamg")
    mrf = symmetric_field(*size, kinds=kinds, batch=2)
    answer = solve(mrf, solver=solver, tolerance=1e-12)
    for image in range(2):
        matrix, right = dense_system(mrf, image)
        wanted = torch.linalg.solve(matrix, right).view(size)
        torch.testing.assert_close(answer.mean[image, 0], wanted, rtol=1e-10, atol=1e-10)
        conditional = matrix.diagonal().view(size)
        torch.testing.assert_close(answer.belief.precision[image, 0], conditional, rtol=1e-12, atol=0)
    assert not answer.marginal
    assert answer.residual <= 1e-12


@pytest.mark.parametrize("size", SIZES, ids=str)
@pytest.mark.parametrize("kinds", [2, 4])
def test_marginal_variances_are_the_diagonal_of_the_dense_inverse(kinds: int, size: tuple[int, int]) -> None:
    mrf = symmetric_field(*size, kinds=kinds, batch=2)
    answer = solve(mrf, variances=True)
    assert answer.marginal
    for image in range(2):
        matrix, right = dense_system(mrf, image)
        wanted = torch.linalg.inv(matrix).diagonal().view(size)
        torch.testing.assert_close(answer.belief.variance[image, 0], wanted, rtol=1e-10, atol=0)
        torch.testing.assert_close(
            answer.mean[image, 0], torch.linalg.solve(matrix, right).view(size), rtol=1e-10, atol=1e-10
        )


@pytest.mark.parametrize(("solver", "variances"), [("exact", True), ("cg", False)])
def test_gradients_are_those_of_finite_differences(solver: str, variances: bool) -> None:
    mrf = symmetric_field(3, 2, batch=2, measured=0.6)
    assert isinstance(mrf.local, SymmetricEdges)

    def outputs(*inputs: torch.Tensor) -> tuple[torch.Tensor, ...]:
        depth, weight, edge, difference = inputs
        local = SymmetricEdges(weight=edge, difference=difference, damping=mrf.local.damping)
        field = MRF(depth=depth, weight=weight, local=local)
        belief = solve(field, solver=solver, variances=variances, tolerance=1e-13, check=False).belief
        return (belief.mean, belief.precision) if variances else (belief.mean,)

    # every pixel measured: at weight 0 a difference quotient would step to negative weights
    inputs = (mrf.depth, mrf.weight + 0.05, mrf.local.weight, mrf.local.difference)
    assert torch.autograd.gradcheck(outputs, [x.clone().requires_grad_() for x in inputs])


def test_gradients_are_those_of_autograd_through_a_dense_solve() -> None:
    mrf = symmetric_field(5, 6)
    assert isinstance(mrf.local, SymmetricEdges)
    inputs = [
        x.clone().requires_grad_() for x in (mrf.depth, mrf.weight, mrf.local.weight, mrf.local.difference)
    ]
    local = SymmetricEdges(weight=inputs[2], difference=inputs[3], damping=mrf.local.damping)
    field = MRF(depth=inputs[0], weight=inputs[1], local=local)
    cotangent = torch.randn(5, 6, dtype=torch.float64, generator=torch.Generator().manual_seed(5))
    got = torch.autograd.grad((solve(field).mean[0, 0] * cotangent).sum(), inputs)
    matrix, right = dense_system(field)
    wanted = torch.autograd.grad(
        (torch.linalg.solve(matrix, right).view(5, 6) * cotangent).sum(), inputs, materialize_grads=True
    )
    for ours, theirs in zip(got, wanted, strict=True):
        torch.testing.assert_close(ours, theirs, rtol=1e-9, atol=1e-10)


def test_pixels_that_no_measurement_reaches_are_marked() -> None:
    mrf = symmetric_field(4, 6, measured=0.0)  # one measurement, in column 2
    assert isinstance(mrf.local, SymmetricEdges)
    weight = mrf.local.weight.clone()
    weight[..., 0, :, 3] = 0  # right
    weight[..., 2, :, 3] = 0  # below right
    weight[..., 3, :, 4] = 0  # below left: now columns 0–3 and 4–5 are apart
    mrf = replace(mrf, local=replace(mrf.local, weight=weight.requires_grad_()))
    for variances in (False, True):
        belief = solve(mrf, variances=variances).belief
        assert belief.informed[..., :4].all()
        assert not belief.informed[..., 4:].any()
        assert belief.mean[..., 4:].isnan().all()
        assert (belief.information[..., 4:] == 0).all()
    alone = MRF(
        depth=mrf.depth[..., :4],
        weight=mrf.weight[..., :4],
        local=SymmetricEdges(
            weight=mrf.local.weight[..., :4],
            difference=mrf.local.difference[..., :4],
            damping=mrf.local.damping[..., :4],
        ),
    )
    torch.testing.assert_close(belief.mean[..., :4], solve(alone).mean, rtol=1e-12, atol=1e-12)
    (grad,) = torch.autograd.grad(belief.mean[..., :4].sum(), weight)
    assert grad.isfinite().all()
    assert (grad[..., 4:] == 0).all()


def test_an_empty_field_is_unobserved_everywhere() -> None:
    mrf = symmetric_field(3, 4)
    mrf = mrf.measured(torch.zeros_like(mrf.depth), torch.zeros_like(mrf.weight))
    for variances in (False, True):
        assert not solve(mrf, variances=variances).belief.informed.any()


def test_one_image_of_a_batch_does_not_know_the_others() -> None:
    mrf = symmetric_field(4, 5, batch=3)
    empty = mrf.weight.clone()
    empty[1] = 0
    mrf = mrf.measured(mrf.depth, empty)
    belief = solve(mrf, variances=True).belief
    assert belief.informed.flatten(1).any(1).tolist() == [True, False, True]
    assert isinstance(mrf.local, SymmetricEdges)
    last = MRF(
        depth=mrf.depth[2:],
        weight=mrf.weight[2:],
        local=SymmetricEdges(
            weight=mrf.local.weight[2:], difference=mrf.local.difference[2:], damping=mrf.local.damping[2:]
        ),
    )
    torch.testing.assert_close(belief.mean[2:], solve(last).mean, rtol=0, atol=1e-13)


def test_far_away_depths_keep_their_digits() -> None:
    mrf = symmetric_field(6, 7)
    here = solve(mrf).mean
    there = solve(mrf.measured(mrf.depth + 1e9, mrf.weight)).mean
    torch.testing.assert_close(there - 1e9, here, rtol=0, atol=1e-6)  # float64 at 1e9 holds 1e-7


@pytest.mark.parametrize("precision", [1e-10, 1e-5, 1.0, 1e6])
def test_one_measurement_of_any_weight_sets_the_level(precision: float) -> None:
    mrf = symmetric_field(6, 7, measured=0.0)
    mrf = mrf.measured(mrf.depth, mrf.weight.sign() * precision)
    mean = solve(mrf).mean
    where = mrf.weight > 0
    torch.testing.assert_close(mean[where], mrf.depth[where], rtol=1e-12, atol=1e-12)


def rational_mean(mrf: MRF) -> torch.Tensor:
    """The mean of a small field [H, W] by Gaussian elimination in rational numbers: no rounding at all."""
    assert isinstance(mrf.local, SymmetricEdges)
    _, height, width = mrf.shape
    count = height * width
    rows = [[Fraction(0)] * (count + 1) for _ in range(count)]
    s, w = mrf.depth.flatten().tolist(), mrf.weight.flatten().tolist()
    for i in range(count):
        rows[i][i] += Fraction(w[i])
        rows[i][count] += Fraction(w[i]) * Fraction(s[i])
    edge, difference = mrf.local.weight[0, 0], mrf.local.difference[0, 0]
    for u, (row, column) in enumerate(SYMMETRIC_RING):
        for y in range(height - row):
            for x in range(max(0, -column), width - max(0, column)):
                i, j = y * width + x, (y + row) * width + x + column
                weight, r = Fraction(float(edge[u, y, x])), Fraction(float(difference[u, y, x]))
                for a, b, sign in ((i, j, -1), (j, i, 1)):
                    rows[a][a] += weight
                    rows[a][b] -= weight
                    rows[a][count] += sign * weight * r
    for i in range(count):  # A is positive definite: no pivoting needed
        for k in range(count):
            if k != i and rows[k][i]:
                factor = rows[k][i] / rows[i][i]
                rows[k] = [b - factor * a for a, b in zip(rows[i], rows[k], strict=True)]
    means = [float(rows[i][count] / rows[i][i]) for i in range(count)]
    return torch.tensor(means, dtype=torch.float64).view(height, width)


@pytest.mark.parametrize(("solver", "tolerance"), [("exact", 1e-7), ("cg", 1e-4)])
def test_weights_over_sixteen_orders_of_magnitude(solver: str, tolerance: float) -> None:
    for seed in range(3):
        mrf = symmetric_field(3, 4, seed=seed)
        assert isinstance(mrf.local, SymmetricEdges)
        g = torch.Generator().manual_seed(seed)
        power = -10 + 16 * torch.rand(2, 4, 3, 4, generator=g, dtype=torch.float64)
        edge = 1e-4 * 10 ** power[1][None, None]  # weak enough for the measurements to disagree
        mrf = replace(
            mrf,
            weight=10 ** power[0, :1][None] * mrf.weight.sign(),
            local=replace(mrf.local, weight=edge),
        )
        wanted = rational_mean(mrf)
        assert float(wanted.max() - wanted.min()) > 0.3
        got = solve(mrf, solver=solver).mean[0, 0]
        torch.testing.assert_close(got, wanted, rtol=0, atol=tolerance)


def test_float32_fields_are_solved_in_float64() -> None:
    mrf = symmetric_field(8, 9, dtype=torch.float32)
    answer = solve(mrf, variances=True)
    assert answer.mean.dtype == torch.float32
    matrix, right = dense_system(mrf)
    torch.testing.assert_close(
        answer.mean[0, 0].double(), torch.linalg.solve(matrix, right).view(8, 9), rtol=2e-7, atol=0
    )


def test_it_refuses_what_has_no_energy() -> None:
    with pytest.raises(InputError, match="needs SymmetricEdges; got directed LocalEdges"):
        solve(directed_field(3, 4))
    mrf = symmetric_field(3, 4)
    assert isinstance(mrf.local, SymmetricEdges)
    twice = replace(mrf.local, weight=mrf.local.weight.expand(-1, 2, -1, -1, -1))
    with pytest.raises(InputError, match=r"shared by all iterations \(T = 1\)"):
        solve(replace(mrf, local=twice))
    far = directed_field(3, 4, iterations=1).nonlocal_
    with pytest.raises(InputError, match="ignore_nonlocal=True"):
        solve(replace(mrf, nonlocal_=far))
    ignored = solve(replace(mrf, nonlocal_=far), ignore_nonlocal=True).mean
    torch.testing.assert_close(ignored, solve(mrf).mean, rtol=0, atol=0)
    with pytest.raises(InputError, match=r"solver must be one of exact, cg, amg .*; got 'magic'"):
        solve(mrf, solver="magic")


@pytest.mark.parametrize("solver", ["exact", "cg"])
def test_infer_hands_over_to_the_exact_solvers(solver: str) -> None:
    mrf = symmetric_field(4, 5, batch=2)
    answer, wanted = infer(mrf, solver=solver, variances=True), solve(mrf, solver=solver, variances=True)
    assert torch.equal(answer.belief.mean, wanted.mean)
    assert torch.equal(answer.belief.precision, wanted.belief.precision)
    assert answer.backend == solver
    assert answer.status is Status.INFORMED
    assert not answer.messages.local.informed.any()
    far = replace(mrf, nonlocal_=directed_field(4, 5, batch=2, iterations=1).nonlocal_)
    ignored = infer(far, solver=solver, nonlocal_steps=0, variances=True).belief
    assert torch.equal(ignored.mean, wanted.mean)


def test_infer_explains_what_exact_solvers_do_not_take() -> None:
    mrf = symmetric_field(3, 4)
    messages = infer(mrf, backend="reference").messages
    with pytest.raises(InputError, match="no messages to continue from"):
        infer(mrf, messages, solver="exact")
    with pytest.raises(InputError, match="variances=True needs an exact solver"):
        infer(mrf, variances=True)
    with pytest.raises(InputError, match="got 'magic'"):
        infer(mrf, solver="magic")
    with pytest.raises(InputError, match="nonlocal_steps=0 in infer"):
        infer(replace(mrf, nonlocal_=directed_field(3, 4, iterations=1).nonlocal_), solver="exact")
    with pytest.raises(NonFiniteError, match="depth must be finite"):
        infer(mrf.measured(mrf.depth * torch.nan, mrf.weight), solver="exact")


def test_iterations_that_do_not_suffice_are_an_error() -> None:
    with pytest.raises(ConvergenceError, match="stopped after 2 iterations at a relative residual"):
        solve(symmetric_field(9, 9), solver="cg", max_iterations=2)


def test_a_missing_multigrid_package_says_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "pyamg", None)
    with pytest.raises(BackendError, match=r"pip install 'gbpn\[solvers\]'"):
        solve(symmetric_field(3, 3), solver="amg")


def test_multigrid_repeats_itself_and_leaves_the_global_random_state_alone() -> None:
    pytest.importorskip("pyamg")
    mrf = symmetric_field(20, 21, measured=0.05)
    before = np.random.get_state(legacy=True)  # noqa: NPY002
    first, second = solve(mrf, solver="amg"), solve(mrf, solver="amg")
    after = np.random.get_state(legacy=True)  # noqa: NPY002
    assert torch.equal(first.mean, second.mean)
    assert isinstance(before, tuple)
    assert isinstance(after, tuple)
    assert np.array_equal(before[1], after[1])
    assert before[2:] == after[2:]


def test_variances_of_an_indefinite_matrix_are_an_error() -> None:
    mrf = symmetric_field(3, 3)
    assert isinstance(mrf.local, SymmetricEdges)
    with pytest.raises(ConvergenceError, match="not positive definite"):
        marginal_variance(-mrf.weight - 100, mrf.local)


@pytest.mark.parametrize("size", [(1, 1), (1, 40), (13, 29), (64, 3)], ids=str)
def test_nested_dissection_visits_every_pixel_once(size: tuple[int, int]) -> None:
    order = dissection(*size)
    assert sorted(order.tolist()) == list(range(size[0] * size[1]))


def test_the_belief_is_a_gaussian_without_information_where_unknown() -> None:
    belief = solve(symmetric_field(3, 3)).belief
    assert isinstance(belief, Gaussian)
    assert belief.informed.all()
