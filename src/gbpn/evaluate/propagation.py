"""Belief propagation made visible: sweeps as they spread, and where learned edges lead."""

from __future__ import annotations

import io
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from PIL import Image, ImageDraw
from torch import Tensor
from torch.nn.functional import avg_pool2d, max_pool2d

from gbpn.errors import InputError
from gbpn.evaluate import handmade
from gbpn.evaluate.pictures_of_maps import logarithm
from gbpn.gbp import Inference, Scheme, infer
from gbpn.measurements.validity import measured
from gbpn.model.models import GBPN
from gbpn.model.pipeline import SparseDepth
from gbpn.mrf import NonLocalEdges
from gbpn.sample import Sample
from gbpn.show import pictures
from gbpn.show.pictures import Array

__all__ = [
    "PANEL",
    "WORDS",
    "Step",
    "edges_picture",
    "frames",
    "gif",
    "keep_measurements",
    "pixel_grid",
    "steps",
    "strip",
]

PANEL = 420
"""Pixels; the widest panel that three of fit on a page. Wider frames are drawn smaller."""

WORDS = {
    "left_right": "left to right",
    "top_bottom": "top to bottom",
    "right_left": "right to left",
    "bottom_top": "bottom to top",
    "nonlocal": "learned edges",
}


@dataclass(frozen=True, kw_only=True)
class Step:
    """The belief after one sweep."""

    title: str
    mean: Array
    """[H, W] metres, NaN where no measurement has arrived yet."""
    precision: Array
    """[H, W]."""


def keep_measurements(sample: Sample, count: int) -> Sample:
    """The sample with its `count` measurements nearest to the middle of the image."""
    rows, columns = np.nonzero(measured(sample.sparse[0].numpy()))
    height, width = sample.sparse.shape[-2:]
    order = np.argsort((rows - height / 2) ** 2 + (columns - width / 2) ** 2, kind="stable")[:count]
    sparse = torch.zeros_like(sample.sparse)
    sparse[0, rows[order], columns[order]] = sample.sparse[0, rows[order], columns[order]]
    return Sample(
        image=sample.image,
        sparse=sparse,
        intrinsics=sample.intrinsics,
        target=sample.target,
        name=sample.name,
    )


@torch.no_grad()
def steps(sample: Sample, model: GBPN | None = None, iterations: int | None = None) -> list[Step]:
    """Every sweep of the model's first stage, or of the hand-made field where there is no model.

    The hand-made field is swept without reweighting, which fades a lone measurement to nothing far away.
    """
    if model is None:
        result = infer(
            handmade.field(sample),
            iterations=iterations or 2,
            record=True,
            backend="reference",
        )
        return _steps(result, lambda mean: mean, lambda maps: maps)
    pipeline = model.pipeline()
    encoding = pipeline.encode(sample.image[None], sample.intrinsics[None])
    first = pipeline.first_stage(encoding, SparseDepth(depth=sample.sparse[None]))
    result = infer(
        first.field,
        iterations=iterations or min(model.config.iterations[0], 2),
        nonlocal_steps=model.config.nonlocal_steps,
        reweighting=model.config.reweighting,
        scheme=Scheme.of(model.config),
        record=True,
        backend="reference",
    )
    return _steps(result, first.unit.out, encoding.padded.cropped)


def _steps(
    result: Inference, to_metres: Callable[[Tensor], Tensor], crop: Callable[[Tensor], Tensor]
) -> list[Step]:
    return [
        Step(
            title=f"iteration {shot.iteration + 1}, {WORDS[shot.part]}",
            mean=crop(to_metres(shot.belief.mean))[0, 0].numpy(),
            precision=crop(shot.belief.precision)[0, 0].numpy(),
        )
        for shot in result.snapshots
    ]


