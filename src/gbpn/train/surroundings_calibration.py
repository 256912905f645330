"""The part of a calibration that looks at a pixel's surroundings, fitted on held-out training frames.

Each frame is measured in many random ways, in all of the picture or only near, on one side, in a corner, on
rows, where it is dark or textured; sometimes the picture is black, faint or another frame's. What is fitted
is the 90 % quantile of the error over the stated σ, given `gbpn.sigma.surroundings.features`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from gbpn.datasets.selection import evenly_spaced
from gbpn.datasets.training_view import Dataset
from gbpn.measurements.validity import measured
from gbpn.metrics import valid
from gbpn.model.models import GBPN
from gbpn.model.pipeline import ImageEncoding, Pipeline, SparseDepth
from gbpn.sample import Sample
from gbpn.sensors.sampling import sparsify
from gbpn.sigma.doubt import features_of
from gbpn.sigma.held_out import LEVEL, LEVEL_QUANTILE
from gbpn.sigma.surroundings import CELL, FEATURES, HIDDEN

__all__ = ["FEWEST_FRAMES", "fit_surroundings", "random_pattern"]

FEWEST_FRAMES = 20
"""Frames below which nothing is fitted: what is common to an image is learned from as many images."""
_WAYS, _IN_ALL, _MOST_FRAMES = 36, 1800, 150
"""Ways to measure each frame, and of all frames together at most; frames that are looked at at most."""
_PIXELS = 400
"""Taken from each of them."""
_POINTS = (1, 8000)
_NOISY = 0.12
"""Share of measurements with noise, of up to 5 %."""
_PICTURES = {"own": 0.78, "another": 0.09, "black": 0.07, "faint": 0.06}
_STEPS, _BATCH, _RATE = 1500, 4096, 4e-3
_SMALLEST = 1e-5
"""Errors below this share of the depth count as it."""
_LINES = (8, 16, 32, 64)
_SELECTED = {
    "": 0.30,
    "nearest": 0.13,
    "side": 0.08,
    "corner": 0.06,
    "cut": 0.05,
    "textured": 0.04,
    "dark": 0.04,
    "corners": 0.03,
    "rows": 0.06,
    "lidar": 0.06,
    "centres": 0.07,
    "tof": 0.04,
    "grid": 0.04,
}
"""Measurements that lie evenly, or on lines, look like random ones to most of the features: they are drawn
often enough to be told apart."""
_SHRINKING = 0.08
"""Weight of the squared logarithm of the factor: σ is left as it is where nothing speaks for another one."""


class _Pixels(NamedTuple):
    """Features [N, F], and the logarithms of the relative error and of the stated relative σ, [N] each."""

    features: np.ndarray
    error: np.ndarray
    stated: np.ndarray


@torch.inference_mode()
def fit_surroundings(model: GBPN, frames: Dataset, limit: int) -> tuple[tuple[float, ...], ...]:
    """Numbers for `SigmaCalibration.surroundings`; empty for fewer than `FEWEST_FRAMES` frames.

    `model` has the rest of its calibration already, a relative one.
    """
    chosen = evenly_spaced(len(frames), min(limit, _MOST_FRAMES))
    if len(chosen) < FEWEST_FRAMES:
        return ()
    pipeline = model.pipeline(check_sigmas=False, mirror=False)
    ways = min(_WAYS, _IN_ALL // len(chosen))
    parts = [part for index in chosen for part in _of_frame(pipeline, frames, index, ways)]
    return _fitted(_Pixels(*map(np.concatenate, zip(*parts, strict=True))))


def random_pattern(rng: np.random.Generator, lines: bool = False) -> str:
    """A sensor by name; with `lines`, of a scanner's own measurements."""
    count = int(np.exp(rng.uniform(*np.log(_POINTS))))
    if lines:
        return str(rng.choice(["given", *(f"lines:{n}" for n in _LINES[:-1])]))
    kind = str(rng.choice(list(_SELECTED), p=list(_SELECTED.values())))
    share = rng.uniform(0.2, 0.8)
    spec = {
        "": f"points:{count}",
        "nearest": f"points:{round(count / share) + 1}+nearest:{share:.2f}",
        "side": f"points:{round(count / share) + 1}+side:{share:.2f}",
        "corner": f"points:{round(count / share**2) + 1}+corner:{share:.2f}",
        "cut": f"points:{count}+cut:{min(share, 0.7):.2f}",
        "rows": f"rows:{rng.integers(1, 9)}",
        "lidar": f"lidar:{rng.choice(_LINES)}",
        "centres": f"centres:{rng.integers(4, 13)}",
        "tof": f"tof:{rng.integers(4, 13)}",
        "grid": f"grid:{rng.integers(6, 40)}",
    }.get(kind, f"{kind}:{min(count, 1500)}")
    noise = rng.uniform(0.005, 0.05)
    return f"{spec}+noise:{noise:.3f}" if rng.random() < _NOISY else spec


