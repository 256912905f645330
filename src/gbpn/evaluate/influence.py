"""How far one measurement reaches: the derivative of every pixel's depth by it.

Taken by a small change of the measurement, the same way for every method; so what is seen is what the method
does. Beside belief propagation stand the schemes that most networks end or begin in: depth that spreads to
neighbours (as in CSPN), to a few chosen pixels farther off (as in NLSPN), and from measurements nearby (as in
BP-Net). Trained affinities of these are not here; theirs are made from colours, and their range comes from
the number of steps or of measurements, not from the weights.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
import torch
from torch import Tensor

from gbpn.evaluate import handmade
from gbpn.evaluate.methods import Entry, Predictor
from gbpn.evaluate.settings import Setting
from gbpn.measurements.validity import measured
from gbpn.model.loading import load
from gbpn.model.models import GBPN
from gbpn.model.pipeline import SparseDepth
from gbpn.sample import Sample
from gbpn.show import pictures
from gbpn.show.pictures import Array

__all__ = ["Influence", "central_measurement", "influences", "nearby", "picture", "reach", "spread"]

_CHANGE = 0.01
"""Of the measurement, relative."""
_SEEN = 1e-3
"""Influence from which on a pixel counts as reached."""
_STEPS = 18
"""Of the schemes with affinities, as in NLSPN."""
_RING = tuple((dy, dx) for dy in (-1, 0, 1) for dx in (-1, 0, 1) if (dy, dx) != (0, 0))
_FAR = tuple((4 * dy, 4 * dx) for dy in range(-3, 4) for dx in range(-3, 4) if (dy, dx) != (0, 0))
_CHOSEN = 8
"""Senders that a pixel of the non-local scheme chooses among the ring and `_FAR`."""
_NEARBY = 4
"""Measurements that a pixel of the nearby scheme hears, as in BP-Net."""
_COLOUR = 0.05
"""Colour difference at which an affinity has lost a factor e."""
_COLUMNS = 4

_Depth = Callable[[Sample], Tensor]
"""A sample's depth [1, H, W]."""


@dataclass(frozen=True, kw_only=True)
class Influence:
    """One method's answer to one measurement."""

    method: str
    values: Array
    """[H, W]: metres of depth per metre of the measurement."""


def central_measurement(sample: Sample) -> tuple[int, int]:
    """Row and column of the measurement nearest to the middle of the image."""
    rows, columns = np.nonzero(measured(sample.sparse[0].numpy()))
    height, width = sample.sparse.shape[-2:]
    nearest = np.argmin((rows - height / 2) ** 2 + (columns - width / 2) ** 2)
    return int(rows[nearest]), int(columns[nearest])


def influences(sample: Sample, entries: Sequence[Entry], setting: Setting) -> list[Influence]:
    """Of the central measurement: weights after each iteration, then whole; two schemes; other methods."""
    row, column = central_measurement(sample)
    found: list[tuple[str, _Depth]] = []
    for entry in entries:
        if entry.kind == "weights" and isinstance(model := load(entry.spec), GBPN):
            most = model.config.iterations[0]
            found += [(_after(entry, n), partial(_first_stage, model, n)) for n in range(1, most + 1)]
    for entry in entries:
        if entry.spec == "gbp_handmade":
            found += [(_after(entry, n), partial(_by_hand, n)) for n in (1, 5)]
        else:
            found.append((entry.name, partial(_of_entry, entry.load(), setting)))
    out = [Influence(method=name, values=_derivative(depth, sample, row, column)) for name, depth in found]
    local = spread(sample.image, row, column, _RING, len(_RING))
    chosen = spread(sample.image, row, column, (*_RING, *_FAR), _CHOSEN)
    return [
        *out,
        Influence(method=f"local scheme, {_STEPS} steps", values=local),
        Influence(method=f"non-local scheme, {_STEPS} steps", values=chosen),
        Influence(method=f"nearby scheme, {_NEARBY} nearest", values=nearby(sample, row, column)),
    ]


def _after(entry: Entry, iterations: int) -> str:
    return f"{entry.name}, {iterations} iteration{'s' if iterations > 1 else ''}"


@torch.no_grad()
def _first_stage(model: GBPN, iterations: int, sample: Sample) -> Tensor:
    pipeline = model.pipeline(check_sigmas=False)
    encoding = pipeline.encode(sample.image[None], sample.intrinsics[None])
    sparse = SparseDepth(depth=sample.sparse[None])
    return pipeline.first_stage(encoding, sparse, iterations=iterations).distribution.mean[0]


def _by_hand(iterations: int, sample: Sample) -> Tensor:
    return handmade.gbp_handmade(sample, iterations).mean[0]


def _of_entry(predict: Predictor, setting: Setting, sample: Sample) -> Tensor:
    return predict([sample], setting).mean[0]


