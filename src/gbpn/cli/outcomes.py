"""What `gbpn complete` says at the end: files, notices, frames that were left out or failed."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.console import Console

    from gbpn.jobs.run import Outcome

__all__ = ["plain", "tell", "tell_change"]

_CHANGED = 1e-3
"""Metres between a measurement and the depth given for it, from which on that is said."""


def tell(console: Console, outcomes: list[Outcome], output: Path) -> None:
    """What was written, what was noticed, what failed."""
    from gbpn.jobs.notices import merged

    if len(outcomes) == 1:
        outcome = outcomes[0]
        for notice in outcome.notices:
            console.print(f"[yellow]note:[/] {plain(notice)}")
        _tell_dropped(console, outcomes)
        if outcome.state == "kept":
            console.print("done before with the same inputs and settings; --again redoes it", markup=False)
        _tell_glance(console, outcome)
        return
    for notice, count in merged([notice for outcome in outcomes for notice in outcome.notices]):
        console.print(f"[yellow]note:[/] {plain(notice)} ({_frames(count)})")
    for reason, count in Counter(o.message for o in outcomes if o.state == "left out").items():
        are = "is" if count == 1 else "are"
        console.print(f"[yellow]note:[/] {_frames(count)} {are} left out: {plain(reason)}")
    _tell_dropped(console, outcomes)
    counts = Counter(outcome.state for outcome in outcomes)
    words = {"written": "written", "kept": "done before", "left out": "left out", "failed": "failed"}
    parts = [f"{counts[state]} {word}" for state, word in words.items() if counts[state]]
    console.print(f"{len(outcomes)} frames: {', '.join(parts)} → {output}", markup=False)
    _tell_all_at_a_glance(console, outcomes)
    for outcome in outcomes:
        if outcome.state == "failed":
            console.print(f"[red]failed:[/] {plain(outcome.job.name)}: {plain(outcome.message)}")


def _tell_glance(console: Console, outcome: Outcome) -> None:
    """One frame: what went in, what came out, where to look."""
    import math

    job, seen = outcome.job, outcome.glance
    if seen is not None:
        height, width = seen.size
        source = f" from {job.sparse}" if job.sparse is not None else ""
        angle = 2 * math.degrees(math.atan(width / 2 / seen.focal))
        doubt = "" if seen.sigma is None else f", typically ± {_length(seen.sigma, seen.metric)}"
        noun = "point" if seen.points == 1 else "points"
        rows = {
            "image": f"{job.image}, {width}×{height}",
            "measured": f"{seen.points} {noun}, {_range(seen.measured, seen.metric)}{source}",
            "camera": seen.wide or f"{seen.focal:.0f} pixels focal length, {angle:.0f}° wide",
            ("range" if seen.wide else "depth"): f"{_range(seen.depth, seen.metric)}{doubt}",
            "time": f"{seen.seconds:.1f} s, convolutions in {seen.precision}",
        }
        for name, text in rows.items():
            console.print(f"[bold]{name:9}[/] {plain(text)}")
    previews = [file for file in outcome.files if file.name.endswith("_preview.png")]
    for number, file in enumerate(file for file in outcome.files if file not in previews):
        console.print(f"[bold]{'' if number else 'files':9}[/] {plain(str(file))}")
    for file in previews:
        console.print(f"[bold]{'look at':9}[/] {plain(str(file))}")


def _tell_all_at_a_glance(console: Console, outcomes: list[Outcome]) -> None:
    """Many frames: points, depth and time of those written now, and where one can be looked at."""
    from statistics import median

    seen = [outcome.glance for outcome in outcomes if outcome.glance is not None]
    if not seen:
        return
    points = f"{median(one.points for one in seen):.0f} points a frame"
    ends = min(one.depth[0] for one in seen), max(one.depth[1] for one in seen)
    depth = _range(ends, all(one.metric for one in seen))
    pace = f"{sum(one.seconds for one in seen) / len(seen):.1f} s a frame in {seen[0].precision}"
    console.print(f"{points}, depth {depth}, {pace}", markup=False)
    first = next(outcome for outcome in outcomes if outcome.glance is not None)
    for file in first.files:
        if file.name.endswith("_preview.png"):
            console.print(f"[bold]look at[/] {plain(str(file))}")


def _frames(count: int) -> str:
    return f"{count} frame" if count == 1 else f"{count} frames"


def _range(ends: tuple[float, float], metric: bool) -> str:
    if ends[0] == ends[1]:
        return _length(ends[0], metric)
    return (
        f"{ends[0]:.2f} to {ends[1]:.2f} m"
        if metric
        else f"{ends[0]:.3g} to {ends[1]:.3g} units of the model"
    )


def _length(value: float, metric: bool) -> str:
    if not metric:
        return f"{value:.2g} units"
    return f"{value:.2f} m" if value >= 0.1 else f"{100 * value:.1f} cm"


def tell_change(console: Console, outcomes: list[Outcome]) -> None:
    """How far answers are from what was measured."""
    largest = max((outcome.change for outcome in outcomes), default=0.0)
    metric = all(outcome.glance is None or outcome.glance.metric for outcome in outcomes)
    unit = "m" if metric else "units"
    if largest > _CHANGED:
        console.print(
            f"[yellow]note:[/] measured pixels were changed by up to {largest:.2g} {unit}; "
            "--keep-measured gives them back as they were"
        )


def _tell_dropped(console: Console, outcomes: list[Outcome]) -> None:
    """How many measurements were not used."""
    frames = sum(outcome.dropped > 0 for outcome in outcomes)
    if frames:
        count = sum(outcome.dropped for outcome in outcomes)
        where = f" of {_frames(frames)}" if len(outcomes) > 1 else ""
        noun = "measurement" if count == 1 else "measurements"
        console.print(
            f"[yellow]note:[/] {count} {noun}{where} that the rest contradicts: "
            "not used, crossed out in the preview; --outliers keep uses them"
        )


def plain(text: str) -> str:
    """Text in which brackets are brackets."""
    from rich.markup import escape

    return escape(text)