def _of_frame(pipeline: Pipeline, frames: Dataset, index: int, ways: int) -> Iterator[_Pixels]:
    frame = frames.load(index)
    other = frames.load((index + len(frames) // 2) % len(frames))
    device = next(pipeline.first.parameters()).device
    looks: dict[str, ImageEncoding] = {}
    given = bool(measured(frame.sparse).any())
    for way in range(ways):
        rng = np.random.default_rng([13, index, way])
        sample = sparsify(frame, random_pattern(rng, given), rng)
        kind = str(rng.choice(list(_PICTURES), p=list(_PICTURES.values())))
        if sample.target is None or not bool(measured(sample.sparse).any()):
            continue
        if kind not in looks:
            image = _picture(kind, sample.image, other.image, rng)
            looks[kind] = pipeline.encode(image[None].to(device), sample.intrinsics[None].to(device))
        yield _pixels(pipeline, looks[kind], sample, rng)


def _picture(kind: str, image: Tensor, other: Tensor, rng: np.random.Generator) -> Tensor:
    if kind == "black":
        return torch.zeros_like(image)
    if kind == "faint":
        return (image * rng.uniform(0.05, 0.4) + rng.uniform(0, 0.6)).clamp(0, 1)
    if kind == "another":
        return functional.interpolate(other[None], size=tuple(image.shape[1:]), mode="bilinear")[0]
    return image


def _pixels(pipeline: Pipeline, encoding: ImageEncoding, sample: Sample, rng: np.random.Generator) -> _Pixels:
    assert sample.target is not None
    sparse = sample.sparse[None].to(encoding.padded.image)
    *_, last = pipeline.stages(encoding, SparseDepth(depth=sparse))
    answer = last.distribution
    found = features_of(answer, sparse, encoding.greys[0])
    known = (valid(sample.target) & answer.observed[0].cpu())[0].numpy()
    rows, columns = np.nonzero(known)
    picked = rng.choice(len(rows), min(_PIXELS, len(rows)), replace=False)
    rows, columns = rows[picked], columns[picked]
    mean = answer.mean[0, 0].cpu().numpy()[rows, columns]
    error = np.maximum(np.abs(mean - sample.target[0].numpy()[rows, columns]) / np.abs(mean), _SMALLEST)
    stated = (answer.unchecked_std / answer.mean.abs()).log()[0, 0].cpu().numpy()[rows, columns]
    return _Pixels(found[:, rows // CELL, columns // CELL].T, np.log(error), stated)


@torch.inference_mode(False)
@torch.enable_grad()
def _fitted(pixels: _Pixels) -> tuple[tuple[float, ...], ...]:
    """A small network by the pinball loss of the logarithms: quantiles are the same of any scale."""
    middle, scale = pixels.features.mean(0), pixels.features.std(0) + 1e-3
    values = torch.from_numpy(np.clip((pixels.features - middle) / scale, -4, 4)).float()
    wanted = torch.from_numpy(pixels.error - pixels.stated).float() - float(np.log(LEVEL_QUANTILE))
    generator = torch.Generator().manual_seed(0)
    layers = [nn.Linear(a, b) for a, b in ((len(FEATURES), HIDDEN), (HIDDEN, HIDDEN), (HIDDEN, 1))]
    with torch.no_grad():
        for layer in layers:
            layer.weight.normal_(0, layer.in_features**-0.5, generator=generator)
            layer.bias.zero_()
        layers[-1].weight.zero_()  # σ as it is
    network = nn.Sequential(layers[0], nn.Tanh(), layers[1], nn.Tanh(), layers[2])
    optimiser = torch.optim.AdamW(network.parameters(), lr=_RATE, weight_decay=1e-3)
    plan = torch.optim.lr_scheduler.OneCycleLR(optimiser, _RATE, _STEPS)
    for _ in range(_STEPS):
        some = torch.randint(len(values), (_BATCH,), generator=generator)
        factor = network(values[some])[:, 0]
        beyond = wanted[some] - factor
        loss = torch.maximum(LEVEL * beyond, (LEVEL - 1) * beyond).mean()
        loss = loss + _SHRINKING * factor.square().mean()
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
        plan.step()
    parts = [middle, scale]
    for layer in layers:
        parts += [layer.weight.detach().flatten().numpy(), layer.bias.detach().numpy()]
    return tuple(tuple(float(f"{value:.6g}") for value in part) for part in parts)
