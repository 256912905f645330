"""Weights of an ONNX file in fewer bits, with the nodes that widen them when it is loaded.

float16, bfloat16  rounded, and cast
float24            float16 of the weight over a power of two, and 8 bits of what rounding took, as a share:
                   weight = near · (1 + rest · 2⁻¹⁸) · unit, within 2⁻¹⁹ of itself
"""

from __future__ import annotations

import importlib
import math
from typing import Any

import numpy as np
import torch

__all__ = ["store_narrow"]

_STEP = 2.0**-18
"""float16 rounds by 2⁻¹¹ of a number at most; that in steps of 8 bits."""


def store_narrow(model: Any, precision: str = "float16") -> None:
    """Of all weights of more than one dimension. Runtimes widen them once, as they fold constants."""
    onnx = importlib.import_module("onnx")
    graph = model.graph
    stored, widening = [], []
    for tensor in graph.initializer:
        if tensor.data_type != onnx.TensorProto.FLOAT or len(tensor.dims) < 2:
            stored.append(tensor)
            continue
        weights = torch.from_numpy(onnx.numpy_helper.to_array(tensor).copy())
        store = _store_near_and_rest if precision == "float24" else _store_rounded
        parts, nodes = store(onnx, tensor.name, weights, precision)
        stored += parts
        widening += nodes
    nodes = [*widening, *graph.node]
    del graph.initializer[:], graph.node[:]
    graph.initializer.extend(stored)
    graph.node.extend(nodes)


def _store_rounded(
    onnx: Any, name: str, weights: torch.Tensor, precision: str
) -> tuple[list[Any], list[Any]]:
    narrow = _tensor(onnx, f"{name}_narrow", weights.to(getattr(torch, precision)))
    return [narrow], [_cast(onnx, narrow.name, name)]


def _store_near_and_rest(onnx: Any, name: str, weights: torch.Tensor, _: str) -> tuple[list[Any], list[Any]]:
    unit = _unit(weights)
    near = (weights / unit).half()
    stored = [
        _tensor(onnx, f"{name}_near", near),
        onnx.numpy_helper.from_array(_rest(weights / unit, near), f"{name}_rest"),
    ]
    constants = {"step": _STEP, "one": 1.0, "unit": unit}
    stored += [
        onnx.numpy_helper.from_array(np.array(v, np.float32), f"{name}_{k}") for k, v in constants.items()
    ]

    def node(kind: str, first: str, second: str, made: str) -> Any:
        return onnx.helper.make_node(kind, [f"{name}_{first}", f"{name}_{second}"], [made], f"{made}_made")

    return stored, [
        _cast(onnx, f"{name}_near", f"{name}_wide"),
        _cast(onnx, f"{name}_rest", f"{name}_steps"),
        node("Mul", "steps", "step", f"{name}_share"),
        node("Add", "share", "one", f"{name}_factor"),
        node("Mul", "wide", "factor", f"{name}_scaled"),
        node("Mul", "scaled", "unit", name),
    ]


def _unit(weights: torch.Tensor) -> float:
    """The power of two that brings the largest near the end of float16's range, where it is fine."""
    largest = float(weights.abs().max())
    return 2.0 ** (math.frexp(largest)[1] - 15)


def _rest(wanted: torch.Tensor, near: torch.Tensor) -> np.ndarray:
    """int8: by how many steps `near` is short."""
    there = near.double()
    share = torch.where(there != 0, (wanted.double() - there) / there, 0.0)
    return (share / _STEP).round().clamp(-128, 127).to(torch.int8).numpy()


def _tensor(onnx: Any, name: str, narrow: torch.Tensor) -> Any:
    """NumPy knows no bfloat16: the bits as they are."""
    kind = onnx.TensorProto.BFLOAT16 if narrow.dtype == torch.bfloat16 else onnx.TensorProto.FLOAT16
    bits = narrow.view(torch.int16).numpy().tobytes()
    return onnx.helper.make_tensor(name, kind, list(narrow.shape), bits, raw=True)


def _cast(onnx: Any, given: str, made: str) -> Any:
    return onnx.helper.make_node("Cast", [given], [made], f"{made}_widened", to=onnx.TensorProto.FLOAT)
