"""Measurements come, change and go; inference continues from its messages."""

from __future__ import annotations

import pytest
import torch
from backends import BACKENDS

from fields import piecewise_field, symmetric_field
from gbpn import MRF, infer
from gbpn.gbp.exact import solve

each_backend = pytest.mark.parametrize("backend", BACKENDS)
HEIGHT, WIDTH = 24, 32


def with_point(mrf: MRF, row: int, column: int, depth: float, weight: float) -> MRF:
    s, w = mrf.depth.clone(), mrf.weight.clone()
    s[..., row, column], w[..., row, column] = depth, weight
    return mrf.measured(s, w)


@each_backend
def test_one_warm_iteration_after_adding_a_point_is_close_to_a_cold_run(backend: str) -> None:
    differences = []
    for seed in range(3):
        mrf, truth = piecewise_field(HEIGHT, WIDTH, measured=0.02, seed=seed)
        spread = float(truth.max() - truth.min())
        before = infer(mrf, iterations=5, backend=backend)
        added = with_point(mrf, 5, 25, float(truth[0, 0, 5, 25]), 20.0)
        warm = infer(added, before.messages, iterations=1, backend=backend).belief.mean
        cold = infer(added, iterations=6, backend=backend).belief.mean
        differences.append(float((warm - cold).abs().mean()) / spread)
        restarted = infer(added, iterations=1, backend=backend).belief.mean
        assert (warm - cold).abs().mean() < 0.5 * (restarted - cold).abs().mean()
    assert max(differences) < 0.03, differences


@each_backend
@pytest.mark.parametrize("change", ["added", "moved", "removed", "trusted more"])
def test_warm_runs_converge_to_the_exact_answer_of_the_new_measurements(backend: str, change: str) -> None:
    """What the old messages said is forgotten: only the field and the measurements decide the limit."""
    mrf = symmetric_field(4, 5, measured=0.6)
    row, column = 2, 1  # always measured in this field
    depth, weight = float(mrf.depth[0, 0, row, column]), float(mrf.weight[0, 0, row, column])
    assert weight > 0
    new = {
        "added": with_point(mrf, 3, 4, 9.0, 1.0),
        "moved": with_point(mrf, row, column, depth + 3, weight),
        "removed": with_point(mrf, row, column, 0.0, 0.0),
        "trusted more": with_point(mrf, row, column, depth, 100 * weight),
    }[change]
    messages = infer(mrf, iterations=10, backend=backend).messages
    warm = infer(new, messages, iterations=80, backend=backend).belief
    exact = solve(new).mean
    assert float((solve(mrf).mean - exact).abs().max()) > 1e-2  # the change matters
    torch.testing.assert_close(warm.mean, exact, rtol=0, atol=1e-8)
    cold = infer(new, iterations=80, backend=backend).belief
    torch.testing.assert_close(warm.precision, cold.precision, rtol=1e-10, atol=0)


@each_backend
def test_a_removed_point_still_shows_after_one_iteration(backend: str) -> None:
    """Messages carry the old evidence; a removal is not undone at once, as the documentation says."""
    mrf, _ = piecewise_field(HEIGHT, WIDTH, measured=0.02)
    wrong = with_point(mrf, 5, 25, 30.0, 20.0)
    before = infer(wrong, iterations=8, backend=backend)
    cold = infer(mrf, iterations=9, backend=backend).belief.mean
    effect = float((before.belief.mean - cold).abs().mean())
    warm = infer(mrf, before.messages, iterations=1, backend=backend).belief.mean
    assert float((warm - cold).abs().mean()) > 0.5 * effect


@each_backend
def test_removing_the_only_measurement_leaves_echoes_that_only_a_cold_start_clears(backend: str) -> None:
    """Without any evidence the old messages keep feeding each other: start anew with messages=None."""
    mrf = symmetric_field(4, 5, measured=0.0)
    nothing = mrf.measured(torch.zeros_like(mrf.depth), torch.zeros_like(mrf.weight))
    warm = infer(nothing, infer(mrf, iterations=3, backend=backend).messages, iterations=5, backend=backend)
    assert bool(warm.belief.informed.all())
    assert not bool(infer(nothing, iterations=5, backend=backend).belief.informed.any())


@each_backend
def test_a_coarse_mean_without_messages_is_no_warm_start(backend: str) -> None:
    """From empty messages only measurements speak: depths at weight 0 change nothing."""
    mrf, truth = piecewise_field(HEIGHT, WIDTH, measured=0.02)
    hinted = mrf.measured(torch.where(mrf.weight > 0, mrf.depth, truth), mrf.weight)
    plain, hint = (infer(field, iterations=2, backend=backend).belief for field in (mrf, hinted))
    assert torch.equal(plain.information, hint.information)
    assert torch.equal(plain.precision, hint.precision)


@pytest.mark.parametrize("later", BACKENDS)
@pytest.mark.parametrize("first", BACKENDS)
def test_one_backend_continues_what_another_began(first: str, later: str) -> None:
    mrf = symmetric_field(5, 6, damping=0.2)
    began = infer(mrf, iterations=2, backend=first)
    continued = infer(mrf, began.messages, iterations=2, backend=later).belief
    wanted = infer(mrf, iterations=4, backend="reference").belief
    torch.testing.assert_close(continued.mean, wanted.mean, rtol=1e-12, atol=1e-12)
    torch.testing.assert_close(continued.precision, wanted.precision, rtol=1e-12, atol=0)
