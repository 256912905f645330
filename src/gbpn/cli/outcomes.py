"""What `gbpn complete` says at the end: files, notices, frames that were left out or failed."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.console import Console

    from gbpn.predict.jobs import Outcome

__all__ = ["plain", "tell", "tell_change"]

_CHANGED = 1e-3
"""Metres between a measurement and the depth given for it, from which on that is said."""


def tell(console: Console, outcomes: list[Outcome], output: Path) -> None:
    """What was written, what was noticed, what failed."""
    from gbpn.predict.notices import merged

    if len(outcomes) == 1:
        outcome = outcomes[0]
        for notice in outcome.notices:
            console.print(f"[yellow]note:[/] {plain(notice)}")
        _tell_dropped(console, outcomes)
        if outcome.state == "kept":
            console.print("done before with the same inputs and settings; --again redoes it", markup=False)
        for file in outcome.files:
            console.print(str(file), markup=False)
        return
    for notice, count in merged([notice for outcome in outcomes for notice in outcome.notices]):
        console.print(f"[yellow]note:[/] {plain(notice)} ({count} frames)")
    for reason, count in Counter(o.message for o in outcomes if o.state == "left out").items():
        console.print(f"[yellow]note:[/] {count} frames are left out: {plain(reason)}")
    _tell_dropped(console, outcomes)
    counts = Counter(outcome.state for outcome in outcomes)
    words = {"written": "written", "kept": "done before", "left out": "left out", "failed": "failed"}
    parts = [f"{counts[state]} {word}" for state, word in words.items() if counts[state]]
    console.print(f"{len(outcomes)} frames: {', '.join(parts)} → {output}", markup=False)
    for outcome in outcomes:
        if outcome.state == "failed":
            console.print(f"[red]failed:[/] {plain(outcome.job.name)}: {plain(outcome.message)}")


def tell_change(console: Console, outcomes: list[Outcome]) -> None:
    """How far answers are from what was measured."""
    largest = max((outcome.change for outcome in outcomes), default=0.0)
    if largest > _CHANGED:
        console.print(
            f"[yellow]note:[/] measured pixels were changed by up to {largest:.2g} m; "
            "--keep-measured gives them back as they were"
        )


def _tell_dropped(console: Console, outcomes: list[Outcome]) -> None:
    """How many measurements were not used."""
    frames = sum(outcome.dropped > 0 for outcome in outcomes)
    if frames:
        count = sum(outcome.dropped for outcome in outcomes)
        where = f" of {frames} frames" if len(outcomes) > 1 else ""
        noun = "measurement" if count == 1 else "measurements"
        console.print(
            f"[yellow]note:[/] {count} {noun}{where} that the rest contradicts: "
            "not used, crossed out in the preview; --outliers keep uses them"
        )


def plain(text: str) -> str:
    """Text in which brackets are brackets."""
    from rich.markup import escape

    return escape(text)
