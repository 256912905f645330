"""The `gbpn` command: one module per verb, each importing what is heavy only when it runs."""

from __future__ import annotations

import sys
from typing import Annotated

import typer
from rich.console import Console
from rich.markup import escape

from gbpn.cli import (
    bench,
    complete,
    convert,
    demo,
    doctor,
    eval,
    export,
    info,
    merge,
    project,
    studio,
    suggest,
    train,
)
from gbpn.errors import GbpnError


def _version(wanted: bool) -> None:
    if wanted:
        from gbpn import __version__

        typer.echo(f"gbpn {__version__}")
        raise typer.Exit()


app = typer.Typer(
    name="gbpn",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)
app.add_typer(bench.app, name="bench")
app.command("complete")(complete.complete)
app.command("convert")(convert.convert)
app.command("demo")(demo.demo)
app.command("doctor")(doctor.doctor)
app.command("eval")(eval.evaluate)
app.command("export")(export.export)
app.command("info")(info.info)
app.command("merge")(merge.merge)
app.command("project")(project.project)
app.command("serve")(studio.serve)
app.command("studio")(studio.studio)
app.command("suggest")(suggest.suggest)
app.command("train")(train.train)


@app.callback()
def _options(
    version: Annotated[
        bool, typer.Option("--version", help="Print the version and end.", is_eager=True, callback=_version)
    ] = False,
) -> None:
    """Depth completion with uncertainty: an image and a few measurements in, metres and sigmas out."""


def main() -> None:
    """Run the command line; an expected error becomes one message and exit code 2."""
    try:
        app()
    except GbpnError as error:
        Console(stderr=True, highlight=False, soft_wrap=True).print(
            f"[bold red]error:[/] {escape(str(error))}"
        )
        sys.exit(2)
