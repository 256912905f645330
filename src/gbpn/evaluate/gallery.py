"""Sparsity × method: one frame measured more and more densely, completed by every method, as pictures."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from torch.nn.functional import avg_pool2d, max_pool2d

from gbpn.distribution import DepthDistribution
from gbpn.evaluate.page import Picture
from gbpn.evaluate.pictures_of_maps import logarithm, png
from gbpn.evaluate.run import Plan
from gbpn.measurements.validity import measured
from gbpn.sample import Sample
from gbpn.show import pictures
from gbpn.show.pictures import Array

__all__ = ["gallery"]

_WIDE = 260
"""Pixels of a panel, about."""


def gallery(plan: Plan) -> list[Picture]:
    """Depth and error of all methods, and Λ and σ of those that say them; a row for each setting."""
    predictors = [(entry.name, entry.load()) for entry in plan.entries]
    learned = [entry.name for entry in plan.entries if entry.kind == "weights"]
    samples, answers, labels = [], [], []
    for setting in plan.settings:
        dataset = plan.open(setting)
        sample = setting.measure(dataset.load(plan.frames(dataset, setting)[0]))
        samples.append(sample)
        counted = _counted(int(measured(sample.sparse).sum()))
        labels.append(f"{setting.lines} lines: {counted}" if setting.lines else counted)
        answers.append({name: predict([sample], setting) for name, predict in predictors})
    frame = samples[0].name
    drawn = [
        Picture(
            name="gallery_depth",
            caption=f"{frame}: depth, in one range of metres. Rows: measurements; columns: methods.",
            data=png(_depths(samples, answers, labels)),
            section="Sparsity × method",
        ),
        Picture(
            name="gallery_error",
            caption=f"{frame}: the error of the same, in one range of metres; grey where there is no truth.",
            data=png(_errors(samples, answers, labels)),
            section="Sparsity × method",
        ),
    ]
    if (sure := _trust(learned, answers, labels)) is not None:
        caption = f"{frame}: log10 of the precision, in one range, and sigma in metres, each row in its own."
        drawn.append(
            Picture(name="gallery_precision", caption=caption, data=png(sure), section="Sparsity × method")
        )
    return drawn


_Answers = Sequence[dict[str, DepthDistribution]]


def _depths(samples: Sequence[Sample], answers: _Answers, labels: Sequence[str]) -> Array:
    low, high = pictures.value_range(_target(samples[0]))
    rows = []
    for sample, found, label in zip(samples, answers, labels, strict=True):
        points = _points(sample, low, high)
        row = [pictures.titled(points, label)]
        for name, answer in found.items():
            row.append(_panel(_map(answer.mean), low, high, pictures.DEPTH, name, last=name == [*found][-1]))
        rows.append(row)
    truth = _panel(_target(samples[0]), low, high, pictures.DEPTH, "ground truth", last=False)
    return pictures.grid([*rows, [pictures.titled(_small(pictures.photo(samples[0].image)), "image"), truth]])


def _errors(samples: Sequence[Sample], answers: _Answers, labels: Sequence[str]) -> Array:
    errors = [
        {name: np.abs(_map(answer.mean) - _target(sample)) for name, answer in found.items()}
        for sample, found in zip(samples, answers, strict=True)
    ]
    top = max(pictures.value_range(*(e for found in errors for e in found.values()), high=95)[1], 1e-3)
    rows = []
    for found, label in zip(errors, labels, strict=True):
        row = []
        for name, error in found.items():
            known = error[np.isfinite(error)]
            rmse = f"{np.sqrt(np.square(known).mean()):.3f} m" if known.size else "–"
            last = name == [*found][-1]
            row.append(_panel(error, 0, top, pictures.ERROR, f"{name}: RMSE {rmse}", last=last))
        row[0] = pictures.titled(row[0], label)
        row[1:] = [pictures.titled(one, "") for one in row[1:]]
        rows.append(row)
    return pictures.grid(rows)


def _trust(learned: Sequence[str], answers: _Answers, labels: Sequence[str]) -> Array | None:
    """Λ as a logarithm and σ of weights, a row for each setting; None where there are none."""
    if not learned:
        return None
    logs = {name: [logarithm(_map(found[name].belief_precision)) for found in answers] for name in learned}
    sigmas = {
        name: [_map(found[name].std) for found in answers]
        for name in learned
        if all(found[name].calibrated for found in answers)
    }
    rows: list[list[Array]] = []
    spans = {name: _span(maps) for name, maps in logs.items()}
    for k, label in enumerate(labels):
        short = label.partition(":")[0].removesuffix(" measurements")
        row = [
            _panel(maps[k], *spans[name], pictures.CONFIDENCE, f"{name}, {short}: log10 precision", unit="")
            for name, maps in logs.items()
        ]
        row += [
            _panel(maps[k], 0, _top(maps[k]), pictures.ERROR, f"{name}, {short}: sigma")
            for name, maps in sigmas.items()
        ]
        rows.append(row)
    return pictures.grid(rows)


def _counted(count: int) -> str:
    return f"{count} measurement{'' if count == 1 else 's'}"


def _top(values: Array) -> float:
    return max(pictures.value_range(values, high=97)[1], 1e-3)


def _span(maps: Sequence[Array]) -> tuple[float, float]:
    known = np.concatenate([one[np.isfinite(one)] for one in maps])
    low, high = np.percentile(known, [2, 98]) if known.size else (0.0, 1.0)
    return float(low), float(high)


def _panel(
    values: Array, low: float, high: float, palette: str, title: str, unit: str = "m", *, last: bool = True
) -> Array:
    """A map under its title; `last` of its row: with the colour bar."""
    painted = _small(pictures.colours(values, low, high, palette))
    return pictures.titled(pictures.with_bar(painted, low, high, palette, unit) if last else painted, title)


def _points(sample: Sample, low: float, high: float) -> Array:
    """The measurements over the picture, small: none is lost between the pixels that are left."""
    step = max(1, round(sample.image.shape[2] / _WIDE))
    image = avg_pool2d(sample.image, step, ceil_mode=True)
    return pictures.measurements(image, max_pool2d(sample.sparse, step, ceil_mode=True), low, high)


def _small(picture: Array) -> Array:
    step = max(1, round(picture.shape[1] / _WIDE))
    return np.ascontiguousarray(picture[::step, ::step])


def _map(values: torch.Tensor | None) -> Array:
    """[1, 1, H, W] as [H, W]."""
    assert values is not None
    return values[0, 0].float().cpu().numpy()


def _target(sample: Sample) -> Array:
    assert sample.target is not None
    return torch.where(measured(sample.target), sample.target, torch.nan)[0].numpy()
