"""Answers whose confidence does not alternate from pixel to pixel, see `gbpn.sigma.checkerboard`."""

from __future__ import annotations

from dataclasses import replace

import torch

from gbpn.distribution import DepthDistribution
from gbpn.sigma.checkerboard import without_checkerboard

__all__ = ["evenly_sure"]


def evenly_sure(answer: DepthDistribution) -> DepthDistribution:
    """The answer with a filtered confidence, and so σ; every image of a batch by itself."""
    logit, observed = (maps.detach().cpu().numpy() for maps in (answer.confidence_logit, answer.observed))
    even = [without_checkerboard(one[0], there[0]) for one, there in zip(logit, observed, strict=True)]
    maps = torch.stack([torch.from_numpy(one)[None] for one in even])
    return replace(answer, confidence_logit=maps.to(answer.confidence_logit))
