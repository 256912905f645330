"""Memory that is used again: nobody gets what another still looks at."""

from __future__ import annotations

import threading

import pytest
import torch

from gbpn.kernels import memory as kept_memory

pytest.importorskip("gbpn._native", reason="needs the compiled module gbpn._native")

LIKE = torch.zeros(1)
SHAPE = (2, 3, 64, 96)


def test_a_map_that_is_gone_gives_its_memory_to_the_next() -> None:
    first = kept_memory.empty(SHAPE, like=LIKE)
    assert first.shape == SHAPE
    assert first.is_contiguous()
    place = first.data_ptr()
    del first
    assert kept_memory.empty(SHAPE, like=LIKE).data_ptr() == place


def test_views_hold_on_to_their_memory() -> None:
    part = kept_memory.empty(SHAPE, like=LIKE).fill_(7.0)[1, 1:, 5]
    others = [kept_memory.empty(SHAPE, like=LIKE).fill_(float(n)) for n in range(4)]
    assert bool((part == 7.0).all())
    assert len({x.data_ptr() for x in others}) == 4
    assert all(bool((x == n).all()) for n, x in enumerate(others))


@pytest.mark.parametrize("dtype", [torch.float64, torch.float16])
def test_other_kinds_and_small_maps_are_torchs_own(dtype: torch.dtype) -> None:
    made = kept_memory.empty(SHAPE, like=LIKE.to(dtype))
    assert made.dtype == dtype
    assert kept_memory.empty((3, 0), like=LIKE).shape == (3, 0)
    assert kept_memory.empty((2, 2), like=LIKE).untyped_storage().resizable()


def test_gradients_and_modes() -> None:
    with torch.inference_mode():
        inside = kept_memory.empty(SHAPE, like=LIKE).fill_(2.0)
        assert bool((inside * 2 == 4).all())
    outside = kept_memory.empty(SHAPE, like=LIKE).fill_(1.0).requires_grad_()
    (outside * 3).sum().backward()
    assert outside.grad is not None
    assert bool((outside.grad == 3).all())


def test_threads_do_not_share() -> None:
    wrong: list[int] = []

    def work(number: int) -> None:
        for _ in range(50):
            made = kept_memory.empty(SHAPE, like=LIKE).fill_(float(number))
            again = kept_memory.empty(SHAPE, like=LIKE).fill_(-1.0)
            if not bool((made == number).all()) or not bool((again == -1).all()):
                wrong.append(number)

    threads = [threading.Thread(target=work, args=(n,)) for n in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong
