"""μ and Λ of the belief after each iteration of each stage, as values."""

from __future__ import annotations

import numpy as np
import torch

from gbpn.evaluate.page import Picture
from gbpn.evaluate.pictures_of_maps import logarithm, png
from gbpn.gbp import Scheme, infer
from gbpn.model.models import GBPN
from gbpn.model.pipeline import SparseDepth
from gbpn.sample import Sample
from gbpn.show import pictures
from gbpn.show.pictures import Array

__all__ = ["states"]

_WIDE = 180
"""Pixels of a panel, about."""


@torch.no_grad()
def states(who: str, model: GBPN, sample: Sample) -> Picture:
    """One picture: a pair of rows (depth, log10 Λ) for each stage, a column for each iteration."""
    found = _beliefs(model, sample)
    step = max(1, round(sample.image.shape[2] / _WIDE))
    means = [[mean[::step, ::step] for mean, _ in stage] for stage in found]
    logs = [[logarithm(precision[::step, ::step]) for _, precision in stage] for stage in found]
    low, high = pictures.value_range(*(one for stage in means for one in stage))
    parts = []
    for number, (depths, sure) in enumerate(zip(means, logs, strict=True), 1):
        known = np.concatenate([one[np.isfinite(one)] for one in sure])
        rows = []
        bottom, top = np.percentile(known, [2, 98]) if known.size else (0.0, 1.0)
        for maps, span, palette, word, unit in (
            (depths, (low, high), pictures.DEPTH, "mean", "m"),
            (sure, (float(bottom), float(top)), pictures.CONFIDENCE, "log10 precision", ""),
        ):
            row = []
            for t, values in enumerate(maps, 1):
                painted = pictures.colours(values, *span, palette)
                if t == len(maps):
                    painted = pictures.with_bar(painted, *span, palette, unit)
                row.append(pictures.titled(painted, f"stage {number}, {t}: {word}"))
            rows.append(row)
        parts.append(pictures.grid(rows))
    caption = (
        f"Belief of {who} on {sample.name} after each iteration: the mean in metres, and log10 of the "
        "precision in the unit that the field counts in. Grey: reached by no measurement."
    )
    return Picture(name="states", caption=caption, data=png(_stacked(parts)), section="Propagation")


def _beliefs(model: GBPN, sample: Sample) -> list[list[tuple[Array, Array]]]:
    """(mean in metres, precision) [H, W] after each iteration, by stage."""
    pipeline = model.pipeline(check_sigmas=False, mirror=False)
    encoding = pipeline.encode(sample.image[None], sample.intrinsics[None])
    crop, messages = encoding.padded.cropped, None
    out = []
    stages = pipeline.stages(encoding, SparseDepth(depth=sample.sparse[None]))
    for stage, iterations in zip(stages, pipeline.iterations, strict=True):
        result = infer(
            stage.field,
            messages,
            iterations=iterations,
            nonlocal_steps=model.config.nonlocal_steps,
            reweighting=model.config.reweighting,
            scheme=Scheme.of(model.config),
            record=True,
            check=False,
        )
        last = {shot.iteration: shot.belief for shot in result.snapshots}
        out.append(
            [
                (crop(stage.unit.out(b.mean))[0, 0].numpy(), crop(b.precision)[0, 0].numpy())
                for b in last.values()
            ]
        )
        messages = stage.inference.messages if model.config.second_start == "carried" else None
    return out


def _stacked(parts: list[Array]) -> Array:
    """One under the other; narrower ones are filled up with the background."""
    width = max(part.shape[1] for part in parts)
    filled = []
    for part in parts:
        out = np.empty((part.shape[0], width, 3), np.uint8)
        out[:] = pictures.BACKGROUND
        out[:, : part.shape[1]] = part
        filled.append(out)
    return np.concatenate(filled)
