"""The demonstration: embedded scenes completed at several sparsities, as a page that needs nothing else."""

from __future__ import annotations

import io
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from html import escape
from pathlib import Path

import numpy as np
from PIL import Image
from torch import Tensor

from gbpn import scenes
from gbpn.atomic_files import write_text
from gbpn.baselines import linear
from gbpn.formats.depth_files import write_depth
from gbpn.formats.images import write_image
from gbpn.metrics.errors import errors
from gbpn.metrics.uncertainty import coverage
from gbpn.predict.completed import CompletedDepth
from gbpn.predict.completer import DepthCompleter
from gbpn.sample import Sample
from gbpn.sensors import patterns
from gbpn.show import pictures
from gbpn.show.html_page import document, embedded
from gbpn.validity import measured

__all__ = ["SEED", "Case", "Shown", "cases", "page", "run", "show", "write_example"]

SEED = 7
"""Of all random points: everybody sees the same demonstration."""
_WITHIN = 0.6827
"""Share of a Gaussian within one sigma."""
_NARROW = 2.0
"""Width over height above which the panels of a scene stand in two rows."""

_STYLE = """
p { max-width: 80ch; }
figure { margin: 10px 0 22px; } img { max-width: 100%; height: auto; border: 1px solid #e3e3e3; }
figcaption { color: #555; } code { background: #f3f3f3; padding: 1px 5px; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; }
th, td { padding: 4px 14px 4px 0; text-align: right; border-bottom: 1px solid #e3e3e3; }
th:first-child, td:first-child, th:nth-child(2), td:nth-child(2) { text-align: left; }
"""


@dataclass(frozen=True, kw_only=True)
class Case:
    """One scene under one sensor."""

    scene: str
    name: str
    """File name part."""
    caption: str
    measure: Callable[[Sample, np.random.Generator], Tensor]
    """Exact depth → what the sensor gives, [1, H, W]."""


@dataclass(frozen=True, kw_only=True)
class Shown:
    """A completed case."""

    case: Case
    points: int
    rmse: float
    """Metres, over all pixels with depth."""
    interpolated: float
    """RMSE of linear interpolation of the same points."""
    within: float | None
    """Share of pixels within one stated sigma; None without calibration."""
    seconds: float
    picture: np.ndarray


def cases() -> list[Case]:
    """What is shown, in this order."""

    def points(count: int) -> Callable[[Sample, np.random.Generator], Tensor]:
        return lambda sample, rng: patterns.random_points(_known(sample), rng, count)

    def lidar(lines: int) -> Callable[[Sample, np.random.Generator], Tensor]:
        return lambda sample, rng: patterns.rotating_lidar(_known(sample), rng, sample.intrinsics, lines)

    rooms = [
        Case(scene=scene, name=f"{count}", caption=f"{count} random points", measure=points(count))
        for scene in scenes.ROOMS
        for count in (500, 50)
    ]
    one = Case(scene="living_room", name="1", caption="one single point", measure=points(1))
    zones = Case(
        scene="kitchen",
        name="tof",
        caption="a time-of-flight sensor of 8×8 zones",
        measure=lambda sample, rng: patterns.time_of_flight(_known(sample)),
    )
    street = [
        Case(scene=scene, name=f"lidar{lines}", caption=f"a LiDAR of {lines} lines", measure=lidar(lines))
        for scene in scenes.STREETS
        for lines in (64, 16)
    ]
    shown = [*rooms, one, zones, *street]
    return sorted(shown, key=lambda case: scenes.names().index(case.scene))


def run(completer: DepthCompleter, folder: Path) -> Iterator[Shown]:
    """Complete all cases one by one, then write `index.html`; each picture is also a PNG of its own.

    `example/` gets files to go on with.
    """
    done = []
    write_example(folder / "example")
    for case in cases():
        shown = show(completer, case)
        pictures.save(shown.picture, folder / f"{case.scene}_{case.name}.png")
        done.append(shown)
        yield shown
    write_text(folder / "index.html", page(done, completer))


