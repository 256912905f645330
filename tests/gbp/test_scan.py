"""A sweep as one scan is the reference's sweep."""

from __future__ import annotations

import importlib
import sys

import pytest
import torch

from fields import directed_field, symmetric_field
from gbpn import infer
from gbpn.errors import BackendError


@pytest.mark.parametrize(("size", "reweighting"), [((1, 1), 1.0), ((1, 7), 0.3), ((5, 4), 0.3)])
def test_scan_and_reference_are_twins(size: tuple[int, int], reweighting: float) -> None:
    for field in (directed_field(*size), symmetric_field(*size, kinds=2, damping=0.2)):
        plan = {"iterations": 1, "reweighting": reweighting}
        scan, reference = infer(field, backend="scan", **plan), infer(field, backend="reference", **plan)
        assert scan.backend == "scan"
        for got, wanted in (
            (scan.belief, reference.belief),
            (scan.messages.local, reference.messages.local),
            (scan.messages.nonlocal_, reference.messages.nonlocal_),
        ):
            torch.testing.assert_close(got.information, wanted.information, rtol=1e-12, atol=1e-12)
            torch.testing.assert_close(got.precision, wanted.precision, rtol=1e-12, atol=1e-12)


def test_a_torch_without_scan_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "torch._higher_order_ops.scan", None)
    monkeypatch.delitem(sys.modules, "gbpn.gbp.scan", raising=False)
    with pytest.raises(BackendError, match="needs torch's scan operator"):
        importlib.import_module("gbpn.gbp.scan")
