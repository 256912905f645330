"""Does σ hold everywhere? 90 % intervals by distance to a measurement, by depth, and by distance to an edge.

Per frame and bin the share of the pixels whose truth lies within and how many pixels there are, so that
frames can be pooled; and the interval score, width plus 20 × what lies outside, relative to the truth.
"""

from __future__ import annotations

import torch
from scipy.ndimage import distance_transform_edt
from torch import Tensor

from gbpn.measurements.validity import measured
from gbpn.metrics.errors import check_maps, valid
from gbpn.metrics.surfaces import depth_edges
from gbpn.sigma.held_out import LEVEL, LEVEL_QUANTILE

__all__ = ["BINS", "SCORE", "bin_names", "trust_scores"]

BINS: dict[str, tuple[float, ...]] = {
    "point": (4.0, 8.0, 16.0, 32.0),
    "depth": (1.5, 2.5, 4.0),
    "edge": (2.0, 8.0),
}
"""What ends each bin but the last: pixels to the nearest measurement, metres of truth, pixels to an edge."""
SCORE = "interval_score"
"""Name of the interval score; smaller is better."""


def bin_names() -> list[str]:
    """`point_0` … `edge_2`."""
    return [f"{kind}_{index}" for kind, ends in BINS.items() for index in range(len(ends) + 1)]


def trust_scores(prediction: Tensor, target: Tensor, std: Tensor, sparse: Tensor) -> dict[str, Tensor]:
    """Of maps [B, 1, H, W] in metres, float64 [B] each: `SCORE`, and `within_BIN` and `pixels_BIN` of every
    bin; NaN where a bin has no pixel."""
    check_maps(prediction, target, std=std, sparse=sparse)
    counts = valid(target) & torch.isfinite(prediction) & torch.isfinite(std)
    truth = torch.where(counts, target, 1.0).double()
    error = torch.where(counts, (prediction - target).abs().double(), 0.0)
    reach = torch.where(counts, LEVEL_QUANTILE * std.double(), 0.0)
    beyond = (error - reach).clamp(min=0)
    out = {SCORE: _mean((2 * reach + 2 / (1 - LEVEL) * beyond) / truth, counts)}
    within = (error <= reach).double()
    places = {"point": _distance(measured(sparse)), "depth": truth, "edge": _distance(_edges(target))}
    for kind, ends in BINS.items():
        index = torch.bucketize(places[kind], torch.tensor(ends, dtype=torch.float64))
        for number in range(len(ends) + 1):
            here = counts & (index == number)
            out[f"within_{kind}_{number}"] = _mean(within, here)
            out[f"pixels_{kind}_{number}"] = here.sum((1, 2, 3)).double()
    return out


def _edges(target: Tensor) -> Tensor:
    """Pixels beside a depth edge; `depth_edges` reaches two further, which distances count anew."""
    wide = depth_edges(target)
    return -torch.nn.functional.max_pool2d(-wide.float(), 5, 1, 2) > 0


def _distance(there: Tensor) -> Tensor:
    """[B, 1, H, W] pixels to the nearest pixel that is `there`; infinite where none is."""
    maps = [
        torch.from_numpy(distance_transform_edt(~one[0].cpu().numpy()))
        if bool(one.any())
        else torch.full(one.shape[1:], torch.inf, dtype=torch.float64)
        for one in there
    ]
    return torch.stack(maps)[:, None]


def _mean(values: Tensor, mask: Tensor) -> Tensor:
    """[B]; NaN where nothing is chosen."""
    return torch.where(mask, values, 0.0).sum((1, 2, 3)) / mask.sum((1, 2, 3))
