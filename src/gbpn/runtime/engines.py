"""Other people's runtimes that evaluate a network: arrays by name in, arrays by name out."""

from __future__ import annotations

import importlib
import importlib.util
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from gbpn.errors import BackendError, InputError
from gbpn.runtime.manifest import Network

__all__ = ["ENGINES", "Evaluate", "choose_engine", "choose_precision", "load_network"]

_Arrays = dict[str, np.ndarray]
Evaluate = Callable[[Mapping[str, np.ndarray]], _Arrays]

ENGINES = ("onnxruntime", "openvino")
"""In the order in which "auto" takes them."""
_HINTS = {"float32": "f32", "bfloat16": "bf16"}
"""What OpenVINO calls precisions."""


def choose_engine(name: str) -> str:
    """The engine to use, or an error that says how to get it."""
    if name not in ("auto", *ENGINES):
        raise InputError(f"engine must be one of auto, {', '.join(ENGINES)}; got {name!r}")
    wanted = ENGINES if name == "auto" else (name,)
    for engine in wanted:
        if importlib.util.find_spec(engine) is not None:
            return engine
    raise BackendError(
        f"networks need {' or '.join(wanted)}, which is not installed: pip install {wanted[0]}"
    )


def choose_precision(name: str, engine: str, stored: str) -> str:
    """In which the networks are computed; `stored`: in which their weights were exported."""
    if name not in ("auto", "float32", "bfloat16"):
        raise InputError(f"precision must be auto, float32 or bfloat16; got {name!r}")
    if name == "bfloat16" and engine != "openvino":
        raise InputError(f"{engine} computes in float32 on processors: use openvino for bfloat16")
    if name == "auto":
        return "bfloat16" if stored == "bfloat16" and engine == "openvino" else "float32"
    return name


def load_network(engine: str, network: Network, threads: int, precision: str = "float32") -> Evaluate:
    """A network that is ready to be called, from several threads if need be."""
    if engine == "onnxruntime":
        return _onnxruntime(network, threads)
    return _openvino(network, threads, precision)


def _onnxruntime(network: Network, threads: int) -> Evaluate:
    package: Any = importlib.import_module("onnxruntime")
    options = package.SessionOptions()
    options.intra_op_num_threads = threads
    options.inter_op_num_threads = 1
    options.log_severity_level = 3
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    session = package.InferenceSession(
        str(network.path), sess_options=options, providers=["CPUExecutionProvider"]
    )

    def evaluate(inputs: Mapping[str, np.ndarray]) -> _Arrays:
        given = {name: inputs[name] for name in network.inputs}
        return dict(zip(network.outputs, session.run(list(network.outputs), given), strict=True))

    return evaluate


def _openvino(network: Network, threads: int, precision: str) -> Evaluate:
    package: Any = importlib.import_module("openvino")
    core = package.Core()
    settings = {"INFERENCE_NUM_THREADS": threads, "INFERENCE_PRECISION_HINT": _HINTS[precision]}
    compiled = core.compile_model(core.read_model(str(network.path)), "CPU", settings)

    def evaluate(inputs: Mapping[str, np.ndarray]) -> _Arrays:
        request = compiled.create_infer_request()
        request.infer({name: inputs[name] for name in network.inputs})
        return {name: np.array(request.get_tensor(name).data) for name in network.outputs}

    return evaluate
