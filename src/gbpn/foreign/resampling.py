"""Maps of any size over a picture; what is not finite says nothing and stays so."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional

__all__ = ["resampled"]


def resampled(values: Tensor, size: tuple[int, int]) -> Tensor:
    """A map [1, h, w] over the whole of [1, H, W]; NaN where most of what lies there is not finite."""
    known = torch.isfinite(values)
    filled = torch.where(known, values, 0.0)[None].float()
    if filled.shape[-2:] != size:
        weight = _resized(known[None].float(), size)
        filled = torch.where(weight > 0.5, _resized(filled, size) / weight.clamp_min(0.5), torch.nan)
    else:
        filled = torch.where(known[None], filled, torch.nan)
    return filled[0]


def _resized(maps: Tensor, size: tuple[int, int]) -> Tensor:
    return functional.interpolate(maps, size=size, mode="bilinear", antialias=True, align_corners=False)
