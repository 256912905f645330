"""Torch modules as ONNX files that are checked before they appear."""

from __future__ import annotations

import importlib
import importlib.util
import logging
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from torch import nn
from torch.export import Dim, ExportedProgram

from gbpn.errors import BackendError
from gbpn.export.stored_weights import store_narrow
from gbpn.files.atomic import replacing

__all__ = ["exported_program", "require_packages", "write_onnx"]

_NEEDED = ("onnx", "onnxscript")
_OPSET = 18
"""Known to every runtime of the last years."""


def require_packages() -> None:
    """Raise unless the packages that write ONNX are installed."""
    if missing := [name for name in _NEEDED if importlib.util.find_spec(name) is None]:
        raise BackendError(f'ONNX files need {" and ".join(missing)}: pip install "gbpn[onnx]"')


def exported_program(
    module: nn.Module, inputs: tuple[Any, ...], *, multiple: int | None = None, smallest: int = 1
) -> ExportedProgram:
    """The module as torch's own graph; every input is a tensor or a sequence of tensors.

    multiple  None: for the sizes of `inputs` only. Otherwise maps of `inputs[0]`'s size may have any height
              and width that are multiples of this, from `smallest` multiples on, and others follow; torch
              itself wants two, a length of one being a case of its own.
    """
    shapes = None
    if multiple is not None:
        sides = Dim("rows", min=max(smallest, 2)), Dim("columns", min=max(smallest, 2))
        units = inputs[0].shape[-2] // multiple, inputs[0].shape[-1] // multiple
        shapes = tuple(_free_sides(value, sides, units) for value in inputs)
    with torch.no_grad(), _quiet():
        return torch.export.export(module, inputs, dynamic_shapes=shapes, strict=False)


def _free_sides(value: Any, sides: tuple[Any, Any], units: tuple[int, int]) -> Any:
    """Which axes of a tensor [..., H, W], or of several, may have other lengths: multiples of `sides`.

    units  how many multiples the example has; a camera matrix has none
    """
    if isinstance(value, list | tuple):
        return type(value)(_free_sides(item, sides, units) for item in value)
    if tuple(value.shape[-2:]) == (3, 3):
        return None
    return {
        value.dim() - 2 + n: (value.shape[n - 2] // unit) * side
        for n, (side, unit) in enumerate(zip(sides, units, strict=True))
    }


def write_onnx(
    program: ExportedProgram,
    path: Path,
    *,
    inputs: Sequence[str],
    outputs: Sequence[str],
    precision: str = "float32",
    facts: dict[str, str] | None = None,
) -> Path:
    """One self-contained file. Weights of a narrower `precision` are widened when it is loaded."""
    require_packages()
    onnx = importlib.import_module("onnx")
    with _quiet():
        written = torch.onnx.export(
            program,
            (),
            input_names=list(inputs),
            output_names=list(outputs),
            opset_version=_OPSET,
            dynamo=True,
            verbose=False,
        )
    assert written is not None
    model = written.model_proto
    if precision != "float32":
        store_narrow(model, precision)
    for key, value in (facts or {}).items():
        entry = model.metadata_props.add()
        entry.key, entry.value = key, value
    onnx.checker.check_model(model, full_check=True)
    with replacing(path) as temporary:
        temporary.write_bytes(model.SerializeToString())
    return path


@contextmanager
def _quiet() -> Iterator[None]:
    """Exporters tell much that is of no use to those who call them."""
    level = logging.root.manager.disable
    logging.disable(logging.WARNING)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        logging.disable(level)
