"""The demonstration: embedded scenes completed at several sparsities, as a page that needs nothing else."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from torch import Tensor

from gbpn import scenes
from gbpn.answer.completed import CompletedDepth
from gbpn.baselines import linear
from gbpn.files.atomic import write_text
from gbpn.formats.depth_files import write_depth
from gbpn.formats.images import write_image
from gbpn.jobs import demo_page
from gbpn.measurements.validity import measured
from gbpn.metrics.errors import errors
from gbpn.metrics.uncertainty import coverage
from gbpn.predict.completer import DepthCompleter
from gbpn.sample import Sample
from gbpn.sensors import patterns
from gbpn.show import pictures

__all__ = ["SEED", "Case", "Shown", "cases", "run", "show", "write_example"]

SEED = 7
"""Of all random points: everybody sees the same demonstration."""
_WITHIN = 0.6827
"""Share of a Gaussian within one sigma."""
_NARROW = 2.0
"""Width over height above which the panels of a scene stand in two rows."""


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
    relative: float | None
    """Mean error over depth, where metres say little: of streets."""
    within: float | None
    """Share of pixels within one stated sigma; None without calibration."""
    seconds: float
    picture: np.ndarray
    """All panels in one."""
    sample: Sample
    result: CompletedDepth


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
    write_text(folder / "index.html", demo_page.page(done, completer))


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
    result = completer(
        sample.image, sample.sparse, sample.intrinsics, sigmas=completer.model.calibration is not None
    )
    seconds = time.perf_counter() - start
    mean, target = result.distribution.mean.cpu(), sample.target[None]
    within = None
    if result.calibrated:
        within = float(coverage(mean, target, result.distribution.std.cpu(), _WITHIN))
    found = errors(mean, target)
    return Shown(
        case=case,
        points=int(measured(sample.sparse).sum()),
        rmse=float(found["rmse"]),
        relative=float(found["rel"]) if case.scene in scenes.STREETS else None,
        interpolated=float(errors(linear(sample).mean, target)["rmse"]),
        within=within,
        seconds=seconds,
        picture=_picture(sample, result),
        sample=sample,
        result=result,
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
