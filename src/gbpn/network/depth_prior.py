"""A depth-like map of the image alone, whose steps are the expected differences of the field.

Free differences, one number per edge, never learn true steps: they need not agree around a loop, and nothing
shows them what lies on both sides. The steps of one map agree around every loop, carry the shape of a room
over any distance, and halve by themselves when an image is enlarged twice.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import torch
from torch import Tensor, nn
from torch.nn import functional

from gbpn.mrf import RING, SYMMETRIC_RING, LocalEdges, NonLocalEdges, SymmetricEdges, senders, shift
from gbpn.network.blocks import doubled, initialise
from gbpn.network.convolution import ConvNorm, Convolution
from gbpn.network.decoder import UpLevel

__all__ = [
    "LARGEST_STEP",
    "PriorDecoder",
    "PriorHead",
    "far_steps",
    "local_steps",
    "squeezed",
    "with_far_steps",
    "with_local_steps",
]

LARGEST_STEP = 0.15
"""Log depth; no step of the map counts more: across an edge that steep, surfaces end."""


class PriorDecoder(nn.Module):
    """Encoder features E1 … E5 → the map at a quarter of the resolution, enlarged to full size.

    Its last layer starts at zero: before training the map is flat and changes nothing. What is finer than a
    quarter of the resolution the heads add.
    """

    def __init__(self, encoder_widths: Sequence[int], widths: Sequence[int]) -> None:
        """`widths`: channels at 1/4, 1/8 and 1/16."""
        super().__init__()
        _, *skips, coarsest = encoder_widths
        below = [*widths[1:], coarsest]
        self.overview = Convolution(coarsest, coarsest, 1)  # of the image's mean: what kind of place it is
        self.levels = nn.ModuleList(
            UpLevel(below[level], skips[level], widths[level], activation=True)
            for level in range(len(widths))
        )
        self.last = Convolution(widths[0], 1, 3, wide=True)
        initialise(self)
        nn.init.zeros_(self.last.weight)

    def forward(self, features: Sequence[Tensor]) -> Tensor:
        """[B, 1, H, W] log depth up to a constant."""
        x = features[-1]
        x = x + self.overview(x.mean(dim=(2, 3), keepdim=True))
        for level, skip in zip(reversed(self.levels), reversed(features[1:-1]), strict=True):
            x = level(x, skip)
        return functional.interpolate(self.last(x), scale_factor=4, mode="bilinear", align_corners=False)


class PriorHead(nn.Module):
    """The stage's decoder at half the resolution → the map at full size; its last layer starts at zero."""

    def __init__(self, channels: int, width: int) -> None:
        super().__init__()
        self.look = ConvNorm(channels, width, activation=functional.gelu)
        self.last = Convolution(width, 1, 3, wide=True)
        initialise(self)
        nn.init.zeros_(self.last.weight)

    def forward(self, features: Tensor) -> Tensor:
        """[B, C, H/2, W/2] → [B, 1, H, W] log depth up to a constant."""
        return doubled(self.last(self.look(features)))


def squeezed(step: Tensor) -> Tensor:
    """Steps as they are while small, never more than `LARGEST_STEP`."""
    return step / (1 + step.abs() / LARGEST_STEP)


def local_steps(prior: Tensor, neighbours: tuple[tuple[int, int], ...]) -> Tensor:
    """[B, len(neighbours), H, W]: squeezed (pixel at that neighbour) − (this pixel) of a map [B, 1, H, W].

    Where the neighbour is outside the image the value has no meaning; such edges have weight 0.
    """
    return squeezed(torch.cat([shift(prior, *place) for place in neighbours], dim=1) - prior)


def far_steps(prior: Tensor, offset: Tensor) -> Tensor:
    """[B, T, K, H, W]: squeezed (this pixel) − (pixel at `offset` [B, T, K, 2, H, W]) of a map [B, 1, H, W].

    Read bilinearly at half resolution, since far steps are those of shapes, not of pixels; H and W are even.
    Offsets that leave the image read the pixel at its border.
    """
    batch, sets, count, _, height, width = offset.shape
    half = functional.avg_pool2d(prior, 2)  # [B, 1, H/2, W/2]
    near = torch.unflatten(functional.avg_pool2d(offset.flatten(1, 3), 2), 1, (sets, count, 2)) / 2
    rows, columns = height // 2, width // 2
    row = torch.arange(rows, dtype=prior.dtype, device=prior.device).view(-1, 1)
    column = torch.arange(columns, dtype=prior.dtype, device=prior.device)
    y = (near[:, :, :, 0] + row) * (2 / max(rows - 1, 1)) - 1
    x = (near[:, :, :, 1] + column) * (2 / max(columns - 1, 1)) - 1
    grid = torch.stack((x, y), dim=-1).flatten(1, 3)  # [B, T·K·H/2, W/2, 2]
    there = _read(half, grid)
    steps = squeezed(half - there.view(batch, sets * count, rows, columns))
    full = functional.interpolate(steps, scale_factor=2, mode="bilinear", align_corners=False)
    return torch.unflatten(full.contiguous(), 1, (sets, count))


def _read(maps: Tensor, grid: Tensor) -> Tensor:
    """A map [B, 1, …] bilinearly at `grid` [B, rows, columns, 2], from −1 to 1; NaN where the place is."""
    lost = grid.isnan() if grid.requires_grad else None
    if lost is not None:  # torch's gradient at such a place reads and writes outside of its memory
        grid = grid.masked_fill(lost, 0.0)
    there = functional.grid_sample(maps, grid, padding_mode="border", align_corners=True)
    return there if lost is None else there.masked_fill(lost.any(-1)[:, None], torch.nan)


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
    steps = -torch.unflatten(local_steps(prior, places), 1, (4, edges))[:, None]  # receiver − sender
    return replace(local, difference=torch.addcmul(local.difference, steps, share[:, None, None]))


def with_far_steps(far: NonLocalEdges, steps: Tensor, share: Tensor) -> NonLocalEdges:
    """As `with_local_steps`, for learned edges, with `far_steps` as they are."""
    return replace(far, difference=torch.addcmul(far.difference, steps, share[:, None]))
