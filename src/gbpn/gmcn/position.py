"""What a stage sees: the image with the 3D position of every pixel."""

from __future__ import annotations

import torch
from torch import Tensor

from gbpn.camera import points


def first_stage_input(image: Tensor, intrinsics: Tensor, distance: Tensor) -> Tensor:
    """[B, 6, H, W]: normalised RGB, and X, Y, Z of each pixel's ray at depth `distance` [1, 1, 1, 1]."""
    batch, _, height, width = image.shape
    plane = distance.to(image.dtype).expand(batch, 1, height, width)
    return torch.cat((image, points(plane, intrinsics)), dim=1)


def second_stage_input(image: Tensor, intrinsics: Tensor, depth: Tensor, confidence: Tensor) -> Tensor:
    """[B, 7, H, W]: normalised RGB, X, Y, Z at the depth found so far, and its confidence in (0, 1)."""
    return torch.cat((image, points(depth, intrinsics), confidence), dim=1)