def _derivative(depth: _Depth, sample: Sample, row: int, column: int) -> Array:
    """Central difference; 0 where there is no depth."""
    changed = []
    for sign in (-1, 1):
        sparse = sample.sparse.clone()
        sparse[0, row, column] *= 1 + sign * _CHANGE
        changed.append(depth(replace(sample, sparse=sparse, target=None)).double())
    step = 2 * _CHANGE * float(sample.sparse[0, row, column])
    return ((changed[1] - changed[0]) / step).nan_to_num(0.0)[0].numpy()


def spread(image: Tensor, row: int, column: int, senders: Sequence[tuple[int, int]], chosen: int) -> Array:
    """[H, W]: what of one measurement arrives after `_STEPS` convex steps from the `chosen` likest senders.

    The measured pixel keeps its value in every step, as these schemes do.
    """
    difference = torch.stack([(_moved(image, dy, dx) - image).square().sum(0) for dy, dx in senders])
    affinity = torch.exp(-difference / _COLOUR**2) + 1e-6  # [S, H, W]
    weakest = affinity.topk(chosen, dim=0).values[-1]
    affinity = torch.where(affinity >= weakest, affinity, 0.0)
    affinity = affinity / affinity.sum(0)
    value = torch.zeros(1, 1, *image.shape[1:])
    for _ in range(_STEPS):
        value[..., row, column] = 1.0
        value = sum(
            (affinity[k] * _moved(value, dy, dx) for k, (dy, dx) in enumerate(senders)), torch.zeros(())
        )
    value[..., row, column] = 1.0
    return value[0, 0].numpy()


def nearby(sample: Sample, row: int, column: int) -> Array:
    """[H, W]: weight of one measurement among the `_NEARBY` nearest of each pixel, by colour and distance."""
    from scipy.spatial import cKDTree

    rows, columns = np.nonzero(measured(sample.sparse[0].numpy()))
    height, width = sample.sparse.shape[-2:]
    places = np.stack((rows, columns), 1)
    pixels = np.indices((height, width)).reshape(2, -1).T
    count = min(_NEARBY, len(places))
    found = cKDTree(places).query(pixels, k=count)
    distance, index = (np.asarray(part).reshape(-1, count) for part in found)
    colours = sample.image.permute(1, 2, 0).numpy()
    difference = colours.reshape(-1, 1, 3) - colours[rows, columns][index]
    scale = distance.mean(1, keepdims=True) + 1e-6
    weight = np.exp(-np.square(difference).sum(-1) / _COLOUR**2 - np.square(distance / scale)) + 1e-12
    own = np.all(places[index] == (row, column), axis=-1)
    share: Array = (weight * own).sum(1) / weight.sum(1)
    return share.reshape(height, width)


def _moved(maps: Tensor, row: int, column: int) -> Tensor:
    """maps[..., y + row, x + column], zero where that is outside."""
    height, width = maps.shape[-2:]
    side = max(abs(row), abs(column))
    padded = torch.nn.functional.pad(maps, (side, side, side, side))
    return padded[..., side + row : side + row + height, side + column : side + column + width]


def reach(influence: Influence, row: int, column: int) -> dict[str, str]:
    """How much of the image the measurement moves, and how far the farthest such pixel is."""
    strength = np.abs(influence.values)
    reached = strength > _SEEN
    rows, columns = np.nonzero(reached)
    far = float(np.hypot(rows - row, columns - column).max()) if rows.size else 0.0
    return {
        "method": influence.method,
        f"above {_SEEN:g}": f"{100 * reached.mean():.1f} %",
        "above 0.1": f"{100 * (strength > 0.1).mean():.1f} %",
        "farthest [pixels]": f"{far:.0f}",
    }


def picture(sample: Sample, found: Sequence[Influence]) -> Array:
    """The measurements, and the influence of the central one by every method, on one logarithmic scale."""
    low, high = np.log10(_SEEN), 0.0
    known = sample.target[0].numpy() if sample.target is not None else sample.sparse[0].numpy()
    near, far = pictures.value_range(known)
    row, column = central_measurement(sample)
    marked = pictures.measurements(sample.image, sample.sparse, near, far)
    panels = [
        pictures.titled(_ringed(marked, row, column), f"{int(measured(sample.sparse).sum())} measurements")
    ]
    for one in found:
        strength = np.abs(one.values)
        logs = np.where(strength > _SEEN, np.log10(np.maximum(strength, _SEEN)), low)
        painted = pictures.colours(logs, low, high, pictures.CONFIDENCE)
        if len(panels) % _COLUMNS == _COLUMNS - 1:  # at the right end of a row
            painted = pictures.with_bar(painted, low, high, pictures.CONFIDENCE, "")
        panels.append(pictures.titled(painted, one.method))
    return pictures.grid([panels[k : k + _COLUMNS] for k in range(0, len(panels), _COLUMNS)])


def _ringed(picture: Array, row: int, column: int) -> Array:
    """The picture with a white square around a pixel."""
    out = picture.copy()
    height, width = picture.shape[:2]
    side = max(4, min(height, width) // 30)
    top, bottom = max(row - side, 0), min(row + side, height - 1)
    left, right = max(column - side, 0), min(column + side, width - 1)
    out[[top, bottom], left : right + 1] = 255
    out[top : bottom + 1, [left, right]] = 255
    return out
