"""Judging a model on held-out frames of the training set: numbers and a picture."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import torch
from torch import nn

from gbpn.data import patterns
from gbpn.metrics import MetricTable
from gbpn.pictures import Row, strip
from gbpn.sample import Sample
from gbpn.train.split import Part, validation_generator

SHOWN = ("rmse", "mae", "rel", "delta_1.02", "ause", "rmse_drop_1pct")
"""Numbers of a validation, in the order of the table."""
PICTURED = 4
"""Frames in the picture strip."""


def measured(sample: Sample, index: int, points: int) -> Sample:
    """The frame with its sensor's measurements, or with `points` random ones where it brings none."""
    if bool((sample.sparse > 0).any()):
        return sample
    assert sample.target is not None
    sparse = patterns.random_points(sample.target, validation_generator(index), count=points)
    return replace(sample, sparse=sparse)


@torch.inference_mode()
def validate(model: nn.Module, frames: Part, points: int, picture: Path) -> dict[str, float]:
    """Averages over `frames`; writes a strip of image, measurements, mean, confidence and error."""
    model.eval()
    device = next(model.parameters()).device
    table = MetricTable()
    shown = {round(i * (len(frames) - 1) / max(PICTURED - 1, 1)) for i in range(PICTURED)}
    rows: list[Row] = []
    for index in range(len(frames)):
        sample = measured(frames.load(index), index, points)
        batch = (sample.image, sample.sparse, sample.intrinsics)
        answer = model(*(tensor[None].to(device) for tensor in batch))
        assert sample.target is not None
        mean, confidence = answer.mean.cpu(), answer.confidence.cpu()
        table.update(mean, sample.target[None], confidence=confidence, names=[sample.name])
        if index in shown:
            rows.append(Row(sample=sample, mean=mean[0], confidence=confidence[0]))
    picture.parent.mkdir(parents=True, exist_ok=True)
    strip(rows, picture)
    averages = table.averages()
    return {name: averages[name] for name in SHOWN if name in averages}
