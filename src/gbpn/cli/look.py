"""`gbpn look`: what is in a thing, what fits together, and what to type."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from gbpn.errors import GbpnError

if TYPE_CHECKING:
    from gbpn.jobs.looking import SeenFrame

__all__ = ["look", "suggestion"]


def look(
    thing: Annotated[
        str,
        typer.Argument(
            help="Folder, COLMAP project, ROS bag or MCAP file, video, manifest, list of pairs, or one file."
        ),
    ],
    sparse: Annotated[
        str | None, typer.Argument(help="Its measurements, if they are elsewhere: a folder or a file.")
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option("-o", "--output", help="Contact sheet, .png or .jpg; by default THING_look.jpg here."),
    ] = None,
    no_sheet: Annotated[bool, typer.Option("--no-sheet", help="Write no contact sheet.")] = False,
) -> None:
    """Say what is in a thing, how its frames pair best, and which command completes it."""
    from rich.console import Console
    from rich.markup import escape

    from gbpn.jobs import looking
    from gbpn.jobs.aligning import suspicion
    from gbpn.jobs.sources import Sensor

    console = Console(highlight=False, soft_wrap=True)
    with looking.look(thing, sparse) as found:
        seen, wrong = looking.seen_of(found)
        turned = suspicion(Sensor(**found.reading), found.jobs)
    console.print(f"[bold]{escape(thing)}[/] is {escape(found.what)}")
    facts = [*found.facts, *_facts(seen)]
    width = max([9, *(len(name) for name, _ in facts)])
    for name, text in facts:
        console.print(f"[bold]{escape(name.ljust(width))}[/] {escape(text)}")
    notices = [notice for one in seen for notice in one.inputs.notices]
    for doubt in dict.fromkeys([*found.doubts, *notices, *wrong, *([turned] if turned else [])]):
        console.print(f"[yellow]note:[/] {escape(doubt)}")
    if seen and not no_sheet:
        place = output or Path(f"{Path(thing).resolve().stem}_look.jpg")
        looking.sheet(seen, place)
        console.print(f"[bold]{'look at'.ljust(width)}[/] {escape(str(place))}")
    if found.command:
        console.print(f"[bold]{'type'.ljust(width)}[/] {escape(found.typed)}")


def suggestion(thing: str, sparse: str | None, refused: GbpnError) -> str:
    """A refusal of `gbpn complete`, with what `gbpn look` would type instead, if it knows anything."""
    from gbpn.jobs import looking

    try:
        with looking.look(thing, sparse) as found:
            typed = found.typed
    except Exception:  # the refusal itself is what a person must see
        typed = ""
    return f"{refused}\ntry: {typed}   (gbpn look {thing} says more)" if typed else str(refused)


def _facts(seen: list[SeenFrame]) -> list[tuple[str, str]]:
    """Of frames that were read."""
    from statistics import median

    from gbpn.measurements.validity import measured

    frames = [one.inputs for one in seen]
    if not frames:
        return []
    sizes = sorted({f"{one.size[1]}×{one.size[0]}" for one in frames})
    points = [int(measured(one.sparse).sum()) for one in frames]
    known = [one.sparse[measured(one.sparse)] for one in frames]
    unit = "m" if all(one.metric for one in frames) else "units"
    ends = min(float(values.min()) for values in known), max(float(values.max()) for values in known)
    return [
        ("frames", f"{', '.join(sizes)}, focal length {frames[0].intrinsics[0, 0]:.0f} pixels"),
        ("measured", f"{median(points):.0f} points a frame, {ends[0]:.2f} to {ends[1]:.2f} {unit}"),
    ]
