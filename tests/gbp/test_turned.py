"""Inferences without a tape sweep a turned copy of the image; with one, panels of columns. Both are one."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch

pytest.importorskip("gbpn._native", reason="gbpn was installed without its C++ kernels")

from gbpn.bench.gbp import field
from gbpn.gbp import infer
from gbpn.mrf import MRF, LocalEdges


def by_iteration(mrf: MRF, count: int) -> MRF:
    """Every iteration with local parameters of its own."""
    local = mrf.directed().local
    assert isinstance(local, LocalEdges)
    factors = torch.linspace(0.5, 1, count)
    return replace(
        mrf,
        local=LocalEdges(
            weight=local.weight * factors.view(1, -1, 1, 1, 1, 1),
            difference=local.difference,
            damping=local.damping * factors.view(1, -1, 1, 1),
        ),
    )


@pytest.mark.parametrize("size", [(1, 1), (1, 7), (9, 1), (33, 65), (48, 80)])
@pytest.mark.parametrize("learned", [0, 3])
@pytest.mark.parametrize("dynamic", [False, True])
def test_both_ways_give_the_same(size: tuple[int, int], learned: int, dynamic: bool) -> None:
    mrf = field(*size, learned=learned).directed()
    mrf = by_iteration(mrf, 3) if dynamic else mrf
    options = {"iterations": 3, "backend": "cpu", "reweighting": 0.3}
    messages = None
    for _ in range(2):  # cold, then warm
        with torch.no_grad():
            turned = infer(mrf, messages, **options)
        asked = replace(mrf, weight=mrf.weight.clone().requires_grad_())
        panels = infer(asked, messages, **options)
        for got, wanted in (
            (turned.belief, panels.belief),
            (turned.messages.local, panels.messages.local),
            (turned.messages.nonlocal_, panels.messages.nonlocal_),
        ):
            torch.testing.assert_close(got.information, wanted.information.detach(), rtol=1e-5, atol=1e-5)
            torch.testing.assert_close(got.precision, wanted.precision.detach(), rtol=1e-5, atol=1e-5)
        messages = turned.messages
