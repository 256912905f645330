"""Depth completion with uncertainty: a learned Markov random field and Gaussian belief propagation.

Names are loaded when they are first asked for: `gbpn.runtime` works where torch is not installed.
"""

import importlib
import importlib.util
import os
from typing import TYPE_CHECKING, Any

# Threads that wait for each other sleep instead of spinning: on a machine with other work, spinning made
# everything five times slower. Read when torch is first loaded; a setting of the user's own stays.
os.environ.setdefault("OMP_WAIT_POLICY", "passive")

if TYPE_CHECKING:
    from gbpn.distribution import DepthDistribution
    from gbpn.errors import GbpnError
    from gbpn.gaussian import Gaussian
    from gbpn.gbp import Inference, Messages, infer
    from gbpn.inputs.clouds import project
    from gbpn.model.loading import load
    from gbpn.model.models import GBPN, build
    from gbpn.mrf import MRF, LocalEdges, NonLocalEdges, SymmetricEdges
    from gbpn.predict import DepthCompleter
    from gbpn.predict.live import Live
    from gbpn.sample import Sample

__version__ = "0.2.0"

__all__ = [
    "GBPN",
    "MRF",
    "CompletedDepth",
    "DepthCompleter",
    "DepthDistribution",
    "Gaussian",
    "GbpnError",
    "Inference",
    "Live",
    "LocalEdges",
    "Messages",
    "NonLocalEdges",
    "Sample",
    "SymmetricEdges",
    "build",
    "infer",
    "load",
    "project",
]

_HOMES = {
    "GBPN": "model.models",
    "MRF": "mrf",
    "CompletedDepth": "answer",
    "DepthCompleter": "predict.completer",
    "DepthDistribution": "distribution",
    "Gaussian": "gaussian",
    "GbpnError": "errors",
    "Inference": "gbp",
    "Live": "predict.live",
    "LocalEdges": "mrf",
    "Messages": "gbp",
    "NonLocalEdges": "mrf",
    "Sample": "sample",
    "SymmetricEdges": "mrf",
    "build": "model.models",
    "infer": "gbp",
    "load": "model.loading",
    "project": "inputs.clouds",
}
"""In which module a public name lives."""


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        found = getattr(importlib.import_module(f"gbpn.{_HOMES[name]}"), name)
        globals()[name] = found
        return found
    if not name.startswith("_") and importlib.util.find_spec(f"gbpn.{name}") is not None:
        return importlib.import_module(f"gbpn.{name}")
    raise AttributeError(f"module 'gbpn' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
