"""Pictures of single frames: what every method made of the best, the median and the worst one."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import avg_pool2d, max_pool2d

from gbpn.distribution import DepthDistribution
from gbpn.evaluate import influence
from gbpn.evaluate import propagation as sweeps
from gbpn.evaluate.page import Picture
from gbpn.evaluate.pictures_of_maps import png
from gbpn.evaluate.propagation import PANEL
from gbpn.evaluate.report import Report
from gbpn.evaluate.run import Plan
from gbpn.evaluate.states import states
from gbpn.measurements.validity import measured
from gbpn.model.loading import load
from gbpn.model.models import GBPN
from gbpn.sample import Sample
from gbpn.show import pictures
from gbpn.show.pictures import Array

__all__ = [
    "contact_sheets",
    "extremes",
    "frame_rows",
    "learned_edges",
    "propagation",
    "reaches",
    "sheet",
]

_SHOWN_METHODS = 4
_EDGES_WIDE = 900
"""Pixels of the picture of learned edges, about."""


def contact_sheets(plan: Plan, report: Report) -> list[Picture]:
    """Best, median and worst frame of the leading method, completed anew by it and its strongest rivals."""
    leading = next((row for row in report.rows if row.table.samples), None)
    if leading is None:
        return []
    first = [row for row in report.rows if row.setting == leading.setting]
    rivals = sorted(first[1:], key=lambda row: row.values.get("rmse", np.inf))
    shown = [leading.method, *(row.method for row in rivals[: _SHOWN_METHODS - 1])]
    entries = [entry for name in shown for entry in plan.entries if entry.name == name]
    predictors = [entry.load() for entry in entries]
    dataset = plan.open()
    index = {name: i for i, name in enumerate(dataset.names)}
    setting = plan.settings[0]
    out = []
    for word, name, seed in extremes(report):
        sample = setting.measure(dataset.load(index[name]), seed)
        answers = [predict([sample], setting) for predict in predictors]
        picture = sheet(sample, [entry.name for entry in entries], answers)
        caption = (
            f"{word.capitalize()} frame of {leading.method}: {name}. One colour range per column, in metres."
        )
        out.append(Picture(name=f"{word}_frame", caption=caption, data=png(picture), section="Frames"))
    return out


def frame_rows(plan: Plan, report: Report, setting_name: str) -> list[Picture]:
    """The three best, four middle and three worst frames of the first weights in a setting, one a row."""
    setting = next((setting for setting in plan.settings if setting.name == setting_name), None)
    row = next((row for row in report.rows if row.setting.get("name") == setting_name), None)
    if setting is None or row is None or not row.table.samples:
        return []
    entry = next(entry for entry in plan.entries if entry.name == row.method)
    scored = sorted((r for r in row.table.rows if r.pixels), key=lambda r: r.values["rmse"])
    middle = len(scored) // 2
    places = {0, 1, 2, *range(middle - 2, middle + 2), *range(len(scored) - 3, len(scored))}
    predict, dataset = entry.load(), plan.open(setting)
    index = {name: i for i, name in enumerate(dataset.names)}
    rows = []
    for place in sorted(place for place in places if 0 <= place < len(scored)):
        name, seed = _split(scored[place].name)
        sample = setting.measure(dataset.load(index[name]), seed)
        answer = predict([sample], setting)
        confidence = torch.from_numpy(_ranks(answer.confidence_logit[0].numpy()))
        rows.append(pictures.PictureRow(sample=sample, mean=answer.mean[0], confidence=confidence))
    caption = (
        f"{entry.name}, {setting_name}: the best, middle and worst of {len(scored)} frames by RMSE, "
        "in this order. Confidence as the share of pixels that are less sure."
    )
    data = png(pictures.grid([pictures.row_panels(row) for row in rows]))
    return [
        Picture(name=f"frames_{setting_name.replace(' ', '_')}", caption=caption, data=data, section="Frames")
    ]


def reaches(plan: Plan) -> list[tuple[str, list[dict[str, str]], Picture]]:
    """Title, table and picture of how far one measurement of the first frame reaches, for every setting."""
    out = []
    for setting in plan.settings:
        dataset = plan.open(setting)
        sample = setting.measure(dataset.load(plan.frames(dataset, setting)[0]))
        found = influence.influences(sample, plan.entries, setting)
        place = influence.central_measurement(sample)
        count = int(measured(sample.sparse).sum())
        title = f"range of one of {count} measurements"
        caption = (
            f"Influence of the measurement in the square on every pixel of {sample.name}: the derivative of "
            "depth by it, log10 from 0.001 to 1. Iterations are those of the first stage."
        )
        drawn = Picture(
            name=f"influence_{count}",
            caption=caption,
            data=png(influence.picture(sample, found)),
            section="Range of a measurement",
        )
        out.append((title, [influence.reach(one, *place) for one in found], drawn))
    return out


def propagation(plan: Plan, report: Report, pixels: Sequence[tuple[int, int]] = ()) -> list[Picture]:
    """Sweeps from one measurement, as animation and strip, and the learned edges of the first weights."""
    weights = next((entry for entry in plan.entries if entry.kind == "weights"), None)
    if weights is None and not any(entry.spec == "gbp_handmade" for entry in plan.entries):
        return []
    model = load(weights.spec) if weights else None
    chosen = extremes(report)
    if not chosen or not (model is None or isinstance(model, GBPN)):
        return []
    _, name, seed = chosen[len(chosen) // 2]
    dataset = plan.open()
    sample = plan.settings[0].measure(dataset.load(dataset.names.index(name)), seed)
    one = sweeps.keep_measurements(sample, 1)
    steps = sweeps.steps(one, model)
    shots = sweeps.frames(one, steps)
    who = weights.name if weights else "the hand-made field"
    text = f"Belief propagation of {who} from a single measurement in {name}, sweep by sweep."
    out = [
        Picture(name="sweeps", caption=text, data=sweeps.gif(shots), kind="gif", section="Propagation"),
        Picture(
            name="sweeps_strip",
            caption="The first sweeps one by one. Dark: reached by no message yet.",
            data=png(sweeps.strip(one, steps)),
            section="Propagation",
        ),
    ]
    if weights is None or model is None:
        return out
    return [*out, states(weights.name, model, sample), *learned_edges(weights.name, model, sample, pixels)]


def learned_edges(
    who: str, model: GBPN, sample: Sample, pixels: Sequence[tuple[int, int]] = ()
) -> list[Picture]:
    """Where the learned edges of some pixels lead; nothing for a model without them."""
    with torch.no_grad():
        encoding = model.pipeline().encode(sample.image[None], sample.intrinsics[None])
    edges = encoding.parameters.nonlocal_
    if edges is None:
        return []
    pixels = pixels or sweeps.pixel_grid(*sample.image.shape[1:])
    times = max(2, round(_EDGES_WIDE / sample.image.shape[2]))
    picture = sweeps.edges_picture(sample.image, edges, pixels, corner=encoding.padded.corner, times=times)
    middle = float(edges.offset[0, -1].square().sum(1).sqrt().median())
    picture = pictures.titled(picture, f"red: a pixel, green: what it reads, median {middle:.1f} px away")
    caption = f"Learned non-local edges of {who}: red the receiving pixel, green the places it reads."
    return [Picture(name="learned_edges", caption=caption, data=png(picture), section="Propagation")]


def extremes(report: Report) -> list[tuple[str, str, int]]:
    """(best | median | worst, frame, seed) by RMSE of the first row; fewer where there are fewer frames."""
    leading = next((row for row in report.rows if row.table.samples), None)
    rows = [] if leading is None else leading.table.rows
    scored = sorted(
        (row for row in rows if row.values["rmse"] == row.values["rmse"]), key=lambda r: r.values["rmse"]
    )
    places = {len(scored) // 2: "median", 0: "best", len(scored) - 1: "worst"}
    ordered = sorted((place, word) for place, word in places.items() if scored)
    return [(word, *_split(scored[place].name)) for place, word in ordered]


def sheet(sample: Sample, names: Sequence[str], answers: Sequence[DepthDistribution]) -> Array:
    """Image, measurements and truth above; depth, error and confidence of one method per row.

    Frames wider than `PANEL` are drawn smaller; of sparse maps the largest value of a block is kept.
    """
    assert sample.target is not None
    step = -(-sample.image.shape[2] // PANEL)
    image = avg_pool2d(sample.image, step, ceil_mode=True)
    target = torch.where(measured(sample.target), sample.target, torch.nan)
    truth = _largest(target, step)
    low, high = pictures.value_range(truth)
    errors = [(answer.mean[0] - target).abs() for answer in answers]
    top = max(pictures.value_range(*(_largest(error, step) for error in errors), high=97)[1], 1e-3)
    count = int(measured(sample.sparse).sum())
    points = pictures.measurements(image, max_pool2d(sample.sparse, step, ceil_mode=True), low, high)
    rows = [
        [
            pictures.titled(pictures.photo(image), "image"),
            pictures.titled(points, f"{count} measurements"),
            _map(truth, low, high, pictures.DEPTH, "ground truth"),
        ]
    ]
    for name, answer, error in zip(names, answers, errors, strict=True):
        rmse = float(error[error.isfinite()].double().square().mean().sqrt())
        row = [
            _map(answer.mean[0, 0, ::step, ::step].numpy(), low, high, pictures.DEPTH, f"{name}: depth"),
            _map(_largest(error, step), 0, top, pictures.ERROR, f"error, RMSE {rmse:.3f} m"),
        ]
        if answer.ranked:
            # Only the order of pixels means anything across methods: shown as the share ranked below.
            rank = _ranks(answer.confidence_logit[0, 0, ::step, ::step].numpy())
            row.append(_map(rank, 0, 1, pictures.CONFIDENCE, "confidence (rank)", ""))
        rows.append(row)
    return pictures.grid(rows)


def _largest(values: Tensor, step: int) -> Array:
    """[1, H, W] to [H/step, W/step]: the largest finite value of each block, NaN where it has none."""
    pooled = max_pool2d(values.nan_to_num(nan=-1.0, posinf=-1.0), step, ceil_mode=True)[0]
    return torch.where(pooled >= 0, pooled, torch.nan).numpy()


def _map(values: Array, low: float, high: float, palette: str, title: str, unit: str = "m") -> Array:
    coloured = pictures.colours(values, low, high, palette)
    return pictures.titled(pictures.with_bar(coloured, low, high, palette, unit), title)


def _ranks(values: Array) -> Array:
    from scipy.stats import rankdata

    known = np.isfinite(values)
    out = np.full(values.shape, np.nan)
    if known.any():
        out[known] = (rankdata(values[known]) - 0.5) / known.sum()
    return out


def _split(name: str) -> tuple[str, int]:
    frame, _, seed = name.rpartition("#")
    return frame, int(seed)
