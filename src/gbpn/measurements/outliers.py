"""Single measurements that the rest contradicts: gross errors of a sensor, of matching, of a hand.

A measurement of which too few neighbours have a like depth is suspect. The image decides: depth is inferred
without all suspects, and those that are far from it are dropped. The others, such as the one point on a thin
pole, stay.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from scipy.spatial import cKDTree
from torch import Tensor

from gbpn.distribution import DepthDistribution
from gbpn.measurements.validity import measured

__all__ = ["CHOICES", "SETTINGS", "OutlierSettings", "contradicted", "suspects"]

CHOICES = ("keep", "drop")
"""What is done with outliers."""


@dataclass(frozen=True, kw_only=True)
class OutlierSettings:
    """The numbers of the test. Depths are compared as logarithms: the same for every unit."""

    fewest: int = 20
    """Measurements of an image from which on it is tested."""
    neighbours: int = 6
    """Nearest other measurements in the picture that a measurement is compared with …"""
    alike: float = 0.3
    """… whose depth is like its own if the logarithms differ by less …"""
    support: int = 2
    """… and it is suspect if fewer of them are."""
    most_suspects: float = 0.3
    """Share of the measurements; where more are suspect, depth is rough everywhere and none is dropped."""
    contradiction: float = 0.8
    """A suspect is dropped if its logarithm is further than this from what is inferred without suspects …"""
    sure: float = 0.05
    """… with at least this precision, relative to the image's median: behind an edge where nothing else was
    measured, a lonely point is all there is …"""
    absurd: float = 2.3
    """… or, however sure that is, if it is further than this: ten times as far, or as near."""


SETTINGS = OutlierSettings()


def suspects(sparse: Tensor, settings: OutlierSettings = SETTINGS) -> Tensor | None:
    """Which of the measurements [B, 1, H, W] too few neighbours support, bool; None if there are none."""
    found = torch.zeros_like(sparse, dtype=torch.bool)
    for index, depth in enumerate(sparse.detach().cpu()):
        rows, columns = np.nonzero(measured(depth[0]).numpy())
        if len(rows) < max(settings.fewest, settings.neighbours + 1):
            continue
        logarithms = np.log(depth[0].numpy()[rows, columns].astype(np.float64))
        lonely = _lonely(np.stack([rows, columns], axis=1), logarithms, settings)
        if lonely.mean() <= settings.most_suspects:
            found[index, 0, rows[lonely], columns[lonely]] = True
    return found if bool(found.any()) else None


def _lonely(places: np.ndarray, logarithms: np.ndarray, settings: OutlierSettings) -> np.ndarray:
    """Which of the measurements at pixels [N, 2] have too little support, [N] bool."""
    _, near = cKDTree(places).query(places, k=settings.neighbours + 1)
    alike = np.abs(logarithms[near] - logarithms[:, None]) < settings.alike
    return np.asarray(alike.sum(axis=1) - 1 < settings.support)  # each is its own nearest and like itself


def contradicted(
    sparse: Tensor, suspect: Tensor, without: DepthDistribution, settings: OutlierSettings = SETTINGS
) -> Tensor:
    """Those of the suspects that are far from the answer `without` them; [B, 1, H, W].

    Where no other measurement reaches the pixel, the image's median depth stands in, and is not sure.
    """
    precision, mean = without.belief_precision, without.mean
    nothing = torch.full_like(mean, torch.nan)
    reached = measured(precision) & measured(mean)
    usual, median = (
        torch.where(reached, values, nothing).flatten(1).nanmedian(dim=1).values.view(-1, 1, 1, 1)
        for values in (precision, mean)
    )
    expected = torch.where(reached, mean, median)
    known = suspect & measured(expected)
    ratio = torch.where(known, sparse.to(mean), 1.0) / torch.where(known, expected, 1.0)
    distance = ratio.log().abs()
    sure = reached & (precision > settings.sure * usual)
    return known & (sure & (distance > settings.contradiction) | (distance > settings.absurd))
