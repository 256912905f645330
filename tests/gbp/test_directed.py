"""Both directions of undirected edges: the compiled form against `SymmetricEdges.directed`, bit for bit."""

from __future__ import annotations

import pytest
import torch

from gbpn import MRF, SymmetricEdges

pytest.importorskip("gbpn._native", reason="needs the compiled module gbpn._native")

from gbpn.gbp import cpu


def field(edges: int, sets: int, height: int, width: int, dtype: torch.dtype) -> MRF:
    torch.manual_seed(height * width)
    local = SymmetricEdges(
        weight=torch.rand(2, sets, edges, height, width, dtype=dtype),
        difference=torch.randn(2, 1, edges, height, width, dtype=dtype),
        damping=torch.rand(2, 1, height, width, dtype=dtype),
    )
    plane = torch.rand(2, 1, height, width, dtype=dtype)
    return MRF(depth=plane, weight=plane, local=local)


@pytest.mark.parametrize("size", [(1, 1), (1, 7), (7, 1), (2, 2), (33, 65)])
@pytest.mark.parametrize("edges", [2, 4])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_same_as_the_definition(size: tuple[int, int], edges: int, dtype: torch.dtype) -> None:
    given = field(edges, 2, *size, dtype)
    threads = torch.get_num_threads()
    try:
        for count in (1, 3):
            torch.set_num_threads(count)
            got, wanted = cpu.directed(given).local, given.directed().local
            assert torch.equal(got.weight, wanted.weight)
            assert torch.equal(got.difference, wanted.difference)
            assert got.damping is given.local.damping
    finally:
        torch.set_num_threads(threads)


def test_gradients_take_the_plain_way() -> None:
    given = field(4, 1, 3, 5, torch.float64)
    given.local.weight.requires_grad_()
    cpu.directed(given).local.weight.sum().backward()
    assert given.local.weight.grad is not None
    inside = given.directed().local.weight.detach() > 0
    assert float(given.local.weight.grad.sum()) == float(inside.sum())


def test_a_directed_field_stays_as_it_is() -> None:
    given = field(4, 1, 3, 5, torch.float32).directed()
    assert cpu.directed(given) is given
