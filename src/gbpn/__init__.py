"""Depth completion with uncertainty: a learned Markov random field and Gaussian belief propagation."""

import os

# Threads that wait for each other sleep instead of spinning: on a machine with other work, spinning made
# everything five times slower. Read when torch is first loaded; a setting of the user's own stays.
os.environ.setdefault("OMP_WAIT_POLICY", "passive")

from gbpn.distribution import DepthDistribution
from gbpn.errors import GbpnError
from gbpn.gaussian import Gaussian
from gbpn.gbp import Inference, Messages, infer
from gbpn.loading import load
from gbpn.model import GBPN, build
from gbpn.mrf import MRF, LocalEdges, NonLocalEdges, SymmetricEdges
from gbpn.predict import CompletedDepth, DepthCompleter
from gbpn.sample import Sample

__version__ = "0.1.0"

__all__ = [
    "GBPN",
    "MRF",
    "CompletedDepth",
    "DepthCompleter",
    "DepthDistribution",
    "Gaussian",
    "GbpnError",
    "Inference",
    "LocalEdges",
    "Messages",
    "NonLocalEdges",
    "Sample",
    "SymmetricEdges",
    "build",
    "infer",
    "load",
]
