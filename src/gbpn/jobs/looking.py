"""A look before the work: what is in a thing, what fits together, and what to type."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from gbpn.errors import GbpnError, InputError
from gbpn.files.guard import shown
from gbpn.jobs.pairing import Job

if TYPE_CHECKING:
    from gbpn.inputs.frame import FrameInputs
    from gbpn.recordings.bags import Recording

__all__ = ["Inventory", "SeenFrame", "command", "look", "seen_of", "sheet", "spread"]

_TILE = 320
"""Pixels; pictures of a contact sheet are thinned out to about this width."""


@dataclass(frozen=True, kw_only=True)
class Inventory:
    """What a thing is."""

    what: str
    """In a few words: "a folder", "a ROS bag"."""
    facts: tuple[tuple[str, str], ...]
    """Name and text, line by line."""
    command: tuple[str, ...]
    """The words to type; empty where nothing can be completed."""
    doubts: tuple[str, ...] = ()
    """What was guessed and why, or what is missing."""
    jobs: tuple[Job, ...] = ()
    """The frames, as they pair best."""
    reading: dict[str, Any] = field(default_factory=dict)
    """How their files are read: fields of `gbpn.jobs.sources.Sensor`."""
    opened: Recording | None = None
    """What the frames are read from; a `with` block closes it."""

    def __enter__(self) -> Inventory:
        return self

    def __exit__(self, *_: object) -> None:
        if self.opened is not None:
            self.opened.close()

    @property
    def typed(self) -> str:
        """The command in one line."""
        return shlex.join(self.command)


@dataclass(frozen=True, kw_only=True)
class SeenFrame:
    """One frame that was read."""

    job: Job
    inputs: FrameInputs


def command(thing: Path, sparse: Path | None = None, **options: object) -> tuple[str, ...]:
    """`gbpn complete` of these with options: True is a flag, None and False are left out."""
    words = ["gbpn", "complete", str(thing), *([str(sparse)] if sparse is not None else [])]
    for name, value in options.items():
        option = "--" + name.replace("_", "-")
        words += (
            [] if value is None or value is False else [option] if value is True else [option, str(value)]
        )
    return (*words, "-o", "completed")


def look(thing: str, sparse: str | None = None) -> Inventory:
    """What `thing` is, perhaps with its measurements in `sparse`; torch is loaded by what needs it only."""
    from gbpn.formats.colmap_layout import model_folders
    from gbpn.jobs import look_at_files, look_at_recordings
    from gbpn.recordings.bags import is_recording
    from gbpn.recordings.video import VIDEOS

    path = Path(thing)
    if not path.exists():
        raise InputError(f"{shown(thing)}: there is no such file or folder")
    if is_recording(path):
        return look_at_recordings.bag(path)
    if path.suffix.lower() in VIDEOS:
        return look_at_recordings.video(path, None if sparse is None else Path(sparse))
    if model := next(
        (place for place in (sparse, thing) if place is not None and model_folders(place)), None
    ):
        return look_at_recordings.project(path, Path(model))
    if path.is_dir():
        return look_at_files.folder(path, None if sparse is None else Path(sparse))
    return look_at_files.file(path, None if sparse is None else Path(sparse))


def spread(jobs: Sequence[Job], count: int = 4) -> list[Job]:
    """At most so many of the frames that have measurements, from the first to the last."""
    usable = [job for job in jobs if not (job.problem or job.left_out)]
    if not usable:
        return []
    places = np.unique(np.linspace(0, len(usable) - 1, count).round().astype(int))
    return [usable[place] for place in places]


def seen_of(found: Inventory) -> tuple[list[SeenFrame], list[str]]:
    """Some frames as `gbpn complete` would read them, and what is wrong with the others."""
    from gbpn.jobs.sources import Sensor, read_job

    seen, wrong, sensor = [], [], Sensor(**found.reading)
    for job in spread(found.jobs):
        try:
            inputs = read_job(job, sensor)
            seen.append(SeenFrame(job=job, inputs=inputs))
        except GbpnError as error:
            wrong.append(f"{job.name}: {error}")
    return seen, wrong


def sheet(seen: Sequence[SeenFrame], path: Path) -> None:
    """A picture of frames, each beside its measurements in colours."""
    from gbpn.measurements.validity import measured
    from gbpn.show import pictures

    rows = []
    for one in seen:
        step = max(1, one.inputs.image.shape[2] // _TILE)
        image = one.inputs.image[:, ::step, ::step]
        sparse = _thinned(one.inputs.sparse[0].numpy(), step)
        low, high = pictures.value_range(sparse)
        import torch

        points = pictures.measurements(image, torch.from_numpy(sparse)[None], low, high)
        count = int(measured(one.inputs.sparse).sum())
        told = f"{count} points, {low:.2f} to {high:.2f}"
        rows.append([pictures.titled(pictures.photo(image), one.job.name), pictures.titled(points, told)])
    pictures.save(pictures.grid(rows), path)


def _thinned(depth: np.ndarray, step: int) -> np.ndarray:
    """[H, W] → every step-th row and column, no point lost: the nearest of a square stays."""
    height, width = -(-depth.shape[0] // step), -(-depth.shape[1] // step)
    padded = np.zeros((height * step, width * step), np.float32)
    padded[: depth.shape[0], : depth.shape[1]] = depth
    squares = np.where(padded > 0, padded, np.inf).reshape(height, step, width, step).min(axis=(1, 3))
    return np.where(np.isfinite(squares), squares, 0).astype(np.float32)
