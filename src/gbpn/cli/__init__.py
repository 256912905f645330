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
    look,
    merge,
    project,
    studio,
    suggest,
    train,
    worlds,
)
from gbpn.cli.arguments import with_whole_points
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
_EXAMPLES = """\
gbpn complete photo.jpg depth.png --scale 1000

gbpn complete photo.jpg --points 120,80,2.5 --points 40,200,1.9

gbpn complete drive.mcap --image /cam/image --points /lidar/points
"""
_START, _USE, _MODELS = "Start here", "Points, clouds, other programs", "Models"

app.command("demo", rich_help_panel=_START)(demo.demo)
app.command("look", rich_help_panel=_START)(look.look)
app.command("complete", rich_help_panel=_START, epilog=_EXAMPLES)(complete.complete)
app.command("studio", rich_help_panel=_START)(studio.studio)
app.command("doctor", rich_help_panel=_START)(doctor.doctor)
app.command("project", rich_help_panel=_USE)(project.project)
app.command("suggest", rich_help_panel=_USE)(suggest.suggest)
app.command("merge", rich_help_panel=_USE)(merge.merge)
app.command("serve", rich_help_panel=_USE)(studio.serve)
app.command("info", rich_help_panel=_MODELS)(info.info)
app.command("eval", rich_help_panel=_MODELS)(eval.evaluate)
app.command("train", rich_help_panel=_MODELS)(train.train)
app.command("worlds", rich_help_panel=_MODELS)(worlds.worlds)
app.command("convert", rich_help_panel=_MODELS)(convert.convert)
app.command("export", rich_help_panel=_MODELS)(export.export)
app.add_typer(bench.app, name="bench", rich_help_panel=_MODELS)


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
        sys.argv[1:] = with_whole_points(sys.argv[1:])
        app()
    except GbpnError as error:
        Console(stderr=True, highlight=False, soft_wrap=True).print(
            f"[bold red]error:[/] {escape(str(error))}"
        )
        sys.exit(2)
