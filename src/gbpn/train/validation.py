"""Judging a model on held-out frames of the training set: numbers and a picture."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import torch

from gbpn.datasets.selection import evenly_spaced
from gbpn.datasets.training_view import Dataset
from gbpn.engine import Engine
from gbpn.how import How
from gbpn.measurements.validity import measured
from gbpn.metrics import MetricTable
from gbpn.model.models import Model
from gbpn.model.pipeline import SparseDepth
from gbpn.sample import Sample
from gbpn.sensors.sampling import sparsify
from gbpn.show.pictures import PictureRow, strip
from gbpn.train.recipe import Recipe

__all__ = ["validate", "with_measurements"]

_SHOWN = ("rmse", "mae", "rel", "delta_1.02", "ause", "rmse_drop_1pct")
"""Numbers of a validation, in the order of the table."""
_PICTURED = 4
"""Frames in the picture strip."""


def with_measurements(sample: Sample, index: int, pattern: str) -> Sample:
    """The frame with its sensor's measurements, or measured by `pattern`, the same way in every run."""
    if bool(measured(sample.sparse).any()):
        return sample
    return sparsify(sample, pattern, np.random.default_rng([7, index]))


@torch.inference_mode()
def validate(model: Model, frames: Dataset, recipe: Recipe, picture: Path) -> dict[str, float]:
    """Averages over `frames`; writes a strip of image, measurements, mean, confidence and error."""
    device = next(model.parameters()).device
    how = How(precision="float32", outliers="keep", device=str(device), check_sigma=False)
    answering = Engine.of(model, how).answering
    table = MetricTable()
    chosen = evenly_spaced(len(frames), recipe.validation_limit)
    shown = {chosen[i] for i in evenly_spaced(len(chosen), _PICTURED)}
    rows: list[PictureRow] = []
    for index in chosen:
        sample = with_measurements(frames.load(index), index, recipe.validation_pattern)
        image, sparse, camera = (x[None].to(device) for x in (sample.image, sample.sparse, sample.intrinsics))
        answer = answering.seen(answering.look(image, camera), SparseDepth(depth=sparse), sigmas=False)
        assert sample.target is not None
        mean, confidence = answer.mean.cpu(), answer.confidence.cpu()
        table.update(mean, sample.target[None], confidence=confidence, names=[sample.name])
        if index in shown:
            rows.append(PictureRow(sample=sample, mean=mean[0], confidence=confidence[0]))
    picture.parent.mkdir(parents=True, exist_ok=True)
    strip(rows, picture)
    averages = table.averages()
    return {name: averages[name] for name in _SHOWN if name in averages}
