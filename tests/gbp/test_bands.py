"""Inferences without a tape run in diagonal bands; with one, sweep by sweep. Both are one inference."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch

pytest.importorskip("gbpn._native", reason="gbpn was installed without its C++ kernels")

from gbpn.bench.gbp import field
from gbpn.gbp import infer
from gbpn.mrf import MRF, LocalEdges, NonLocalEdges


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


def as_type(mrf: MRF, dtype: torch.dtype) -> MRF:
    local, far = mrf.local, mrf.nonlocal_
    assert isinstance(local, LocalEdges)
    return replace(
        mrf,
        depth=mrf.depth.to(dtype),
        weight=mrf.weight.to(dtype),
        local=LocalEdges(**{name: x.to(dtype) for name, x in vars(local).items()}),
        nonlocal_=far and NonLocalEdges(**{name: x.to(dtype) for name, x in vars(far).items()}),
    )


SIZES = [(1, 1), (1, 7), (9, 1), (1, 40), (40, 1), (16, 16), (5, 100), (100, 6), (33, 65), (48, 80)]


@pytest.mark.parametrize("size", SIZES, ids=lambda size: "x".join(map(str, size)))
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=["float32", "float64"])
@pytest.mark.parametrize(("learned", "dynamic"), [(0, False), (3, True)], ids=["shared", "dynamic"])
@pytest.mark.usefixtures("level")
def test_both_ways_give_the_same(
    size: tuple[int, int], dtype: torch.dtype, learned: int, dynamic: bool
) -> None:
    mrf = as_type(field(*size, learned=learned).directed(), dtype)
    mrf = by_iteration(mrf, 3) if dynamic else mrf
    options = {"iterations": 3, "backend": "cpu", "reweighting": 0.3}
    tolerance = 1e-12 if dtype == torch.float64 else 1e-5
    messages = None
    for _ in range(2):  # cold, then warm
        with torch.no_grad():
            bands = infer(mrf, messages, **options)
        asked = replace(mrf, weight=mrf.weight.clone().requires_grad_())
        sweeps = infer(asked, messages, **options)
        for got, wanted in (
            (bands.belief, sweeps.belief),
            (bands.messages.local, sweeps.messages.local),
            (bands.messages.nonlocal_, sweeps.messages.nonlocal_),
        ):
            for part in ("information", "precision"):
                torch.testing.assert_close(
                    getattr(got, part), getattr(wanted, part).detach(), rtol=tolerance, atol=tolerance
                )
        messages = bands.messages


@pytest.mark.parametrize("size", [(33, 65), (70, 41)])
def test_bands_are_the_definition(size: tuple[int, int]) -> None:
    mrf = field(*size, learned=3)
    options = {"iterations": 3, "reweighting": 0.3}
    with torch.no_grad():
        wanted, got = (infer(mrf, backend=name, **options).belief for name in ("reference", "cpu"))
    torch.testing.assert_close(got.mean, wanted.mean, rtol=0, atol=1e-5)


def test_what_is_not_known_stays_unknown() -> None:
    """No measurement: zeros, and nothing that is not finite, through weights of zero too."""
    mrf = field(21, 37).directed()
    assert isinstance(mrf.local, LocalEdges)
    local = replace(mrf.local, weight=torch.zeros_like(mrf.local.weight))
    for empty in (replace(mrf, weight=torch.zeros_like(mrf.weight)), replace(mrf, local=local)):
        with torch.no_grad():
            answer = infer(empty, iterations=3, backend="cpu")
        assert bool(answer.belief.information.isfinite().all())
        assert bool((answer.belief.precision == empty.weight).all())
