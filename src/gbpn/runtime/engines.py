"""Other people's runtimes that evaluate a network: arrays by name in, arrays by name out."""

from __future__ import annotations

import importlib
import importlib.util
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from gbpn.errors import BackendError, InputError
from gbpn.runtime.manifest import Network

__all__ = ["ENGINES", "Evaluate", "choose_engine", "load_network"]

_Arrays = dict[str, np.ndarray]
Evaluate = Callable[[Mapping[str, np.ndarray]], _Arrays]

ENGINES = ("onnxruntime", "openvino")
"""In the order in which "auto" takes them."""


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


def load_network(engine: str, network: Network, threads: int) -> Evaluate:
    """A network that is ready to be called, from several threads if need be."""
    return (_onnxruntime if engine == "onnxruntime" else _openvino)(network, threads)


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


def _openvino(network: Network, threads: int) -> Evaluate:
    package: Any = importlib.import_module("openvino")
    core = package.Core()
    settings = {"INFERENCE_NUM_THREADS": threads, "INFERENCE_PRECISION_HINT": "f32"}
    compiled = core.compile_model(core.read_model(str(network.path)), "CPU", settings)

    def evaluate(inputs: Mapping[str, np.ndarray]) -> _Arrays:
        request = compiled.create_infer_request()
        request.infer({name: inputs[name] for name in network.inputs})
        return {name: np.array(request.get_tensor(name).data) for name in network.outputs}

    return evaluate