def frames(sample: Sample, shots: Sequence[Step]) -> list[Array]:
    """One picture per step: measurements, depth so far, and the log of its precision."""
    step = -(-sample.image.shape[2] // PANEL)
    known = sample.target[0].numpy() if sample.target is not None else shots[-1].mean
    low, high = pictures.value_range(known)
    precisions = [shot.precision[::step, ::step] for shot in shots]
    logs = [logarithm(precision) for precision in precisions]
    finite = logs[-1][np.isfinite(logs[-1])]
    bottom, top = np.percentile(finite, [10, 99]) if finite.size else (0.0, 1.0)
    points = pictures.titled(
        pictures.measurements(
            avg_pool2d(sample.image, step, ceil_mode=True),
            max_pool2d(sample.sparse, step, ceil_mode=True),
            low,
            high,
        ),
        f"measurements: {int(measured(sample.sparse).sum())}",
    )
    out = []
    for shot, log in zip(shots, logs, strict=True):
        depth = pictures.with_bar(
            pictures.colours(shot.mean[::step, ::step], low, high, pictures.DEPTH), low, high, pictures.DEPTH
        )
        sure = pictures.colours(log, bottom, top, pictures.CONFIDENCE)
        sure = pictures.with_bar(sure, bottom, top, pictures.CONFIDENCE, "")
        panels = [
            points,
            pictures.titled(depth, shot.title),
            pictures.titled(sure, "log10 of the precision"),
        ]
        out.append(pictures.grid([panels]))
    return out


def strip(sample: Sample, shots: Sequence[Step], most: int = 5) -> Array:
    """The first steps side by side: depth above, the logarithm of its precision below, a bar for each row."""
    step = -(-2 * sample.image.shape[2] // PANEL)
    shots = shots[:most]
    low, high = pictures.value_range(
        sample.target[0].numpy() if sample.target is not None else shots[-1].mean
    )
    logs = [logarithm(shot.precision[::step, ::step]) for shot in shots]
    known = logs[-1][np.isfinite(logs[-1])]
    bottom, top = np.percentile(known, [10, 99]) if known.size else (0.0, 1.0)
    rows: list[list[Array]] = [[], []]
    for shot, log in zip(shots, logs, strict=True):
        last = shot is shots[-1]
        depth = pictures.colours(shot.mean[::step, ::step], low, high, pictures.DEPTH)
        sure = pictures.colours(log, bottom, top, pictures.CONFIDENCE)
        if last:
            depth = pictures.with_bar(depth, low, high, pictures.DEPTH)
            sure = pictures.with_bar(sure, bottom, top, pictures.CONFIDENCE, "")
        rows[0].append(pictures.titled(depth, shot.title.removeprefix("iteration ")))
        rows[1].append(pictures.titled(sure, "log10 precision"))
    return pictures.grid(rows)


def gif(shots: Sequence[Array], seconds: float = 0.7) -> bytes:
    """An endless animation; the last picture stays three times as long."""
    if not shots:
        raise InputError("an animation needs at least one picture; got none")
    images = [Image.fromarray(shot) for shot in shots]
    lengths = [round(1000 * seconds)] * (len(images) - 1) + [round(3000 * seconds)]
    out = io.BytesIO()
    images[0].save(out, format="GIF", save_all=True, append_images=images[1:], duration=lengths, loop=0)
    return out.getvalue()


def edges_picture(
    image: Tensor,
    edges: NonLocalEdges,
    pixels: Sequence[tuple[int, int]],
    iteration: int = -1,
    corner: tuple[int, int] = (0, 0),
    times: int = 2,
) -> Array:
    """The image with, for each chosen pixel (row, column), lines to the pixels its learned edges read.

    Red: the pixel; green: its senders, brighter where the edge is stronger among the K. `corner` is where the
    image lies inside the padded field. Drawn pale, at `times` the size.
    """
    pale = 255 - (255 - pictures.photo(image)) // 2
    picture = Image.fromarray(pale).resize((times * image.shape[2], times * image.shape[1]))
    draw = ImageDraw.Draw(picture)
    top, left = corner
    for row, column in pixels:
        if not (0 <= row < image.shape[1] and 0 <= column < image.shape[2]):
            raise InputError(f"pixel ({row}, {column}) is outside the image of {tuple(image.shape[1:])}")
        offset = edges.offset[0, iteration, :, :, top + row, left + column]  # [K, 2]
        weight = edges.weight[0, iteration, :, top + row, left + column]
        share = weight / weight.max().clamp_min(1e-12)
        centre = (times * (column + 0.5), times * (row + 0.5))
        for (dy, dx), strength in zip(offset.tolist(), share.tolist(), strict=True):
            end = (centre[0] + times * dx, centre[1] + times * dy)
            green = (40, 120 + round(135 * strength), 40)
            draw.line([centre, end], fill=(255, 255, 255), width=5)
            draw.line([centre, end], fill=green, width=2)
            draw.ellipse(_circle(end, 6), fill=green, outline=(255, 255, 255), width=2)
        draw.ellipse(_circle(centre, 6), fill=(230, 40, 40), outline=(255, 255, 255), width=2)
    return np.asarray(picture)


def pixel_grid(height: int, width: int, rows: int = 3, columns: int = 4) -> list[tuple[int, int]]:
    """A few pixels over the whole image, for when nobody clicked."""
    return [
        (round((r + 0.5) * height / rows), round((c + 0.5) * width / columns))
        for r in range(rows)
        for c in range(columns)
    ]


def _circle(centre: tuple[float, float], radius: float) -> tuple[float, float, float, float]:
    return (centre[0] - radius, centre[1] - radius, centre[0] + radius, centre[1] + radius)
