"""Models as torch's own graphs: exported, stored, read again, compiled; the numbers stay."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from models import CALIBRATION, THIN, tensors, thin

from gbpn.errors import InputError, NonFiniteError
from gbpn.export.exported_folder import smallest_multiple
from gbpn.export.networks import WholeModel, stated_std
from gbpn.export.onnx_files import exported_program
from gbpn.kernels.checks import require_finite, require_not_negative, values_are_known
from gbpn.network import MULTIPLE

ROUNDING = {"rtol": 1e-4, "atol": 1e-5}
"""Float32 through a network and an inference; kernels are fused differently in a graph."""
BESIDE = 1e-4
"""Share of pixels that may differ by more: an untrained field of learned edges can blow up a rounding."""


def assert_same(got: torch.Tensor, wanted: torch.Tensor) -> None:
    assert got.shape == wanted.shape
    assert got.dtype == wanted.dtype
    near = torch.isclose(got.float(), wanted.float(), equal_nan=True, **ROUNDING)
    assert float((~near).float().mean()) <= BESIDE
    torch.testing.assert_close(got, wanted, equal_nan=True, rtol=1e-2, atol=1e-3)


class Looks(torch.nn.Module):
    """A module that checks its input."""

    def forward(self, depth: torch.Tensor) -> torch.Tensor:
        require_finite(depth=depth)
        require_not_negative("depth", depth, "0 means none")
        return depth + (1 if values_are_known() else 2)


def test_values_are_looked_at_in_eager_mode_only() -> None:
    depth = torch.ones(4)
    assert values_are_known()
    assert torch.equal(Looks()(depth), depth + 1)
    with pytest.raises(NonFiniteError, match="depth must be finite"):
        Looks()(depth * torch.nan)
    with pytest.raises(InputError, match="depth must not be negative"):
        Looks()(-depth)
    program = torch.export.export(Looks(), (depth,))
    compiled = torch.compile(Looks(), fullgraph=True, backend="eager")
    for traced in (program.module(), compiled):
        assert torch.equal(traced(depth), depth + 2)
        assert torch.equal(traced(-depth), 2 - depth)
    assert values_are_known()


def test_the_sum_over_pieces_is_the_calibration() -> None:
    logit = torch.linspace(-9, 9, 101).view(1, 1, 1, -1)
    mean = torch.linspace(1, 5, 101).view(1, 1, 1, -1)
    torch.testing.assert_close(stated_std(CALIBRATION, mean, logit), CALIBRATION.std(mean, logit))


@pytest.mark.parametrize("name", THIN)
def test_an_exported_model_is_stored_read_and_gives_the_same(name: str, tmp_path: Path) -> None:
    whole = WholeModel(thin(name))
    inputs = tensors(50, 70)
    program = exported_program(whole, inputs)
    torch.export.save(program, tmp_path / "model.pt2")
    again = torch.export.load(tmp_path / "model.pt2").module()
    with torch.no_grad():
        for stored, eager in zip(again(*inputs), whole(*inputs), strict=True):
            assert_same(stored, eager)


@pytest.mark.parametrize("name", THIN)
def test_one_graph_serves_all_sizes(name: str) -> None:
    whole = WholeModel(thin(name))
    least = max(smallest_multiple(whole.model.config), 2)
    size = (least + 1) * MULTIPLE, (least + 2) * MULTIPLE
    program = exported_program(whole, tensors(*size), multiple=MULTIPLE, smallest=least).module()
    with torch.no_grad():
        for height, width in (size, ((least + 2) * MULTIPLE, least * MULTIPLE)):
            inputs = tensors(height, width)
            for traced, eager in zip(program(*inputs), whole(*inputs), strict=True):
                assert_same(traced, eager)


@pytest.mark.parametrize("name", THIN)
def test_a_model_compiles_without_a_break(name: str) -> None:
    whole = WholeModel(thin(name))
    inputs = tensors(64, 96)
    compiled = torch.compile(whole, fullgraph=True, backend="aot_eager")
    with torch.no_grad():
        for traced, eager in zip(compiled(*inputs), whole(*inputs), strict=True):
            assert_same(traced, eager)
