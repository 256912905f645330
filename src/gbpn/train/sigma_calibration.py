"""From confidence to metres: a monotone map, and what a pixel's surroundings add to it; fitted on held-out
training frames, stored with the weights."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import torch
from scipy.optimize import isotonic_regression
from torch import Tensor

from gbpn.datasets.selection import evenly_spaced
from gbpn.datasets.training_view import Dataset
from gbpn.distribution import SigmaCalibration
from gbpn.measurements.validity import measured
from gbpn.metrics import valid
from gbpn.model.models import GBPN, Model
from gbpn.sensors.sampling import sparsify
from gbpn.sigma.held_out import LEVEL, LEVEL_QUANTILE
from gbpn.train.surroundings_calibration import fit_surroundings

__all__ = ["PATTERNS", "PIXELS", "calibrate", "fit"]

PATTERNS = ("points:10", "points:50", "points:200", "points:500", "points:2000", "points:5000")
"""Measurements that the map must serve, where a frame brings no sensor of its own."""
PIXELS = 2000
"""Pixels taken from each frame and pattern."""
_KNOTS = 24
"""Points of the piecewise linear map."""
_SMALLEST = 1e-5
"""Relative σ is at least this."""


@torch.inference_mode()
def calibrate(model: Model, frames: Dataset, limit: int) -> SigmaCalibration:
    """A map from the confidence logit to relative σ, for at most `limit` frames of `frames`; with enough of
    them, with the part that looks at surroundings."""
    model.eval()
    device = next(model.parameters()).device
    logits, errors = [], []
    for index in evenly_spaced(len(frames), limit):
        frame = frames.load(index)
        given = bool(measured(frame.sparse).any())
        for number, pattern in enumerate(("given",) if given else PATTERNS):
            rng = np.random.default_rng([11, index, number])
            sample = sparsify(frame, pattern, rng)
            if sample.target is None or not bool(measured(sample.sparse).any()):
                continue
            batch = (tensor[None].to(device) for tensor in (sample.image, sample.sparse, sample.intrinsics))
            answer = model(*batch)
            known = valid(sample.target) & answer.observed[0].cpu()
            error = (answer.mean[0].cpu() - sample.target).abs() / answer.mean[0].cpu().abs()
            chosen = _choose(known, rng)
            logits.append(answer.confidence_logit[0].cpu().flatten()[chosen].double().numpy())
            errors.append(error.flatten()[chosen].double().numpy())
    found = fit(np.concatenate(logits), np.concatenate(errors))
    if not isinstance(model, GBPN):
        return found
    before, model.calibration = model.calibration, found
    try:
        return replace(found, surroundings=fit_surroundings(model, frames, limit))
    finally:
        model.calibration = before


def fit(logits: np.ndarray, errors: np.ndarray) -> SigmaCalibration:
    """Quantiles of the relative error in bins of equal count, made monotone: more confidence, smaller σ."""
    order = np.argsort(logits, kind="stable")
    bins = [part for part in np.array_split(order, min(_KNOTS, len(order))) if part.size]
    centres = np.array([np.median(logits[part]) for part in bins])
    sigma = np.array([np.quantile(errors[part], LEVEL) for part in bins]) / LEVEL_QUANTILE
    log_sigma = isotonic_regression(np.log(np.maximum(sigma, _SMALLEST)), increasing=False).x
    distinct = np.concatenate([[True], np.diff(centres) > 1e-6])
    return SigmaCalibration(
        knots=tuple(float(x) for x in centres[distinct]),
        log_std=tuple(float(x) for x in log_sigma[distinct]),
        relative=True,
    )


def _choose(known: Tensor, rng: np.random.Generator) -> Tensor:
    positions = torch.nonzero(known.flatten())[:, 0]
    picked = rng.choice(len(positions), min(PIXELS, len(positions)), replace=False)
    return positions[torch.from_numpy(picked)]
