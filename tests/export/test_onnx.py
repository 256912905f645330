"""Pure ONNX files: standard operators only, the same answers at more than one size."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from models import tensors, thin

from gbpn import build
from gbpn.errors import InputError
from gbpn.export import export
from gbpn.export.networks import WholeModel

onnx = pytest.importorskip("onnx", reason="needs pip install gbpn[onnx]")
onnxruntime = pytest.importorskip("onnxruntime", reason="needs pip install gbpn[onnx]")

EXACT = 1e-6
"""Relative to the largest value of a map, beside what the convolutions of two libraries differ by."""


def run(path: Path, inputs: tuple[torch.Tensor, ...]) -> list[np.ndarray]:
    session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
    names = [value.name for value in session.get_inputs()]
    assert names == ["image", "sparse", "intrinsics"]
    return session.run(None, {name: x.numpy() for name, x in zip(names, inputs, strict=True)})


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("pure")
    export(thin("shallow"), folder, form="pure")
    return folder


def test_only_standard_operators(folder: Path) -> None:
    model = onnx.load(folder / "model.onnx")
    onnx.checker.check_model(model, full_check=True)
    assert {entry.domain for entry in model.opset_import} <= {"", "ai.onnx"}
    assert not model.functions
    kinds = [node.op_type for node in model.graph.node]
    assert kinds.count("Scan") == 4 * sum(thin("shallow").config.iterations)
    assert all(node.domain == "" for node in model.graph.node)


@pytest.mark.parametrize("size", [(64, 96), (96, 32)])
def test_the_answer_is_that_of_torch(folder: Path, size: tuple[int, int]) -> None:
    inputs = tensors(*size)
    whole = WholeModel(thin("shallow").fuse())
    with torch.no_grad():
        wanted = whole(*inputs)
    for name, got, eager in zip(whole.outputs, run(folder / "model.onnx", inputs), wanted, strict=True):
        expected = eager.numpy()
        assert np.array_equal(np.isnan(got), np.isnan(expected)), name
        error = np.nanmax(np.abs(got.astype(np.float64) - expected)) / np.nanmax(expected)
        assert error < 10 * EXACT, (name, error)


def test_what_has_no_field_or_too_few_pixels_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="cannot be exported"):
        export(build("v1", width=0.0625), tmp_path)
    with pytest.raises(InputError, match="size must be at least 32×32"):
        export(thin("shallow"), tmp_path, size=(20, 64))
    with pytest.raises(InputError, match="form must be one of"):
        export(thin("shallow"), tmp_path, form="other")
    assert not list(tmp_path.iterdir())


def test_every_part_of_a_model_is_written(tmp_path: Path) -> None:
    """Learned edges, the depth-like map, density, corrections by iteration and attention."""
    model, inputs = thin("small-prior"), tensors(64, 96)
    export(model, tmp_path, form="pure", size=(64, 96))
    whole = WholeModel(model.fuse())
    with torch.no_grad():
        wanted = whole(*inputs)
    for name, got, eager in zip(whole.outputs, run(tmp_path / "model.onnx", inputs), wanted, strict=True):
        near = np.isclose(got.astype(np.float64), eager.numpy(), rtol=1e-4, atol=1e-5)
        assert near.mean() > 1 - 1e-3, (name, near.mean())
