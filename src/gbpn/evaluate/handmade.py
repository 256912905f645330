"""Completion by a Markov random field whose weights a person wrote down (after Diebel and Thrun 2005).

Neighbours of like colour have like depth: 8-connected symmetric edges without expected differences. The
field is solved exactly (`diebel_thrun`) or by belief propagation (`gbp_handmade`); what the learned network
adds to either is what its edges know. The numbers below were chosen on NYUv2 training frames.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch

from gbpn.baselines.measured_points import nothing
from gbpn.distribution import DepthDistribution
from gbpn.gbp import infer
from gbpn.gbp.exact import solve
from gbpn.measurements.validity import measured
from gbpn.mrf import MRF, SYMMETRIC_RING, SymmetricEdges, clear_outside, shift
from gbpn.sample import Sample

__all__ = ["REWEIGHTING", "Weights", "diebel_thrun", "field", "gbp_handmade"]


@dataclass(frozen=True, kw_only=True)
class Weights:
    """Standard deviations, as shares of the mean measured depth, so that depth has no preferred unit."""

    measurement: float = 0.002
    """Of a measurement."""
    neighbour: float = 0.02
    """Of the difference between neighbours of equal colour."""
    colour: float = 0.03
    """Colour difference (RGB in [0, 1], Euclidean) at which an edge has lost a factor e of its precision."""
    floor: float = 0.001
    """Share of its precision that an edge across the strongest colour difference keeps."""


_HANDMADE = Weights()


def field(sample: Sample, weights: Weights = _HANDMADE) -> MRF:
    """The field of one sample, [1, 1, H, W], float32."""
    there = measured(sample.sparse)
    unit = sample.sparse[there].mean()
    image = sample.image
    kept = []
    for row, column in SYMMETRIC_RING:
        difference = (shift(image[None], row, column)[0] - image).square().sum(0)  # [H, W]
        share = torch.exp(-difference / weights.colour**2).clamp_min(weights.floor)
        kept.append(clear_outside(share / (row * row + column * column), row, column))  # per squared distance
    edge = torch.stack(kept)[None, None] / (weights.neighbour * unit) ** 2  # [1, 1, 4, H, W]
    return MRF(
        depth=sample.sparse[None],
        weight=there[None] / (weights.measurement * unit) ** 2,
        local=SymmetricEdges(
            weight=edge,
            difference=torch.zeros_like(edge),
            damping=torch.zeros(1, 1, *image.shape[-2:]),
        ),
    )


def diebel_thrun(sample: Sample) -> DepthDistribution:
    """The exact mean of the hand-made field; no variances, which would take far longer than the mean."""
    if not bool(measured(sample.sparse).any()):
        return nothing(sample)
    return DepthDistribution.of_depth(solve(field(sample)).mean)


REWEIGHTING = 0.25
"""ρ of belief propagation here: plain sums (1) are still far from the exact mean after five iterations."""


def gbp_handmade(sample: Sample, iterations: int = 5) -> DepthDistribution:
    """Reweighted belief propagation on the hand-made field."""
    if not bool(measured(sample.sparse).any()):
        return nothing(sample)
    belief = infer(field(sample), iterations=iterations, reweighting=REWEIGHTING).belief
    return DepthDistribution.of_depth(belief.mean, confidence=belief.precision, std=belief.precision.rsqrt())
