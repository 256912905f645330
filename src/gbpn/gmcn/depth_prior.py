"""A depth-like map of the image alone, whose steps are the expected differences of the field.

Free differences, one number per edge, never learn true steps: they need not agree around a loop, and nothing
shows them what lies on both sides. The steps of one map agree around every loop, carry the shape of a room
over any distance, and halve by themselves when an image is enlarged twice.
"""

from __future__ import annotations

from dataclasses import replace

import torch
from torch import Tensor
from torch.nn import functional

from gbpn.mrf import RING, SYMMETRIC_RING, LocalEdges, NonLocalEdges, SymmetricEdges, senders, shift

LARGEST_STEP = 0.15
"""Log depth; no step of the map counts more: across an edge that steep, surfaces end."""


def squeezed(step: Tensor) -> Tensor:
    """Steps as they are while small, never more than `LARGEST_STEP`."""
    return step / (1 + step.abs() / LARGEST_STEP)


def local_steps(prior: Tensor, neighbours: tuple[tuple[int, int], ...]) -> Tensor:
    """[B, len(neighbours), H, W]: squeezed (pixel at that neighbour) − (this pixel) of a map [B, 1, H, W].

    Where the neighbour is outside the image the value has no meaning; such edges have weight 0.
    """
    return squeezed(torch.cat([shift(prior, *place) for place in neighbours], dim=1) - prior)


def far_steps(prior: Tensor, offset: Tensor) -> Tensor:
    """[B, T, K, H, W]: squeezed (this pixel) − (pixel at `offset` [B, T, K, 2, H, W]), read bilinearly.

    Offsets that leave the image read the pixel at its border.
    """
    batch, sets, count, _, height, width = offset.shape
    row = torch.arange(height, dtype=prior.dtype, device=prior.device).view(-1, 1)
    column = torch.arange(width, dtype=prior.dtype, device=prior.device)
    y = (offset[:, :, :, 0] + row) * (2 / max(height - 1, 1)) - 1
    x = (offset[:, :, :, 1] + column) * (2 / max(width - 1, 1)) - 1
    grid = torch.stack((x, y), dim=-1).flatten(1, 3)  # [B, T·K·H, W, 2]
    there = functional.grid_sample(prior, grid, padding_mode="border", align_corners=True)
    return squeezed(prior[:, None] - there.view(batch, sets, count, height, width))


def with_local_steps(
    local: LocalEdges | SymmetricEdges, prior: Tensor, share: Tensor
) -> LocalEdges | SymmetricEdges:
    """Differences (their own) + share·(steps of the map); share [B, 1, H, W] in [0, 1].

    A map of zeros changes nothing, so a trained network can get one and loses nothing.
    """
    if isinstance(local, SymmetricEdges):
        places = SYMMETRIC_RING[: local.weight.shape[2]]
        steps = local_steps(prior, places)[:, None]  # [B, 1, U, H, W]
        return replace(local, difference=torch.addcmul(local.difference, steps, share[:, None]))
    edges = local.weight.shape[3]
    places = tuple(RING[slot] for direction in range(4) for slot in senders(direction, edges))
    steps = -local_steps(prior, places).unflatten(1, (4, edges))[:, None]  # receiver − sender
    return replace(local, difference=torch.addcmul(local.difference, steps, share[:, None, None]))


def with_far_steps(far: NonLocalEdges, prior: Tensor, share: Tensor) -> NonLocalEdges:
    """As `with_local_steps`, for learned edges."""
    steps = far_steps(prior, far.offset)
    return replace(far, difference=torch.addcmul(far.difference, steps, share[:, None]))
