"""Pictures of wide cameras: completed view by view, and put together again as one map of ranges.

Each view is an ordinary pinhole picture with the measurements that it sees, completed as such. Its pixels
come back as ranges along their rays, with weights: precision as the weights state it, times a window that
falls to nothing at the view's edge, so that no view begins or ends with a step. What several pixels of
several views say of one ray is a mixture: its mean is the answer, its variance σ². Views are no independent
witnesses, so agreement does not make σ smaller, and disagreement makes it larger.

A view without measurements waits for its neighbours: their answers, with their σ, are its measurements.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from gbpn.camera.views import FIELD, PinholeView, views_of
from gbpn.camera.wide import WideCamera, inside
from gbpn.distribution import DepthDistribution
from gbpn.inputs.frame import FrameInputs
from gbpn.measurements.validity import measured
from gbpn.sensors.projection import nearest_values

__all__ = ["completed_by_views"]

_BORROWED = 15
"""About as many rows and columns of its neighbours' answers are a view's measurements if it has none."""
_SURE, _UNSURE = 1e-3, 10.0
"""σ over the range, between which weights follow it."""


@torch.inference_mode()
def completed_by_views(
    inputs: FrameInputs, complete: Callable[[FrameInputs], DepthDistribution]
) -> tuple[DepthDistribution, str]:
    """The ranges of a wide picture from what `complete` says of its views, and in words what was done."""
    assert inputs.wide is not None
    camera, (height, width) = inputs.wide, inputs.size
    views = views_of(camera, height, width)
    mixture = _Mixture.empty(camera, height, width)
    dropped = _Dropped(inputs.sparse)
    waiting = list(views)
    while waiting:
        found = [(view, points) for view in waiting if (points := _points_of(inputs, view, mixture))]
        if not found:  # answers that end before the next view begins
            break
        answers = [complete(_frame(inputs, view, points)) for view, points in found]
        for (view, points), answer in zip(found, answers, strict=True):
            mixture.add(view, answer)
            dropped.add(points.index, answer)
        waiting = [view for view in waiting if all(view is not done for done, _ in found)]
    told = f"completed through {len(views)} views of {FIELD:g}°; depth is the range along each pixel's ray"
    return replace(mixture.distribution(), dropped=dropped.everywhere()), told


@dataclass(frozen=True)
class _Points:
    """Measurements in the pixels of a view; all maps [1, h, w], 0 where there is none."""

    sparse: Tensor
    std: Tensor | None
    weight: Tensor | None
    index: np.ndarray
    """[h, w] which pixel of the picture it is, in reading order; −1 where there is none."""


def _points_of(inputs: FrameInputs, view: PinholeView, mixture: _Mixture) -> _Points | None:
    """Its measurements, else what its neighbours lend it; None while there is neither."""
    found = _measured_of(inputs, view, mixture.towards)
    if not bool(measured(found.sparse).any()):
        found = mixture.lent(view)
    return found if bool(measured(found.sparse).any()) else None


def _frame(inputs: FrameInputs, view: PinholeView, found: _Points) -> FrameInputs:
    """The view as an ordinary frame."""
    return FrameInputs(
        image=_picture(inputs, view),
        sparse=found.sparse,
        intrinsics=torch.from_numpy(view.intrinsics).float(),
        std=found.std,
        weight=found.weight,
        metric=inputs.metric,
    )


def _picture(inputs: FrameInputs, view: PinholeView) -> Tensor:
    """[3, h, w]: what the view sees, black where the camera sees nothing."""
    assert inputs.wide is not None
    x, y = inputs.wide.pixels(view.directions(), *inputs.size)
    return _sampled(inputs.image.double(), x, y, wraps=inputs.wide.wraps).float().clamp(0, 1)


def _measured_of(inputs: FrameInputs, view: PinholeView, towards: np.ndarray) -> _Points:
    """The measurements that the view sees, of pixels that look `towards` [H, W, 3]."""
    ranges = inputs.sparse[0].numpy()
    rows, columns = np.nonzero(ranges)
    x, y, ahead = view.project(towards[rows, columns])
    seen = inside(x, y, *view.size)
    x, y, ahead, rows, columns = x[seen], y[seen], ahead[seen], rows[seen], columns[seen]
    depth = ranges[rows, columns] * ahead

    def maps(values: np.ndarray) -> Tensor:
        return torch.from_numpy(nearest_values(x, y, depth, values[None], *view.size))

    number = maps(np.arange(1, len(x) + 1))[0].long().numpy()  # float32 counts to 16 million
    index = np.append(-1, rows * inputs.size[1] + columns)[number]
    return _Points(
        sparse=maps(depth),
        std=None if inputs.std is None else maps(inputs.std[0].numpy()[rows, columns] * ahead),
        weight=None if inputs.weight is None else maps(inputs.weight[0].numpy()[rows, columns]),
        index=index,
    )


@dataclass(frozen=True)
class _Mixture:
    """What views said so far of the pixels of the picture: sums over their pixels, by weight."""

    camera: WideCamera
    towards: np.ndarray
    """[H, W, 3] directions of the pixels, NaN where the camera sees nothing."""
    sums: Tensor
    """[6, H, W] float64: weights, and weighted range, its square with σ² as the weights state it, the same
    with σ² as it was checked, confidence logit, belief precision."""
    traits: dict[str, bool] = field(default_factory=dict)
    """"sigma": whether the weights state one; "wanted": whether it was asked for."""

    @classmethod
    def empty(cls, camera: WideCamera, height: int, width: int) -> _Mixture:
        zeros = torch.zeros(6, height, width, dtype=torch.float64)
        return cls(camera, camera.directions(height, width), zeros)

    def add(self, view: PinholeView, answer: DepthDistribution) -> None:
        """A view's answer: depth before its plane becomes range."""
        rays = torch.from_numpy(view.rays()[..., 2])
        mean, logit, belief = (
            maps[0, 0].cpu().double()
            for maps in (answer.mean, answer.confidence_logit, answer.belief_precision)
        )
        known = torch.isfinite(mean) & (belief > 0)
        ranges = torch.where(known, mean / rays, 1.0)
        stated, checked = (_relative(maps) for maps in _sigmas(answer))
        self.traits["sigma"] = stated is not None
        self.traits["wanted"] = checked is not None
        precision = torch.sigmoid(logit).nan_to_num(0.5).clamp_min(1e-6) if stated is None else 1 / stated**2
        weight = torch.where(known, precision * torch.from_numpy(view.window()), 0.0)
        planes = [
            ranges,
            ranges**2 * (1 + (0 if stated is None else stated**2)),
            ranges**2 * (1 + (0 if checked is None else checked**2)),
            logit.nan_to_num(0.0),
            belief,
        ]
        weighted = torch.stack([weight, *(weight * plane for plane in planes)])
        x, y, _ = view.project(self.towards)
        outside = ~inside(x, y, *view.size)
        x[outside], y[outside] = np.nan, np.nan
        self.sums.add_(_sampled(weighted, x, y, wraps=False, edge=True))

    def lent(self, view: PinholeView) -> _Points:
        """A sparse grid of what is known already, as measurements of a view that has none."""
        x, y = self.camera.pixels(view.directions(), *self.towards.shape[:2])
        step = max(1, max(view.size) // _BORROWED)
        grid = np.zeros(view.size, bool)
        grid[step // 2 :: step, step // 2 :: step] = True
        total, mean, stated, *_ = _sampled(self._moments(), x, y, wraps=self.camera.wraps)
        there = torch.from_numpy(grid) & (total > 0) & torch.isfinite(mean)
        ahead = torch.from_numpy(view.rays()[..., 2])
        sparse = torch.where(there, mean * ahead, 0.0).float()[None]
        std = torch.where(there, stated * ahead, 0.0).float()[None]
        # a view knows to trust what it is lent only as far as its neighbours do
        std = torch.minimum(std, 10 * sparse)
        return _Points(sparse, std, None, np.full(view.size, -1))

    def _moments(self) -> Tensor:
        """[6, H, W]: total weight, mean, σ as stated, σ as checked, logit, precision; 0 where unknown."""
        total = self.sums[0]
        share = self.sums[1:] / torch.where(total > 0, total, 1.0)
        stated, checked = ((square - share[0] ** 2).clamp_min(0).sqrt() for square in share[1:3])
        return torch.stack([total, share[0], stated, checked, share[3], share[4]])

    def distribution(self) -> DepthDistribution:
        """[1, 1, H, W] maps of ranges."""
        total, mean, _, checked, logit, belief = self._moments()
        there = total > 0
        with_sigma = self.traits.get("sigma", False)
        answer = DepthDistribution(
            mean=_map(torch.where(there, mean, torch.nan)),
            confidence_logit=_map(logit),
            belief_precision=_map(torch.where(there, belief.clamp_min(1e-6), 0.0)),
            stated_std=_map(checked) if with_sigma and self.traits["wanted"] else None,
            sigma_left_out=with_sigma and not self.traits["wanted"],
        )
        return answer


class _Dropped:
    """Measurements that all views which saw them left out."""

    def __init__(self, sparse: Tensor) -> None:
        self._seen = torch.zeros_like(sparse, dtype=torch.int32)
        self._left = torch.zeros_like(self._seen)

    def add(self, index: np.ndarray, answer: DepthDistribution) -> None:
        place = torch.from_numpy(index[index >= 0])
        self._seen.view(-1)[place] += 1
        if answer.dropped is not None:
            left = answer.dropped[0, 0].cpu().numpy() & (index >= 0)
            self._left.view(-1)[torch.from_numpy(index[left])] += 1

    def everywhere(self) -> Tensor:
        """[1, 1, H, W] bool."""
        return ((self._seen > 0) & (self._left == self._seen))[None]


def _sigmas(answer: DepthDistribution) -> tuple[tuple[Tensor, Tensor] | None, tuple[Tensor, Tensor] | None]:
    """(σ, mean) as the weights alone state it, whether it was asked for or not, and as it was checked."""
    checked = (answer.std, answer.mean) if answer.calibrated else None
    if answer.calibration is not None:
        return (answer.calibration.std(answer.mean, answer.confidence_logit), answer.mean), checked
    return checked, checked


def _relative(pair: tuple[Tensor, Tensor] | None) -> Tensor | None:
    """[h, w] float64 σ over the depth, which is σ over the range too."""
    if pair is None:
        return None
    share = (pair[0] / pair[1])[0, 0].cpu().double().abs()
    return share.nan_to_num(_UNSURE, posinf=_UNSURE).clamp(_SURE, _UNSURE)


def _sampled(maps: Tensor, x: np.ndarray, y: np.ndarray, *, wraps: bool, edge: bool = False) -> Tensor:
    """[k, ...] float64: maps [k, h, w] at pixels x, y [...], bilinear; 0 outside and where these are NaN.

    wraps  the right edge goes on at the left one
    edge   the outer half of the pixels at the edge is like their inner half, else it fades
    """
    _, height, width = maps.shape
    if wraps:
        maps, x = torch.cat([maps[..., -1:], maps, maps[..., :1]], dim=-1), x + 1
        width += 2
    lost = ~inside(x, y, height, width)
    if edge or wraps:
        y = np.clip(y, 0, height - 1)
        x = np.clip(x, 0, width - 1)
    grid = np.stack([2 * x / max(width - 1, 1) - 1, 2 * y / max(height - 1, 1) - 1], axis=-1)
    grid = np.where(lost[..., None], -3.0, grid)
    found = functional.grid_sample(
        maps[None], torch.from_numpy(grid)[None], padding_mode="zeros", align_corners=True
    )[0]
    return torch.where(torch.from_numpy(lost), 0.0, found)


def _map(plane: Tensor) -> Tensor:
    return plane.float()[None, None]
