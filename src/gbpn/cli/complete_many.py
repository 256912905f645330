"""`gbpn complete` past one machine: what is told while shards end, and at the end."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import typer

from gbpn.cli.outcomes import plain
from gbpn.errors import InputError

if TYPE_CHECKING:
    from rich.console import Console

    from gbpn.scale import Summary

__all__ = ["complete_many", "refuse_on_many"]

_SOME_FAILED = 3
"""Exit code if frames failed, or are still to be done."""
_SHOWN_FAILURES = 10


def refuse_on_many(*, rerun: object, again: bool, refine: bool, recorded: bool) -> None:
    """Raise for what needs all frames in one place."""
    wanted = {
        "--rerun": rerun is not None,
        "--again": again,
        "--refine-extrinsics": refine,
        "a recording or video": recorded,
    }
    for name, given in wanted.items():
        if given:
            raise InputError(
                f"{name} is for one machine and frames in its folders: leave out --distributed; a finished "
                "output is done anew under another -o"
            )


def complete_many(console: Console, source: str, sparse: str | None, output: str, **options: Any) -> None:
    """Run, with a bar; tell what became of it; exit code 3 if something failed."""
    from rich.console import Console as OtherConsole
    from rich.progress import BarColumn, Progress, TextColumn

    from gbpn import scale

    columns = TextColumn("completing"), BarColumn(), TextColumn("{task.fields[told]}")
    with Progress(*columns, console=OtherConsole(stderr=True), transient=True) as bar:
        task = bar.add_task("completing", total=None, told="starting")

        def follow(summary: Summary) -> None:
            bar.update(task, total=summary.shards, completed=summary.done_shards, told=_progress(summary))

        summary = scale.complete(source, sparse, output, on_progress=follow, **options)
    for sentence in summary.sentences():
        console.print(plain(sentence))
    if summary.failed:
        rows = scale.read_quarantine(output).slice(0, _SHOWN_FAILURES).to_pylist()
        for row in rows:
            console.print(f"[red]failed:[/] {plain(row['frame'])}: {plain(row['error'])}")
        console.print(
            f"all failures: {summary.output}/gbpn/quarantine; --retry-failed does them anew", markup=False
        )
    if summary.failed or summary.postponed:
        raise typer.Exit(_SOME_FAILED)


def _progress(summary: Summary) -> str:
    """Frames, rate, time to go and failures, in one line."""
    total = "" if summary.frames is None else f"/{summary.frames}"
    parts = [f"{summary.now + summary.before}{total} frames", f"{summary.rate:.2f}/s"]
    if (left := summary.remaining) is not None:
        parts.append(f"{left / 60:.0f} min left" if left > 90 else f"{left:.0f} s left")
    if summary.failed:
        parts.append(f"{summary.failed} failed")
    if summary.retried:
        parts.append(f"{summary.retried} retries")
    return ", ".join(parts)