def write_example(folder: Path, scene: str = "kitchen") -> None:
    """Files to try `gbpn complete` with: a picture, its camera, 500 measurements (PNG and CSV)."""
    sample = scenes.load(scene)
    sparse = patterns.random_points(_known(sample), np.random.default_rng(SEED), 500)
    write_image(folder / "photo.jpg", sample.image)
    write_depth(folder / "depth.png", sparse, 1000)
    numbers = [float(sample.intrinsics[place]) for place in ((0, 0), (1, 1), (0, 2), (1, 2))]
    rows, columns = np.nonzero(sparse[0].numpy())
    lines = [f"{x},{y},{float(sparse[0, y, x]):.3f}" for y, x in zip(rows, columns, strict=True)]
    for name, text in (
        ("camera.txt", " ".join(f"{number:.3f}" for number in numbers)),
        ("points.csv", "\n".join(["x,y,depth", *lines])),
    ):
        write_text(folder / name, text + "\n")


def show(completer: DepthCompleter, case: Case) -> Shown:
    """Complete one case and hold it against the exact depth."""
    sample = scenes.load(case.scene)
    sample = replace(sample, sparse=case.measure(sample, np.random.default_rng(SEED)))
    assert sample.target is not None
    start = time.perf_counter()
    result = completer(sample.image, sample.sparse, sample.intrinsics)
    seconds = time.perf_counter() - start
    mean, target = result.distribution.mean.cpu(), sample.target[None]
    within = None
    if result.calibrated:
        within = float(coverage(mean, target, result.distribution.std.cpu(), _WITHIN))
    return Shown(
        case=case,
        points=int(measured(sample.sparse).sum()),
        rmse=float(errors(mean, target)["rmse"]),
        interpolated=float(errors(linear(sample).mean, target)["rmse"]),
        within=within,
        seconds=seconds,
        picture=_picture(sample, result),
    )


def page(shown: list[Shown], completer: DepthCompleter) -> str:
    """The whole document, pictures inside."""
    config = completer.model.config
    parts = [
        "<h1>Depth completion with uncertainty</h1>",
        "<p>Rendered scenes with exact depth. The model gets the image and the measurements (second panel);"
        " depth, confidence and the error against the exact depth follow. Grey: nothing known.</p>",
        f"<p>Model <code>{escape(config.name)}</code>, {'+'.join(map(str, config.iterations))} iterations of "
        f"belief propagation, device {escape(str(completer.device))}. Do this with your own data: "
        "<code>gbpn complete photo.jpg depth.png --scale 1000 -o out</code> "
        "(such files are in <code>example/</code>)</p>",
        _table(shown),
    ]
    for scene in dict.fromkeys(one.case.scene for one in shown):
        parts.append(f"<h2>{escape(scene.replace('_', ' ').capitalize())}</h2>")
        parts += [_figure(one) for one in shown if one.case.scene == scene]
    body = "\n".join(parts)
    return document("gbpn demo", body, style=_STYLE)


def _table(shown: list[Shown]) -> str:
    heads = ["scene", "sensor", "points", "RMSE, m", "of interpolation", "within 1 σ", "seconds"]
    rows = [
        [
            one.case.scene.replace("_", " "),
            one.case.caption,
            str(one.points),
            f"{one.rmse:.3f}",
            f"{one.interpolated:.3f}",
            "–" if one.within is None else f"{one.within:.0%}",
            f"{one.seconds:.2f}",
        ]
        for one in shown
    ]
    lines = ["".join(f"<td>{escape(cell)}</td>" for cell in row) for row in rows]
    head = "".join(f"<th>{escape(cell)}</th>" for cell in heads)
    return f"<table><tr>{head}</tr>" + "".join(f"<tr>{line}</tr>" for line in lines) + "</table>"


def _figure(shown: Shown) -> str:
    buffer = io.BytesIO()
    Image.fromarray(shown.picture).save(buffer, format="JPEG", quality=88)  # the PNG beside it is exact
    text = f"{shown.case.caption}: RMSE {shown.rmse:.3f} m; linear interpolation {shown.interpolated:.3f} m"
    return (
        f'<figure><figcaption>{escape(text)}</figcaption><img alt="{escape(text)}" '
        f'src="{embedded(buffer.getvalue(), "jpeg")}"></figure>'
    )


def _picture(sample: Sample, result: CompletedDepth) -> np.ndarray:
    row = pictures.PictureRow(
        sample=replace(sample, name="image"),
        mean=result.distribution.mean[0].cpu(),
        confidence=result.distribution.confidence[0].cpu(),
    )
    panels = pictures.row_panels(row)
    height, width = sample.image.shape[1:]
    return pictures.grid([panels[:3], panels[3:]] if width > _NARROW * height else [panels])


def _known(sample: Sample) -> Tensor:
    assert sample.target is not None
    return sample.target
