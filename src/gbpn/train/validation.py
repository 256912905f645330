"""Judging a model on held-out frames of the training set: numbers and a picture."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from gbpn.datasets.selection import evenly_spaced
from gbpn.datasets.training_view import Dataset
from gbpn.engine import Engine
from gbpn.errors import InputError
from gbpn.how import How
from gbpn.measurements.validity import measured
from gbpn.metrics import MetricTable
from gbpn.metrics.surfaces import map_errors
from gbpn.model.models import GBPN, Model
from gbpn.model.pipeline import SparseDepth
from gbpn.sample import Sample
from gbpn.sensors.sampling import sparsify
from gbpn.show.pictures import PictureRow, strip
from gbpn.train.recipe import Recipe

__all__ = ["MapTable", "validate", "with_measurements"]

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
    """Averages over `frames`; writes a strip of image, measurements, mean, confidence and error.

    Of a run that teaches the depth-like map alone, that map is judged, and its depth has the scene's median.
    """
    device = next(model.parameters()).device
    how = How(precision="float32", outliers="keep", device=str(device), check_sigma=False)
    answering = Engine.of(model, how).answering
    of_map = recipe.loss == "shape"
    judged = model.merged() if of_map else model
    table, maps = MetricTable(), MapTable()
    chosen = evenly_spaced(len(frames), recipe.validation_limit)
    shown = {chosen[i] for i in evenly_spaced(len(chosen), _PICTURED)}
    rows: list[PictureRow] = []
    for index in chosen:
        sample = with_measurements(frames.load(index), index, recipe.validation_pattern)
        assert sample.target is not None
        if of_map:
            mean = maps.judged(judged, sample).cpu()
            confidence = torch.ones_like(mean)
        else:
            image, sparse, camera = (
                x[None].to(device) for x in (sample.image, sample.sparse, sample.intrinsics)
            )
            answer = answering.seen(answering.look(image, camera), SparseDepth(depth=sparse), sigmas=False)
            mean, confidence = answer.mean.cpu(), answer.confidence.cpu()
        table.update(mean, sample.target[None], confidence=confidence, names=[sample.name])
        if index in shown:
            rows.append(PictureRow(sample=sample, mean=mean[0], confidence=confidence[0]))
    picture.parent.mkdir(parents=True, exist_ok=True)
    strip(rows, picture)
    averages = table.averages()
    if of_map:
        return {"rmse": averages["rmse"], **maps.averages()}
    return {name: averages[name] for name in _SHOWN if name in averages}


class MapTable:
    """Errors of depth-like maps, frame by frame."""

    def __init__(self) -> None:
        self._rows: dict[str, list[float]] = {}

    def judged(self, model: Model, sample: Sample) -> Tensor:
        """[1, 1, H, W]: depth by the map of this frame, whose errors are kept; the unknown factor is the
        target's."""
        if not isinstance(model, GBPN):
            raise InputError("only a model that draws a field has a depth-like map to judge")
        assert sample.target is not None
        device = next(model.parameters()).device
        log = model.depth_map(sample.image[None].to(device), sample.intrinsics[None].to(device)).cpu()
        target = sample.target[None]
        for name, value in map_errors(log, target, sample.intrinsics[None]).items():
            self._rows.setdefault(name, []).append(float(value))
        known = measured(target)
        shift = (target[known].log() - log[known]).median() if bool(known.any()) else 0.0
        return (log + shift).exp()

    def averages(self) -> dict[str, float]:
        """Means over the frames that have a value."""
        return {name: float(np.nanmean(values)) for name, values in self._rows.items()}
