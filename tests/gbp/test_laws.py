"""What belief propagation promises, on every backend: exact on trees, the exact mean on grids, symmetries."""

from __future__ import annotations

import importlib
from dataclasses import replace
from typing import Any

import pytest
import torch
from backends import BACKENDS
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from torch import Tensor

from fields import directed_field, symmetric_field
from gbpn import MRF, Gaussian, LocalEdges, Messages, NonLocalEdges, SymmetricEdges, infer
from gbpn.gbp import Status
from gbpn.gbp.exact import solve
from gbpn.mrf import RING, SENDERS, SYMMETRIC_RING

law = settings(deadline=None, derandomize=True, max_examples=8, suppress_health_check=[HealthCheck.too_slow])
each_backend = pytest.mark.parametrize("backend", BACKENDS)
seeds = st.integers(0, 2**16)
sides = st.integers(1, 6)


def assert_beliefs(got: Gaussian, wanted: Gaussian, tolerance: float) -> None:
    torch.testing.assert_close(got.mean, wanted.mean, rtol=tolerance, atol=tolerance, equal_nan=True)
    torch.testing.assert_close(got.precision, wanted.precision, rtol=tolerance, atol=0)


def spanning_tree(mrf: MRF, seed: int) -> MRF:
    """The field with all edges cut but those of one random spanning tree (Kruskal's)."""
    assert isinstance(mrf.local, SymmetricEdges)
    _, height, width = mrf.shape
    root = list(range(height * width))

    def find(i: int) -> int:
        while root[i] != i:
            i = root[i]
        return i

    kept = torch.zeros_like(mrf.local.weight)
    order = torch.randperm(4 * height * width, generator=torch.Generator().manual_seed(seed)).tolist()
    for index in order:
        u, pixel = divmod(index, height * width)
        y, x = divmod(pixel, width)
        row, column = y + SYMMETRIC_RING[u][0], x + SYMMETRIC_RING[u][1]
        if row < height and 0 <= column < width and find(pixel) != find(row * width + column):
            root[find(pixel)] = find(row * width + column)
            kept[0, 0, u, y, x] = 1
    return replace(mrf, local=replace(mrf.local, weight=mrf.local.weight * kept))


@each_backend
@law
@given(seed=seeds, length=st.integers(1, 20), kinds=st.sampled_from([2, 4]), upright=st.booleans())
def test_a_chain_is_exact_after_one_iteration(
    backend: str, seed: int, length: int, kinds: int, upright: bool
) -> None:
    size = (length, 1) if upright else (1, length)
    mrf = symmetric_field(*size, kinds=kinds, seed=seed)
    got = infer(mrf, iterations=1, backend=backend).belief
    assert_beliefs(got, solve(mrf, variances=True).belief, 1e-10)


@each_backend
@law
@given(seed=seeds, height=st.integers(2, 5), width=st.integers(2, 6))
def test_a_tree_is_exact(backend: str, seed: int, height: int, width: int) -> None:
    mrf = spanning_tree(symmetric_field(height, width, seed=seed), seed)
    got = infer(mrf, iterations=height * width, backend=backend).belief
    assert_beliefs(got, solve(mrf, variances=True).belief, 1e-10)


@pytest.mark.parametrize(
    ("backend", "kinds", "damping"),
    [
        (backend, kinds, damping)
        for backend in BACKENDS
        for kinds, damping in ((4, 0.3), (4, 0.0), (2, 0.0))
        if backend != "reference" or damping  # the slow one takes one case
    ],
)
def test_on_a_grid_the_mean_converges_to_the_exact_one(backend: str, kinds: int, damping: float) -> None:
    """Long runs tell a right cavity from a wrong one: hearing one's own echo moves the limit."""
    mrf = symmetric_field(6, 7, kinds=kinds, damping=damping, measured=0.25)
    got = infer(mrf, iterations=500, backend=backend).belief
    exact = solve(mrf, variances=True).belief
    torch.testing.assert_close(got.mean, exact.mean, rtol=0, atol=1e-7)
    assert bool((got.precision >= exact.precision).all())  # loops are counted as new evidence


@each_backend
@pytest.mark.parametrize(("kinds", "reweighting"), [(4, 0.7), (2, 0.85)])
def test_mild_reweighting_keeps_the_mean_and_tempers_the_precision(
    backend: str, kinds: int, reweighting: float
) -> None:
    mrf = symmetric_field(4, 5, kinds=kinds, measured=0.5)
    exact = solve(mrf).mean
    plain = infer(mrf, iterations=100, backend=backend).belief
    tempered = infer(mrf, iterations=100, backend=backend, reweighting=reweighting).belief
    torch.testing.assert_close(tempered.mean, exact, rtol=0, atol=1e-7)
    assert bool((tempered.precision < plain.precision).all())


