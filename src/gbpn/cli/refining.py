"""What `gbpn complete` says of a calibration, before and after the work."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from gbpn.cli.outcomes import plain

if TYPE_CHECKING:
    from rich.console import Console

    from gbpn.jobs.run import Job, Outcome
    from gbpn.jobs.sources import Sensor

__all__ = ["refine", "tell_suspicion"]


def refine(console: Console, sensor: Sensor, frames: Sequence[Job], *, wanted: bool) -> Sensor:
    """The sensor as it is, or if `wanted` turned as the edges of the frames want it, which is told."""
    if not wanted:
        return sensor
    from gbpn.jobs.aligning import refined

    sensor, told = refined(sensor, frames)
    console.print(f"[bold]calibration[/] {plain(told)}")
    return sensor


def tell_suspicion(console: Console, sensor: Sensor, outcomes: Sequence[Outcome]) -> None:
    """After frames were written: whether their measurements seem to be turned."""
    from gbpn.jobs.aligning import suspicion

    told = suspicion(sensor, [outcome.job for outcome in outcomes if outcome.state == "written"])
    if told is not None:
        console.print(f"[yellow]note:[/] {plain(told)}")
