"""Depth completion at the NumPy and PIL border: anything in, metres and sigmas out."""

from gbpn.predict.completed import CompletedDepth
from gbpn.predict.completer import DepthCompleter

__all__ = ["CompletedDepth", "DepthCompleter"]
