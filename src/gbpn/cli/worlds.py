"""`gbpn worlds`: data sets of drawn rooms and streets with exact depth."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from rich.console import Console

    from gbpn.jobs.drawing_worlds import Progress

__all__ = ["size_of", "worlds"]

_SOME_FAILED = 3
"""Exit code if frames could not be drawn."""
_SHOWN_FAILURES = 5
_REPORT = 30.0
"""Seconds between lines where there is no terminal to draw a bar in."""


def worlds(
    out: Annotated[Path, typer.Option("--out", "-o", help="Folder; each kind is a scene in it.")],
    frames: Annotated[int, typer.Option(help="Frames of each kind; more may be asked for later.")],
    kind: Annotated[str, typer.Option(help="rooms, streets or both.")] = "both",
    seed: Annotated[int, typer.Option(help="Frame N depends on this and N only.")] = 1,
    size: Annotated[str, typer.Option(help="Width x height in pixels.")] = "320x240",
    views: Annotated[
        int | None,
        typer.Option(help="Frames that are taken in each world; default 2 in rooms, 3 in streets."),
    ] = None,
    handheld: Annotated[
        bool, typer.Option("--handheld", help="The views of a world are a sequence by one camera.")
    ] = False,
    sensors: Annotated[
        str | None,
        typer.Option(help="Who looks on, with commas: kinect, lidar_64 …; none; default by kind."),
    ] = None,
    licence: Annotated[
        str, typer.Option(help="Of models: any, or cc0, which nobody need be named for.")
    ] = "any",
    role: Annotated[str, typer.Option(help="What the frames are for: train or evaluation.")] = "train",
    beside: Annotated[
        list[Path] | None, typer.Option(help="A pool scene of depth maps to compare with on the page.")
    ] = None,
    processes: Annotated[int | None, typer.Option(help="At once; default one a core.")] = None,
) -> None:
    """Draw rooms and streets without end: photographs, exact depth, and what depth sensors measure there.

    A killed run goes on where it was when the same command is given again.
    """
    from rich.console import Console

    from gbpn.errors import InputError
    from gbpn.jobs.drawing_worlds import draw_worlds, opened
    from gbpn.jobs.worlds_page import write_page
    from gbpn.worlds.frame import Wanted
    from gbpn.worlds.kinds import KINDS

    if kind not in (*KINDS, "both"):
        raise InputError(f"--kind must be {', '.join(KINDS)} or both; got {kind!r}")
    for folder in beside or ():
        if not (folder / "meta.json").is_file() or not (folder / "depth").is_dir():
            raise InputError(f"--beside {folder}: expected a scene with meta.json and depth/")
    if frames < 1:
        raise InputError(f"--frames must be 1 or more; got {frames}")
    processes = _cores() if processes is None else processes
    if processes < 1:
        raise InputError(f"--processes must be 1 or more; got {processes}")
    wanted = [
        Wanted(
            kind=name,
            seed=seed,
            size=size_of(size),
            views=views,
            handheld=handheld,
            licence=licence,
            sensors=_names(sensors),
        )
        for name in (KINDS if kind == "both" else (kind,))
    ]
    scenes = [opened(out, one, role) for one in [one.checked() for one in wanted]]
    console = Console(highlight=False, soft_wrap=True)
    failed = False
    for scene in scenes:
        with _Watch() as watch:
            progress = draw_worlds(scene, frames, processes=processes, on_progress=watch.follow)
        page = write_page(scene, beside=beside or (), rate=progress.rate * 3600 or None)
        _tell(console, progress, page)
        failed |= bool(progress.failures)
    if failed:
        raise typer.Exit(_SOME_FAILED)


def size_of(text: str) -> tuple[int, int]:
    """Width and height of words such as 320x240."""
    from gbpn.errors import InputError

    width, cross, height = text.lower().partition("x")
    if not (cross and width.isdigit() and height.isdigit()):
        raise InputError(f"--size must be width x height, such as 320x240; got {text!r}")
    return int(width), int(height)


def _names(text: str | None) -> tuple[str, ...] | None:
    if text is None:
        return None
    return () if text == "none" else tuple(name.strip() for name in text.split(",") if name.strip())


def _cores() -> int:
    """Cores that this process may use."""
    import os

    known = getattr(os, "sched_getaffinity", None)
    return len(known(0)) if known is not None else os.cpu_count() or 1


class _Watch:
    """A bar on a terminal; a line every now and then elsewhere."""

    def __init__(self) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, Progress, TextColumn

        self._console = Console(stderr=True, highlight=False, soft_wrap=True)
        columns = TextColumn("{task.description}"), BarColumn(None), TextColumn("{task.fields[told]}")
        self._bar = Progress(
            *columns,
            console=self._console,
            transient=True,
            expand=True,
            disable=not self._console.is_terminal,
        )
        self._task = self._bar.add_task("drawing", total=None, told="starting")
        self._told = 0.0

    def __enter__(self) -> _Watch:
        self._bar.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._bar.stop()

    def follow(self, progress: Progress) -> None:
        there, told = progress.before + progress.drawn, _words(progress)
        self._bar.update(
            self._task, description=progress.kind, total=progress.frames, completed=there, told=told
        )
        if not self._console.is_terminal and progress.seconds - self._told >= _REPORT:
            self._told = progress.seconds
            self._console.print(f"{progress.kind}: {told}", markup=False)


def _words(progress: Progress) -> str:
    """Frames, rate, time left, failures."""
    parts = [f"{progress.before + progress.drawn}/{progress.frames}"]
    if progress.drawn:
        parts.append(f"{progress.rate * 3600:,.0f}/h")
    if (left := progress.left) is not None and left > 0:
        parts.append(f"{_time(left)} left")
    if progress.failures:
        parts.append(f"{len(progress.failures)} failed")
    return ", ".join(parts)


def _time(seconds: float) -> str:
    if seconds >= 5400:
        return f"{seconds / 3600:.1f} h"
    return f"{seconds / 60:.0f} min" if seconds >= 90 else f"{seconds:.0f} s"


def _tell(console: Console, progress: Progress, page: Path) -> None:
    """What there is now, and what could not be drawn."""
    kept = f", {progress.before} were there" if progress.before else ""
    rate = f" in {_time(progress.seconds)} ({progress.rate * 3600:,.0f} an hour)" if progress.drawn else ""
    console.print(f"{progress.drawn} {progress.kind} drawn{rate}{kept}", markup=False)
    console.print(f"look at {page}; CREDITS.md is beside it", markup=False)
    for failure in progress.failures[:_SHOWN_FAILURES]:
        console.print(f"failed: {failure}", markup=False, style="red")
    if len(progress.failures) > _SHOWN_FAILURES:
        console.print(f"and {len(progress.failures) - _SHOWN_FAILURES} more", markup=False)
