"""Depth completion with uncertainty: a learned Markov random field and Gaussian belief propagation."""

from gbpn.checkpoint import load
from gbpn.depth import DepthDistribution
from gbpn.errors import GbpnError
from gbpn.gaussian import Gaussian
from gbpn.gbp import Inference, Messages, infer
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