@each_backend
@law
@given(seed=seeds, height=sides, width=sides, constant=st.floats(-100, 100))
def test_shifting_the_depths_shifts_the_mean(
    backend: str, seed: int, height: int, width: int, constant: float
) -> None:
    mrf = directed_field(height, width, seed=seed)
    here = infer(mrf, backend=backend).belief
    there = infer(mrf.measured(mrf.depth + constant, mrf.weight), backend=backend).belief
    torch.testing.assert_close(there.mean, here.mean + constant, rtol=0, atol=1e-10)
    torch.testing.assert_close(there.precision, here.precision, rtol=1e-13, atol=0)


def in_units(mrf: MRF, factor: float) -> MRF:
    """The same field with lengths counted in 1/factor metres."""
    assert isinstance(mrf.local, LocalEdges)
    assert isinstance(mrf.nonlocal_, NonLocalEdges)

    def edges(part: LocalEdges | NonLocalEdges) -> dict[str, Tensor]:
        return {"weight": part.weight / factor**2, "difference": part.difference * factor}

    return replace(
        mrf,
        depth=mrf.depth * factor,
        weight=mrf.weight / factor**2,
        local=replace(mrf.local, **edges(mrf.local)),
        nonlocal_=replace(mrf.nonlocal_, **edges(mrf.nonlocal_)),
    )


@each_backend
@law
@given(seed=seeds, height=sides, width=sides, factor=st.floats(1e-3, 1e3))
def test_a_change_of_units_changes_units_only(
    backend: str, seed: int, height: int, width: int, factor: float
) -> None:
    mrf = directed_field(height, width, seed=seed)
    here, there = infer(mrf, backend=backend).belief, infer(in_units(mrf, factor), backend=backend).belief
    torch.testing.assert_close(there.mean, here.mean * factor, rtol=1e-10, atol=0)
    torch.testing.assert_close(there.precision, here.precision / factor**2, rtol=1e-10, atol=0)


def flip(slot: tuple[int, int]) -> tuple[int, int]:
    return slot[0], -slot[1]


def transpose(slot: tuple[int, int]) -> tuple[int, int]:
    return slot[1], slot[0]


SYMMETRIES = {
    "flip": (flip, lambda maps: maps.flip(-1)),
    "transpose": (transpose, lambda maps: maps.mT),
}


@each_backend
@pytest.mark.parametrize("symmetry", SYMMETRIES)
@pytest.mark.parametrize("direction", range(4))
def test_a_sweep_of_the_mirrored_image_is_the_mirrored_sweep(
    backend: str, symmetry: str, direction: int
) -> None:
    """Left-right mirrored is right-left, and so on; together they generate all flips and rotations."""
    move_slot, move_maps = SYMMETRIES[symmetry]
    moved = [RING.index(move_slot(slot)) for slot in RING]
    senders = [moved[slot] for slot in SENDERS[direction]]
    mirrored = next(d for d in range(4) if set(SENDERS[d]) == set(senders))
    order = [senders.index(slot) for slot in SENDERS[mirrored]]
    back = [moved.index(slot) for slot in range(8)]

    g = torch.Generator().manual_seed(3)

    def maps(count: int) -> Tensor:
        return torch.rand(2, count, 4, 6, generator=g, dtype=torch.float64)

    base, messages = Gaussian(maps(1), maps(1)), Gaussian(maps(8), maps(8))
    weight, difference, damping = maps(3), maps(3), maps(1)
    sweep = importlib.import_module(f"gbpn.gbp.{backend}").sweep
    here = sweep(base, messages, weight, difference, damping, direction=direction)
    there = sweep(
        Gaussian(move_maps(base.information), move_maps(base.precision)),
        Gaussian(move_maps(messages.information[:, back]), move_maps(messages.precision[:, back])),
        move_maps(weight[:, order]),
        move_maps(difference[:, order]),
        move_maps(damping),
        direction=mirrored,
    )
    for part in ("information", "precision"):
        wanted = move_maps(getattr(here, part)[:, back])
        torch.testing.assert_close(getattr(there, part), wanted, rtol=1e-12, atol=1e-13)


