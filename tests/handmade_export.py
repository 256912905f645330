"""A folder as `gbpn export` writes it, with a network written down by hand: exporters take long."""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

from gbpn.config import named
from gbpn.distribution import SigmaCalibration
from gbpn.runtime.manifest import FORMAT, MANIFEST, VERSION

CALIBRATION = SigmaCalibration(knots=(-8.0, -1.0, 6.0), log_std=(0.5, -2.0, -4.0), relative=True)
PLANES = {"unary": 1, "residual": 1, "local_weight": 4, "local_difference": 4, "local_damping": 1}
"""Of what is drawn: an edge has four directions."""
BOUNDED = {"unary": "Exp", "local_weight": "Exp", "local_damping": "Sigmoid"}
"""What makes a plane of any numbers one of its kind."""


def write_folder(
    folder: Path, *, seed: int = 0, calibration: SigmaCalibration | None = CALIBRATION, **card: Any
) -> Path:
    """One stage: a convolution of single pixels draws the field."""
    from onnx import TensorProto, helper, numpy_helper

    rng = np.random.default_rng(seed)
    weights = (0.1 * rng.standard_normal((sum(PLANES.values()), 3, 1, 1))).astype(np.float32)
    sizes = {name: [1, 1, 4, 1] if count > 1 else [1, 1] for name, count in PLANES.items()}
    nodes = [
        helper.make_node("Conv", ["image", "weights"], ["planes"]),
        helper.make_node("Split", ["planes", "counts"], [f"{name}_plane" for name in PLANES], axis=1),
    ]
    for name, count in PLANES.items():
        bounded = f"{name}_bounded" if count > 1 else name
        nodes.append(helper.make_node(BOUNDED.get(name, "Identity"), [f"{name}_plane"], [bounded]))
        if count > 1:  # [1, 4, H, W] → [1, 1, 4, 1, H, W]
            nodes.append(helper.make_node("Unsqueeze", [bounded, "axes"], [name]))
    graph = helper.make_graph(
        nodes,
        "first",
        [
            helper.make_tensor_value_info("image", TensorProto.FLOAT, [1, 3, "height", "width"]),
            helper.make_tensor_value_info("intrinsics", TensorProto.FLOAT, [1, 3, 3]),
        ],
        [
            helper.make_tensor_value_info(name, TensorProto.FLOAT, [*size, "height", "width"])
            for name, size in sizes.items()
        ],
        [
            numpy_helper.from_array(weights, "weights"),
            numpy_helper.from_array(np.array(list(PLANES.values()), np.int64), "counts"),
            numpy_helper.from_array(np.array([1, 3], np.int64), "axes"),
        ],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=10)
    folder.mkdir(parents=True)
    (folder / "first.onnx").write_bytes(model.SerializeToString())
    config = named("small").overridden({"nonlocal_edges": 0, "iterations": (2,)})
    manifest = {
        "format": FORMAT,
        "version": VERSION,
        "form": "runtime",
        "precision": "float32",
        "size": None,
        "multiple": 32,
        "smallest": 32,
        "networks": [
            {
                "name": "first",
                "file": "first.onnx",
                "sha256": hashlib.sha256((folder / "first.onnx").read_bytes()).hexdigest(),
                "inputs": ["image", "intrinsics"],
                "outputs": list(PLANES),
            }
        ],
        "config": config.as_dict(),
        "calibration": None if calibration is None else asdict(calibration),
        "card": {"drawn by": "hand", **card},
    }
    (folder / MANIFEST).write_text(json.dumps(manifest))
    return folder
