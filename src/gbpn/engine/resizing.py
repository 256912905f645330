"""Images that a model should not see at their own size: completed at another one, answered at their own.

Weights know differences of depth from pixel to pixel at the focal length, in pixels, that they were trained
at. With few measurements these differences decide, and a picture with another focal length is completed
better at the size that brings it to that one; with many, every measurement wants a pixel of its own.
`working_scale` is that rule; docs/log/2026-11-18-working-size.md holds it against all other sizes.
"""

from __future__ import annotations

from dataclasses import replace

import torch
from torch import Tensor
from torch.nn import functional

from gbpn.camera.pinhole import scaled, shifted
from gbpn.distribution import DepthDistribution
from gbpn.inputs.frame import FrameInputs
from gbpn.measurements.areas import AreaGrid
from gbpn.measurements.validity import measured
from gbpn.sensors.projection import nearest_values, points_to_sparse

__all__ = ["MOST_PIXELS", "enlarge", "reduce", "reduced", "reduction", "working_scale"]

MOST_PIXELS = 1024 * 2048
"""Larger images are reduced to this many pixels."""


_SHORTEST, _USUAL_PIXELS = 114, 228 * 304
"""No side is reduced below the first; nothing is enlarged beyond the second, the size of training frames."""
_USUAL_DENSITY = 500 / _USUAL_PIXELS
"""Measurements per pixel at which the focal length of training is about the best one."""
_AT_USUAL, _POWER = 1.2, 0.35
"""Best focal length over that of training: at the usual density, and its growth with density; 1 at least."""
_NEAR = (0.85, 1.18)
"""Factors between these are not worth a change."""


def reduction(height: int, width: int) -> float:
    """Factor ≤ 1 on both sides that memory asks for."""
    return min(1.0, float((MOST_PIXELS / (height * width)) ** 0.5))


def working_scale(height: int, width: int, focal: float, count: int, trained: float) -> float:
    """Factor on both sides at which a picture is best completed.

    focal    its focal length in pixels
    count    number of measurements
    trained  focal length in pixels that the weights were trained at
    """
    pixels = height * width
    density = count / (pixels * (trained / focal) ** 2)  # per pixel, were the focal length that of training
    wanted = max(_AT_USUAL * (density / _USUAL_DENSITY) ** _POWER, 1.0)
    factor = trained / focal * wanted
    if factor > 1:  # a small picture: details that it does not have need no more than the usual size
        factor = max(1.0, min(factor, trained / focal, (_USUAL_PIXELS / pixels) ** 0.5))
    else:
        factor = min(1.0, max(factor, _SHORTEST / min(height, width)))
    if _NEAR[0] < factor < _NEAR[1]:
        factor = 1.0
    return float(min(factor, (MOST_PIXELS / pixels) ** 0.5))


def reduce(image: Tensor, sparse: Tensor, intrinsics: Tensor, factor: float) -> tuple[Tensor, Tensor, Tensor]:
    """Image [3, H, W] filtered, measurements [1, H, W] each to its pixel (the nearer wins), camera along.

    The same with a factor above 1, where measurements stay points.
    """
    _, height, width = image.shape
    # by size, not by factor: image, measurements and answer then share one exact ratio
    size = int(height * factor), int(width * factor)
    small = functional.interpolate(image[None], size=size, mode="bilinear", antialias=True)[0]
    rows, columns = small.shape[1] / height, small.shape[2] / width
    y, x = torch.nonzero(measured(sparse[0]), as_tuple=True)
    # centres: (x + ½)·s − ½ in the smaller grid
    column = ((x + 0.5) * columns - 0.5).clamp(0, small.shape[2] - 1)
    row = ((y + 0.5) * rows - 0.5).clamp(0, small.shape[1] - 1)
    points = torch.stack([column, row, sparse[0, y, x]], dim=1)
    camera = shifted(scaled(shifted(intrinsics, 0.5, 0.5), columns, rows), -0.5, -0.5)
    return small, points_to_sparse(points, *small.shape[1:]), camera


def reduced(inputs: FrameInputs, factor: float) -> FrameInputs:
    """A frame as a model looks at it: `reduce`, and what is known of the measurements along with them."""
    image, sparse, camera = reduce(inputs.image, inputs.sparse, inputs.intrinsics, factor)
    size = (image.shape[1], image.shape[2])
    if inputs.areas is not None and inputs.areas[0] <= size[0] and inputs.areas[1] <= size[1]:
        grid, full = AreaGrid.of(inputs.areas, size), AreaGrid.of(inputs.areas, inputs.size)
        depth, std, weight = (
            None if maps is None else grid.placed(full.at_centres(maps))
            for maps in (inputs.sparse, inputs.std, inputs.weight)
        )
        assert depth is not None
        return replace(
            inputs, image=image, sparse=depth, intrinsics=camera, std=std, weight=weight, notices=()
        )
    std, weight = (_alongside(inputs.sparse, maps, size) for maps in (inputs.std, inputs.weight))
    return replace(
        inputs, image=image, sparse=sparse, intrinsics=camera, std=std, weight=weight, areas=None, notices=()
    )


def _alongside(sparse: Tensor, maps: Tensor | None, size: tuple[int, int]) -> Tensor | None:
    """[1, h, w]: what goes with the measurements that `reduce` keeps."""
    if maps is None:
        return None
    y, x = torch.nonzero(measured(sparse[0]), as_tuple=True)
    column = ((x + 0.5) * (size[1] / sparse.shape[2]) - 0.5).clamp(0, size[1] - 1)
    row = ((y + 0.5) * (size[0] / sparse.shape[1]) - 0.5).clamp(0, size[0] - 1)
    values = maps[0, y, x][None].numpy()
    depth = sparse[0, y, x].numpy()
    return torch.from_numpy(nearest_values(column.numpy(), row.numpy(), depth, values, *size))


def enlarge(answer: DepthDistribution, height: int, width: int) -> DepthDistribution:
    """Maps at the picture's size: bilinear where all neighbours are observed, unobserved stays unobserved."""

    def resize(maps: Tensor) -> Tensor:
        return functional.interpolate(maps, size=(height, width), mode="bilinear")

    dropped = None
    if answer.dropped is not None:  # a measurement went to the pixel that its centre lies in
        flags = answer.dropped.float()
        if flags.shape[-2] > height:
            dropped = functional.adaptive_max_pool2d(flags, (height, width)) > 0
        else:
            dropped = functional.interpolate(flags, size=(height, width), mode="nearest-exact") > 0
    return replace(
        answer,
        dropped=dropped,
        mean=resize(answer.mean),
        confidence_logit=resize(answer.confidence_logit),
        doubt=None if answer.doubt is None else resize(answer.doubt.log()).exp(),
        belief_precision=resize(answer.belief_precision) * torch.isfinite(resize(answer.mean)),
    )