@each_backend
def test_the_converged_belief_of_the_mirrored_image_is_the_mirrored_belief(backend: str) -> None:
    """A few iterations are not: sweeps run in a fixed order, left-right first."""
    mrf = symmetric_field(4, 5, measured=0.6)
    assert isinstance(mrf.local, SymmetricEdges)
    edges = mrf.local
    weight, difference = torch.zeros_like(edges.weight), torch.zeros_like(edges.difference)
    for u, (row, column) in enumerate(SYMMETRIC_RING):
        tails_x = range(max(0, -column), 5 - max(0, column))
        for y in range(4 - row):
            for x in tails_x:
                # the mirror image of the edge x → x + column runs from 4 − x to 4 − x − column
                target = SYMMETRIC_RING.index((row, -column)) if row else 0
                at, sign = (4 - x, 1) if row else (4 - x - column, -1)
                weight[0, 0, target, y, at] = edges.weight[0, 0, u, y, x]
                difference[0, 0, target, y, at] = sign * edges.difference[0, 0, u, y, x]
    mirrored = MRF(
        depth=mrf.depth.flip(-1),
        weight=mrf.weight.flip(-1),
        local=SymmetricEdges(weight=weight, difference=difference, damping=edges.damping),
    )
    here = infer(mrf, iterations=100, backend=backend).belief
    there = infer(mirrored, iterations=100, backend=backend).belief
    assert_beliefs(there, Gaussian(here.information.flip(-1), here.precision.flip(-1)), 1e-9)
    early = infer(mrf, iterations=1, backend=backend).belief.mean.flip(-1)
    assert not torch.allclose(infer(mirrored, iterations=1, backend=backend).belief.mean, early, atol=1e-3)


def image_of(mrf: MRF, b: int) -> MRF:
    """The b-th image of a batch, alone."""

    def one(part: Any) -> Any:
        return replace(part, **{n: t[b : b + 1] for n, t in vars(part).items()})

    far = one(mrf.nonlocal_) if mrf.nonlocal_ is not None else None
    return MRF(depth=mrf.depth[b : b + 1], weight=mrf.weight[b : b + 1], local=one(mrf.local), nonlocal_=far)


@each_backend
def test_a_batch_of_many_is_many_batches_of_one(backend: str) -> None:
    mrf = directed_field(5, 6, batch=3)
    together = infer(mrf, backend=backend)
    for b in range(3):
        alone = infer(image_of(mrf, b), backend=backend)
        assert torch.equal(together.belief.information[b : b + 1], alone.belief.information)
        assert torch.equal(together.belief.precision[b : b + 1], alone.belief.precision)
        assert torch.equal(together.messages.local.precision[b : b + 1], alone.messages.local.precision)


@each_backend
@law
@given(seed=seeds, height=sides, width=sides, where=st.integers(0, 35), extra=st.floats(1e-3, 1e3))
def test_more_evidence_never_lowers_precision(
    backend: str, seed: int, height: int, width: int, where: int, extra: float
) -> None:
    mrf = directed_field(height, width, seed=seed, measured=0.2)
    assert isinstance(mrf.nonlocal_, NonLocalEdges)
    mrf = replace(
        mrf,
        local=replace(mrf.local, damping=torch.zeros_like(mrf.local.damping)),
        nonlocal_=replace(mrf.nonlocal_, damping=torch.zeros_like(mrf.nonlocal_.damping)),
    )
    weight = mrf.weight.clone()
    weight.view(-1)[where % (height * width)] += extra
    less = infer(mrf, backend=backend).belief.precision
    more = infer(mrf.measured(mrf.depth, weight), backend=backend).belief.precision
    assert bool((more >= less * (1 - 1e-12)).all())


@each_backend
@law
@given(height=sides, width=sides, where=st.integers(0, 35), kinds=st.sampled_from([2, 4]))
def test_one_measurement_reaches_every_pixel_in_one_iteration(
    backend: str, height: int, width: int, where: int, kinds: int
) -> None:
    mrf = symmetric_field(height, width, kinds=kinds)
    weight = torch.zeros_like(mrf.weight)
    weight.view(-1)[where % (height * width)] = 0.5
    answer = infer(mrf.measured(mrf.depth, weight), iterations=1, backend=backend)
    assert bool(answer.belief.informed.all())
    assert answer.status is Status.INFORMED


@each_backend
def test_stopping_and_continuing_is_not_stopping(backend: str) -> None:
    mrf = symmetric_field(5, 6, damping=0.2)
    first = infer(mrf, iterations=2, backend=backend)
    resumed = infer(mrf, first.messages, iterations=3, backend=backend)
    through = infer(mrf, iterations=5, backend=backend)
    assert_beliefs(resumed.belief, through.belief, 1e-13)


@each_backend
def test_no_iteration_is_the_measurements_alone(backend: str) -> None:
    mrf = directed_field(4, 5)
    belief = infer(mrf, iterations=0, backend=backend).belief
    assert torch.equal(belief.information, mrf.unary.information)
    assert torch.equal(belief.precision, mrf.weight)


@each_backend
def test_the_belief_is_the_product_of_measurements_and_messages(backend: str) -> None:
    mrf = directed_field(4, 5)
    answer = infer(mrf, backend=backend)
    assert_beliefs(answer.belief, answer.messages.belief(mrf.unary), 1e-13)
    assert isinstance(answer.messages, Messages)
