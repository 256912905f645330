"""What a belief says: the compiled forms against the plain ones, in double precision."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from gbpn.gaussian import Gaussian
from gbpn.measurements.unit import DepthUnit
from gbpn.model import read_out

native = pytest.importorskip("gbpn._native", reason="needs the compiled module gbpn._native")

SIZES = [(1, 1), (1, 7), (33, 65), (16, 48)]
CLOSE = {"rtol": 5e-6, "atol": 1e-6, "equal_nan": True}


def belief(height: int, width: int) -> tuple[Gaussian, Tensor]:
    """Precisions over many decades, some of them 0, and a residual."""
    torch.manual_seed(height * width)
    shape = (2, 1, height, width)
    precision = (6 * torch.randn(shape)).exp() * (torch.rand(shape) < 0.8)
    return Gaussian(precision * torch.randn(shape), precision), torch.randn(shape)


def units(dtype: torch.dtype, kind: str = "log") -> tuple[DepthUnit, DepthUnit]:
    metres = torch.tensor([2.5, 0.3], dtype=dtype).view(2, 1, 1, 1)
    return DepthUnit(kind=kind, metres=metres), DepthUnit(kind=kind, metres=3 * metres)


@pytest.mark.parametrize("size", SIZES)
def test_answer(level: str, size: tuple[int, int]) -> None:
    found, residual = belief(*size)
    wide = Gaussian(found.information.double(), found.precision.double())
    got = read_out.answer(found, None, residual, units(torch.float32)[0], "log")
    wanted = read_out.answer(wide, None, residual.double(), units(torch.float64)[0], "log")
    for fast, plain in zip(got, wanted, strict=True):
        assert fast.dtype == torch.float32
        torch.testing.assert_close(fast.double(), plain, **CLOSE)
    assert torch.equal(got[0].isnan(), found.precision == 0)


@pytest.mark.parametrize("size", SIZES)
def test_seen(level: str, size: tuple[int, int]) -> None:
    found, residual = belief(*size)
    measurement, weight = torch.randn(residual.shape), torch.rand(residual.shape) - 0.5
    weight = weight.clamp(min=0)
    wide = Gaussian(found.information.double(), found.precision.double())
    got = read_out.seen(found, residual, measurement, weight, *units(torch.float32), "log")
    wanted = read_out.seen(
        wide, residual.double(), measurement.double(), weight.double(), *units(torch.float64), "log"
    )
    for fast, plain in zip(got, wanted, strict=True):
        assert fast.dtype == torch.float32
        torch.testing.assert_close(fast.double(), plain, **CLOSE)


def test_gradients_and_other_units_take_the_plain_way() -> None:
    found, residual = belief(3, 5)
    residual.requires_grad_()
    read_out.answer(found, None, residual, units(torch.float32)[0], "log")[1].sum().backward()
    assert residual.grad is not None
    assert bool((residual.grad == 1).all())
    metric = units(torch.float32, "metric")[0]
    mean, logit = read_out.answer(found, None, residual.detach(), metric, "sum")
    torch.testing.assert_close(mean, found.mean, equal_nan=True)
    torch.testing.assert_close(logit, found.precision + residual.detach())


def test_same_bits_with_any_number_of_threads() -> None:
    found, residual = belief(70, 41)
    threads, results = torch.get_num_threads(), []
    try:
        for count in (1, 2, 3):
            torch.set_num_threads(count)
            answer = read_out.answer(found, None, residual, units(torch.float32)[0], "log")
            seen = read_out.seen(found, residual, residual, residual, *units(torch.float32), "log")
            results.append([x.nan_to_num(-1.0) for x in (*answer, *seen)])
    finally:
        torch.set_num_threads(threads)
    for other in results[1:]:
        assert all(torch.equal(a, b) for a, b in zip(other, results[0], strict=True))
