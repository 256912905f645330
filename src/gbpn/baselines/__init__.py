"""Depth completion without learning: what a network has to beat.

Every method is `Sample -> DepthDistribution`.
"""

from __future__ import annotations

from gbpn.baselines.colourisation import colourisation
from gbpn.baselines.interpolation import linear, natural_neighbour, nearest, thin_plate
from gbpn.baselines.measured_points import Method
from gbpn.baselines.morphology import ip_basic
from gbpn.baselines.smoothing import fast_global, guided

METHODS: dict[str, Method] = {
    "nearest": nearest,
    "linear": linear,
    "natural_neighbour": natural_neighbour,
    "thin_plate": thin_plate,
    "ip_basic": ip_basic,
    "guided": guided,
    "fast_global": fast_global,
    "colourisation": colourisation,
}
"""By the name that a command line takes."""

__all__ = [
    "METHODS",
    "Method",
    "colourisation",
    "fast_global",
    "guided",
    "ip_basic",
    "linear",
    "natural_neighbour",
    "nearest",
    "thin_plate",
]
