"""Foreign depth maps as people have them: any size, any unit, files or arrays."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from gbpn.camera.lens import Lens, undistorted_picture
from gbpn.errors import InputError
from gbpn.files.guard import shown, taking
from gbpn.foreign.resampling import resampled
from gbpn.formats.arrays import numeric
from gbpn.formats.depth_files import read_foreign

__all__ = ["as_prior", "undistorted_prior"]

_STRETCHED = 1.05
"""Ratio of two aspect ratios from which on they are not the same."""


def as_prior(prior: Any, height: int, width: int) -> tuple[Tensor, str | None]:
    """[1, h, w] float32 of a map over a picture of this size, NaN where it says nothing, and a notice.

    A path (.npy, .npz, .png of 8 or 16 bits, .tiff, .exr), an array or a tensor [h, w], [1, h, w] or
    [1, 1, h, w]; depth, disparity or log depth, as the other network gave it.
    """
    with taking("prior", "a path, or an array [h, w] as another network gave it"):
        if isinstance(prior, str | os.PathLike):
            found, name = read_foreign(Path(prior)), shown(prior)
        else:
            found = np.squeeze(numeric(prior.detach().cpu().numpy() if isinstance(prior, Tensor) else prior))
            name = "prior"
    if found.ndim != 2 or min(found.shape) < 2:
        raise InputError(f"{name}: a prior is a map [h, w]; got {list(found.shape)}")
    with np.errstate(over="ignore"):
        values = torch.from_numpy(found.astype(np.float32))[None]
    values = torch.where(torch.isfinite(values), values, torch.nan)
    if bool(values.isnan().all()):
        raise InputError(f"{name}: there is no finite number in this prior")
    rows, columns = found.shape
    stretch = (columns / rows) / (width / height)
    turned = (rows / columns) / (width / height)
    told = None
    if not 1 / _STRETCHED < stretch < _STRETCHED:
        if 1 / _STRETCHED < turned < _STRETCHED:
            raise InputError(
                f"{name} is {columns}×{rows}, the picture {width}×{height}: turn the prior as the picture is"
            )
        told = f"the prior of {columns}×{rows} is stretched over the picture of {width}×{height}"
    return values, told


def undistorted_prior(prior: Tensor, height: int, width: int, camera: Tensor, lens: Lens) -> Tensor:
    """[1, H, W]: a map of the picture as taken → of the undistorted one."""
    full = resampled(prior, (height, width))
    known = torch.isfinite(full)
    planes = torch.cat([torch.where(known, full, 0.0), known.float()])
    moved, weight = undistorted_picture(planes, camera, lens)
    return torch.where(weight > 0.5, moved / weight.clamp_min(0.5), torch.nan)[None]
