"""The `gbpn` command: one module per verb, each importing what is heavy only when it runs."""

from __future__ import annotations

import sys

import typer
from rich.console import Console
from rich.markup import escape

from gbpn.cli import (
    bench,
    complete,
    convert,
    demo,
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

app = typer.Typer(
    name="gbpn",
    help="Depth completion with uncertainty: an image and a few measurements in, metres and sigmas out.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
app.add_typer(bench.app, name="bench")
app.command("complete")(complete.complete)
app.command("convert")(convert.convert)
app.command("demo")(demo.demo)
app.command("eval")(eval.evaluate)
app.command("export")(export.export)
app.command("info")(info.info)
app.command("merge")(merge.merge)
app.command("project")(project.project)
app.command("serve")(studio.serve)
app.command("studio")(studio.studio)
app.command("suggest")(suggest.suggest)
app.command("train")(train.train)


def main() -> None:
    """Run the command line; an expected error becomes one message and exit code 2."""
    try:
        app()
    except GbpnError as error:
        Console(stderr=True, highlight=False, soft_wrap=True).print(
            f"[bold red]error:[/] {escape(str(error))}"
        )
        sys.exit(2)
