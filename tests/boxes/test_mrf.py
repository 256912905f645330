"""The field: what its edges mean, and what it says when it is built wrongly."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch

from fields import dense_system, directed_field, symmetric_field
from gbpn import MRF, LocalEdges, SymmetricEdges
from gbpn.errors import InputError, NonFiniteError
from gbpn.mrf import RING, SENDERS, clear_outside, senders, shift


def by_slot(edges: LocalEdges, name: str) -> dict[tuple[int, int], torch.Tensor]:
    """{(direction, slot): [B, H, W]} of the first iteration."""
    values = getattr(edges, name)[:, 0]
    return {
        (direction, slot): values[:, direction, e]
        for direction in range(4)
        for e, slot in enumerate(senders(direction, values.shape[2]))
    }


def test_slots_face_their_opposites() -> None:
    for slot, (row, column) in enumerate(RING):
        assert RING[7 - slot] == (-row, -column)
    for direction in range(4):  # a sweep hears only from the line it has just left
        axis, sign = (1 - direction % 2), (-1 if direction < 2 else 1)
        assert {RING[slot][axis] for slot in SENDERS[direction]} == {sign}
    assert sorted({slot for line in SENDERS for slot in line}) == list(range(8))


@pytest.mark.parametrize("kinds", [2, 4])
def test_directed_edges_of_a_symmetric_field_agree_from_both_ends(kinds: int) -> None:
    edges = symmetric_field(5, 6, kinds=kinds, batch=2).local.directed()
    weight, difference = by_slot(edges, "weight"), by_slot(edges, "difference")
    for (_, slot), w in weight.items():
        row, column = RING[slot]
        outside = shift(torch.ones(5, 6), row, column) == 0
        assert (w[:, outside] == 0).all()
        assert (w[:, ~outside] > 0).all()
        for (_, other), back in weight.items():
            if other == 7 - slot:  # the same edge seen from the sender
                torch.testing.assert_close(w, shift(back, row, column), rtol=0, atol=0)
    for (_, slot), r in difference.items():
        row, column = RING[slot]
        for (_, other), back in difference.items():
            if other == 7 - slot:
                moved = -clear_outside(shift(back, row, column), row, column)
                torch.testing.assert_close(clear_outside(r, row, column), moved, rtol=0, atol=0)


@pytest.mark.parametrize("kinds", [2, 4])
def test_directed_edges_have_the_energy_of_the_undirected_ones(kinds: int) -> None:
    """½ Σ over each edge once equals x'Ax/2 − b'x + constant of the system written down edge by edge."""
    mrf = symmetric_field(4, 5, kinds=kinds)
    matrix, right = dense_system(mrf)
    edges = mrf.local.directed()
    weight, difference = by_slot(edges, "weight"), by_slot(edges, "difference")
    once = {slot: (weight[d, slot], difference[d, slot]) for d, slot in weight}  # corners stand in two sweeps

    def energy(x: torch.Tensor) -> torch.Tensor:
        total = 0.5 * (mrf.weight[0, 0] * (x - mrf.depth[0, 0]) ** 2).sum()
        for slot, (w, r) in once.items():
            sender = shift(x, *RING[slot])
            total = total + 0.25 * (w[0] * (x - sender - r[0]) ** 2).sum()  # half: both directions are listed
        return total

    x, zero = (
        torch.randn(4, 5, generator=torch.Generator().manual_seed(1)).double(),
        torch.zeros(4, 5).double(),
    )
    quadratic = 0.5 * x.flatten() @ matrix @ x.flatten() - right @ x.flatten()
    torch.testing.assert_close(energy(x) - energy(zero), quadratic, rtol=1e-12, atol=1e-12)


def test_measured_changes_measurements_only() -> None:
    mrf = symmetric_field(3, 4)
    other = mrf.measured(mrf.depth + 1, mrf.weight * 2)
    assert other.local is mrf.local
    assert torch.equal(other.unary.information, (mrf.depth + 1) * mrf.weight * 2)


def test_iterations_are_those_of_the_dynamic_parameters() -> None:
    assert symmetric_field(3, 4).iterations is None
    assert directed_field(3, 4, iterations=3).iterations == 3
    mixed = directed_field(3, 4, iterations=3)
    shared_damping = replace(mixed.local, damping=mixed.local.damping[:, :1])
    field = replace(mixed, local=shared_damping)
    field.check()
    assert field.iterations == 3


def with_local(mrf: MRF, **changes: torch.Tensor) -> MRF:
    return replace(mrf, local=replace(mrf.local, **changes))


def test_a_good_field_passes() -> None:
    symmetric_field(3, 4).check()
    directed_field(3, 4).check()


def test_wrong_shapes_are_named() -> None:
    mrf = directed_field(3, 4)
    far = mrf.nonlocal_
    assert far is not None
    cases = [
        (
            replace(mrf, weight=mrf.weight[:, 0]),
            r"weight must have shape \[\*, 1, \*, \*\].*add the channel axis",
        ),
        (
            replace(mrf, depth=mrf.depth[..., :-1]),
            r"depth must have shape \[1, 1, 3, 4\]; got \[1, 1, 3, 3\]",
        ),
        (with_local(mrf, difference=mrf.local.difference[..., :2, :]), "local.difference must have shape"),
        (with_local(mrf, damping=mrf.local.damping[:, :, None]), "local.damping must have shape"),
        (with_local(mrf, weight=mrf.local.weight[:, :, :, :2]), "1 or 3 senders per sweep; got 2"),
        (replace(mrf, nonlocal_=replace(far, offset=far.offset[:, :, :, :1])), "nonlocal_.offset must have"),
        (replace(mrf, nonlocal_=replace(far, damping=far.damping[..., 0])), "nonlocal_.damping must have"),
        (replace(mrf, nonlocal_=replace(far, weight=far.weight[:, :, :1])), "nonlocal_.difference must have"),
        (
            with_local(mrf, weight=mrf.local.weight[:, :1].expand(-1, 3, -1, -1, -1, -1)),
            "one number of iterat",
        ),
    ]
    for bad, message in cases:
        with pytest.raises(InputError, match=message):
            bad.check()
    kinds = symmetric_field(3, 4)
    assert isinstance(kinds.local, SymmetricEdges)
    with pytest.raises(InputError, match="2 or 4 undirected edges per pixel; got 3"):
        with_local(kinds, weight=kinds.local.weight[:, :, :3]).check()
    empty = torch.zeros(1, 1, 0, 4)
    with pytest.raises(InputError, match="at least one image and one pixel"):
        replace(mrf, depth=empty, weight=empty).check()


def test_wrong_kinds_are_named() -> None:
    mrf = directed_field(3, 4)
    with pytest.raises(
        InputError, match=r"local.weight must be torch.float64 on cpu like weight; got torch.float32"
    ):
        with_local(mrf, weight=mrf.local.weight.float()).check()
    with pytest.raises(InputError, match=r"must be float32 or float64; got torch\.float16"):
        replace(mrf, weight=mrf.weight.half()).check()
    with pytest.raises(InputError, match=r"got torch\.float64 on meta"):
        with_local(mrf, damping=mrf.local.damping.to("meta")).check()


def test_wrong_values_are_named() -> None:
    mrf = directed_field(3, 4)
    with pytest.raises(InputError, match=r"local.weight must not be negative; got a minimum of -1\.\d"):
        with_local(mrf, weight=mrf.local.weight - 2).check()
    with pytest.raises(InputError, match=r"local.damping must lie in \[0, 1\]"):
        with_local(mrf, damping=mrf.local.damping + 2).check()
    bad = mrf.depth.clone()
    bad[0, 0, 0, :3] = torch.tensor([torch.nan, torch.inf, -torch.inf], dtype=bad.dtype)
    with pytest.raises(NonFiniteError, match="depth must be finite; got 3 NaN or infinite of 12 values"):
        replace(mrf, depth=bad).check()


def test_shift_reads_the_neighbour_and_zero_outside() -> None:
    x = torch.arange(6.0).view(2, 3)
    assert shift(x, 0, 1).tolist() == [[1, 2, 0], [4, 5, 0]]
    assert shift(x, -1, -1).tolist() == [[0, 0, 0], [0, 0, 1]]
    assert clear_outside(x, 1, 0).tolist() == [[0, 1, 2], [0, 0, 0]]
