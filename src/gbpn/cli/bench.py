"""`gbpn bench`: how fast, how much memory, on this machine."""

from __future__ import annotations

import typer

app = typer.Typer(help="Measure speed and memory on this machine.", no_args_is_help=True)


@app.callback()
def bench() -> None:
    """Measure speed and memory on this machine."""
