"""Gaussian belief propagation on image-grid Markov random fields: a stand-alone differentiable solver."""

from gbpn.gbp.inference import infer
from gbpn.gbp.scheme import Scheme
from gbpn.gbp.state import Inference, Messages, Snapshot, Status

__all__ = ["Inference", "Messages", "Scheme", "Snapshot", "Status", "infer"]
