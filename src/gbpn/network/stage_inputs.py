"""What a stage sees: the image with the 3D position of every pixel."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from gbpn.camera.pinhole import points

__all__ = ["SecondStageInput", "first_stage_input", "second_stage_input"]


def first_stage_input(image: Tensor, intrinsics: Tensor, distance: Tensor) -> Tensor:
    """[B, 6, H, W]: normalised RGB, and X, Y, Z of each pixel's ray at depth `distance` [1, 1, 1, 1]."""
    batch, _, height, width = image.shape
    plane = distance.to(image.dtype).expand(batch, 1, height, width)
    return torch.cat((image, points(plane, intrinsics)), dim=1)


class SecondStageInput(NamedTuple):
    """What a second stage can look at; all maps of one padded size."""

    image: Tensor
    """[B, 3, H, W] normalised RGB."""
    intrinsics: Tensor
    """[B, 3, 3]."""
    depth: Tensor
    """[B, 1, H, W] found so far, in metres or multiples of the median measurement; 0 where there is none."""
    confidence: Tensor
    """[B, 1, H, W] of that depth, in (0, 1)."""
    measured: Tensor
    """[B, 1, H, W] the measurements, counted as the depth; 0 where there are none."""


def second_stage_input(seen: SecondStageInput) -> Tensor:
    """[B, 7, H, W]: normalised RGB, X, Y, Z at the depth found so far, and its confidence."""
    return torch.cat((seen.image, points(seen.depth, seen.intrinsics), seen.confidence), dim=1)
