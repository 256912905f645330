"""How the density of the measurements changes a drawn field.

The first stage sees the image only, so that it runs once however often measurements change. What few or many
measurements ask for enters here, when the field is made: how far a measurement is trusted, how stiff edges
are, how much of the old messages is kept, and how much of the differences comes from the depth-like map.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional

from gbpn.config import Start

__all__ = [
    "FARTHEST",
    "FEATURES",
    "DensityResponse",
    "Response",
    "coarse_response",
    "density_features",
    "enlarged",
    "redamped",
    "respond",
]

_CELL = 8
"""Pixels of a side of the squares on which density is counted; a divisor of `gbpn.network.MULTIPLE`."""
_WINDOWS = (1, 5, 17)
"""Sides of the windows over which density is averaged, in cells; after them comes the whole image."""
FEATURES = len(_WINDOWS) + 1
_USUAL, _SPAN = -5.0, 3.0
"""Log density of about 500 points in a frame of NYUv2, and what counts as a large change of it."""
_SPEED = 8.0
"""Outputs of the response count this much: a handful of numbers that should not wait for small steps."""
FARTHEST = 8.0
"""No precision is changed by more than exp of this."""


class Response(NamedTuple):
    """Changes of a field, [B, 1, H, W] each."""

    unary: Tensor
    """Factor of the precision of measurements."""
    local: Tensor
    """Factor of the precision of local edges."""
    far: Tensor
    """Factor of the precision of learned edges."""
    damping: Tensor
    """Added to the logit of the damping."""
    share: Tensor
    """Of the depth-like map's steps in the differences, in (0, 1)."""


def density_features(measured: Tensor) -> Tensor:
    """[B, 4, H/8, W/8] from `measured` [B, 1, H, W]: log density around each cell, scaled to about ± 2."""
    counted = functional.avg_pool2d(measured.to(torch.get_default_dtype()), _CELL)
    maps = [
        functional.avg_pool2d(counted, side, 1, side // 2, count_include_pad=False) if side > 1 else counted
        for side in _WINDOWS
    ]
    maps.append(counted.mean(dim=(2, 3), keepdim=True).expand_as(counted))
    pixels = [(side * _CELL) ** 2 for side in _WINDOWS]
    pixels.append(measured.shape[-2] * measured.shape[-1])
    empty = torch.tensor([0.25 / count for count in pixels], dtype=counted.dtype, device=counted.device)
    return (torch.cat(maps, dim=1) + empty.view(1, -1, 1, 1)).log().sub(_USUAL).div(_SPAN)


class DensityResponse(nn.Module):
    """A constant, and a small function of the local density that starts at zero.

    `width` 0 leaves the function out. Responses of two stages add up, so that a second stage starts with the
    first one's.
    """

    def __init__(self, width: int, start: Start | None = None) -> None:
        """`start`: what it says before training; None for a response that only adds to another one."""
        super().__init__()
        first = Response(*[0.0] * len(Response._fields))  # type: ignore[arg-type]
        if start is not None:
            far, share = FARTHEST * math.atanh(math.log(start.learned) / FARTHEST), start.share
            first = first._replace(far=far, share=math.log(share / (1 - share)))  # type: ignore[arg-type]
        self.constant = nn.Parameter(torch.tensor(first) / _SPEED)
        self.function: nn.Sequential | None = None
        if width:
            hidden, last = nn.Conv2d(FEATURES, width, 1), nn.Conv2d(width, len(Response._fields), 1)
            self.function = nn.Sequential(hidden, nn.GELU(), last)
            nn.init.zeros_(last.weight)
            assert last.bias is not None
            nn.init.zeros_(last.bias)
            if start is not None:
                _start_at_rule(hidden, last, start)

    def forward(self, features: Tensor) -> Tensor:
        """`density_features` → [B, 5, H/8, W/8] before any limit; see `respond`."""
        batch, _, height, width = features.shape
        constant = self.constant.view(1, -1, 1, 1).expand(batch, -1, height, width)
        return constant if self.function is None else constant + self.function(features.to(constant))


@torch.no_grad()
def _start_at_rule(hidden: nn.Conv2d, last: nn.Conv2d, start: Start) -> None:
    """Two hidden channels say "many" and "few" of the whole image, for what `start` asks of them."""
    assert hidden.bias is not None
    rules = ((1.0, "unary", start.trust_in_many), (-1.0, "share", start.share_of_few))
    for channel, (sign, name, amount) in enumerate(rules):
        if not amount:
            continue
        hidden.weight[channel] = 0
        hidden.weight[channel, -1] = sign  # GELU of the whole image's density: about 0 on the other side
        hidden.bias[channel] = 0
        last.weight[Response._fields.index(name), channel] = amount / _SPEED


def respond(parts: Sequence[DensityResponse], measured: Tensor) -> Response:
    """What the sum of `parts` says for measurements at `measured` [B, 1, H, W]."""
    return enlarged(coarse_response(parts, measured), (measured.shape[-2], measured.shape[-1]))


def coarse_response(parts: Sequence[DensityResponse], measured: Tensor) -> Tensor:
    """[B, 5, H/8, W/8]: the same, of cells, as the channels of one map."""
    features = density_features(measured)
    raw = _SPEED * torch.stack([part(features) for part in parts]).sum(0)
    change = FARTHEST * torch.tanh(raw[:, :-1] / FARTHEST)
    return torch.cat((change[:, :3].exp(), change[:, 3:], raw[:, -1:].sigmoid()), dim=1)


def enlarged(coarse: Tensor, size: tuple[int, int]) -> Response:
    """The response of pixels, from that of cells."""
    full = functional.interpolate(coarse, size, mode="bilinear", align_corners=False)
    return Response(*torch.chunk(full.contiguous(), len(Response._fields), dim=1))


def redamped(damping: Tensor, change: Tensor) -> Tensor:
    """sigmoid(logit(damping) + change)."""
    odds = change.exp()
    return damping * odds / (1 - damping + damping * odds)
