"""`gbpn demo`: the embedded scenes completed with the embedded weights."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from gbpn.cli.how_options import USUAL, with_how
from gbpn.errors import GbpnError
from gbpn.how import How

__all__ = ["demo"]


@with_how("stream", "prior_kind")
def demo(
    output: Annotated[
        Path, typer.Option("--output", "-o", help="Folder for the page and its pictures.")
    ] = Path("gbpn-demo"),
    weights: Annotated[str, typer.Option(help="Weights: name, file, folder or hub id.")] = "default",
    how: How = USUAL,
) -> None:
    """Complete the example scenes that come with gbpn at several sparsities, and write a page with them."""
    from rich.console import Console
    from rich.markup import escape
    from rich.progress import track

    from gbpn.jobs.demo import cases, run
    from gbpn.jobs.opening import open_completer

    console = Console(highlight=False, soft_wrap=True)
    completer = open_completer(weights, how)
    done = []
    try:
        for shown in track(
            run(completer, output),
            "completing",
            total=len(cases()),
            console=Console(stderr=True),
            transient=True,
        ):
            done.append(shown)
    except OSError as error:
        raise GbpnError(f"cannot write to {output}: {error.strerror or error}") from error
    console.print(f"{'':48} error   than interpolating", markup=False)
    for shown in sorted(done, key=lambda one: one.rmse / one.interpolated):
        share = 1 - shown.rmse / shown.interpolated
        words = f"{share:4.0%} less" if share > 0 else " no less"
        size = f"{shown.rmse:5.2f} m" if shown.relative is None else f"{shown.relative:5.1%}  "
        console.print(f"{shown.case.scene:12} {shown.case.caption:35} {size} {words}", markup=False)
    example = output / "example"
    console.print(f"\n[bold]open[/] {escape(str((output / 'index.html').resolve()))}")
    console.print("go on with:")
    for command, words in (
        (
            f"gbpn complete {example / 'photo.jpg'} {example / 'depth.png'} --scale 1000 -o out",
            "an image and its depth file",
        ),
        (
            f"gbpn complete {example / 'photo.jpg'} --points 120,80,2.5 --points 40,200,1.9 -o few",
            "two measurements by hand",
        ),
        ("gbpn studio", "click them, in the browser"),
    ):
        console.print(f"  {escape(command)}  [dim]# {words}[/]")
